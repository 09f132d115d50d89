"""One pass over all the books: page by page, in a fixed order of phases, in flat memory.

1. `objects`: every object version has a record. (One batched look-up for each page.)
2. `settlements`: every order id was charged for one version only; and every settled record goes
   into the tally.
3. `open`: every open record has an owner that runs.
4. `charges`: every charge has its record, and takes it out of the tally again. It comes after
   `settlements`, so that a record that was counted there has its charge in the books by now.
5. `unmatched`: what the tally has left over is looked up one by one.

A pass only collects candidates. Each is then read again from all three books, and only what is
still wrong then is a finding.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from reconciler.books import (
    DONE,
    IN_PROGRESS,
    REFUSED,
    SETTLED,
    UNVERSIONED,
    Bucket,
    Charge,
    Cursor,
    Executions,
    Ledger,
    ObjectVersion,
    Place,
    Provider,
    Record,
    Unreadable,
    is_our_reference,
)
from reconciler.judging import (
    Case,
    Finding,
    Kind,
    Rules,
    as_time,
    is_young,
    judge,
    same_order_id,
    unmatched_object,
    unversioned_object,
)
from reconciler.sketches import Repeats, Tally

PHASES: Final = ("objects", "settlements", "open", "charges", "unmatched")

MOST_FINDINGS = 10_000
"""The rest is only counted, and is the next pass's to list and to repair: this many make a report
of some 10 MB, which nobody reads to its end. A day without deliveries must not need more memory
than a good day, nor start a million executions at once."""

PARALLEL_READS = 8
"""Candidates that are read again at once. A candidate is four requests of some 20 ms; a thousand
of them (a full page, when nothing was delivered) take 10 s and not 80."""

READS_OF_A_MOVING_RECORD = 3
"""A record that changes while it is looked at is being worked on: that is no finding."""


class OutOfTime(Exception):
    """The run has to end now; what it did of the page at hand is done again by the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A key that looks wrong. `place` as its source names it, if it does."""

    key: str
    place: Place | None


@dataclass(slots=True, kw_only=True)
class Progress:
    """A pass, as far as it has come. All that has to survive the end of a run.

    `started` bounds what is compared: what settles later is left to the next pass. `young` counts
    the orders that are younger than the grace time, and so were not held against every book;
    `settled_beyond_horizon` those that settled before the charges that are compared were made.
    """

    name: str
    started: datetime
    horizon: datetime
    phase: str = PHASES[0]
    cursor: Cursor = None
    scanned: dict[str, int] = field(
        default_factory=lambda: {"objects": 0, "records": 0, "charges": 0}
    )
    orders_in: int = 0
    records_out: int = 0
    young: int = 0
    beyond_horizon: int = 0
    settled_beyond_horizon: int = 0
    foreign_charges: int = 0
    omitted: int = 0
    findings: list[dict[str, Any]] = field(default_factory=list)
    repaired: list[dict[str, Any]] = field(default_factory=list)
    unreadable: list[dict[str, Any]] = field(default_factory=list)
    repeats: Repeats = field(default_factory=Repeats)
    tally: Tally = field(default_factory=Tally)

    @property
    def is_complete(self) -> bool:
        return self.phase == "complete"

    def dump(self) -> dict[str, Any]:
        """As JSON values, for `load`."""
        return {item.name: getattr(self, item.name) for item in dataclasses.fields(self)} | {
            "started": self.started.isoformat(),
            "horizon": self.horizon.isoformat(),
            # Each is as large as all the rest, and only of use as long as its phase lasts.
            "repeats": self.repeats.dump() if self.phase == "settlements" else None,
            "tally": self.tally.dump(),
        }

    @classmethod
    def load(cls, document: dict[str, Any]) -> Progress:
        repeats = document["repeats"]
        return cls(
            **document
            | {
                "started": datetime.fromisoformat(document["started"]),
                "horizon": datetime.fromisoformat(document["horizon"]),
                "repeats": Repeats() if repeats is None else Repeats.load(repeats),
                "tally": Tally.load(document["tally"]),
            }
        )


def pass_name(now: datetime, token: str) -> str:
    """A new pass's name: its start, and up to 8 characters that tell two of one second apart."""
    return f"{now:%Y%m%dT%H%M%S}-{token[:8]}"


def repair_name(pass_name: str, key: str) -> str:
    """The name of a repair's execution, at most 80 characters long.

    The same for the same pass and order: two runs that repeat a page start one execution.
    """
    return f"repair-{pass_name}-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


