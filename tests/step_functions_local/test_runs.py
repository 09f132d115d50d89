"""Runs are kept until they have ended, whatever the engine does."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.step_functions_local import runs
from local.step_functions_local.engine import EngineAway
from local.step_functions_local.runs import Run, Runs
from local.waiting import wait_for

pytestmark = pytest.mark.xdist_group("sfn-local")

MACHINE = "arn:aws:states:us-east-1:000000000000:stateMachine:ChargeOrder"
ARN = "arn:aws:states:us-east-1:000000000000:execution:ChargeOrder:event-1"
RUN = Run(MACHINE, "event-1", "{}")


def refusal(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": code}}, "StartExecution")


class FakeEngine:
    """Step Functions Local in one dictionary: the status of every execution."""

    def __init__(self) -> None:
        self.away = False
        self.refusals: list[Exception] = []
        self.starts: list[str] = []
        self.executions: dict[str, str] = {}
        self._lock = threading.Lock()

    def call_on_machine(self, machine_arn: str, action: str, parameters: Any) -> Any:
        assert (machine_arn, action) == (MACHINE, "StartExecution")
        with self._lock:
            if self.away:
                raise EngineAway("away")
            if self.refusals:
                raise self.refusals.pop(0)
            arn = machine_arn.replace(":stateMachine:", ":execution:") + f":{parameters['name']}"
            if arn in self.executions:
                raise refusal("ExecutionAlreadyExists")
            self.starts.append(arn)
            self.executions[arn] = "RUNNING"
            return {"executionArn": arn, "startDate": 1.0}

    def describe(self, execution_arn: str) -> Any:
        if self.away:
            raise EngineAway("away")
        if execution_arn not in self.executions:
            raise refusal("ExecutionDoesNotExist")
        return {"executionArn": execution_arn, "status": self.executions[execution_arn]}


class Kept:
    """Runs on a fake engine, and what they announced."""

    def __init__(self) -> None:
        self.engine = FakeEngine()
        self.announced: list[str] = []
        self.runs = Runs(
            self.engine,  # type: ignore[arg-type]
            lambda description: self.announced.append(description["status"]),
        )

    def wait_for(self, *announced: str) -> None:
        wait_for(lambda: self.announced == list(announced), 10)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    for name in ("FIRST_WAIT_SECONDS", "LOOK_SECONDS"):
        monkeypatch.setattr(runs, name, 0.005)
    return Kept()


def test_an_event_starts_its_execution_which_is_followed_to_its_end(kept: Kept) -> None:
    kept.runs.deliver(RUN)
    kept.wait_for("RUNNING")
    assert kept.runs.held(ARN) == RUN

    kept.engine.executions[ARN] = "TIMED_OUT"

    kept.wait_for("RUNNING", "TIMED_OUT")
    assert kept.runs.held(ARN) is None


def test_an_event_waits_until_the_engine_is_there(kept: Kept) -> None:
    kept.engine.away = True
    kept.runs.deliver(RUN)
    assert kept.runs.held(ARN) == RUN

    kept.engine.away = False

    kept.wait_for("RUNNING")
    assert kept.engine.starts == [ARN]


def test_an_event_that_is_refused_is_kept_as_well(kept: Kept) -> None:
    kept.engine.refusals = [refusal("InvalidDefinition"), RuntimeError("a bug")]

    kept.runs.deliver(RUN)

    kept.wait_for("RUNNING")
    assert kept.engine.starts == [ARN]


def test_a_start_whose_answer_was_lost_is_no_second_execution(kept: Kept) -> None:
    kept.engine.executions[ARN] = "RUNNING"

    kept.runs.deliver(RUN)
    kept.engine.executions[ARN] = "SUCCEEDED"

    kept.wait_for("SUCCEEDED")
    assert kept.engine.starts == []


def test_an_execution_that_has_vanished_is_started_again_under_its_name(kept: Kept) -> None:
    kept.runs.start(RUN)

    kept.engine.executions.clear()

    wait_for(lambda: kept.engine.starts == [ARN, ARN], 10)
    kept.engine.executions[ARN] = "SUCCEEDED"
    kept.wait_for("RUNNING", "RUNNING", "SUCCEEDED")


def test_an_end_is_seen_after_the_engine_was_away(kept: Kept) -> None:
    kept.runs.start(RUN)
    kept.engine.away = True
    kept.engine.executions[ARN] = "FAILED"

    kept.engine.away = False

    kept.wait_for("RUNNING", "FAILED")


def test_a_caller_hears_of_a_failed_start_and_nothing_is_kept(kept: Kept) -> None:
    kept.engine.away = True

    with pytest.raises(EngineAway):
        kept.runs.start(RUN)

    assert kept.runs.held(ARN) is None


def test_an_event_for_a_state_machine_that_was_deleted_ends_with_it(kept: Kept) -> None:
    kept.engine.refusals = [LookupError(MACHINE)]

    kept.runs.deliver(RUN)

    wait_for(lambda: kept.runs.held(ARN) is None, 10)
    assert kept.engine.starts == []


def test_the_test_case_of_mocked_integrations_is_no_part_of_the_execution() -> None:
    run = Run(f"{MACHINE}#Declined", "event-1", "{}")

    assert run.arn == ARN
    assert run.description()["stateMachineArn"] == MACHINE
