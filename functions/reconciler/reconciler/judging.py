"""Says what is wrong with one order, from what the three books say about it. Pure.

The order of the questions follows the money: what moved twice comes before what is unrecorded,
and that before what has not been charged yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from reconciler.books import (
    DONE,
    IN_PROGRESS,
    REFUSED,
    SETTLED,
    Charge,
    Money,
    ObjectVersion,
    Place,
    Record,
    Run,
)


class Kind(StrEnum):
    """The kinds of findings. docs/reconciler.md says what each means and asks for."""

    MISSING = "missing"
    STUCK = "stuck"
    CHARGED_NOT_RECORDED = "charged_not_recorded"
    RECORDED_NOT_CHARGED = "recorded_not_charged"
    CHARGED_BUT_REFUSED = "charged_but_refused"
    CHARGED_TWICE = "charged_twice"
    SAME_ORDER_ID = "same_order_id"
    AMOUNT_MISMATCH = "amount_mismatch"
    SUPERSEDED = "superseded"
    UNMATCHED_OBJECT = "unmatched_object"
    UNVERSIONED_OBJECT = "unversioned_object"


NOBODY_MAY_GUESS = frozenset(
    {
        "KeyReuseMismatch",
        "ProviderCredentialsRefused",
        "ProviderMisbehaved",
        "ConflictingCharge",
        "UnknownRecordStatus",
    }
)
"""Errors after which another run would only end in the same way: a person has to act first, and
then replays the order from the failure queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """`grace`: how long an order may be on its way. `horizon`: the oldest moment that is judged
    for repair; never before the ledger existed."""

    grace: timedelta
    horizon: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """An execution that would mend the finding, as its input; it has no other effect than that
    of the order's own event delivered again."""

    key: str
    execution_input: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong. `repair` is None when a person has to decide."""

    kind: Kind
    key: str | None
    place: Place | None
    detail: str
    repair: Repair | None = None

    def document(self) -> dict[str, Any]:
        """The item of the report: `{"kind", "idempotency_key", "object", "detail"}`."""
        return {
            "kind": self.kind.value,
            "idempotency_key": self.key,
            "object": None if self.place is None else self.place._asdict(),
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What the books say about one idempotency key, read one after the other a moment ago.

    `place` is known when a book names the object version, `version` when the order bucket has it.
    `run` is the owner of a record in progress, and has ended: while it runs there is no case.
    `ordered` is read from the order file where no record holds an amount.
    """

    key: str
    place: Place | None
    version: ObjectVersion | None
    record: Record | None
    charges: Sequence[Charge]
    run: Run | None = None
    ordered: Money | None = None

    @property
    def succeeded(self) -> list[Charge]:
        return [charge for charge in self.charges if charge.succeeded]

    @property
    def status(self) -> str | None:
        return None if self.record is None else self.record.status


def judge(case: Case, rules: Rules, now: datetime) -> list[Finding]:
    """The findings for one order: none, one, or several that are independent of each other."""
    if case.status in SETTLED:
        return _settled(case)
    return [] if is_young(case, rules, now) else _open(case, rules, _since(case))


def is_young(case: Case, rules: Rules, now: datetime) -> bool:
    """Whether the order may still be on its way, so that `judge` has no opinion on it yet."""
    since = _since(case)
    return case.status not in SETTLED and since is not None and since > now - rules.grace


def _settled(case: Case) -> list[Finding]:
    record, charges = case.record, case.succeeded
    assert record is not None  # noqa: S101 - it has a status
    found = []
    if len(charges) > 1:
        found.append(_twice(case))
    if record.status in REFUSED and len(charges) == 1:
        found.append(
            _finding(
                Kind.CHARGED_BUT_REFUSED,
                case,
                charges[0].created,
                f"Refund charge {charges[0].id}, or tell the customer that the order stands.",
            )
        )
    if record.status == DONE:
        own = next((charge for charge in charges if charge.id == record.charge_id), None)
        if own is None:
            remedy = (
                "Find out who wrote this record: money moved, but as another charge."
                if charges
                else "Ask the provider; if no money moved, have the order paid in another way."
            )
            found.append(_finding(Kind.RECORDED_NOT_CHARGED, case, record.settled_at, remedy))
        elif (own.amount_minor, own.currency) != (record.amount_minor, record.currency):
            found.append(
                _finding(
                    Kind.AMOUNT_MISMATCH,
                    case,
                    own.created,
                    "Compare both with the order file, and refund or collect the difference.",
                )
            )
    return found


