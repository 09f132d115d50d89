"""What a replay starts, what it leaves alone, and what it deletes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from backstop.message import order_of
from botocore.exceptions import ClientError

from local import books
from local import replay as replaying
from local.inprocess import Call, InProcess, TaskFailure
from local.paths import SAMPLE_ORDER
from local.replay import replay, replay_input
from local.stack import Stack

pytestmark = pytest.mark.xdist_group("workflow-moto")

Json = dict[str, Any]

ORDER = {"bucket": "b", "key": "orders/a.json", "version_id": "v1", "etag": "e"}
KEY = order_of(replay_input(ORDER, None))["idempotency_key"]
BODY = SAMPLE_ORDER.read_bytes()


@pytest.fixture
def pipeline() -> Iterator[InProcess]:
    with InProcess() as pipeline:
        yield pipeline


def failing(*states: str) -> Callable[[Call, Callable[[], Any]], Any]:
    """A pipeline whose calls in `states` fail before they have an effect."""

    def around(call: Call, proceed: Callable[[], Any]) -> Any:
        if call.state in states:
            raise TaskFailure("ProviderCredentialsRefused")
        return proceed()

    return around


def unhindered(_: Call, proceed: Callable[[], Any]) -> Any:
    return proceed()


def leave_open(pipeline: InProcess) -> str:
    """An order that waits in the failure queue, and will be well now; gives its key."""
    event = pipeline.drop("orders/a.json", BODY)
    pipeline.around = failing("Charge")
    run = pipeline.deliver(event)
    pipeline.around = unhindered
    assert run.path[-2:] == ["QueueFailure", "ChargeFailed"]
    return order_of(event)["idempotency_key"]


def send(stack: Stack, body: Any, error: str = "ProviderUnavailable") -> None:
    stack.client("sqs").send_message(
        QueueUrl=stack.failure_queue_url,
        MessageBody=body if isinstance(body, str) else json.dumps(body),
        MessageAttributes={"error": {"DataType": "String", "StringValue": error}},
    )


@pytest.mark.parametrize(
    ("owner", "marker"), [(None, {}), ("arn:old-owner", {"owner": "arn:old-owner"})]
)
def test_every_replay_says_that_it_is_one_so_that_the_books_are_asked_first(
    owner: str | None, marker: dict[str, str]
) -> None:
    assert replay_input(ORDER, owner)["replay"] == marker


# ---------------------------------------------------------------- one attempt after another


def test_a_replay_that_ended_before_it_claimed_is_followed_by_another(pipeline: InProcess) -> None:
    leave_open(pipeline)
    pipeline.around = failing("Claim", "QueueFailure")
    first = replay(pipeline.stack)
    pipeline.around = unhindered

    second = replay(pipeline.stack)

    assert [item["status"] for item in first.replayed] == ["FAILED"]
    assert first.deleted == 0
    assert [item["status"] for item in second.replayed] == ["SUCCEEDED"]
    assert (second.left, second.deleted) == ([], 1)
    assert len(pipeline.charges()) == 1


@dataclass
class StepFunctions:
    """Names of executions as Step Functions treats them: a name that runs with this very input
    gives that run; one that has ended, or runs with another input, is taken.

    Source: https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html
    """

    running: dict[str, bool] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)

    def start_execution(self, *, name: str, **request: Any) -> Json:
        same = self.inputs.setdefault(name, request["input"]) == request["input"]
        if not self.running.setdefault(name, True) or not same:
            raise ClientError({"Error": {"Code": "ExecutionAlreadyExists"}}, "StartExecution")
        return {"executionArn": f"arn:execution:charge:{name}"}

    def describe_execution(self, *, executionArn: str) -> Json:  # noqa: N803 - AWS's own name
        running = self.running[executionArn.rpartition(":")[2]]
        return {"status": "RUNNING" if running else "ABORTED"}


@dataclass(frozen=True)
class OnlyExecutions(Stack):
    step_functions: StepFunctions = field(kw_only=True)

    def client(self, service: str) -> Any:
        assert service == "stepfunctions"
        return self.step_functions


@pytest.mark.parametrize("ended", [0, 1, 3])
def test_two_shells_that_replay_a_message_at_once_start_one_execution(ended: int) -> None:
    engine = StepFunctions()
    outputs = {"StateMachineArn": "arn:stateMachine:charge"}
    stack = OnlyExecutions("s", "us-east-1", None, outputs, step_functions=engine)

    def start() -> str:
        return replaying._start(stack, KEY, ORDER, "arn:old-owner", "message-1")

    for _ in range(ended):
        engine.running[start().rpartition(":")[2]] = False

    first, second = start(), start()

    assert first == second
    assert len(engine.running) == ended + 1


def test_a_replay_that_runs_with_another_input_is_followed() -> None:
    engine = StepFunctions()
    outputs = {"StateMachineArn": "arn:stateMachine:charge"}
    stack = OnlyExecutions("s", "us-east-1", None, outputs, step_functions=engine)
    running = replaying._start(stack, KEY, ORDER, None, "message-1")

    followed = replaying._start(stack, KEY, ORDER | {"etag": "other"}, None, "message-1")

    assert followed == running
    assert len(engine.running) == 1


# ---------------------------------------------------------------- what stays with a person


@pytest.mark.parametrize("key", ["nonsense", ""])
def test_a_key_that_is_not_queued_is_named(pipeline: InProcess, key: str) -> None:
    queued = leave_open(pipeline)

    report = replay(pipeline.stack, idempotency_key=key)

    (left,) = report.left
    assert left["idempotency_key"] == key
    assert "no message in the failure queue names this key" in left["why"]
    assert (report.replayed, report.deleted) == ([], 0)
    assert [message.idempotency_key for message in books.messages(pipeline.stack)] == [queued]


def test_a_key_that_another_reader_may_hold_is_not_called_gone(pipeline: InProcess) -> None:
    key = leave_open(pipeline)
    books.take_available(pipeline.stack, 60)

    report = replay(pipeline.stack, idempotency_key=key)

    assert ["that could be seen" in left["why"] for left in report.left] == [True, False]
    assert "1 messages are held" in report.left[1]["why"]


@pytest.mark.parametrize(
    "body",
    [
        "not JSON",
        "[]",
        '{"order":' + "[" * 5000 + "]" * 5000 + "}",
        {"idempotency_key": 7},
        {"idempotency_key": KEY},
        {"idempotency_key": KEY, "order": None},
        {"idempotency_key": KEY, "order": "text"},
        {"idempotency_key": KEY, "order": ["a", "list"]},
        {"idempotency_key": KEY, "order": {"key": "orders/a.json"}},
        {"idempotency_key": KEY, "order": ORDER | {"version_id": "null"}},
        {"idempotency_key": KEY, "order": ORDER | {"bucket": {"a": 1}}},
    ],
    ids=lambda body: (body if isinstance(body, str) else json.dumps(body))[-40:],
)
def test_a_malformed_message_is_left_and_keeps_no_other_from_its_replay(
    pipeline: InProcess, body: Any
) -> None:
    send(pipeline.stack, body)
    key = leave_open(pipeline)

    report = replay(pipeline.stack)

    assert [(item["idempotency_key"], item["status"]) for item in report.replayed] == [
        (key, "SUCCEEDED")
    ]
    assert (len(report.left), report.deleted) == (1, 1)
    assert len(books.messages(pipeline.stack)) == 1


def test_a_message_whose_key_is_not_that_of_its_order_is_left(pipeline: InProcess) -> None:
    key = leave_open(pipeline)
    (message,) = books.messages(pipeline.stack)
    send(pipeline.stack, message.body | {"idempotency_key": "charge#of-another"})

    report = replay(pipeline.stack, idempotency_key="charge#of-another")

    (left,) = report.left
    assert left["why"] == "the message's key is not that of its order"
    assert (report.replayed, report.deleted) == ([], 0)
    record = books.record(pipeline.stack, key)
    assert record is not None
    assert record["status"] == "in_progress"


def test_a_conflicting_charge_is_left_to_a_person_until_it_is_discarded(
    pipeline: InProcess,
) -> None:
    event = pipeline.drop("orders/a.json", BODY)
    pipeline.deliver(event)
    order = order_of(event)
    body = {"idempotency_key": order["idempotency_key"], "order": order, "execution": "arn"}
    send(pipeline.stack, body, error="ConflictingCharge")

    kept = replay(pipeline.stack)
    discarded = replay(pipeline.stack, discard=True)

    (left,) = kept.left
    assert "ConflictingCharge" in left["why"]
    assert "--discard" in left["why"]
    assert (kept.replayed, kept.deleted) == ([], 0)
    assert (discarded.replayed, discarded.left, discarded.deleted) == ([], [], 1)
    assert books.messages(pipeline.stack) == []


# ---------------------------------------------------------------- other readers


def test_a_message_that_another_reader_has_taken_meanwhile_is_left_to_it(
    pipeline: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = leave_open(pipeline)
    settle = replaying._settle

    def lose_the_message_first(*arguments: Any, **how: Any) -> Any:
        messages = arguments[2]
        messages[:] = [replace(message, receipt="of an earlier time") for message in messages]
        return settle(*arguments, **how)

    monkeypatch.setattr(replaying, "_settle", lose_the_message_first)

    report = replay(pipeline.stack)

    assert [item["status"] for item in report.replayed] == ["SUCCEEDED"]
    assert report.left == [
        {
            "idempotency_key": key,
            "why": "another reader has taken its message meanwhile",
        }
    ]
    assert report.deleted == 0
