"""Replays on the real stack that are killed, and messages and records that others wrote."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from local import books, faults, orders
from local.paths import PROJECT
from local.stack import Stack
from local.waiting import wait_for
from tests.e2e.command import document, run
from tests.e2e.test_failures import leave_open, messages_of

pytestmark = pytest.mark.xdist_group("failures")

#: The hold of the replays that are killed here: the real one is a minute.
HOLD_SECONDS = 2
REPLAY = (
    "import sys; from local import cli, replay; replay.HOLD_SECONDS = {hold}; "
    "sys.argv[1:] = ['replay', '--idempotency-key', '{key}']; cli.main()"
)


@contextmanager
def replaying(stack: Stack, key: str, hold: int) -> Iterator[subprocess.Popen[bytes]]:
    """A replay in a process of its own, which waits for an execution that hangs."""
    record = books.record(stack, key)
    assert record is not None
    faults.arm(stack, [faults.Fault("provider.timeout_before", 99)], record["object_key"])
    process = subprocess.Popen(
        [sys.executable, "-c", REPLAY.format(hold=hold, key=key)],
        cwd=PROJECT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        owner = wait_for(lambda: new_owner(stack, key, record["owner"]), 30)
        yield process
    finally:
        process.kill()
        process.wait()
        faults.clear(stack)
    stack.client("stepfunctions").stop_execution(executionArn=owner)


def new_owner(stack: Stack, key: str, old: str) -> str | None:
    owner = (books.record(stack, key) or {}).get("owner")
    return owner if owner != old else None


def is_visible(stack: Stack, key: str) -> bool:
    taken, _ = books.take_available(stack, 10)
    books.give_back(stack, taken)
    return key in [message.idempotency_key for message in taken]


def test_a_replay_hides_its_message_while_it_lives_and_gives_it_back_when_it_is_killed(
    stack: Stack,
) -> None:
    key = leave_open(stack)["idempotency_key"]
    with replaying(stack, key, HOLD_SECONDS) as process:
        with pytest.raises(TimeoutError):
            wait_for(lambda: is_visible(stack, key), HOLD_SECONDS + 1)

        process.send_signal(signal.SIGKILL)

        assert wait_for(lambda: is_visible(stack, key), HOLD_SECONDS + 5)


def test_ctrl_c_ends_a_replay_at_once_and_gives_its_message_back(stack: Stack) -> None:
    key = leave_open(stack)["idempotency_key"]
    with replaying(stack, key, 600) as process:
        assert not is_visible(stack, key)

        process.send_signal(signal.SIGINT)
        process.wait(10)

        assert is_visible(stack, key)


# ---------------------------------------------------------------- what others wrote


@pytest.fixture
def odd_record(stack: Stack) -> Iterator[str]:
    table, key = stack.table, {"pk": {"S": "somebody else's"}}
    odd = {"names": {"SS": ["b", "a"]}, "sizes": {"NS": ["2", "0.5"]}, "raw": {"BS": [b"\xff"]}}
    stack.client("dynamodb").put_item(TableName=table, Item=key | {"status": {"S": "?"}} | odd)
    yield key["pk"]["S"]
    stack.client("dynamodb").delete_item(TableName=table, Key=key)


def test_the_ledger_shows_a_record_of_any_types(odd_record: str) -> None:
    records = {record["pk"]: record for record in document("ledger")["records"]}

    assert records[odd_record] == {
        "pk": odd_record,
        "status": "?",
        "names": ["a", "b"],
        "sizes": ["0.5", 2],
        "raw": ["/w=="],
    }
    assert run("ledger").returncode == 0


@pytest.fixture
def odd_message(stack: Stack) -> Iterator[str]:
    sqs, queue = stack.client("sqs"), stack.failure_queue_url
    body = {"order": ["a", "list"], "idempotency_key": "somebody else's"}
    yield sqs.send_message(QueueUrl=queue, MessageBody=json.dumps(body))["MessageId"]
    for message in messages_of(stack, "somebody else's"):
        taken, _ = books.take_available(stack, 10)
        (ours,) = (one for one in taken if one.message_id == message.message_id)
        sqs.delete_message(QueueUrl=queue, ReceiptHandle=ours.receipt)
        books.give_back(stack, [one for one in taken if one is not ours])


def test_the_queue_shows_and_a_replay_leaves_a_message_that_names_no_order(
    stack: Stack, odd_message: str
) -> None:
    report = document("replay", "--idempotency-key", "somebody else's")
    (shown,) = (
        message for message in document("queue")["messages"] if message["message_id"] == odd_message
    )

    assert run("queue").returncode == 0
    assert shown["order"] == ["a", "list"]
    assert (report["replayed"], report["deleted"]) == ([], 0)
    assert report["left"][0]["idempotency_key"] == "somebody else's"


# ---------------------------------------------------------------- the queue itself is gone


@contextmanager
def without_failure_queue(stack: Stack) -> Iterator[None]:
    """The queue is deleted, and made again as it was."""
    sqs, url = stack.client("sqs"), stack.failure_queue_url
    attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    kept = {
        name: attributes[name]
        for name in ("MessageRetentionPeriod", "SqsManagedSseEnabled", "Policy")
        if name in attributes
    }
    sqs.delete_queue(QueueUrl=url)
    try:
        yield
    finally:
        made = sqs.create_queue(QueueName=url.rpartition("/")[2], Attributes=kept)
        assert made["QueueUrl"] == url


@pytest.fixture
def no_backstop_rule(stack: Stack) -> Iterator[None]:
    """The test calls the backstop itself, so that it comes neither too early nor twice."""
    events = stack.client("events")
    (rule,) = (
        rule["Name"]
        for rule in events.list_rules()["Rules"]
        if "Execution Status Change" in rule.get("EventPattern", "")
    )
    events.disable_rule(Name=rule)
    yield
    events.enable_rule(Name=rule)


@pytest.mark.usefixtures("no_backstop_rule")
def test_a_run_that_found_its_queue_deleted_is_queued_by_the_backstop(stack: Stack) -> None:
    with without_failure_queue(stack):
        placed = orders.put(stack, orders.fresh_object_key(), b"{}")
        (arn,) = orders.deliver(stack, placed, 1, concurrently=False, wait=True)
    description = stack.client("stepfunctions").describe_execution(executionArn=arn)
    detail = {name: description.get(name) for name in ("executionArn", "status", "input", "error")}

    called = stack.client("lambda").invoke(
        FunctionName=backstop(stack), Payload=json.dumps({"detail": detail})
    )

    assert "FunctionError" not in called, called["Payload"].read()
    assert description["error"] == "FailureQueueUnreachable"
    named = [one.error for one in messages_of(stack, placed.idempotency_key)]
    assert named == ["FailureQueueUnreachable"]


def backstop(stack: Stack) -> Any:
    (name,) = (
        function["FunctionName"]
        for function in stack.client("lambda").list_functions()["Functions"]
        if "Backstop" in function["FunctionName"]
    )
    return name