def _open(case: Case, rules: Rules, since: datetime | None) -> list[Finding]:
    """No settled record, and nobody at work on it. `since` is None for a record that tells no
    time, of an object that is gone."""
    charges = case.succeeded
    if len(charges) > 1:
        return [_twice(case)]
    if charges:
        charge = charges[0]
        if case.ordered not in (None, Money(charge.amount_minor, charge.currency)):
            remedy = "Refund or collect the difference; no run will settle this by itself."
            return [_finding(Kind.AMOUNT_MISMATCH, case, charge.created, remedy)]
        remedy = "A run finds this charge and records it."
        return [_repairable(Kind.CHARGED_NOT_RECORDED, case, rules, charge.created, since, remedy)]
    if case.record is None:
        if case.version is None or since is None or since < rules.horizon:
            return []  # gone, or so old that its record may have expired: counted, never charged
        kind, remedy = Kind.MISSING, "A run charges it."
    else:
        kind, remedy = Kind.STUCK, "A run takes it over from its dead owner."
    if case.version is None or not case.version.is_latest:
        remedy = (
            "Ask whether this order is still wanted: if so, upload it again under a name of its "
            "own; nothing charges this version by itself."
        )
        return [_finding(Kind.SUPERSEDED, case, since, remedy)]
    return [_repairable(kind, case, rules, since, since, remedy)]


def _twice(case: Case) -> Finding:
    charges = case.succeeded
    recorded = None if case.record is None else case.record.charge_id
    ids = [charge.id for charge in charges]
    # The recorded one stands; where none is recorded, the first.
    kept = recorded if recorded in ids else ids[0]
    refunds = ", ".join(
        f"{charge.id} ({charge.amount_minor} {charge.currency} in minor units)"
        for charge in charges
        if charge.id != kept
    )
    return _finding(
        Kind.CHARGED_TWICE,
        case,
        max(charge.created for charge in charges),
        f"Refund {refunds}; {kept} is the one to keep.",
    )


def unmatched_object(version: ObjectVersion) -> Finding:
    """An upload below the prefix that the rule's pattern does not match."""
    return Finding(
        kind=Kind.UNMATCHED_OBJECT,
        key=None,
        place=version.place,
        detail=f"{_object(version.place, version)} Ledger and provider: not asked, since it is no "
        f"order by name. Since {_time(version.last_modified)}. If it is an order, upload it again "
        f"as orders/NAME.json; else move it out of orders/.",
    )


def unversioned_object(version: ObjectVersion) -> Finding:
    """An order whose key cannot be known: a listing shows no sequencer."""
    return Finding(
        kind=Kind.UNVERSIONED_OBJECT,
        key=None,
        place=version.place,
        detail=f"{_object(version.place, version)} Ledger and provider: not asked, since without "
        f"a version its idempotency key cannot be known. Since {_time(version.last_modified)}. "
        f"Look for its charge by hand; upload it again only if there is none.",
    )


def same_order_id(order_id: str, case: Case, others: Sequence[Case]) -> Finding:
    """One of several versions that were charged under one order id; `others` are the rest."""
    rest = ", ".join(
        f"{_name(other.place)} with {' and '.join(charge.id for charge in other.succeeded)}"
        for other in others
    )
    return _finding(
        Kind.SAME_ORDER_ID,
        case,
        case.record and case.record.settled_at,
        f"Order id {order_id} was charged for {rest} as well. Refund what was a mistake, or "
        f"accept both.",
    )


# ---------------------------------------------------------------- repairs


