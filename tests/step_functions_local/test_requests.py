"""The emulator's side against the stand-in's checks, and the checks themselves."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import botocore.session
import pytest

from local.step_functions_local import forwarding
from local.step_functions_local.engine import Engine, Machine
from local.step_functions_local.forwarding import Machines
from tests.step_functions_local import stand_in
from tests.step_functions_local.stand_in import Checks, Refused

pytestmark = pytest.mark.xdist_group("sfn-local")

PREFIX = "arn:aws:states:us-east-1:000000000000"
MACHINE = f"{PREFIX}:stateMachine:ChargeOrder"
EXECUTION = f"{PREFIX}:execution:ChargeOrder:event-1"
HEADERS = {
    "X-Amz-Target": "AWSStepFunctions.StartExecution",
    "Content-Type": "application/x-amz-json-1.0",
    "Authorization": "AWS4-HMAC-SHA256 Credential=test/…",
}
START = {"stateMachineArn": MACHINE, "name": "event-1", "input": "{}"}


@pytest.fixture(scope="module")
def checks() -> Checks:
    model = botocore.session.get_session().get_service_model("stepfunctions")
    return Checks(model, "us-east-1", "000000000000")


def read(checks: Checks, headers: Any, parameters: Any, path: str = "/") -> Any:
    return checks.read(path, headers, json.dumps(parameters).encode())


def test_a_good_request_passes(checks: Checks) -> None:
    assert read(checks, HEADERS, START) == ("StartExecution", START)


@pytest.mark.parametrize(
    ("headers", "changed", "error"),
    [
        ({"X-Amz-Target": "AWSStepFunctions.TestState"}, {}, "UnknownOperationException"),
        ({"X-Amz-Target": "StartExecution"}, {}, "UnknownOperationException"),
        ({"Content-Type": "application/json"}, {}, "SerializationException"),
        ({"Authorization": ""}, {}, "MissingAuthenticationTokenException"),
        ({}, {"names": "event-1"}, "SerializationException"),
        ({}, {"input": 1}, "ValidationException"),
        ({}, {"name": "e" * 81}, "InvalidName"),
        ({}, {"name": "event 1"}, "InvalidName"),
        ({}, {"stateMachineArn": "ChargeOrder"}, "InvalidArn"),
        ({}, {"stateMachineArn": MACHINE.replace("0000", "1234")}, "InvalidArn"),
    ],
)
def test_a_bad_request_is_refused(checks: Checks, headers: Any, changed: Any, error: str) -> None:
    with pytest.raises(Refused) as refused:
        read(checks, HEADERS | headers, START | changed)

    assert refused.value.code == error


@pytest.mark.parametrize(
    "arguments",
    [
        ["--aws-account", "12"],
        ["--unknown", "1"],
        ["--sqs-endpoint", "http://example.com:80"],
        ["--aws-account", "000000000000"],  # a second time
    ],
)
def test_a_bad_command_line_is_refused(arguments: list[str]) -> None:
    good = ["-jar", "/dev/null", "--aws-account", "000000000000", "--aws-region", "us-east-1"]
    for service in ("lambda", "dynamodb", "sqs", "step-functions"):
        good += [f"--{service}-endpoint", "http://127.0.0.1:4566"]
    good += ["--wait-time-scale", "0.5"]
    assert stand_in.parse(good).wait_time_scale == 0.5

    with pytest.raises(SystemExit):
        stand_in.parse(good + arguments)


def test_the_queue_of_a_definition_is_reached_from_a_container() -> None:
    queue = "http://127.0.0.1:4566/000000000000/FailureQueue"
    machine = {"name": "ChargeOrder", "definition": json.dumps(queue), "roleArn": "role"}
    emulator = SimpleNamespace(_state_machines={MACHINE: machine})

    there = Machines(emulator, "http://127.0.0.1:4566", "http://host.docker.internal:4566")

    definition = there.find(MACHINE).definition
    assert definition == '"http://host.docker.internal:4566/000000000000/FailureQueue"'


class Scripted(Engine):
    """An engine whose answers are written down, and its calls."""

    def __init__(self, **answers: Any) -> None:
        super().__init__("http://127.0.0.1:1", "us-east-1", lambda arn: Machine("m", "{}", "role"))
        self.answers = answers
        self.calls: list[str] = []

    def call(self, action: str, parameters: Any) -> Any:
        self.calls.append(action)
        return self.answers[action]


def test_error_and_cause_are_read_from_the_history_where_they_are_left_out() -> None:
    event = {"id": 9, "executionFailedEventDetails": {"error": "Late", "cause": "too slow"}}
    engine = Scripted(
        DescribeExecution={"status": "FAILED"}, GetExecutionHistory={"events": [event]}
    )

    description = engine.describe(EXECUTION)

    assert description == {"status": "FAILED", "error": "Late", "cause": "too slow"}


def test_a_success_needs_no_second_question() -> None:
    engine = Scripted(DescribeExecution={"status": "SUCCEEDED"})

    engine.describe(EXECUTION)

    assert engine.calls == ["DescribeExecution"]


def test_a_state_machine_is_brought_once() -> None:
    engine = Scripted(UpdateStateMachine={}, StartExecution={})

    for _ in range(2):
        engine.call_on_machine(MACHINE, "StartExecution", START)

    assert engine.calls == ["UpdateStateMachine", "StartExecution", "StartExecution"]


@pytest.mark.parametrize(
    ("payload", "is_its_id"),
    [
        ({"id": "1", "source": "aws.s3", "detail-type": "Object Created"}, True),
        ({"id": "1"}, False),
        ("a constant", False),
    ],
)
def test_only_a_whole_event_is_known_by_its_id(payload: Any, *, is_its_id: bool) -> None:
    assert (forwarding._identity(json.dumps(payload)) == "1") is is_its_id
