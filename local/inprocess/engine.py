"""Moto's interpreter of the States Language, with its calls and its waits in our hands."""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from botocore.exceptions import ClientError

Json = dict[str, Any]


class TaskFailure(Exception):
    """A task failed with this error name and Cause, exactly as given."""

    def __init__(self, error: str, cause: str = "") -> None:
        super().__init__(f"{error}: {cause}")
        self.error = error
        self.cause = cause


@dataclass(frozen=True)
class Call:
    """A call that the state machine makes, for example ("Claim", "dynamodb", "put_item").

    `parameters` are those of the service's API, as boto3 would take them; of a function only its
    Payload.
    """

    state: str
    service: str
    action: str
    parameters: Json


Around = Callable[[Call, Callable[[], Any]], Any]
"""Gets a call and what carries it out, and gives the answer or raises `TaskFailure`."""

Charge = Callable[[Json], Json]


def unhindered(_call: Call, proceed: Callable[[], Any]) -> Any:
    """Every call is carried out."""
    return proceed()


def _moto(name: str) -> Any:
    return importlib.import_module(f"moto.stepfunctions.parser.{name}")


_TASKS = "asl.component.state.exec.state_task"
_SERVICES = {
    "dynamodb": (f"{_TASKS}.service.state_task_service_dynamodb", "StateTaskServiceDynamoDB"),
    "sqs": (f"{_TASKS}.service.state_task_service_sqs", "StateTaskServiceSqs"),
    "lambda": (f"{_TASKS}.service.state_task_service_lambda", "StateTaskServiceLambda"),
}


@contextlib.contextmanager
def in_our_hands(
    *,
    client: Callable[[str], Any],
    charge: Charge,
    around: Around,
    sleep: Callable[[float], None],
) -> Iterator[None]:
    """While this lasts, executions run at once, and their calls and retry waits come here.

    `client` gives a boto3 client for a service's name. `sleep` gets every retry wait in seconds,
    jitter included.
    """
    with contextlib.ExitStack() as stack:

        def replace(owner: Any, name: str, value: Any) -> None:
            stack.enter_context(patch.object(owner, name, value))

        for service, (module_name, class_name) in _SERVICES.items():
            module = _moto(module_name)
            task = getattr(module, class_name)
            carry_out = _invoke(charge) if service == "lambda" else task._eval_service_task
            replace(task, "_eval_service_task", _call_through(around, service, carry_out))
            replace(task, "_from_error", _keep_names(task._from_error))
            if service != "lambda":
                # Moto makes a new client for every call, which takes longer than the call.
                replace(module, "boto_client_for", lambda service, **_: client(service))
        retries = _moto("asl.component.common.retry.retrier_decl")
        replace(retries, "time", SimpleNamespace(sleep=sleep))
        names = _moto("asl.component.common.error_name.error_equals_decl").ErrorEqualsDecl
        replace(names, "_eval_body", _keep_terminal(names._eval_body))
        # StartExecution returns when the execution has ended: nothing runs beside the caller.
        worker = _moto("backend.execution_worker").ExecutionWorker
        replace(worker, "start", worker._execution_logic)
        parser = _moto("asl.parse.asl_parser").AmazonStateLanguageParser
        replace(parser, "parse", staticmethod(_parse_once()))
        # It logs every failed state as an error of its own.
        log = logging.getLogger("moto.stepfunctions")
        stack.callback(log.setLevel, log.level)
        log.setLevel(logging.CRITICAL)
        yield
        _moto("utils").TMP_THREADS.clear()


@functools.cache
def _parse_once() -> Callable[[str], Any]:
    """A definition is parsed once, not for every execution: the result holds no state of a run."""
    parser = _moto("asl.parse.asl_parser").AmazonStateLanguageParser
    parse: Callable[[str], Any] = functools.lru_cache(maxsize=16)(parser.parse)
    return parse


def _call_through(around: Around, service: str, carry_out: Callable[..., None]) -> Any:
    def evaluate(
        task: Any,
        env: Any,
        resource_runtime_part: Any,
        normalised_parameters: Json,
        state_credentials: Any,
    ) -> None:
        def proceed() -> Any:
            carry_out(
                task,
                env=env,
                resource_runtime_part=resource_runtime_part,
                normalised_parameters=normalised_parameters,
                state_credentials=state_credentials,
            )
            return env.stack.pop()

        parameters = normalised_parameters
        if service == "lambda":
            parameters = {"Payload": json.loads(parameters["Payload"])}
        state = env.states.context_object.context_object_data["State"]["Name"]
        call = Call(state, service, task._get_boto_service_action(), parameters)
        env.stack.append(around(call, proceed))

    return evaluate


def _invoke(charge: Charge) -> Callable[..., None]:
    """Call `charge` as Lambda would: JSON in, JSON out, an exception by its class's name."""
    failed = _moto(f"{_TASKS}.lambda_eval_utils").LambdaFunctionErrorException

    def invoke(_task: Any, *, env: Any, normalised_parameters: Json, **_: Any) -> None:
        try:
            answer = charge(json.loads(normalised_parameters["Payload"]))
        except TaskFailure:
            raise
        except Exception as error:
            name = type(error).__name__
            report = {"errorMessage": str(error), "errorType": name, "stackTrace": []}
            raise failed("Unhandled", json.dumps(report)) from error
        payload = json.loads(json.dumps(answer))
        env.stack.append({"ExecutedVersion": "1", "Payload": payload, "StatusCode": 200})

    return invoke


def _keep_terminal(original: Callable[..., None]) -> Any:
    """No Retry or Catch sees `States.Runtime`; `States.DataLimitExceeded` only by its name.

    Rule: https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html
    """

    def matches(names: Any, env: Any) -> None:
        error = env.stack[-1].error_name
        named = error in [name.error_name for name in names.error_names]
        if error == "States.Runtime" or (error == "States.DataLimitExceeded" and not named):
            env.stack.pop()
            env.stack.append(False)
        else:
            original(names, env)

    return matches


def _keep_names(original: Callable[..., Any]) -> Any:
    """Errors bear the names that AWS gives them.

    A `TaskFailure` keeps its own. A time-out is `States.Timeout` and a missing path
    `States.Runtime`, where moto's DynamoDB task takes both for errors of the ledger.
    """
    task_class = _moto(f"{_TASKS}.state_task").StateTask
    lambda_failed = _moto(f"{_TASKS}.lambda_eval_utils").LambdaFunctionErrorException
    names = _moto("asl.component.common.error_name.states_error_name").StatesErrorName
    custom = _moto("asl.component.common.error_name.custom_error_name").CustomErrorName
    event = _moto("asl.component.common.error_name.failure_event").FailureEvent
    api = _moto("api")

    def from_error(task: Any, env: Any, ex: Exception) -> Any:
        if isinstance(ex, ClientError | lambda_failed):
            return original(task, env=env, ex=ex)
        if not isinstance(ex, TaskFailure):
            return task_class._from_error(task, env=env, ex=ex)
        timed_out = ex.error == "States.Timeout"
        kind = "TaskTimedOut" if timed_out else "TaskFailed"
        details = {
            "error": ex.error,
            "cause": ex.cause,
            "resource": task._get_sfn_resource(),
            "resourceType": task._get_sfn_resource_type(),
        }
        return event(
            env=env,
            error_name=names.from_name(ex.error) if timed_out else custom(ex.error),
            event_type=getattr(api.HistoryEventType, kind),
            event_details={f"t{kind[1:]}EventDetails": details},
        )

    return from_error
