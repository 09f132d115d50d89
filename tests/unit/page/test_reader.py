"""The reader keeps the index true, and asks little when nothing happens."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from botocore.exceptions import BotoCoreError

from local.books import Execution
from local.errors import CommandError
from local.page.index import Index, Row
from local.page.reader import (
    CHARGE_ROUNDS,
    DESCRIBED_IN_A_ROUND,
    KNOWN_IN_A_ROW,
    QUEUE_ROUNDS,
    Reader,
)
from tests.unit.page.fakes import START, Events, FakeStack, charge, message


class Clock:
    """Time that only moves when told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Bench:
    """A stack with its reader and index."""

    def __init__(self, orders: int = 2) -> None:
        self.stack = FakeStack()
        self.keys = [self.stack.settle(number) for number in range(orders)]
        self.clock = Clock()
        self.reader = Reader(self.stack, Index(), clock=self.clock)

    def row(self, key: str) -> Row:
        row = self.reader.index.row(key)
        assert row is not None
        return row

    def change_run(self, key: str, **changes: object) -> None:
        arn = self.stack.run_of(key)
        self.stack.runs[arn] = replace(self.stack.runs[arn], **changes)  # type: ignore[arg-type]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_first_round_knows_every_book(bench: Bench) -> None:
    bench.stack.queue = [message(bench.keys[0])]

    assert bench.reader.refresh()

    row = bench.row(bench.keys[0])
    assert row.record == bench.stack.ledger[bench.keys[0]]
    assert [one["id"] for one in row.charges] == ["ch_00000000"]
    assert [run.arn for run in row.runs] == [bench.stack.run_of(bench.keys[0])]
    assert len(row.messages) == 1
    assert bench.reader.ready


def test_a_quiet_round_asks_for_executions_and_the_queue_s_depth_alone(bench: Bench) -> None:
    bench.reader.refresh()
    bench.stack.asked.clear()

    assert not bench.reader.refresh()

    assert bench.stack.asked == {"executions": 1, "queue_depth": 1}


def test_many_quiet_rounds_read_no_record_and_no_history(bench: Bench) -> None:
    bench.reader.refresh()
    bench.stack.asked.clear()

    for _ in range(2 * QUEUE_ROUNDS):
        bench.reader.refresh()

    assert set(bench.stack.asked) == {"executions", "queue_depth", "charges"}
    assert bench.stack.asked["charges"] == 2 * QUEUE_ROUNDS // CHARGE_ROUNDS


def test_a_new_order_is_read_by_its_key_not_by_another_scan(bench: Bench) -> None:
    bench.reader.refresh()
    bench.stack.asked.clear()

    key = bench.stack.settle(7)
    assert bench.reader.refresh()

    assert bench.row(key).verdict.word == "Charged once"
    assert bench.row(key).told_by.steps is not None  # type: ignore[union-attr]
    assert bench.stack.asked["records"] == 0


def test_a_run_that_shows_up_below_known_ones_is_found(bench: Bench) -> None:
    bench.reader.refresh()

    key = bench.stack.settle(-1)
    bench.reader.refresh()

    assert bench.row(key).runs


def test_a_quiet_listing_ends_early() -> None:
    bench = Bench(orders=3 * KNOWN_IN_A_ROW)
    bench.reader.refresh()
    listed = []
    every = list(bench.stack.executions())
    bench.stack.executions = lambda: (listed.append(one) or one for one in every)  # type: ignore[method-assign,func-returns-value]

    bench.reader.refresh()

    assert len(listed) == KNOWN_IN_A_ROW


def test_a_running_order_is_followed_until_it_ends(bench: Bench) -> None:
    key = bench.keys[0]
    done = bench.stack.ledger[key]
    bench.stack.ledger[key] = done | {"status": "in_progress"}
    bench.change_run(key, status="RUNNING", events=Events().enter("Task", "Charge").list)
    bench.reader.refresh()
    bench.reader.look_at([bench.row(key)])
    bench.reader.refresh()
    assert bench.row(key).verdict.group == "running"
    assert [step.state for step in bench.row(key).runs[0].steps or ()] == ["Charge"]

    bench.stack.ledger[key] = done
    bench.change_run(key, status="SUCCEEDED", events=Events().task("Charge").list)
    bench.reader.refresh()

    assert bench.row(key).verdict.word == "Charged once"
    assert bench.row(key).runs[0].steps[0].outcome == "done"  # type: ignore[index]