@dataclass(kw_only=True)
class Audit:
    """Carries a pass on. `now` gives aware times; `is_over` says that the run has to end;
    `on_page` is called after each page."""

    bucket: Bucket
    ledger: Ledger
    provider: Provider
    executions: Executions
    grace: timedelta
    repair: bool
    now: Callable[[], datetime]
    is_over: Callable[[], bool] = lambda: False
    on_page: Callable[[Progress], None] = lambda _: None

    def begin(self, token: str, horizon: timedelta) -> Progress:
        """A new pass over what is younger than `horizon` and than the ledger itself."""
        now = self.now()
        return Progress(
            name=pass_name(now, token),
            started=now,
            horizon=max(now - horizon, self.ledger.created()),
        )

    def carry_on(self, progress: Progress) -> None:
        """Work until the pass is complete or the run is over; `progress` says which.

        Raises what a book as a whole raises; `progress` then stands at the last whole page.
        """
        self._progress = progress
        self._rules = Rules(grace=self.grace, horizon=progress.horizon)
        self._listed = {(item["kind"], _identity(item)) for item in progress.findings}
        # A key that was examined and found wrong; an order id is a question of its own.
        self._judged = {key for kind, key in self._listed if kind != Kind.SAME_ORDER_ID}
        try:
            with ThreadPoolExecutor(PARALLEL_READS) as self._pool:
                while not progress.is_complete:
                    self._stop_in_time()
                    self._turn_page()
                    self.on_page(progress)
        except OutOfTime:
            return

    def _turn_page(self) -> None:
        progress = self._progress
        turns = (self._objects, self._settlements, self._open, self._charges, self._unmatched)
        progress.cursor = turns[PHASES.index(progress.phase)](progress.cursor)
        if progress.cursor is None:
            following = PHASES.index(progress.phase) + 1
            progress.phase = PHASES[following] if following < len(PHASES) else "complete"

    def _stop_in_time(self) -> None:
        if self.is_over():
            raise OutOfTime

    # ------------------------------------------------------------ the phases

    def _objects(self, cursor: Cursor) -> Cursor:
        page = self.bucket.versions(cursor)
        orders: dict[str, ObjectVersion] = {}
        strays: list[ObjectVersion] = []
        listed = 0
        for version in page.items:
            place = version.place
            if place.is_order:
                if place.version_id != UNVERSIONED:
                    orders[place.idempotency_key] = version
                else:
                    strays.append(version)
            elif place.is_folder_marker and version.size == 0:
                continue
            elif version.is_latest:
                strays.append(version)
            listed += 1
        self._report_strays(strays)
        records = self.ledger.records(orders)
        ripe = self.now() - self.grace
        horizon = self._progress.horizon
        candidates = []
        orders_in = records_out = young = beyond = settled_beyond = 0
        for key, version in orders.items():
            record = records.get(key)
            if record is None and version.last_modified < horizon:
                beyond += 1
                continue
            if record is None and version.last_modified > ripe:
                young += 1
                continue
            orders_in += 1
            if record is not None:
                records_out += 1
                # One that is done is counted by the next phase, which also has what S3 lost.
                settled_beyond += record.status in REFUSED and self._is_settled_beyond(
                    as_time(record.settled_at)
                )
            if record is None or _is_odd(record):
                candidates.append(Candidate(key=key, place=version.place))
        young += len(self._examine(candidates))
        progress = self._progress
        progress.scanned["objects"] += listed
        progress.orders_in += orders_in
        progress.records_out += records_out
        progress.young += young
        progress.beyond_horizon += beyond
        progress.settled_beyond_horizon += settled_beyond
        return page.next

    def _settlements(self, cursor: Cursor) -> Cursor:
        page = self.ledger.settlements(cursor)
        progress = self._progress
        add = progress.repeats.add
        # The index need not list the versions of one order id one after the other.
        for order_id in dict.fromkeys(row.order_id for row in page.items if add(row.order_id)):
            self._compare_versions(order_id)
        progress.tally.add(
            (row.key for row in page.items if self._is_tallied(row.status, row.settled_at)), 1
        )
        ripe = progress.started - self.grace
        progress.young += sum(
            row.status == DONE and row.settled_at is not None and row.settled_at >= ripe
            for row in page.items
        )
        progress.settled_beyond_horizon += sum(
            row.status == DONE and self._is_settled_beyond(row.settled_at) for row in page.items
        )
        progress.scanned["records"] += len(page.items)
        return page.next

    def _open(self, cursor: Cursor) -> Cursor:
        page = self.ledger.open_records(cursor)
        ripe = self.now() - self.grace
        candidates = [
            Candidate(key=record.key, place=record.place)
            for record in page.items
            if (opened := as_time(record.open_since)) is None or opened <= ripe
        ]
        young = len(page.items) - len(candidates) + len(self._examine(candidates))
        self._progress.young += young
        self._progress.scanned["records"] += len(page.items)
        return page.next

    def _charges(self, cursor: Cursor) -> Cursor:
        progress = self._progress
        page = self.provider.charges(cursor, progress.horizon)
        like_ours = [
            (charge, charge.reference)
            for charge in page.items
            if is_our_reference(charge.reference)
        ]
        records = self.ledger.records(dict.fromkeys(key for _, key in like_ours))
        matched = []
        candidates: dict[str, Candidate] = {}
        foreign = len(page.items) - len(like_ours)
        for charge, key in like_ours:
            record = records.get(key)
            if record is None and self._is_foreign(charge):
                foreign += 1
                continue
            if not charge.succeeded or (record and _is_open(record)):
                continue  # no money moved; or phase `open` has asked, or will ask, its owner
            if record is None or not _agree(record, charge):
                candidates[key] = Candidate(key=key, place=charge.place)
            elif self._is_tallied(record.status, as_time(record.settled_at)):
                matched.append(key)
        young = self._examine(list(candidates.values()))
        # Of what is in the bucket, phase `objects` has counted the young.
        progress.young += sum(case.version is None for case in young)
        progress.tally.add(matched, -1)
        progress.scanned["charges"] += len(page.items)
        progress.foreign_charges += foreign
        return page.next

    def _is_foreign(self, charge: Charge) -> bool:
        """Whether a charge whose key our ledger does not know is for an order of another bucket.

        Another stack may use the same account at the provider; its keys look like ours. A place
        that fits the key tells whose it is; one that does not fit tells nothing.
        """
        place = charge.place
        return (
            place is not None
            and place.idempotency_key == charge.reference
            and place.bucket != self.bucket.name
        )

    def _unmatched(self, cursor: Cursor) -> Cursor:
        tally = self._progress.tally
        if cursor is None and tally.is_clear:
            return None
        page = self.ledger.settlements(cursor)
        self._examine(
            [
                Candidate(key=row.key, place=None)
                for row in page.items
                if tally.is_suspect(row.key) and self._is_tallied(row.status, row.settled_at)
            ]
        )
        return page.next

    def _is_tallied(self, status: str | None, settled_at: datetime | None) -> bool:
        """Charged within the horizon, and settled so long ago that the index has it.

        A settled record never changes, so all phases that ask are given the same answer.
        """
        progress = self._progress
        return (
            status == DONE
            and settled_at is not None
            and progress.horizon <= settled_at < progress.started - self.grace
        )

    def _is_settled_beyond(self, settled_at: datetime | None) -> bool:
        """Settled so long ago that its charge is not listed any more."""
        return settled_at is not None and settled_at < self._progress.horizon

    def _compare_versions(self, order_id: str) -> None:
        keys = self.ledger.keys_of_order(order_id)
        if len(keys) < 2:
            return  # the filter took it for a repetition
        cases = []
        for key in keys:
            self._stop_in_time()
            try:
                case = self._case(Candidate(key=key, place=None))
            except Unreadable as error:
                self._report_unreadable(key, None, error)
                continue
            if case and case.record and case.status == DONE and case.succeeded:
                cases.append(case)
        # Settled beyond the horizon: it was reported for as long as the horizon is wide.
        if len(cases) < 2 or all(
            self._is_settled_beyond(as_time(case.record and case.record.settled_at))
            for case in cases
        ):
            return
        for case in cases:
            others = [other for other in cases if other is not case]
            self._report(same_order_id(order_id, case, others))

    # ------------------------------------------------------------ from candidate to finding

    def _examine(self, candidates: Sequence[Candidate]) -> list[Case]:
        """Read each candidate again, report what is still wrong, start the repairs; gives the
        cases that are too young to be judged.

        One that was found wrong in this pass already is left alone: the phase before knew more
        of it, or has started its repair.
        """
        candidates = [item for item in candidates if item.key not in self._judged]
        young = []
        for candidate, case in zip(
            candidates, self._pool.map(self._look_closely, candidates), strict=True
        ):
            if isinstance(case, Unreadable):
                self._report_unreadable(candidate.key, candidate.place, case)
                continue
            if case is None:
                continue
            now = self.now()
            if is_young(case, self._rules, now):
                young.append(case)
            for finding in judge(case, self._rules, now):
                self._report(finding)
                self._judged.add(candidate.key)
        return young

    def _look_closely(self, candidate: Candidate) -> Case | Unreadable | None:
        self._stop_in_time()
        try:
            return self._case(candidate)
        except Unreadable as error:
            return error

    def _case(self, candidate: Candidate) -> Case | None:
        """All three books on one key; None while somebody is at work on it.

        The record is read first and last: what it said holds for all that was read in between.
        The owner is asked before, and a living one ends the search.
        """
        key = candidate.key
        record = self._record(key)
        for _ in range(READS_OF_A_MOVING_RECORD):
            run = None
            if record is not None and record.status == IN_PROGRESS and record.owner is not None:
                run = self.executions.run(record.owner)
                if run.is_running:
                    return None
            charges = self.provider.find(key)
            place = self._place(key, record, candidate, charges)
            # Into another bucket we may not look.
            is_here = place is not None and place.bucket == self.bucket.name
            case = Case(
                key=key,
                place=place,
                version=self.bucket.version(place) if place and is_here else None,
                record=record,
                charges=charges,
                run=run,
            )
            if place and case.version and case.succeeded and case.status not in SETTLED:
                case = dataclasses.replace(case, ordered=self.bucket.ordered(place))
            before, record = record, self._record(key)
            if record == before:
                return case
        return None

    def _record(self, key: str) -> Record | None:
        return self.ledger.records([key], consistent=True).get(key)

    @staticmethod
    def _place(
        key: str, record: Record | None, candidate: Candidate, charges: Iterable[Charge]
    ) -> Place | None:
        """The object version behind a key: the first name whose hash is the key.

        A record or a charge may have been written by hand; a name that fits was not made up.
        """
        named = [record and record.place, candidate.place, *(charge.place for charge in charges)]
        return next((place for place in named if place and place.idempotency_key == key), None)

    def _report_strays(self, strays: Sequence[ObjectVersion]) -> None:
        """Report versions that are no orders, if they are still there as they were listed."""
        for listed, current in zip(strays, self._pool.map(self._look_again, strays), strict=True):
            if isinstance(current, Unreadable):
                self._report_unreadable(None, listed.place, current)
            elif current is not None and current.is_latest == listed.is_latest:
                describe = unversioned_object if current.place.is_order else unmatched_object
                self._report(describe(current))

    def _look_again(self, version: ObjectVersion) -> ObjectVersion | Unreadable | None:
        self._stop_in_time()
        try:
            return self.bucket.version(version.place)
        except Unreadable as error:
            return error

    def _report(self, finding: Finding) -> None:
        document = finding.document()
        identity = (document["kind"], _identity(document))
        progress = self._progress
        if identity in self._listed:
            return
        if len(progress.findings) == MOST_FINDINGS:
            progress.omitted += 1
            return
        if self.repair and finding.repair is not None:
            self._start(finding)
        self._listed.add(identity)
        progress.findings.append(document)

    def _start(self, finding: Finding) -> None:
        assert finding.repair is not None  # noqa: S101
        key = finding.repair.key
        try:
            arn = self.executions.start(
                repair_name(self._progress.name, key), finding.repair.execution_input
            )
        except Unreadable as error:
            self._report_unreadable(key, finding.place, error)
            return
        self._progress.repaired.append(
            {"kind": finding.kind.value, "idempotency_key": key, "execution": arn}
        )

    def _report_unreadable(self, key: str | None, place: Place | None, error: Unreadable) -> None:
        if len(self._progress.unreadable) == MOST_FINDINGS:
            self._progress.omitted += 1
            return
        self._progress.unreadable.append(
            {
                "idempotency_key": key,
                "object": None if place is None else place._asdict(),
                "error": str(error),
            }
        )


