"""Books in memory that serve pages of two, so that every audit in these tests turns pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from reconciler.auditing import Audit, Progress
from reconciler.books import (
    DONE,
    IN_PROGRESS,
    Charge,
    Cursor,
    Money,
    ObjectVersion,
    Page,
    Place,
    Record,
    Run,
    Settlement,
    Unreadable,
)
from reconciler.judging import as_time

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
GRACE = timedelta(minutes=15)
HORIZON = timedelta(days=14)
PAGE = 2
ORDERED = Money(1999, "EUR")

_Item = TypeVar("_Item")


@dataclass
class World:
    """All three books and the executions; changed by tests, read by audits."""

    versions_: list[ObjectVersion] = field(default_factory=list)
    records_: dict[str, Record] = field(default_factory=dict)
    charges_: list[Charge] = field(default_factory=list)
    runs: dict[str, Run] = field(default_factory=dict)
    started: dict[str, dict[str, Any]] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)
    ordered_: Money | None = ORDERED
    founded: datetime = NOW - timedelta(days=365)
    now: datetime = NOW
    pages: int = 0
    asked: list[str] = field(default_factory=list)
    looked_at: Callable[[str], None] = lambda _: None

    # ---- making entries

    def land(self, name: str, *, age: timedelta = HOUR, version_id: str = "v1") -> Place:
        """A new version of orders/NAME, older by `age` than now; the latest of its key."""
        place = Place("bucket", f"orders/{name}", version_id)
        self.versions_ = [
            item._replace(is_latest=False) if item.place.key == place.key else item
            for item in self.versions_
        ]
        self.versions_.append(ObjectVersion(place, "etag", 100, self.now - age, is_latest=True))
        return place

    def record(self, place: Place, **changes: Any) -> Record:
        """A record of `place` that was charged with ch_NAME, with changes."""
        record = Record(
            key=place.idempotency_key,
            status=DONE,
            owner="arn:owner",
            claimed_at=(self.now - HOUR).isoformat(),
            settled_at=(self.now - HOUR).isoformat(),
            bucket=place.bucket,
            object_key=place.key,
            version_id=place.version_id,
            etag="etag",
            order_id=f"A-{place.key}-{place.version_id}",
            charge_id=charge_id(place),
            amount_minor=1999,
            currency="EUR",
        )._replace(**changes)
        self.records_[record.key] = record
        return record

    def open_record(self, place: Place, **changes: Any) -> Record:
        return self.record(
            place,
            **{
                "status": IN_PROGRESS,
                "open_since": (self.now - HOUR).isoformat(),
                "settled_at": None,
                "order_id": None,
                "charge_id": None,
                "amount_minor": None,
                "currency": None,
            }
            | changes,
        )

    def charge(self, paid: Place, **changes: Any) -> Charge:
        charge = Charge(
            id=charge_id(paid),
            reference=paid.idempotency_key,
            succeeded=True,
            amount_minor=1999,
            currency="EUR",
            created=self.now - HOUR,
            place=paid,
        )._replace(**changes)
        self.charges_.append(charge)
        return charge

    def settle(self, name: str, **how: Any) -> Place:
        """An order with which everything is right."""
        place = self.land(name, **how)
        self.record(place)
        self.charge(place)
        return place

    # ---- the order bucket

    name = "bucket"

    def versions(self, cursor: Cursor) -> Page[ObjectVersion]:
        return self._page(self.versions_, cursor)

    def version(self, place: Place) -> ObjectVersion | None:
        self._check(place.key)
        return next((item for item in self.versions_ if item.place == place), None)

    def ordered(self, place: Place) -> Money | None:
        return self.ordered_

    # ---- the ledger

    def created(self) -> datetime:
        return self.founded

    def records(self, keys: Iterable[str], *, consistent: bool = False) -> dict[str, Record]:
        found = {key: self.records_[key] for key in keys if key in self.records_}
        if consistent:
            for key in found:
                self.looked_at(key)
        return found

    def settlements(self, cursor: Cursor) -> Page[Settlement]:
        rows = [
            Settlement(record.key, record.order_id, record.status, as_time(record.settled_at))
            for record in self.records_.values()
            if record.order_id
        ]
        return self._page(rows, cursor)

    def open_records(self, cursor: Cursor) -> Page[Record]:
        return self._page([item for item in self.records_.values() if item.open_since], cursor)

    def keys_of_order(self, order_id: str) -> list[str]:
        return [item.key for item in self.records_.values() if item.order_id == order_id]

    # ---- the provider

    def charges(self, cursor: Cursor, since: datetime) -> Page[Charge]:
        return self._page([item for item in self.charges_ if item.created >= since], cursor)

    def find(self, reference: str) -> list[Charge]:
        self.asked.append(reference)
        self._check(reference)
        return [item for item in self.charges_ if item.reference == reference]

    # ---- executions

    def run(self, arn: str) -> Run:
        self.asked.append(arn)
        return self.runs.get(arn, Run("GONE", None))

    def start(self, name: str, execution_input: dict[str, Any]) -> str:
        self._check(name)
        assert self.started.setdefault(name, execution_input) == execution_input
        return f"arn:{name}"

    def _check(self, name: str) -> None:
        if any(name.startswith(start) for start in self.unreadable):
            raise Unreadable(f"{name} is not to be read")

    def _page(self, items: list[_Item], cursor: Cursor) -> Page[_Item]:
        self.pages += 1
        start = cursor or 0
        following = start + PAGE
        return Page(items[start:following], following if following < len(items) else None)

    # ---- auditing

    def audit(self, *, repair: bool = False, grace: timedelta = GRACE) -> Audit:
        return Audit(
            bucket=self,
            ledger=self,
            provider=self,
            executions=self,
            grace=grace,
            repair=repair,
            now=lambda: self.now,
        )

    def reconcile(self, *, repair: bool = False, name: str = "one") -> Progress:
        """One whole pass."""
        audit = self.audit(repair=repair)
        progress = audit.begin(name, HORIZON)
        audit.carry_on(progress)
        assert progress.is_complete
        return progress


def charge_id(place: Place) -> str:
    return f"ch_{place.key}_{place.version_id}"


def kinds(progress: Progress) -> list[str]:
    """What was found, sorted."""
    return sorted(item["kind"] for item in progress.findings)
