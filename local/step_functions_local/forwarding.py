"""The emulator's executions, run by Step Functions Local: only with `--step-functions-endpoint`.

State machines stay the emulator's, as CloudFormation made them. Whatever concerns an execution is
answered by Step Functions Local, under the same ARNs.
"""

from __future__ import annotations

import datetime
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from local.emulator import upstream
from local.execution_names import execution_name
from local.step_functions_local.engine import Engine, EngineAway, Machine, code
from local.step_functions_local.runs import Run, Runs

Json = dict[str, Any]
Answer = tuple[int, dict[str, str], bytes]

#: Answered by Step Functions Local alone.
_FORWARDED = {
    "GetExecutionHistory": "_get_execution_history",
    "StopExecution": "_stop_execution",
    "DescribeStateMachineForExecution": "_describe_state_machine_for_execution",
}
_ACTIONS = {*_FORWARDED, "StartExecution", "DescribeExecution", "ListExecutions"}


def install(endpoint: str, region: str, own_url: str, seen_as: str | None) -> None:
    """Hand executions to Step Functions Local at `endpoint`.

    `own_url` is the emulator's address, `seen_as` the one under which Step Functions Local
    reaches it, if that is another (in a container): queue URLs in definitions are made to fit.

    To be called before the mends, so that they check names and inputs as they always do.
    """
    stepfunctions = upstream.module("services.stepfunctions")
    machines = Machines(stepfunctions, own_url, seen_as or own_url)
    forwarding = Forwarding(stepfunctions, Engine(endpoint, region, machines.find))
    # Off the event loop: Step Functions Local may call back before it answers.
    stepfunctions._OFF_LOOP_ACTIONS |= _ACTIONS
    upstream.wrap(stepfunctions, "_start_execution", forwarding.start)
    upstream.wrap(stepfunctions, "_describe_execution", forwarding.describe)
    upstream.wrap(stepfunctions, "_list_executions", forwarding.list_executions)
    for action, function in _FORWARDED.items():
        upstream.wrap(stepfunctions, function, forwarding.ask_about_execution(action))
    eventbridge = upstream.module("services.eventbridge")
    upstream.wrap(eventbridge, "_dispatch_to_stepfunctions", forwarding.dispatch)


@dataclass(frozen=True)
class Machines:
    """The emulator's state machines as Step Functions Local needs them."""

    stepfunctions: Any
    own_url: str
    seen_as: str

    def find(self, arn: str) -> Machine:
        """Raises LookupError when there is none."""
        found = self.stepfunctions._state_machines.get(arn)
        if found is None:
            raise LookupError(arn)
        definition = found["definition"].replace(self.own_url, self.seen_as)
        return Machine(found["name"], definition, found["roleArn"])


class Forwarding:
    """What takes the place of MiniStack's own functions, each called with the original first."""

    def __init__(self, stepfunctions: Any, engine: Engine) -> None:
        self._emulator = stepfunctions
        self._engine = engine
        self._runs = Runs(engine, self._announce)

    def start(self, original: Any, data: Json) -> Any:
        """StartExecution."""
        arn, _, test_case = data.get("stateMachineArn", "").partition("#")
        machine = self._emulator._resolve_state_machine_arn(arn)
        if machine is None:
            return original(data)
        # Named here, so that it is known by its name from now on.
        name = data.get("name") or str(uuid.uuid4())
        named = machine + (f"#{test_case}" if test_case else "")
        run = Run(named, name, data.get("input", "{}"))
        return self._answer(lambda: self._runs.start(run))

    def describe(self, original: Any, data: Json) -> Any:
        """DescribeExecution."""
        arn = data.get("executionArn", "")
        if arn in self._emulator._executions:
            return original(data)  # a synchronous one: those are the emulator's
        return self._answer(lambda: self._describe(arn))

    def _describe(self, arn: str) -> Json:
        run = self._runs.held(arn)
        try:
            return self._engine.describe(arn)
        except EngineAway:
            if run is None:
                raise
        except ClientError as error:
            if run is None or code(error) != "ExecutionDoesNotExist":
                raise
        # It will be started (again): whoever took it for dead would take its claim over.
        return run.description()

    def list_executions(self, original: Any, data: Json) -> Any:
        """ListExecutions, of a state machine."""
        arn = self._emulator._resolve_state_machine_arn(data.get("stateMachineArn", ""))
        if arn is None:
            return original(data)
        asked = data | {"stateMachineArn": arn}
        return self._answer(lambda: self._engine.call_on_machine(arn, "ListExecutions", asked))

    def ask_about_execution(self, action: str) -> Callable[[Any, Json], Any]:
        """An action that names an execution and is passed on as it is."""

        def ask(original: Any, data: Json) -> Any:
            if data.get("executionArn") in self._emulator._executions:
                return original(data)
            return self._answer(lambda: self._engine.call(action, data))

        return ask

    def dispatch(self, original: Any, arn: str, payload: str) -> None:
        """A rule's event for a state machine."""
        machine = self._emulator._resolve_state_machine_arn(arn)
        if machine is None:
            original(arn, payload)
        else:
            self._runs.deliver(Run(machine, execution_name("event", _identity(payload)), payload))

    def _announce(self, description: Json) -> None:
        times = {key: _iso(description.get(key)) for key in ("startDate", "stopDate")}
        self._emulator._emit_execution_status_event(description | times)

    def _answer(self, ask: Callable[[], Json]) -> Answer:
        try:
            response: Answer = self._emulator.json_response(ask())
        except ClientError as error:
            message = error.response["Error"].get("Message", "")
            status = error.response["ResponseMetadata"]["HTTPStatusCode"]
            response = self._emulator.error_response_json(code(error), message, status)
        except EngineAway as error:
            # SDKs ask again after this.
            response = self._emulator.error_response_json("ServiceUnavailable", str(error), 503)
        return response


def _identity(payload: str) -> str:
    """What tells this event from others, also when it is delivered again: its id.

    What a rule makes of an event (a constant, a part) may lack one: then every delivery is new.
    """
    event = json.loads(payload)
    whole = isinstance(event, dict) and event.keys() >= {"id", "source", "detail-type"}
    return str(event["id"]) if whole else str(uuid.uuid4())


def _iso(epoch_seconds: float | None) -> str | None:
    if epoch_seconds is None:
        return None
    return datetime.datetime.fromtimestamp(epoch_seconds, datetime.UTC).isoformat()