def report(progress: Progress) -> dict[str, Any]:
    """The report, in the shape of the command line's `reconcile --json`, and more."""
    return {
        "complete": progress.is_complete,
        "scanned": progress.scanned,
        "findings": progress.findings,
        "repaired": progress.repaired,
        "younger_than_grace": progress.young,
        "beyond_horizon": progress.beyond_horizon,
        "settled_beyond_horizon": progress.settled_beyond_horizon,
        "foreign_charges": progress.foreign_charges,
        "unreadable": progress.unreadable,
        "omitted": progress.omitted,
        "orders_in": progress.orders_in,
        "records_out": progress.records_out,
        "pass": progress.name,
        "started": progress.started.isoformat(),
        "horizon": progress.horizon.isoformat(),
    }


def counts(findings: Iterable[dict[str, Any]]) -> dict[Kind, int]:
    """How many findings there are of each kind, zeros included."""
    found = dict.fromkeys(Kind, 0)
    for finding in findings:
        found[Kind(finding["kind"])] += 1
    return found


def _identity(document: dict[str, Any]) -> str:
    """What a finding is about: its key, or its object where there is none."""
    return document["idempotency_key"] or str(sorted((document["object"] or {}).items()))


def _is_odd(record: Record) -> bool:
    """A record that the state machine would not have written."""
    if record.status == DONE:
        return (
            record.charge_id is None
            or record.order_id is None
            or as_time(record.settled_at) is None
        )
    return record.status not in SETTLED and not _is_open(record)


def _is_open(record: Record) -> bool:
    """In progress, and in the index of open records: the phase `open` asks for its owner."""
    return record.status == IN_PROGRESS and record.open_since is not None


def _agree(record: Record, charge: Charge) -> bool:
    return (
        record.status == DONE
        and record.charge_id == charge.id
        and record.amount_minor == charge.amount_minor
        and record.currency == charge.currency
    )
