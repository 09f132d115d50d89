"""What must hold after any chaos, decided from the three books alone.

Nothing here comes from the pipeline: keys, order files and amounts are read by code of its own,
so that a mistake there cannot hide itself here.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

Json = dict[str, Any]

TERMINAL = ("done", "declined", "rejected")

#: Digits after the point, of the currencies that chaos orders are made of.
_DIGITS = {"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3}
_DECLINING_SOURCES = ("tok_declined", "tok_insufficient_funds")


class Version(NamedTuple):
    """An order: one version of an object. `body` is what was uploaded."""

    bucket: str
    key: str
    version_id: str
    body: bytes

    @property
    def reference(self) -> str:
        """The key that this version's charge and record must bear."""
        work = f"{self.bucket}/{self.key}#{self.version_id}"
        return "charge#" + hashlib.sha256(work.encode()).hexdigest()

    @property
    def outcome(self) -> str:
        """The one status that this order may end in."""
        try:
            order = json.loads(self.body)
        except ValueError:
            return "rejected"
        return "declined" if order["payment_method"] in _DECLINING_SOURCES else "done"

    @property
    def price(self) -> tuple[int, str]:
        """What it costs, in the currency's smallest unit."""
        order = json.loads(self.body)
        currency = order["currency"]
        return int(Decimal(order["amount"]).scaleb(_DIGITS[currency])), currency


@dataclass(frozen=True)
class Books:
    """What was there to read. `reported`: the references that a person has been told of, by the
    failure queue or by the reconciler's report."""

    versions: list[Version]
    records: list[Json]
    charges: list[Json]
    reported: set[str]


@dataclass
class Verdict:
    """How the books compare. `violations` are sentences, empty when every promise was kept."""

    orders: int = 0
    settled: int = 0
    open_and_reported: int = 0
    double_charges: int = 0
    lost: int = 0
    violations: list[str] = field(default_factory=list)


def judge(books: Books) -> Verdict:
    """Compare the books order by order."""
    verdict = Verdict(orders=len(books.versions))
    records = {record["pk"]: record for record in books.records}
    charges: dict[str, list[Json]] = defaultdict(list)
    for charge in books.charges:
        charges[str(charge["reference"])].append(charge)
    for version in books.versions:
        reference = version.reference
        _judge_one(
            verdict,
            version,
            records.pop(reference, None),
            charges.pop(reference, []),
            reference in books.reported,
        )
    verdict.violations += [f"record {key} belongs to no order" for key in records]
    verdict.violations += [
        f"charge {charge['id']} belongs to no order: reference {reference}"
        for reference, found in charges.items()
        for charge in found
    ]
    return verdict


def _judge_one(
    verdict: Verdict, version: Version, record: Json | None, charges: list[Json], reported: bool
) -> None:
    def violated(what: str) -> None:
        verdict.violations.append(f"{version.key} {version.version_id}: {what}")

    paid = [charge for charge in charges if charge["status"] == "succeeded"]
    status = record["status"] if record else None
    if len(paid) > 1:
        verdict.double_charges += len(paid) - 1
        violated(f"charged {len(paid)} times: {', '.join(charge['id'] for charge in paid)}")
    if status not in TERMINAL:
        if reported:
            verdict.open_and_reported += 1
        else:
            verdict.lost += 1
            violated(f"lost: {status or 'no record'}, and nobody was told; {len(paid)} charges")
        return
    assert record is not None  # noqa: S101 - it has a status
    verdict.settled += 1
    if status != version.outcome:
        violated(f"settled as {status}, but the order file can only end {version.outcome}")
    elif status == "done":
        _compare_charge(record, paid, version, violated)
    elif paid:
        violated(f"{status}, and yet charged: {paid[0]['id']}")
    elif status == "declined" and not charges:
        violated("declined, but the provider knows nothing of it")
    elif status == "rejected" and charges:
        violated("rejected, but the provider was asked to charge it")
    if "open_since" in record:
        violated(f"{status}, and still among the open records")


def _compare_charge(record: Json, paid: list[Json], version: Version, violated: Any) -> None:
    if [charge["id"] for charge in paid] != [record["charge_id"]]:
        violated(f"done with {record['charge_id']}, the provider has {len(paid)} charges")
        return
    money = {
        "record": (record["amount_minor"], record["currency"]),
        "charge": (paid[0]["amount"], paid[0]["currency"]),
    }
    for book, amount in money.items():
        if amount != version.price:
            violated(f"the {book} says {amount}, the order file {version.price}")
    if record["order_id"] != json.loads(version.body)["order_id"]:
        violated(f"recorded under another order id: {record['order_id']}")


class Settlements:
    """Remembers how every order was settled, and says when one changes its mind."""

    def __init__(self) -> None:
        self._seen: dict[str, Json] = {}

    def watch(self, records: Iterable[Mapping[str, Any]]) -> list[str]:
        """Compare with what was seen before. Gives the violations as sentences."""
        violations = []
        for record in records:
            before = self._seen.get(record["pk"])
            if before is None and record["status"] in TERMINAL:
                self._seen[record["pk"]] = dict(record)
            elif before is not None and before != record:
                violations.append(f"a settled record has changed: {before} became {dict(record)}")
        return violations


@dataclass(frozen=True)
class Writer:
    """The execution that made a write. `succeeds`: the owner that it was started to take over
    from, None for a delivery."""

    execution: str
    succeeds: str | None


def judge_write(
    writer: Writer, before: Json | None, after: Json | None, is_running: Callable[[str], bool]
) -> str | None:
    """Whether a write to one record was allowed: None, or what was wrong with it.

    One owner at a time: a claim makes one where there is none, a takeover succeeds exactly the
    dead owner that it names, and only the owner settles. What is settled stays.
    """
    me = writer.execution
    if before == after:
        return None
    if after is None:
        wrong = "removed it"
    elif before is None:
        fresh = after["status"] == "in_progress" and after["owner"] == me
        wrong = "" if fresh else "made it out of nothing"
    elif before["status"] in TERMINAL:
        wrong = "changed a settled record"
    elif after["owner"] != before["owner"] and (after["owner"], before["owner"]) != (
        me,
        writer.succeeds,
    ):
        wrong = "took it, and was not to"
    elif after["owner"] != before["owner"] and is_running(before["owner"]):
        wrong = "deposed a living owner"
    elif after["status"] in TERMINAL and after["owner"] != me:
        wrong = "settled it for another owner"
    else:
        wrong = ""
    return f"{me} {wrong}: {before} became {after}" if wrong else None