def test_progress_of_a_running_order_is_read_again_and_again(bench: Bench) -> None:
    key = bench.keys[0]
    bench.change_run(key, status="RUNNING", events=Events().enter("Task", "Claim").list)
    bench.reader.refresh()
    bench.reader.look_at([bench.row(key)])
    bench.reader.refresh()

    bench.change_run(key, events=Events().task("Claim").enter("Task", "Charge").list)
    assert bench.reader.refresh()

    assert [step.state for step in bench.row(key).runs[0].steps or ()] == ["Claim", "Charge"]


def test_paths_are_read_for_rows_that_somebody_looks_at(bench: Bench) -> None:
    bench.reader.refresh()
    row = bench.row(bench.keys[0])
    assert row.runs[0].steps is None

    assert bench.reader.look_at([row])
    bench.reader.refresh()

    row = bench.row(bench.keys[0])
    assert len(row.runs[0].steps or ()) == 5
    assert not bench.reader.look_at([row])


def test_a_charge_that_slipped_past_the_listing_is_found_by_its_record(bench: Bench) -> None:
    bench.reader.refresh()
    key = bench.stack.settle(5)
    # The listing goes on after the last known charge, and this one sorts before it.
    bench.stack.books.insert(0, bench.stack.books.pop())

    bench.reader.refresh()

    assert bench.row(key).verdict.word == "Charged once"


def test_a_record_changed_by_hand_is_noticed_when_everything_is_read_again(bench: Bench) -> None:
    bench.reader.refresh()
    key = bench.keys[0]
    bench.stack.ledger[key] = bench.stack.ledger[key] | {"amount_minor": 1}
    bench.reader.refresh()
    assert bench.row(key).verdict.group == "settled"

    bench.clock.now += 3600
    bench.reader.refresh()

    assert bench.row(key).verdict.word == "Amounts differ"


def test_a_message_that_another_reader_holds_is_not_taken_for_gone(bench: Bench) -> None:
    bench.stack.queue = [message(bench.keys[0])]
    bench.reader.refresh()

    bench.stack.queue, bench.stack.held = [], 1
    for _ in range(QUEUE_ROUNDS):
        bench.reader.refresh()
    assert bench.row(bench.keys[0]).messages

    bench.stack.held = 0
    bench.reader.refresh()
    assert not bench.row(bench.keys[0]).messages


def test_a_stack_that_does_not_answer_is_a_notice_and_then_gone(bench: Bench) -> None:
    bench.reader.refresh()

    bench.stack.broken = True
    assert bench.reader.refresh()
    assert bench.reader.problem == "nobody is at home"
    bench.stack.broken = False
    assert bench.reader.refresh()

    assert bench.reader.problem is None
    assert bench.reader.index.page().total == 2


def test_what_a_broken_round_had_read_is_read_again(bench: Bench) -> None:
    bench.reader.refresh()
    key = bench.stack.settle(7)

    def refuse() -> int:
        raise CommandError("no queue")

    bench.stack.queue_depth = refuse  # type: ignore[method-assign]
    bench.reader.refresh()
    assert bench.reader.problem == "no queue"

    del bench.stack.queue_depth
    bench.reader.refresh()

    assert bench.row(key).verdict.word == "Charged once"
    assert [one["id"] for one in bench.row(key).charges] == ["ch_00000007"]


@pytest.mark.parametrize("book", ["queue_depth", "requests_of"])
def test_every_order_is_known_in_the_end_when_rounds_break(
    monkeypatch: pytest.MonkeyPatch, book: str
) -> None:
    """The first round describes no more than so many; the others' orders come with the second."""
    bench = Bench(orders=DESCRIBED_IN_A_ROUND + 30)

    def refuse(*_: str) -> int:
        raise BotoCoreError

    bench.reader.refresh()
    assert not bench.reader.complete
    monkeypatch.setattr(bench.stack, book, refuse, raising=True)
    bench.reader.look_at_requests(bench.keys[:1])
    bench.reader.refresh()
    assert (bench.reader.problem is not None, bench.reader.complete) == (True, False)

    monkeypatch.undo()
    bench.reader.refresh()

    assert bench.reader.complete
    assert [key for key in bench.keys if not bench.row(key).runs] == []


