"""Failures on the real stack: nothing is charged twice, nothing vanishes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from local import books, faults, orders
from local.replay import replay, replay_input
from local.stack import Stack
from local.waiting import wait_for
from tests.e2e.command import document
from tests.e2e.test_pipeline import HAPPY_PATH, attempts, drop, succeeded
from tests.malformed_orders import malformed_orders

pytestmark = pytest.mark.xdist_group("failures")

QUEUED_PATH = [
    "IsVersioned?",
    "IdentifyByVersion",
    "Claim",
    "Charge",
    "QueueFailure",
    "ChargeFailed",
]


def drop_with(stack: Stack, *names: str, **how: Any) -> Any:
    return drop(stack, armed=[faults.Fault.parse(name) for name in names], **how)


def messages_of(stack: Stack, key: str) -> list[books.Message]:
    return [message for message in books.messages(stack) if message.idempotency_key == key]


def placed_of(result: Any, stack: Stack) -> dict[str, Any]:
    """The order of a finished `order` document, as the failure message has it."""
    record = books.record(stack, result["idempotency_key"])
    assert record is not None
    return {
        "bucket": record["bucket"],
        "key": record["object_key"],
        "version_id": record["version_id"],
        "etag": record["etag"],
    }


def failures(stack: Stack, arn: str) -> list[str]:
    """The errors of all attempts to charge in one execution."""
    return [
        event["taskFailedEventDetails"]["error"]
        for event in books.execution(stack, arn).events
        if event["type"] == "TaskFailed"
        and event["taskFailedEventDetails"]["resourceType"] == "lambda"
    ]


def leave_open(stack: Stack) -> Any:
    """An order whose every charge fails, so that it ends open and queued; then the fault ends."""
    result = drop_with(stack, "provider.unavailable:99")
    faults.clear(stack)
    assert result["executions"][0]["path"] == QUEUED_PATH
    return result


# ---------------------------------------------------------------- unknown outcomes


@pytest.mark.parametrize(
    ("names", "least_attempts"),
    [
        (["function.exit_before_charge"], 2),
        (["function.exit_after_charge"], 2),
        (["function.timeout_after_charge"], 2),
        (["provider.error_after_charge"], 1),  # the look-up after the 500 finds the charge
        (["provider.timeout_before"], 2),
        (["provider.timeout_after_charge"], 2),
        (["provider.rate_limit"], 1),
        (["function.exit_after_charge", "provider.error_after_charge"], 2),
        (["function.exit_after_charge:3", "provider.timeout_after_charge"], 4),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, list) else None,
)
def test_an_unknown_outcome_is_asked_again_under_the_same_key(
    stack: Stack, names: list[str], least_attempts: int
) -> None:
    result = drop_with(stack, *names)

    (execution,) = result["executions"]
    assert execution["path"] == HAPPY_PATH
    assert attempts(stack, execution["arn"]) >= least_attempts
    assert result["record"]["status"] == "done"
    assert len(result["charges"]) == 1
    assert result["queued"] == 0


def test_a_fault_of_one_order_leaves_another_alone(stack: Stack) -> None:
    faulty = orders.fresh_object_key()
    faults.arm(stack, [faults.Fault("function.exit_before_charge", 99)], faulty)

    result = drop(stack)

    assert attempts(stack, result["executions"][0]["arn"]) == 1
    faults.clear(stack)


# ---------------------------------------------------------------- the failure queue and replay


def test_a_dead_provider_leaves_the_order_open_and_queued_and_a_replay_settles_it(
    stack: Stack,
) -> None:
    result = leave_open(stack)
    key = result["idempotency_key"]
    assert result["executions"][0]["status"] == "FAILED"
    assert result["executions"][0]["error"] == "ProviderUnavailable"
    assert result["charges"] == []
    assert result["record"]["status"] == "in_progress"
    assert result["queued"] == 1

    report = document("replay", "--idempotency-key", key)

    ((replayed,), left, deleted) = (report["replayed"], report["left"], report["deleted"])
    assert replayed["idempotency_key"] == key
    assert replayed["status"] == "SUCCEEDED"
    assert (left, deleted) == ([], 1)
    assert books.execution(stack, replayed["execution"]).path == [
        "IsVersioned?",
        "IdentifyByVersion",
        "Claim",
        "ReadRecord",
        "WhoHoldsTheClaim?",
        "TakeOver",
        "Charge",
        "MarkDone",
    ]
    record = books.record(stack, key)
    assert record is not None
    assert (record["status"], record["owner"]) == ("done", replayed["execution"])
    assert len(list(books.charges(stack, key))) == 1
    assert messages_of(stack, key) == []


def test_the_message_names_execution_order_key_and_error(stack: Stack) -> None:
    result = leave_open(stack)

    (message,) = messages_of(stack, result["idempotency_key"])
    assert message.attributes == {
        "error": "ProviderUnavailable",
        "idempotency_key": result["idempotency_key"],
    }
    assert message.body["execution"] == result["executions"][0]["arn"]
    assert message.body["order"]["version_id"] == result["object"]["version_id"]
    assert message.body["error"]["Error"] == "ProviderUnavailable"


def test_two_replays_at_once_make_one_charge_and_empty_the_queue(stack: Stack) -> None:
    key = leave_open(stack)["idempotency_key"]

    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda _: replay(stack, idempotency_key=key), range(2)))

    assert sum(report.deleted for report in reports) == 1
    assert len(list(books.charges(stack, key))) == 1
    assert messages_of(stack, key) == []


def test_replaying_a_settled_order_only_deletes_its_message(stack: Stack) -> None:
    result = leave_open(stack)
    key = result["idempotency_key"]
    arn = orders.start_execution(
        stack, replay_input(placed_of(result, stack), result["record"]["owner"])
    )
    orders.wait_for_end(stack, arn)

    report = replay(stack, idempotency_key=key)

    assert (report.replayed, report.left, report.deleted) == ([], [], 1)
    assert len(list(books.charges(stack, key))) == 1


def test_a_superseded_version_is_left_to_a_person(stack: Stack) -> None:
    result = leave_open(stack)
    newer = drop(stack, result["object"]["key"])

    report = replay(stack, idempotency_key=result["idempotency_key"])

    (left,) = report.left
    assert newer["object"]["version_id"] in left["why"]
    assert (report.replayed, report.deleted) == ([], 0)
    assert len(messages_of(stack, result["idempotency_key"])) == 1


def test_a_replay_that_fails_again_leaves_one_message_of_the_newer_failure(stack: Stack) -> None:
    result = leave_open(stack)
    key = result["idempotency_key"]
    faults.arm(stack, [faults.Fault("provider.unavailable", 99)], result["object"]["key"])

    report = replay(stack, idempotency_key=key)

    (replayed,) = report.replayed
    assert (replayed["status"], report.deleted) == ("FAILED", 1)
    (message,) = messages_of(stack, key)
    assert message.body["execution"] == replayed["execution"]
    faults.clear(stack)

    again = replay(stack, idempotency_key=key)

    assert [item["status"] for item in again.replayed] == ["SUCCEEDED"]
    assert len(list(books.charges(stack, key))) == 1
    assert messages_of(stack, key) == []


def test_a_replay_leaves_an_order_whose_owner_still_runs(stack: Stack) -> None:
    result = leave_open(stack)
    key = result["idempotency_key"]
    faults.arm(stack, [faults.Fault("provider.timeout_after_charge", 1)], result["object"]["key"])
    owner = orders.start_execution(
        stack, replay_input(placed_of(result, stack), result["record"]["owner"])
    )
    wait_for(lambda: (books.record(stack, key) or {}).get("owner") == owner, 10)

    report = replay(stack, idempotency_key=key)

    (left,) = report.left
    assert "still running" in left["why"]
    assert report.deleted == 0
    orders.wait_for_end(stack, owner)
    assert replay(stack, idempotency_key=key).deleted == 1
    assert len(list(books.charges(stack, key))) == 1


# ---------------------------------------------------------------- what Catch cannot see


def test_a_stopped_execution_is_queued_by_the_backstop_and_a_replay_settles_it(
    stack: Stack,
) -> None:
    result = drop_with(stack, "provider.timeout_before:9", wait=False)
    key, arn = result["idempotency_key"], result["executions"][0]["arn"]
    wait_for(lambda: books.execution(stack, arn).path[-1] == "Charge", 10)

    stopped = document("stop", "--execution", arn)
    faults.clear(stack)

    assert stopped["status"] == "ABORTED"
    (message,) = wait_for(lambda: messages_of(stack, key), 30)
    assert message.error == "ExecutionAborted"
    assert message.body["execution"] == arn
    assert message.body["order"]["version_id"] == result["object"]["version_id"]
    record = books.record(stack, key)
    assert record is not None
    assert record["status"] == "in_progress"

    report = replay(stack, idempotency_key=key)

    assert [item["status"] for item in report.replayed] == ["SUCCEEDED"]
    assert len(succeeded({"charges": map(orders.contract_charge, books.charges(stack, key))})) == 1
    assert messages_of(stack, key) == []


def test_an_input_that_is_no_s3_event_is_queued_by_the_backstop(stack: Stack) -> None:
    arn = orders.start_execution(stack, {"nonsense": True})
    orders.wait_for_end(stack, arn)

    def named() -> list[books.Message]:
        return [item for item in books.messages(stack) if item.body.get("execution") == arn]

    (message,) = wait_for(named, 30)
    assert books.execution(stack, arn).error == "States.Runtime"
    assert message.error == "States.Runtime"
    assert message.idempotency_key is None
    report = replay(stack)
    assert any(message.message_id in left["why"] for left in report.left)


# ---------------------------------------------------------------- files that are not orders


def test_malformed_orders_are_rejected_with_the_field_never_charged_never_retried(
    stack: Stack,
) -> None:
    cases = malformed_orders()

    def reject(body: bytes) -> Any:
        key = orders.put(stack, orders.fresh_object_key(), body).idempotency_key

        def rejected() -> Any:
            record = books.record(stack, key) or {}
            return record if record.get("status") == "rejected" else None

        return wait_for(rejected, 30)

    with ThreadPoolExecutor(6) as pool:
        records = list(pool.map(lambda case: reject(case.body), cases))

    assert len(cases) >= 200
    wrong_reason = [
        (case.name, record["reason"])
        for case, record in zip(cases, records, strict=True)
        if case.field not in record["reason"]
    ]
    assert wrong_reason == []
    for record in records:
        orders.wait_for_end(stack, record["owner"])
        # Exactly one, whatever else a busy machine made the function try again before.
        assert failures(stack, record["owner"]).count("OrderRejected") == 1
        path = books.execution(stack, record["owner"]).path
        assert path[-3:] == ["MarkRejected", "QueueFailure", "ChargeFailed"]
    keys = {record["pk"] for record in records}
    assert {charge["reference"] for charge in books.charges(stack)}.isdisjoint(keys)
    assert {message.idempotency_key for message in books.messages(stack)}.issuperset(keys)


def test_a_rejected_order_stays_queued_until_it_is_discarded(stack: Stack) -> None:
    key = drop(stack, body=b"{}")["idempotency_key"]

    kept = replay(stack, idempotency_key=key)
    discarded = replay(stack, idempotency_key=key, discard=True)

    assert (kept.deleted, len(kept.left)) == (0, 1)
    assert "--discard" in kept.left[0]["why"]
    assert (discarded.deleted, discarded.left) == (1, [])
