"""What buttons say, and how an event is told again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from backstop.message import order_of

from local.errors import CommandError
from local.page.bench import StackBench, delivery_of, outcome_lines
from local.page.index import Index, Row, Run
from local.page.jobs import Job
from local.stack import Stack
from tests.unit.page.fakes import START, FakeStack

RESULT: dict[str, Any] = {
    "executions": [
        {"arn": "arn:1", "status": "SUCCEEDED", "path": ["Claim", "MarkDone"], "error": None}
    ],
    "record": {"status": "done"},
    "charges": [{"status": "succeeded"}],
    "queued": 0,
}
ON_AWS = Stack(name="prod", region="eu-central-1", endpoint=None, outputs={})


@pytest.fixture
def row() -> Row:
    """A settled order of which only the record is known."""
    stack, index = FakeStack(), Index()
    key = stack.settle(1)
    index.put_all_records(stack.ledger.values())
    found = index.row(key)
    assert found is not None
    return found


def a_job() -> Job:
    return Job(1, "a button", START)


def test_an_outcome_is_told_from_all_books() -> None:
    assert outcome_lines(RESULT) == [
        "1 execution succeeded in MarkDone",
        "Our ledger: done",
        "The provider: 1 charge",
    ]


def test_equal_endings_are_counted() -> None:
    duplicate = {
        "arn": "arn:2",
        "status": "SUCCEEDED",
        "path": ["ClaimedElsewhere"],
        "error": None,
    }

    lines = outcome_lines(RESULT | {"executions": RESULT["executions"] + 7 * [duplicate]})

    assert "7 executions succeeded in ClaimedElsewhere" in lines


def test_an_open_order_is_told_as_open() -> None:
    failed = {
        "arn": "arn:1",
        "status": "FAILED",
        "path": ["ChargeFailed"],
        "error": "ProviderUnavailable",
    }

    lines = outcome_lines(
        {
            "executions": [failed],
            "record": {"status": "in_progress"},
            "charges": [{"status": "failed"}],
            "queued": 1,
        }
    )

    assert lines == [
        "1 execution failed in ChargeFailed with ProviderUnavailable",
        "Our ledger: in progress",
        "The provider: 0 charges",
        "The failure queue keeps it for a person",
    ]


def test_an_object_that_starts_nothing_is_told_so() -> None:
    lines = outcome_lines(RESULT | {"executions": [], "record": None, "charges": []})

    assert "no execution" in lines[0]
    assert lines[1] == "Our ledger: no record"


def test_every_delivery_is_another_event_about_the_same_work(row: Row) -> None:
    event = delivery_of(row)

    first, second = event(), event()

    assert first["id"] != second["id"]
    assert order_of(first)["idempotency_key"] == order_of(second)["idempotency_key"] == row.key


def test_an_unversioned_order_is_told_again_with_its_sequencer(row: Row) -> None:
    order = {"bucket": "b", "key": "k", "version_id": "null", "etag": "e", "sequencer": "0A"}
    run = Run("arn:1", "SUCCEEDED", START, key=row.key, order=order)

    event = delivery_of(replace(row, runs=(run,)))()

    assert "version-id" not in event["detail"]["object"]
    assert event["detail"]["object"]["sequencer"] == "0A"


def test_an_event_that_nobody_knows_is_not_made_up(row: Row) -> None:
    with pytest.raises(ValueError, match="no book knows"):
        delivery_of(replace(row, version_id="null"))


@pytest.mark.parametrize("deliver", ["0", "21", "-1", "many", "1.5", "٣"])
def test_impossible_numbers_of_deliveries_are_refused(deliver: str) -> None:
    with pytest.raises(ValueError, match="from 1 to 20"):
        StackBench(ON_AWS).drop(a_job(), {"deliver": deliver})


def test_a_fault_of_the_function_needs_its_order() -> None:
    with pytest.raises(ValueError, match="object key"):
        StackBench(ON_AWS).arm(a_job(), {"fault": "function.exit_after_charge"})


@pytest.mark.parametrize(
    "fields", [{}, {"fault": "rain"}, {"fault": "provider.slow", "times": "0"}]
)
def test_what_is_no_fault_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"fault|times"):
        StackBench(ON_AWS).arm(a_job(), fields)


def test_a_stack_on_aws_cannot_be_emptied_from_the_page() -> None:
    with pytest.raises(CommandError, match="local stack"):
        StackBench(ON_AWS).reset(a_job())