def test_what_the_provider_saw_is_asked_again_after_a_broken_round(bench: Bench) -> None:
    key = bench.keys[0]
    bench.stack.seen[key] = [{"at": 1.0, "outcome": "made", "status": 201}]
    bench.reader.refresh()
    bench.reader.look_at_requests([key])
    bench.reader.look_at_faults()

    def refuse() -> list[dict[str, object]]:
        raise BotoCoreError

    bench.stack.faults = refuse  # type: ignore[method-assign]
    bench.reader.refresh()
    assert bench.reader.index.request_counts(key) == {}

    del bench.stack.faults
    assert bench.reader.look_at_requests([key])
    bench.reader.refresh()

    assert bench.reader.index.request_counts(key) == {"made": 1}


def test_a_bug_is_a_notice_and_the_reading_goes_on(bench: Bench) -> None:
    good = bench.stack.ledger[bench.keys[0]]
    bench.stack.ledger[bench.keys[0]] = {"without": "a key"}
    bench.reader.refresh()
    assert "KeyError" in (bench.reader.problem or "")

    bench.stack.ledger[bench.keys[0]] = good
    bench.reader.refresh()

    assert bench.reader.problem is None
    assert bench.row(bench.keys[0]).verdict.word == "Charged once"


def test_an_execution_that_names_no_order_does_no_harm(bench: Bench) -> None:
    arn = "arn:odd"
    bench.stack.started[arn] = START + timedelta(hours=1)
    bench.stack.runs[arn] = Execution(arn, "FAILED", {"hello": 1}, "States.Runtime", [], [])

    bench.reader.refresh()

    assert bench.reader.problem is None
    assert bench.reader.index.page().total == 2


def test_what_the_provider_saw_is_read_once_for_a_charge(bench: Bench) -> None:
    key = bench.keys[0]
    bench.stack.seen[key] = [{"at": 1.0, "outcome": "made", "status": 201}]
    bench.reader.refresh()

    assert bench.reader.look_at_requests([key])
    bench.reader.refresh()

    assert bench.reader.index.request_counts(key) == {"made": 1}
    assert not bench.reader.look_at_requests([key])


def test_armed_faults_are_read_when_somebody_looks_at_them(bench: Bench) -> None:
    bench.stack.armed = [{"name": "provider.slow", "for": None, "remaining": 2}]
    bench.reader.refresh()
    assert bench.reader.index.faults == ()

    bench.reader.look_at_faults()
    assert bench.reader.refresh()

    assert bench.reader.index.faults == tuple(bench.stack.armed)


def test_a_stack_that_takes_no_faults_says_why_and_is_no_trouble(bench: Bench) -> None:
    def refuse() -> list[dict[str, object]]:
        raise CommandError("deployed without faults")

    bench.stack.faults = refuse  # type: ignore[method-assign]
    bench.reader.look_at_faults()

    bench.reader.refresh()

    assert bench.reader.problem is None
    assert bench.reader.index.why_no_faults == "deployed without faults"


def test_after_a_reset_earlier_executions_do_not_come_back(bench: Bench) -> None:
    bench.reader.refresh()
    bench.stack.ledger.clear()
    bench.stack.books.clear()

    bench.reader.forget_everything(START + timedelta(hours=1))
    bench.reader.refresh()

    assert bench.reader.index.page().total == 0


def test_a_charge_without_any_order_shows_up(bench: Bench) -> None:
    bench.reader.refresh()
    bench.stack.books.append(charge("ch_stray", "charge#stray"))

    for _ in range(CHARGE_ROUNDS):
        bench.reader.refresh()

    assert bench.row("charge#stray").verdict.word == "Charged, not recorded"
