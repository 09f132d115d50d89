"""The page's own index of all orders: what each book says, joined by idempotency key.

It is filled by the reader and asked by the pages, from different threads. Answers come from
memory: 10,000 orders are searched in a few milliseconds.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from local.page import history
from local.page.verdict import GROUPS, Verdict, verdict
from local.page.words import moment
from local.text import well_formed

Json = dict[str, Any]

PAGE_SIZE = 50


@dataclass(frozen=True)
class Run:
    """An execution as the index knows it; `steps` is None until its history has been read."""

    arn: str
    status: str
    started: datetime
    key: str | None = None
    order: Json | None = None
    steps: tuple[history.Step, ...] | None = None
    error: str | None = None

    @property
    def running(self) -> bool:
        return self.status == "RUNNING"


@dataclass
class _Books:
    """All that is known under one key."""

    record: Json | None = None
    charges: dict[str, Json] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    messages: list[Json] = field(default_factory=list)
    findings: list[Json] = field(default_factory=list)
    row: Row | None = None  # made when asked for, dropped when something changes

    @property
    def empty(self) -> bool:
        known = (self.record, self.charges, self.runs, self.messages, self.findings)
        return not any(known)


@dataclass(frozen=True)
class Row:
    """One order as the list shows it. `path` is that of the run which says most about it."""

    key: str
    bucket: str | None
    object_key: str | None
    version_id: str | None
    order_id: str | None
    seen_at: str  # ISO 8601
    record: Json | None
    charges: tuple[Json, ...]
    runs: tuple[Run, ...]  # oldest first
    messages: tuple[Json, ...]
    findings: tuple[Json, ...]
    verdict: Verdict
    haystack: str

    @property
    def owner(self) -> str | None:
        """The ARN of the run that the record names."""
        return _text((self.record or {}).get("owner"))

    @property
    def told_by(self) -> Run | None:
        """The run whose path the list draws: the owner's, else the newest."""
        own = [run for run in self.runs if run.arn == self.owner]
        return own[0] if own else self.runs[-1] if self.runs else None

    def document(self) -> Json:
        """The row in plain JSON."""
        run = self.told_by
        return {
            "idempotency_key": self.key,
            "object": {
                "bucket": self.bucket,
                "key": self.object_key,
                "version_id": self.version_id,
            },
            "order_id": self.order_id,
            "seen_at": self.seen_at,
            "path": None
            if run is None or run.steps is None
            else [
                {"state": step.state, "outcome": step.outcome, "attempts": len(step.attempts)}
                for step in run.steps
            ],
            "executions": [{"arn": run.arn, "status": run.status} for run in self.runs],
            "record": self.record,
            "charges": list(self.charges),
            "queued": len(self.messages),
            "findings": [finding["kind"] for finding in self.findings],
            "verdict": {
                "group": self.verdict.group,
                "word": self.verdict.word,
                "sentence": self.verdict.sentence,
            },
        }


@dataclass(frozen=True)
class Page:
    """A page of rows, newest first, with what a pager and the filter need."""

    rows: tuple[Row, ...]
    number: int  # from 1
    pages: int
    matches: int
    total: int
    counts: Mapping[str, int]  # by group, and "found"; of the rows that match the text