def _repairable(
    kind: Kind,
    case: Case,
    rules: Rules,
    since: datetime | None,
    age: datetime | None,
    remedy: str,
) -> Finding:
    """A finding that a run would mend, unless a reason speaks against starting one."""
    obstacle = _obstacle(case, rules, age)
    if obstacle is not None:
        return _finding(kind, case, since, obstacle)
    place, record = case.place, case.record
    assert place is not None  # noqa: S101 - it would have been an obstacle
    etag = case.version.etag if case.version else ((record and record.etag) or "gone")
    execution_input: dict[str, Any] = {
        "source": "charge-once.reconciler",
        "detail-type": "Object Created",
        "detail": {
            "bucket": {"name": place.bucket},
            "object": {"key": place.key, "version-id": place.version_id, "etag": etag},
        },
        # Its being there makes the run ask the provider's books before it charges.
        "replay": {} if record is None else {"owner": record.owner},
    }
    return _finding(
        kind,
        case,
        since,
        f"{remedy} `reconcile --repair` starts it.",
        Repair(key=case.key, execution_input=execution_input),
    )


def _obstacle(case: Case, rules: Rules, age: datetime | None) -> str | None:
    record, run = case.record, case.run
    if case.place is None:
        return "No book names its object: find out by hand what this charge was for."
    if record is not None and (record.status != IN_PROGRESS or record.owner is None):
        return "The record is in a state that no run knows: mend it by hand."
    if age is None or age < rules.horizon:
        return "Older than the horizon: a person decides, and replays it from the failure queue."
    if run is not None and run.error in NOBODY_MAY_GUESS:
        return f"Its last run ended in {run.error}: mend the cause, then replay it."
    return None


# ---------------------------------------------------------------- words


def _since(case: Case) -> datetime | None:
    """When an order that is not settled began to wait; None when nothing tells of it."""
    record = case.record
    if record is not None and (opened := as_time(record.open_since) or as_time(record.claimed_at)):
        return opened
    if case.version is not None:
        return case.version.last_modified
    return min((charge.created for charge in case.succeeded), default=None)


def as_time(text: str | None) -> datetime | None:
    """An aware time from ISO 8601, or None when it is none."""
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def _finding(
    kind: Kind, case: Case, since: datetime | str | None, remedy: str, repair: Repair | None = None
) -> Finding:
    words = [
        _object(case.place, case.version),
        _ledger(case.record) if case.record else "Ledger: no record.",
    ]
    if case.run is not None:
        error = f" with {case.run.error}" if case.run.error else ""
        words.append(f"Owner: {case.run.status}{error}.")
    words.append(_provider(case.charges))
    if case.ordered is not None:
        words.append(f"Order file: {case.ordered.amount_minor} {case.ordered.currency}.")
    words += [f"Since {_time(since)}.", remedy]
    return Finding(kind=kind, key=case.key, place=case.place, detail=" ".join(words), repair=repair)


def _name(place: Place | None) -> str:
    return (
        "an unknown object"
        if place is None
        else f"s3://{place.bucket}/{place.key} version {place.version_id}"
    )


def _object(place: Place | None, version: ObjectVersion | None) -> str:
    if place is None or version is None:
        return f"Bucket: {_name(place)}{'' if place is None else ' is not there'}."
    latest = "the latest" if version.is_latest else "no longer the latest"
    return f"Bucket: {_name(place)}, {latest}, of {_time(version.last_modified)}."


def _ledger(record: Record) -> str:
    parts = [f"Ledger: {record.status}"]
    if record.charge_id is not None:
        parts.append(f"with charge {record.charge_id} of {record.amount_minor} {record.currency}")
    if record.reason is not None:
        parts.append(f"because {record.reason!r}")
    if record.owner is not None:
        parts.append(f"owned by {record.owner.rpartition(':')[2]}")
    return " ".join(parts) + "."


def _provider(charges: Sequence[Charge]) -> str:
    if not charges:
        return "Provider: no charge."
    listed = ", ".join(
        f"{charge.id} {'succeeded' if charge.succeeded else 'failed'} "
        f"{charge.amount_minor} {charge.currency}"
        for charge in charges
    )
    return f"Provider: {listed}."


def _time(moment: datetime | str | None) -> str:
    if isinstance(moment, datetime):
        return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
    return moment or "an unknown time"
