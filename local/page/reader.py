"""Keeps the index up to date with few, cheap questions.

A round asks only what can have changed: which executions are new or ended, the records of their
orders (only the state machine writes the ledger), the provider's charges after the last known
one, and how many messages the failure queue holds. The whole ledger is read at the start, and
again now and then for what somebody changed by hand.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime

from botocore.exceptions import BotoCoreError, ClientError

from local.errors import CommandError
from local.page import history
from local.page.index import Index, Row, Run
from local.page.source import Json, Listed, Source, order_in

#: Everything that a stack answers with when it cannot be asked.
UNREACHABLE = (CommandError, ClientError, BotoCoreError)

#: Executions whose order is looked up in one round, and histories that are read: what a local
#: stack answers in about a second, eight at a time.
DESCRIBED_IN_A_ROUND = 200
HISTORIES_IN_A_ROUND = 60
AT_ONCE = 8
#: A listing starts with this many executions at most; older ones only show as records.
LOOK_BACK = 12_000
#: A listing ends after this many in a row that are known and ended. One of several that started
#: at the same moment may show up below the others; the first page of a listing has room for it.
KNOWN_IN_A_ROW = 50
#: Everything is read again after this long, or so that reading takes 2% of the time.
REREAD_SECONDS = 60.0
REREAD_SHARE = 50
#: A quiet queue is looked into again after this many rounds, as its depth may lag.
QUEUE_ROUNDS = 8
#: Charges that were made at the provider directly start no execution: asked after this often.
CHARGE_ROUNDS = 4


logger = logging.getLogger(__name__)


@dataclass
class _Round:
    """What one round has read, applied in one piece: a round that breaks leaves it all unread."""

    runs: list[Run] = field(default_factory=list)
    described: list[str] = field(default_factory=list)
    all_records: list[Json] | None = None
    records: dict[str, Json | None] = field(default_factory=dict)
    charges: list[Json] = field(default_factory=list)
    last_charge: str | None = None  # set when the provider's books were read to their end
    charges_complete: bool = False
    read_as: dict[str, str] = field(default_factory=dict)
    messages: list[Json] | None = None
    requests: dict[str, list[Json]] = field(default_factory=dict)
    requests_read: dict[str, Row] = field(default_factory=dict)  # what was known of the order then
    faults: list[Json] | None = None
    why_no_faults: str | None = None


class Reader:
    """Reads a source into an index, round by round."""

    def __init__(
        self,
        source: Source,
        index: Index,
        *,
        ignore_before: datetime | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Executions from before `ignore_before`, the last reset, are left out."""
        self.index = index
        self.ready = False  # the ledger has been read once
        self._whole = False  # every book has
        self.problem: str | None = None
        self._source = source
        self._clock = clock
        self._ignore_before = ignore_before
        self._turn = threading.Lock()  # held for a whole round
        self._lock = threading.Lock()  # held for a moment, by rounds and by pages
        self._wanted: dict[str, None] = {}
        self._wanted_keys: set[str] = set()
        self._wanted_requests: dict[str, Row] = {}
        self._faults_wanted = False
        self._requests_read: dict[str, Row] = {}
        self._read_as: dict[str, str] = {}  # arn -> its status when its history was read
        self._undescribed: dict[str, None] = {}
        self._last_charge: str | None = None
        self._charges_complete = False
        self._known_messages: list[Json] = []
        self._round = 0
        self._reread_at = 0.0

    @property
    def complete(self) -> bool:
        """Whether every book has been read to its end, and every execution's order is known."""
        return self._whole and not self._undescribed

    # ---- what pages ask for

    def look_at(self, rows: Iterable[Row]) -> bool:
        """See to it that the paths of these rows are known; gives whether there is work to do."""
        with self._lock:
            before = len(self._wanted)
            for row in rows:
                owner = self.index.run(row.owner) if row.owner else None
                for run in [*row.runs, *([owner] if owner else [])]:
                    if self._read_as.get(run.arn) != run.status:
                        self._wanted[run.arn] = None
            return len(self._wanted) > before

    def look_at_requests(self, keys: Iterable[str]) -> bool:
        """See to it that it is known what the provider saw for these keys."""
        with self._lock:
            before = len(self._wanted_requests)
            for key in keys:
                row = self.index.row(key)
                if row is not None and self._requests_read.get(key) is not row:
                    self._wanted_requests[key] = row
            return len(self._wanted_requests) > before

    def look_at_faults(self) -> None:
        """See to it that the armed faults are known."""
        self._faults_wanted = True

    def look_again(self, keys: Iterable[str]) -> None:
        """Read these orders afresh in the next round, whatever happened to them."""
        with self._lock:
            self._wanted_keys.update(keys)

    def forget_everything(self, before: datetime) -> None:
        """After a reset: executions that started `before` are of no interest any more."""
        # Not in the middle of a round, which would bring back what it read before.
        with self._turn, self._lock:
            self._ignore_before = before
            self._wanted.clear()
            self._wanted_keys.clear()
            self._wanted_requests.clear()
            self._read_as.clear()
            self._undescribed.clear()
            self._last_charge = None
            self._known_messages = []
            self._reread_at = 0.0
            self.index.forget_everything()

    # ---- a round

    def refresh(self) -> bool:
        """One round; gives whether the index changed. A stack that does not answer is noted."""
        with self._turn:
            return self._take_turn()

    def _take_turn(self) -> bool:
        version, problem = self.index.version, self.problem
        # Until this round has succeeded: what it reads and then loses must be read again.
        reread_at, self._reread_at = self._reread_at, 0.0
        try:
            self._reread_at = self._refresh(reread_at)
            self.problem = None
        except UNREACHABLE as error:
            self.problem = str(error)
        except Exception as error:
            # A bug of ours, or a book in a shape that nobody foresaw. The page says so and goes
            # on: a page that silently stopped reading would be taken for the truth.
            logger.exception("a round failed")
            self.problem = f"Unexpected {type(error).__name__}: {error}. See the page's log."
        return self.index.version != version or self.problem != problem

    def _refresh(self, reread_at: float) -> float:
        """One round; gives the time of the next full one."""
        self._round += 1
        found = _Round()
        started = self._clock()
        due = started >= reread_at
        with ThreadPoolExecutor(AT_ONCE) as pool:
            # Executions before records: a record that is read after its run ended is final.
            found.runs = self._changed_runs(everything=due)
            self._describe(pool, found)
            self._read_histories(pool, found)
            if due:
                found.all_records = list(self._source.records())
                took = self._clock() - started
                reread_at = self._clock() + max(REREAD_SECONDS, REREAD_SHARE * took)
            else:
                keys = self._keys_to_read(found.runs)
                records = self._source.records_of(keys) if keys else {}
                found.records = {key: records.get(key) for key in keys}
            if not self.ready:
                # The ledger is shown before the provider's books have been read.
                self._apply(found)
                found = _Round()
                self.ready = True
            moved = bool(found.runs or found.records)
            self._read_charges(found, moved=moved or due)
            self._read_queue(found, moved=moved or due)
            self._read_requests(pool, found)
            self._read_faults(found)
        self._apply(found)
        self._whole = True
        return reread_at

    def _changed_runs(self, *, everything: bool) -> list[Run]:
        changed, seen, known_in_a_row = [], set(), 0
        for number, item in enumerate(self._source.executions()):
            if number >= LOOK_BACK or self._is_ignored(item):
                break
            seen.add(item.arn)
            known = self.index.run(item.arn)
            is_news = known is None or known.status != item.status
            known_in_a_row = 0 if is_news or item.status == "RUNNING" else known_in_a_row + 1
            if is_news:
                changed.append(Run(item.arn, item.status, item.started))
                self._want(item.arn, is_news=not everything)
                if known is None or known.key is None:
                    self._undescribed.setdefault(item.arn)
            if known_in_a_row >= KNOWN_IN_A_ROW and not everything:
                break
        for run in self.index.runs():
            if run.running and run.arn not in seen:
                status = self._source.describe(run.arn).status
                if status != run.status:
                    changed.append(replace(run, status=status))
        return changed

    def _want(self, arn: str, *, is_news: bool) -> None:
        """Read the history of a run that is new or ended, unless there are very many."""
        with self._lock:
            if arn in self._read_as or (is_news and len(self._wanted) < HISTORIES_IN_A_ROUND):
                self._wanted[arn] = None

    def _is_ignored(self, item: Listed) -> bool:
        return self._ignore_before is not None and item.started < self._ignore_before

    def _describe(self, pool: ThreadPoolExecutor, found: _Round) -> None:
        """Find out which orders the newest unknown executions work on."""
        known = {run.arn: run for run in found.runs}
        arns = list(self._undescribed)[:DESCRIBED_IN_A_ROUND]
        for arn, description in zip(arns, pool.map(self._source.describe, arns), strict=True):
            run = known.get(arn) or self.index.run(arn)
            found.described.append(arn)
            if run is None:
                continue
            order = description.order
            run = replace(
                run,
                status=description.status,
                order=order,
                key=order["idempotency_key"] if order else None,
            )
            if arn in known:
                found.runs[found.runs.index(known[arn])] = run
            else:
                found.runs.append(run)

    def _read_histories(self, pool: ThreadPoolExecutor, found: _Round) -> None:
        with self._lock:
            wanted = list(self._wanted)[:HISTORIES_IN_A_ROUND]
            for arn in wanted:
                del self._wanted[arn]
        for arn, read in zip(wanted, pool.map(self._source.execution, wanted), strict=True):
            found.read_as[arn] = read.status
            if read.status == "RUNNING":
                # There is more to come.
                with self._lock:
                    self._wanted[arn] = None
            run = next((run for run in found.runs if run.arn == arn), None)
            known = run or self.index.run(arn)
            if known is None:
                continue
            order = order_in(read.input)
            fresh = replace(
                known,
                status=read.status,
                steps=tuple(history.steps(read.events)),
                error=read.error,
                order=order,
                key=order["idempotency_key"] if order else None,
            )
            if run is not None:
                found.runs.remove(run)
            found.runs.append(fresh)

    def _keys_to_read(self, runs: Iterable[Run]) -> set[str]:
        with self._lock:
            keys = self._wanted_keys
            self._wanted_keys = set()
        for run in runs:
            known = self.index.run(run.arn)
            key = run.key or (known.key if known else None)
            if key is not None:
                keys.add(key)
        # While a run goes on, its record may change at any moment.
        return keys | {run.key for run in self.index.runs() if run.running and run.key}

    def _read_charges(self, found: _Round, *, moved: bool) -> None:
        first = not self._charges_complete
        if moved or first or self._round % CHARGE_ROUNDS == 0:
            found.charges = list(self._source.charges(after=self._last_charge))
            found.charges_complete = True
            if found.charges:
                found.last_charge = found.charges[-1]["id"]
        # Two charges made at the same moment may show up in either order, so a record that names
        # an unknown one is followed up.
        known = {charge["id"] for charge in found.charges}
        for key, record in found.records.items():
            charge = (record or {}).get("charge_id")
            row = self.index.row(key)
            if row is not None:
                known |= {one["id"] for one in row.charges}
            if isinstance(charge, str) and charge not in known:
                found.charges += self._source.charges_of(key)

    def _read_requests(self, pool: ThreadPoolExecutor, found: _Round) -> None:
        with self._lock:
            wanted, self._wanted_requests = self._wanted_requests, {}
        try:
            answers = list(pool.map(self._source.requests_of, wanted))
        except CommandError:
            answers = []  # not every provider tells
        found.requests_read = wanted
        found.requests = dict(zip(wanted, answers, strict=False))

    def _read_faults(self, found: _Round) -> None:
        if not self._faults_wanted:
            return
        self._faults_wanted = False
        try:
            found.faults = self._source.faults()
        except CommandError as error:
            # Deployed without fault injection, as in production.
            found.faults, found.why_no_faults = [], str(error)

    def _read_queue(self, found: _Round, *, moved: bool) -> None:
        depth = self._source.queue_depth()
        if not (moved or depth != len(self._known_messages) or self._round % QUEUE_ROUNDS == 0):
            return
        messages, held = self._source.messages() if depth else ([], 0)
        if held:
            # What somebody else looks at just now is not gone.
            seen = {message["message_id"] for message in messages}
            hidden = [one for one in self._known_messages if one["message_id"] not in seen]
            messages = messages + hidden[:held]
        self._known_messages = messages
        found.messages = messages

    def _apply(self, found: _Round) -> None:
        with self.index.in_one_piece():
            for run in found.runs:
                self.index.put_run(run)
            for arn in found.described:
                del self._undescribed[arn]
            self._read_as |= found.read_as
            self._requests_read |= found.requests_read
            self._last_charge = found.last_charge or self._last_charge
            if found.all_records is not None:
                self.index.put_all_records(found.all_records)
            for key, record in found.records.items():
                self.index.put_record(key, record)
            for charge in found.charges:
                self.index.put_charge(charge)
            if found.charges_complete:
                self.index.charges_are_complete()
                self._charges_complete = True
            for key, requests in found.requests.items():
                self.index.put_requests(key, requests)
            if found.faults is not None:
                self.index.put_faults(found.faults, found.why_no_faults)
            if found.messages is not None:
                self.index.put_messages(found.messages)