class Index:
    """All orders by key. `version` grows whenever anything changes that a page may show."""

    def __init__(self) -> None:
        self.version = 0
        self.faults: tuple[Json, ...] = ()  # those that are armed
        self.why_no_faults: str | None = None  # where none can be armed
        self._lock = threading.RLock()
        self._books: dict[str, _Books] = {}
        self._newest_first: list[Row] | None = None
        self._charges_newest_first: list[Json] | None = None
        self._runs: dict[str, Run] = {}
        self._charges_complete = False
        self._requests: dict[str, list[Json]] = {}

    # ---- filling

    def in_one_piece(self) -> AbstractContextManager[object]:
        """Changes made within become visible at once, so that no page shows half of them."""
        return self._lock

    def _of(self, key: str) -> _Books:
        return self._books.setdefault(key, _Books())

    def _touch(self, books: _Books) -> None:
        books.row = None
        self._newest_first = None
        self.version += 1

    def put_record(self, key: str, record: Json | None) -> None:
        """The ledger's record under `key`, or None where there is none (any more)."""
        with self._lock:
            if record is None and key not in self._books:
                return
            books = self._of(key)
            if books.record != record:
                books.record = record
                self._touch(books)

    def put_all_records(self, records: Iterable[Json]) -> None:
        """The whole ledger: what is not among `records` has no record."""
        fresh = {record["pk"]: record for record in records}
        with self._lock:
            for key in [key for key, books in self._books.items() if books.record is not None]:
                if key not in fresh:
                    self.put_record(key, None)
            for key, record in fresh.items():
                self.put_record(key, record)

    def put_charge(self, charge: Json) -> None:
        """A charge of the provider; it belongs to the order that its reference names."""
        with self._lock:
            books = self._of(well_formed(str(charge["reference"])))
            if books.charges.get(charge["id"]) != charge:
                books.charges[charge["id"]] = charge
                self._charges_newest_first = None
                self._touch(books)

    def charges_are_complete(self) -> None:
        """The provider's books have been read to their end once."""
        with self._lock:
            if not self._charges_complete:
                self._charges_complete = True
                for books in self._books.values():
                    books.row = None
                self._newest_first = None
                self.version += 1

    def put_run(self, run: Run) -> None:
        """An execution; joins its order once its key is known. What it leaves out stays."""
        with self._lock:
            known = self._runs.get(run.arn)
            if known is not None:
                run = replace(
                    run,
                    key=run.key or known.key,
                    order=run.order or known.order,
                    steps=run.steps if run.steps is not None else known.steps,
                    error=run.error or known.error,
                )
                if run == known:
                    return
            self._runs[run.arn] = run
            if run.key is not None:
                books = self._of(run.key)
                books.runs[run.arn] = run
                self._touch(books)

    def put_requests(self, key: str, requests: list[Json]) -> None:
        """What the provider saw for a key."""
        with self._lock:
            if self._requests.get(key) != requests:
                self._requests[key] = requests
                self.version += 1

    def put_faults(self, faults: Iterable[Json], why_none: str | None) -> None:
        """The faults that are armed, or why this stack takes none."""
        with self._lock:
            fresh = tuple(faults)
            if (self.faults, self.why_no_faults) != (fresh, why_none):
                self.faults, self.why_no_faults = fresh, why_none
                self.version += 1

    def put_messages(self, messages: Iterable[Json]) -> None:
        """The whole failure queue, as `Message.summary` gives it."""
        self._replace("messages", messages)

    def put_findings(self, findings: Iterable[Json]) -> None:
        """All findings of the reconciler's last pass."""
        self._replace("findings", findings)

    def _replace(self, name: str, documents: Iterable[Json]) -> None:
        by_key: dict[str, list[Json]] = {}
        for document in documents:
            if document.get("idempotency_key"):
                by_key.setdefault(well_formed(document["idempotency_key"]), []).append(document)
        with self._lock:
            keys = {key for key, books in self._books.items() if getattr(books, name)}
            for key in keys | set(by_key):
                books = self._of(key)
                new = by_key.get(key, [])
                if getattr(books, name) != new:
                    setattr(books, name, new)
                    self._touch(books)

    def forget_everything(self) -> None:
        """Start over, after everything was deleted."""
        with self._lock:
            self._books.clear()
            self._runs.clear()
            self._requests.clear()
            self._charges_newest_first = None
            self._newest_first = None
            self.version += 1

    # ---- asking

    def run(self, arn: str) -> Run | None:
        """An execution by its ARN."""
        with self._lock:
            return self._runs.get(arn)

    def runs(self) -> list[Run]:
        """Every execution."""
        with self._lock:
            return list(self._runs.values())

    def row(self, key: str) -> Row | None:
        """One order, or None when no book knows the key."""
        with self._lock:
            books = self._books.get(key)
            return None if books is None or books.empty else self._row(key, books)

    def request_counts(self, key: str) -> dict[str, int]:
        """How often the provider made, replayed or refused for a key, as far as it was read."""
        with self._lock:
            return dict(Counter(str(one["outcome"]) for one in self._requests.get(key, ())))

    def charges(self) -> list[Json]:
        """Every known charge, newest first."""
        with self._lock:
            if self._charges_newest_first is None:
                self._charges_newest_first = sorted(
                    (charge for books in self._books.values() for charge in books.charges.values()),
                    key=lambda charge: (charge["created"], charge["id"]),
                    reverse=True,
                )
            return self._charges_newest_first

    def page(
        self, *, text: str = "", group: str = "", number: int = 1, size: int = PAGE_SIZE
    ) -> Page:
        """Orders that contain `text` (in any letter case) and belong to `group`, newest first.

        `group` is one of GROUPS, "found" (by the reconciler), or "" for all. A page number
        beyond the last gives the last.
        """
        rows = self._rows()
        needle = text.strip().casefold()
        if needle:
            rows = [row for row in rows if needle in row.haystack]
        counts = Counter(row.verdict.group for row in rows)
        counts["found"] = sum(bool(row.findings) for row in rows)
        if group == "found":
            rows = [row for row in rows if row.findings]
        elif group:
            rows = [row for row in rows if row.verdict.group == group]
        pages = max(1, -(-len(rows) // size))
        number = min(max(number, 1), pages)
        return Page(
            rows=tuple(rows[(number - 1) * size : number * size]),
            number=number,
            pages=pages,
            matches=len(rows),
            total=len(self._rows()),
            counts={name: counts[name] for name in (*GROUPS, "found")},
        )

    def _rows(self) -> list[Row]:
        with self._lock:
            if self._newest_first is None:
                found = [
                    self._row(key, books) for key, books in self._books.items() if not books.empty
                ]
                self._newest_first = sorted(found, key=lambda row: row.seen_at, reverse=True)
            return self._newest_first

    def _row(self, key: str, books: _Books) -> Row:
        if books.row is None:
            books.row = _make_row(key, books, charges_complete=self._charges_complete)
        return books.row


def _make_row(key: str, books: _Books, *, charges_complete: bool) -> Row:
    record = books.record or {}
    runs = tuple(sorted(books.runs.values(), key=lambda run: run.started))
    charges = tuple(sorted(books.charges.values(), key=lambda charge: charge["created"]))
    orders = [run.order for run in runs if run.order]
    # Anybody who may send to the queue may send anything.
    orders += [message["order"] for message in books.messages if isinstance(message["order"], dict)]
    order: Json = orders[0] if orders else {}
    metadata: Json = (charges[0].get("metadata") if charges else None) or {}
    bucket = record.get("bucket") or order.get("bucket") or metadata.get("bucket")
    object_key = record.get("object_key") or order.get("key") or metadata.get("object_key")
    version = record.get("version_id") or order.get("version_id") or metadata.get("version_id")
    order_id = record.get("order_id") or metadata.get("order_id")
    seen = [record.get("claimed_at"), *(run.started for run in runs[:1])]
    seen += [charge["created"] for charge in charges[:1]]
    moments = [at for at in map(moment, seen) if at is not None]
    charge_ids = [charge["id"] for charge in charges]
    parts = (key, object_key, version, order_id, record.get("charge_id"), *charge_ids)
    return Row(
        key=key,
        bucket=bucket,
        object_key=object_key,
        version_id=version,
        order_id=order_id,
        seen_at=_iso(min(moments)) if moments else "",
        record=books.record,
        charges=charges,
        runs=runs,
        messages=tuple(books.messages),
        findings=tuple(books.findings),
        verdict=verdict(
            books.record,
            charges,
            running=any(run.running for run in runs),
            queued=bool(books.messages),
            charges_complete=charges_complete,
        ),
        haystack="\n".join(str(part) for part in parts if part).casefold(),
    )


def _text(value: object) -> str | None:
    """`value` if it is text: a record may have been written by somebody else."""
    return value if isinstance(value, str) else None


def _iso(at: datetime) -> str:
    """In UTC with milliseconds, as the ledger writes it, so that texts sort like times."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
