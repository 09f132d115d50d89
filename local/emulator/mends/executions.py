"""Mends of how AWS Step Functions starts, runs, records and ends an execution.

`API Reference` below is https://docs.aws.amazon.com/step-functions/latest/apireference/,
`Developer Guide` is https://docs.aws.amazon.com/step-functions/latest/dg/.
"""

import json
import re
import threading
import time
from typing import Any

from local.emulator import upstream
from local.emulator.mends import running

MAX_PAYLOAD_BYTES = 256 * 1024
"""Largest input or output of a state, task or execution, as UTF-8 (Developer Guide, quotas)."""

# MiniStack's own sleep in front of every execution, which nothing else in its module equals.
_HEAD_START_SECONDS = 0.15


class _Clock:
    """The `time` module for MiniStack's interpreter, without its head start."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    @staticmethod
    def sleep(seconds: float) -> None:
        if seconds != _HEAD_START_SECONDS:
            running.sleep(seconds)


def start_at_once() -> None:
    """An execution begins when it is started.

    MiniStack sleeps 0.15 s before the first state, which is most of an order's local latency.
    """
    upstream.module("services.stepfunctions").time = _Clock()


_NAME = re.compile(r"[^\s<>{}\[\]?*\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]{1,80}")


def check_what_starts_an_execution() -> None:
    """Bad names and inputs are refused: `InvalidName`, `InvalidExecutionInput`.

    Rule: API Reference, StartExecution: 1-80 characters without white space, brackets, wildcards,
    `"#%\\^|~`$&,;:/` and control characters; the input is JSON of at most 262,144 bytes.
    """
    stepfunctions = upstream.module("services.stepfunctions")

    def start(original: Any, data: dict[str, Any]) -> Any:
        name, given = data.get("name"), data.get("input", "{}")
        if name is not None and not _NAME.fullmatch(name):
            return stepfunctions.error_response_json(
                "InvalidName", f"Invalid Name: '{name}' (1-80 of the allowed characters)", 400
            )
        if len(given.encode()) > MAX_PAYLOAD_BYTES:
            return stepfunctions.error_response_json(
                "ValidationException",
                "1 validation error detected: Value at 'input' failed to satisfy constraint: "
                f"Member must have length less than or equal to {MAX_PAYLOAD_BYTES}",
                400,
            )
        try:
            json.loads(given)
        except ValueError as error:
            return stepfunctions.error_response_json(
                "InvalidExecutionInput", f"Invalid State Machine Execution Input: '{error}'", 400
            )
        return original(data)

    upstream.wrap(stepfunctions, "_start_execution", start)


def start_idempotently() -> None:
    """StartExecution with the name and input of a running execution returns that execution.

    Rule: API Reference, StartExecution: idempotent for Standard workflows while it runs; once it
    is closed, or when the input differs, `ExecutionAlreadyExists`.
    """
    stepfunctions = upstream.module("services.stepfunctions")

    def start(original: Any, data: dict[str, Any]) -> Any:
        machine = stepfunctions._resolve_state_machine_arn(
            data.get("stateMachineArn", "").partition("#")[0]
        )
        name = data.get("name")
        if machine is not None and name is not None:
            arn = machine.replace(":stateMachine:", ":execution:") + f":{name}"
            found = stepfunctions._executions.get(arn)
            if (
                found is not None
                and found["status"] == "RUNNING"
                and found["input"] == data.get("input", "{}")
            ):
                return stepfunctions.json_response(
                    {"executionArn": arn, "startDate": found["startDate"]}
                )
        return original(data)

    upstream.wrap(stepfunctions, "_start_execution", start)


def time_machines_out() -> None:
    """A state machine's own `TimeoutSeconds` ends its executions as `TIMED_OUT`.

    Rule: States Language, top-level fields; API Reference, ExecutionTimedOutEventDetails. The
    time is real: SFN_WAIT_SCALE shortens waits, not time-outs.
    """
    stepfunctions = upstream.module("services.stepfunctions")

    def run(original: Any, arn: str) -> None:
        execution = stepfunctions._executions.get(arn) or {}
        machine = stepfunctions._state_machines.get(execution.get("stateMachineArn")) or {}
        seconds = json.loads(machine.get("definition", "{}")).get("TimeoutSeconds")
        if seconds is None:
            original(arn)
            return
        # The timer's thread must see the account and region that this one does.
        scope = stepfunctions.contextvars.copy_context()
        timer = threading.Timer(seconds, scope.run, (time_out, execution))
        timer.daemon = True
        timer.start()
        try:
            original(arn)
        finally:
            timer.cancel()

    def time_out(execution: dict[str, Any]) -> None:
        try:
            execution["status"] = "TIMED_OUT"
        except running.Ended:
            return
        execution["stopDate"] = stepfunctions.now_iso()
        stepfunctions._add_event(
            execution, "ExecutionTimedOut", {"executionTimedOutEventDetails": {}}
        )
        stepfunctions._emit_execution_status_event(execution)

    upstream.wrap(stepfunctions, "_run_execution", run)


def stop_for_good() -> None:
    """A stopped execution runs no further state, retries nothing and stays `ABORTED`.

    Rule: API Reference, StopExecution; HistoryEvent: `ExecutionAborted` is the last event.
    MiniStack lets a retry loop run on, appends to the closed history, and turns `ABORTED` into
    `FAILED` when the task in flight fails. See `running.Execution` for how a run ends once.
    """
    stepfunctions = upstream.module("services.stepfunctions")
    running.track()
    plain_dict = type(stepfunctions._executions)

    class Executions(plain_dict):  # type: ignore[misc, valid-type]
        def __setitem__(self, key: str, value: Any) -> None:
            super().__setitem__(key, running.Execution(value))

    stepfunctions._executions = Executions()

    def run(original: Any, arn: str) -> None:
        try:
            original(arn)
        except running.Ended:
            return

    def stop(original: Any, data: dict[str, Any]) -> Any:
        try:
            return original(data)
        except running.Ended:
            return original(data)  # it ended between the question and the answer: ask again

    def add_event(original: Any, record: Any, kind: str, details: Any = None) -> Any:
        if not isinstance(record, running.Execution):
            return original(record, kind, details)
        with record.lock:
            record.check_open_for(kind)
            event = original(record, kind, details)
            record.show_outcome_after(kind)
        return event

    upstream.wrap(stepfunctions, "_run_execution", run)
    upstream.wrap(stepfunctions, "_stop_execution", stop)
    upstream.wrap(stepfunctions, "_add_event", add_event)


def write_the_history_that_aws_writes() -> None:
    """The events of a task are those that AWS writes, linked by `previousEventId`.

    Rule: API Reference, HistoryEvent: TaskScheduled, TaskStarted, then TaskSucceeded, TaskFailed
    or TaskTimedOut, with `resourceType` (`lambda`) and `resource` (`invoke`) apart.
    """
    stepfunctions = upstream.module("services.stepfunctions")

    def add_event(original: Any, record: Any, kind: str, details: Any = None) -> Any:
        if kind.startswith("Task") and details:
            kind, details = _as_aws_names_it(kind, details)
        event = original(record, kind, details)
        # One line of states: the event before is the cause. The first two events have none.
        record["events"][0].setdefault("previousEventId", 0)
        event["previousEventId"] = event["id"] - 1 if event["id"] > 2 else 0
        if kind == "TaskScheduled":
            task = details["taskScheduledEventDetails"]
            started = {key: task[key] for key in ("resourceType", "resource")}
            add_event(original, record, "TaskStarted", {"taskStartedEventDetails": started})
        return event

    upstream.wrap(stepfunctions, "_add_event", add_event)


def _as_aws_names_it(kind: str, details: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    ((name, values),) = details.items()
    if kind == "TaskFailed" and values.get("error") == "States.Timeout":
        kind, name = "TaskTimedOut", "taskTimedOutEventDetails"
    # arn:aws:states:::lambda:invoke, arn:aws:states:::aws-sdk:s3:getObject
    _, colons, integration = values.get("resource", "").partition(":::")
    if colons:
        service, _, action = integration.rpartition(":")
        values = {**values, "resourceType": service, "resource": action}
    return kind, {name: values}


def complete_the_context_object() -> None:
    """`$$.Execution` has `RoleArn` and `RedriveCount`.

    Rule: Developer Guide, input-output-contextobject, format of the context object.
    """
    stepfunctions = upstream.module("services.stepfunctions")

    def resolve(original: Any, path: str, context: dict[str, Any]) -> Any:
        execution = context.get("Execution")
        if execution is not None and "RoleArn" not in execution:
            machine = stepfunctions._state_machines.get(context["StateMachine"]["Id"]) or {}
            execution |= {"RoleArn": machine.get("roleArn"), "RedriveCount": 0}
        return original(path, context)

    upstream.wrap(stepfunctions, "_resolve_ctx_path", resolve)


def limit_payloads() -> None:
    """A task result or state output of more than 256 KiB fails with `States.DataLimitExceeded`.

    Rule: Developer Guide, quotas related to state machine executions; concepts-error-handling.
    """
    stepfunctions = upstream.module("services.stepfunctions")

    def too_large(kind: str) -> Exception:
        error: Exception = stepfunctions._ExecutionError(
            "States.DataLimitExceeded",
            f"The {kind} returned a result with a size exceeding the maximum number of bytes "
            "service limit.",
        )
        return error

    def add_event(original: Any, record: Any, kind: str, details: Any = None) -> Any:
        output = (details or {}).get("stateExitedEventDetails", {}).get("output", "")
        if _is_too_large(output):
            raise too_large("state")
        return original(record, kind, details)

    def invoke(original: Any, resource: str, given: Any) -> Any:
        result = original(resource, given)
        if _is_too_large(json.dumps(result)):
            raise too_large("task")
        return result

    upstream.wrap(stepfunctions, "_add_event", add_event)
    upstream.wrap(stepfunctions, "_invoke_resource", invoke)


def _is_too_large(document: str) -> bool:
    """More than the limit as the UTF-8 text that AWS counts, although MiniStack escapes it."""
    if len(document) <= MAX_PAYLOAD_BYTES:
        return False
    return len(json.dumps(json.loads(document), ensure_ascii=False).encode()) > MAX_PAYLOAD_BYTES
