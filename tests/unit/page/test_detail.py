"""One order's page: everything read afresh, told in order."""

from __future__ import annotations

from datetime import timedelta

from local.page import detail, drawing, history
from local.page.index import Index
from local.page.reader import Reader
from tests.unit.page.fakes import START, Events, FakeStack, message


def read(stack: FakeStack, key: str) -> detail.Detail:
    reader = Reader(stack, Index())
    reader.refresh()
    found = detail.read(stack, reader.index, key)
    assert found is not None
    return found


def test_the_story_joins_ours_theirs_and_the_queue_in_order() -> None:
    stack = FakeStack()
    key = stack.settle(0)
    events = Events().task("Claim").task("Charge", "Runtime.ExitError", None).task("MarkDone").list
    stack.runs[stack.run_of(key)].events[:] = events
    stack.queue = [message(key) | {"sent_at": (START + timedelta(hours=1)).timestamp() * 1000}]
    stack.seen[key] = [
        {"at": (START + timedelta(milliseconds=6.5)).timestamp(), "outcome": "made", "status": 201}
    ]

    story = read(stack, key).story

    assert [(moment.side, moment.words.split(":")[0]) for moment in story] == [
        ("ours", "An execution starts"),
        ("ours", "Claim"),
        ("theirs", "The provider makes the charge"),
        ("ours", "Charge, attempt 1"),
        ("ours", "MarkDone"),
        ("ours", "The execution ends in MarkDone"),
        ("queue", "The failure queue keeps it for a person"),
    ]


def test_a_stopped_run_is_told_as_stopped() -> None:
    stack = FakeStack()
    key = stack.settle(0)
    arn = stack.run_of(key)
    stack.runs[arn] = type(stack.runs[arn])(
        arn,
        "ABORTED",
        stack.runs[arn].input,
        None,
        ["Charge"],
        Events().enter("Task", "Charge").add("TaskScheduled").add("ExecutionAborted").list,
    )

    story = read(stack, key).story

    assert story[-1].words == "The execution is aborted in Charge"
    assert story[-1].tone == "bad"


def test_a_record_that_changed_since_the_last_round_is_shown_as_it_is_now() -> None:
    stack = FakeStack()
    key = stack.settle(0)
    reader = Reader(stack, Index())
    reader.refresh()
    stack.ledger[key] = stack.ledger[key] | {"amount_minor": 1}

    found = detail.read(stack, reader.index, key)

    assert found is not None
    assert found.row.verdict.word == "Amounts differ"


def test_an_order_is_found_by_its_record_before_the_index_knows_it() -> None:
    stack = FakeStack()
    key = stack.settle(0)

    found = detail.read(stack, Index(), key)

    assert found is not None
    assert found.row.record == stack.ledger[key]


def test_a_book_that_cannot_be_read_is_named_and_the_others_shown() -> None:
    stack = FakeStack()
    key = stack.settle(0)
    reader = Reader(stack, Index())
    reader.refresh()
    stack.broken = True

    found = detail.read(stack, reader.index, key)

    assert found is not None
    assert found.problems == ("nobody is at home",)
    assert found.row.record == stack.ledger[key]


def test_beads_say_in_words_what_they_show() -> None:
    steps = history.steps(
        Events().visit("Choice", "IsVersioned?").task("Charge", "Error", "Error").list
    )

    assert drawing.path_words(steps) == "IsVersioned?, Charge (2 attempts, caught)"
    assert drawing.path_words(steps) in drawing.beads(steps)
    assert drawing.beads(steps).count('class="bead ') == 2


def test_the_graph_marks_what_was_visited_and_nothing_else() -> None:
    steps = history.steps(Events().task("Claim").task("Charge", "Error").list)

    graph = drawing.graph(steps)

    assert graph.count("visited") == 2
    assert graph.count("state task visited caught") == 1
    assert graph.count('class="line next taken"') == 1
