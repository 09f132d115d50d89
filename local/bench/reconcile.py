"""How fast a pass compares, and that its memory does not grow: synthetic books, in this process.

All the code of a pass runs as on AWS, except for the adapters: the time of requests is not in
it, and docs/reconciler.md adds that up. One order in 10,000 has lost its record, one in 10,000
its charge, so that findings are made too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from reconciler.auditing import Audit, counts
from reconciler.books import (
    DONE,
    Charge,
    Cursor,
    Money,
    ObjectVersion,
    Page,
    Place,
    Record,
    Run,
    Settlement,
)

from local.bench.machine import description, peak_rss_mb, print_figures
from local.progress import step

PAGE = 1000
#: Which of every 10,000 orders have lost their record, and their charge.
WITHOUT_RECORD, WITHOUT_CHARGE, EVERY = 17, 4711, 10_000

AN_HOUR_AGO = datetime.now(UTC) - timedelta(hours=1)
SETTLED_AT = AN_HOUR_AGO.isoformat()


@dataclass
class SyntheticBooks:
    """`count` orders whose entries are computed when a page is asked for: nothing is kept."""

    count: int

    def __post_init__(self) -> None:
        # Of the page that was listed last: each key's number and object version.
        self._page: dict[str, tuple[int, Place]] = {}

    def _turn(self, cursor: Cursor) -> Cursor:
        """Compute the next page; gives the cursor of the one after it."""
        start = cursor or 0
        end = min(start + PAGE, self.count)
        self._page.clear()
        for number in range(start, end):
            place = Place("bucket", f"orders/{number:09}.json", f"version-{number:09}")
            self._page[place.idempotency_key] = number, place
        return end if end < self.count else None

    # ---- bucket

    name = "bucket"

    def versions(self, cursor: Cursor) -> Page[ObjectVersion]:
        following = self._turn(cursor)
        return Page([self.version(place) for _, place in self._page.values()], following)

    def version(self, place: Place) -> ObjectVersion:
        return ObjectVersion(place, "etag", 120, AN_HOUR_AGO, is_latest=True)

    def ordered(self, place: Place) -> Money | None:
        return Money(1999, "EUR")

    # ---- ledger

    def created(self) -> datetime:
        return AN_HOUR_AGO - timedelta(days=30)

    def records(self, keys: Iterable[str], *, consistent: bool = False) -> dict[str, Record]:
        found = {}
        for key in keys:
            number, place = self._page[key]
            if number % EVERY != WITHOUT_RECORD:
                found[key] = self._record(key, number, place)
        return found

    def _record(self, key: str, number: int, place: Place) -> Record:
        return Record(
            key=key,
            status=DONE,
            owner="arn:aws:states:us-east-1:123456789012:execution:ChargeOrder:name",
            claimed_at="2026-01-01T00:00:00.000Z",
            settled_at=SETTLED_AT,
            bucket=place.bucket,
            object_key=place.key,
            version_id=place.version_id,
            etag="etag",
            order_id=f"A-{number}",
            charge_id=f"ch_{number:026}",
            amount_minor=1999,
            currency="EUR",
        )

    def settlements(self, cursor: Cursor) -> Page[Settlement]:
        following = self._turn(cursor)
        rows = [
            Settlement(key, f"A-{number}", DONE, AN_HOUR_AGO)
            for key, (number, _) in self._page.items()
            if number % EVERY != WITHOUT_RECORD
        ]
        return Page(rows, following)

    def open_records(self, cursor: Cursor) -> Page[Record]:
        return Page([], None)

    def keys_of_order(self, order_id: str) -> list[str]:
        return [next(key for key, (number, _) in self._page.items() if order_id == f"A-{number}")]

    # ---- provider

    def charges(self, cursor: Cursor, since: datetime) -> Page[Charge]:
        following = self._turn(cursor)
        return Page([charge for key in self._page for charge in self.find(key)], following)

    def find(self, reference: str) -> list[Charge]:
        number, place = self._page[reference]
        if number % EVERY == WITHOUT_CHARGE:
            return []
        charge = Charge(
            id=f"ch_{number:026}",
            reference=reference,
            succeeded=True,
            amount_minor=1999,
            currency="EUR",
            created=AN_HOUR_AGO,
            place=place,
        )
        return [charge]

    # ---- executions

    def run(self, arn: str) -> Run:
        return Run("SUCCEEDED", None)

    def start(self, name: str, execution_input: dict[str, Any]) -> str:
        raise AssertionError("a benchmark repairs nothing")


def measure(objects: int) -> dict[str, Any]:
    """A whole pass over `objects` orders: seconds, peak memory, what was found."""
    synthetic = SyntheticBooks(objects)
    audit = Audit(
        bucket=synthetic,
        ledger=synthetic,
        provider=synthetic,
        executions=synthetic,
        grace=timedelta(minutes=15),
        repair=False,
        now=lambda: datetime.now(UTC),
    )
    started, cpu_started = time.perf_counter(), time.process_time()
    progress = audit.begin("bench", timedelta(days=14))
    audit.carry_on(progress)
    seconds = time.perf_counter() - started
    return {
        "objects": objects,
        "scanned": progress.scanned,
        "findings": {kind.value: n for kind, n in counts(progress.findings).items() if n},
        "seconds": round(seconds, 2),
        # Of the processor: what `seconds` would be on a machine with nothing else to do.
        "cpu_seconds": round(time.process_time() - cpu_started, 2),
        "orders_per_second": round(objects / seconds),
        "peak_rss_mb": peak_rss_mb(),
        **description(),
    }


def command(
    objects: Annotated[int, typer.Option(min=1, help="Orders in the synthetic books.")] = 1_000_000,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else.")
    ] = False,
) -> None:
    """Compare synthetic books of that many objects, records and charges."""
    with step(f"Reconcile {objects:,} objects, records and charges"):
        figures = measure(objects)
    print_figures(figures, as_json=as_json)
