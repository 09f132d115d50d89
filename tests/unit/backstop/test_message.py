"""The failure message of an execution that could not write its own."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from backstop.message import failure_message, order_of, queued_its_own

EVENT = {
    "detail": {
        "bucket": {"name": "orders-bucket"},
        "object": {
            "key": "orders/a b+c/ü.json",
            "etag": "9b2cf535f27731c974343645a3985328",
            "version-id": "v1",
            "sequencer": "0055AED6DCD90281E5",
        },
    }
}
ENDED = {
    "executionArn": "arn:aws:states:us-east-1:123456789012:execution:ChargeOrder:run-1",
    "status": "FAILED",
    "input": json.dumps(EVENT),
    "error": "States.Runtime",
    "cause": "The JSONPath '$.x' could not be found",
}


def sha256(work: str) -> str:
    return hashlib.sha256(work.encode()).hexdigest()


def with_object(**changes: Any) -> dict[str, Any]:
    """The event with fields of its object changed, or left out (None)."""
    event = json.loads(json.dumps(EVENT))
    for name, value in changes.items():
        field = name.replace("_", "-")
        event["detail"]["object"][field] = value
        if value is None:
            del event["detail"]["object"][field]
    return dict(event)


def test_a_versioned_order_is_named_by_its_version() -> None:
    order = order_of(EVENT)

    work = "orders-bucket/orders/a b+c/ü.json#v1"
    assert order["idempotency_key"] == f"charge#{sha256(work)}"
    assert order["version_id"] == "v1"
    assert "sequencer" not in order


@pytest.mark.parametrize("version", [None, "null"])
def test_an_unversioned_order_is_named_by_content_and_sequencer(version: str | None) -> None:
    order = order_of(with_object(version_id=version))

    work = "orders-bucket/orders/a b+c/ü.json#9b2cf535f27731c974343645a3985328#0055AED6DCD90281E5"
    assert order["idempotency_key"] == f"charge#{sha256(work)}"
    assert order["version_id"] == "null"
    assert order["sequencer"] == "0055AED6DCD90281E5"


def test_the_message_has_the_shape_of_the_state_machines_own() -> None:
    message = failure_message(ENDED)

    assert message == {
        "execution": ENDED["executionArn"],
        "idempotency_key": order_of(EVENT)["idempotency_key"],
        "order": order_of(EVENT),
        "error": {"Error": "States.Runtime", "Cause": ENDED["cause"]},
    }


@pytest.mark.parametrize(
    ("status", "name"), [("TIMED_OUT", "ExecutionTimedOut"), ("ABORTED", "ExecutionAborted")]
)
def test_an_ending_without_an_error_gets_a_name(status: str, name: str) -> None:
    message = failure_message(
        {"executionArn": ENDED["executionArn"], "status": status, "input": json.dumps(EVENT)}
    )

    assert message["error"] == {"Error": name, "Cause": ""}


@pytest.mark.parametrize(
    "text", ["{}", "[]", "null", '"text"', "not JSON", '{"detail": {"object": 1}}', None]
)
def test_an_input_that_is_no_s3_event_is_kept_as_it_was(text: str | None) -> None:
    message = failure_message({**ENDED, "input": text})

    assert message["idempotency_key"] is None
    assert message["order"] is None
    assert message["input"] == text


def test_an_input_that_was_too_large_for_the_event_still_gives_a_message() -> None:
    detail = {name: value for name, value in ENDED.items() if name != "input"}

    message = failure_message(detail)

    assert message["execution"] == ENDED["executionArn"]
    assert message["idempotency_key"] is None


def test_a_run_that_was_stopped_after_its_own_message_is_recognised() -> None:
    events: list[dict[str, Any]] = [
        {"type": "ExecutionAborted"},
        {"type": "TaskStateExited", "stateExitedEventDetails": {"name": "QueueFailure"}},
        {"type": "TaskSucceeded"},
    ]

    assert queued_its_own(events)


def test_a_run_whose_message_the_queue_refused_needs_another() -> None:
    events: list[dict[str, Any]] = [
        {"type": "ExecutionFailed"},
        {"type": "FailStateEntered", "stateEnteredEventDetails": {"name": "QueueUnreachable"}},
        {"type": "TaskStateExited", "stateExitedEventDetails": {"name": "QueueFailure"}},
        {"type": "TaskFailed"},
    ]

    assert not queued_its_own(events)


def test_a_run_that_was_stopped_while_it_queued_needs_a_message() -> None:
    events: list[dict[str, Any]] = [
        {"type": "ExecutionAborted"},
        {"type": "TaskStateEntered", "stateEnteredEventDetails": {"name": "QueueFailure"}},
    ]

    assert not queued_its_own(events)
