"""Refuse a definition that an engine would accept and AWS, or a reader, would not.

`python -m local.lint_definition [FILE]` prints one line for each problem, with the state that it
is in. Structure, fields and types are `statelint`'s; the rules here are what it does not know.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import botocore.session
from charge import errors as charge_errors
from statelint.linter import Linter  # type: ignore[import-untyped]

from local.paths import DEFINITION

Json = dict[str, Any]

#: Errors that the language itself reports and a Task may meet. `States.Runtime` is not among
#: them: nothing catches it.
#: Source: https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html
STATES_ERRORS = {
    "States.ALL",
    "States.DataLimitExceeded",
    "States.HeartbeatTimeout",
    "States.ItemReaderFailed",
    "States.Permissions",
    "States.ResultWriterFailed",
    "States.TaskFailed",
    "States.Timeout",
}

#: What Lambda and Step Functions report when the function could not, or did not, answer.
#: Source: https://docs.aws.amazon.com/step-functions/latest/dg/sfn-best-practices.html
LAMBDA_ERRORS = {
    "Lambda.AWSLambdaException",
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.SdkClientException",
    "Lambda.ServiceException",
    "Lambda.TooManyRequestsException",
    "Lambda.Unknown",
    "Runtime.ExitError",
    "Sandbox.Timedout",
}

_INTEGRATION = re.compile(r"arn:aws:states:::(?P<service>[a-z]+):(?P<action>[A-Za-z]+)")
#: How the names of an optimised integration's errors begin: "DynamoDb." would be the SDK's.
_PREFIXES = {"dynamodb": "DynamoDB", "sqs": "SQS"}

#: `$.a.b-c`: some engines read `$.a.b`, some refuse it. `$.a['b-c']` is the same to all.
_BARE_HYPHEN = re.compile(r"\$[\w.\[\]'$]*\.\w+-")
_PATH_FIELDS = re.compile(r".*(?:\.\$|Path)|Variable")
_NUMERIC_FIELDS = re.compile(r".*Seconds|MaxAttempts|BackoffRate|Numeric\w+")
_TOKEN = re.compile(r"\$\{\w+\}")

#: statelint 3.1 takes a path with brackets for no path in Parameters, though its own rule for
#: Variable accepts it. Exactly this one is let through.
_FALSE_ALARM = (
    'Field "version_id.$" of Parameters at "State Machine.States.IdentifyByVersion.order" '
    "is not a JSONPath or intrinsic function expression"
)


def problems(text: str) -> list[str]:
    """What is wrong with the definition in `text`: one sentence each, none when it is good."""
    try:
        definition = json.loads(text)
    except ValueError as error:
        return [f"The definition is no JSON (a token outside of quotes?): {error}"]
    found = [
        str(problem) for problem in Linter.validate(definition) if str(problem) != _FALSE_ALARM
    ]
    if not isinstance(definition.get("States"), dict):
        return found or ["The definition has no States"]
    found += _of_the_machine(definition)
    for name, state in definition["States"].items():
        for rule in RULES:
            found += [f"{name}: {problem}" for problem in rule(state)]
    return found


# ---------------------------------------------------------------- the machine


def _of_the_machine(definition: Json) -> Iterator[str]:
    if not definition.get("Comment"):
        yield "The state machine has no Comment"
    if "TimeoutSeconds" not in definition:
        yield "The state machine has no TimeoutSeconds"
    states = definition["States"]
    reached: set[str] = set()
    ahead: list[str] = [definition.get("StartAt", "")]
    while ahead:
        name = ahead.pop()
        if name in states and name not in reached:
            reached.add(name)
            ahead += _targets(states[name])
    for name in states:
        if name not in reached:
            yield f"{name}: no path leads here from StartAt"


def _targets(state: Json) -> list[str]:
    branches = [state, *state.get("Catch", []), *state.get("Choices", [])]
    found = [branch["Next"] for branch in branches if "Next" in branch]
    return [*found, state["Default"]] if "Default" in state else found


# ---------------------------------------------------------------- a state


def _says_what_it_is_for(state: Json) -> Iterator[str]:
    if not state.get("Comment"):
        yield "no Comment"
    for number, catcher in enumerate(state.get("Catch", [])):
        if not catcher.get("Comment"):
            yield f"Catch[{number}] has no Comment"


def _bounds_a_task(state: Json) -> Iterator[str]:
    if state["Type"] != "Task":
        return
    if "TimeoutSeconds" not in state:
        yield "a Task without TimeoutSeconds waits for a year"
    if "ResultPath" not in state:
        yield "without a ResultPath the result replaces the order"
    if not state.get("Retry"):
        yield "a Task without Retry"
    catchers = state.get("Catch", [])
    if not catchers or catchers[-1]["ErrorEquals"] != ["States.ALL"]:
        yield "the last Catch of a Task is that of States.ALL"
    for number, catcher in enumerate(catchers):
        if "ResultPath" not in catcher:
            yield f"Catch[{number}] has no ResultPath: the error replaces the order"


def _spells_errors_as_they_are(state: Json) -> Iterator[str]:
    known = _errors_of(state.get("Resource", ""))
    for kind in ("Retry", "Catch"):
        for number, handler in enumerate(state.get(kind, [])):
            for name in handler["ErrorEquals"]:
                if name not in known:
                    yield f"{kind}[{number}] waits for {name!r}, which nothing here reports"


@functools.cache
def _errors_of(resource: str) -> frozenset[str]:
    """The names of the errors that a Task with this resource can report."""
    match = _INTEGRATION.fullmatch(resource)
    if match is None:
        return frozenset(STATES_ERRORS)
    service, action = match["service"], match["action"]
    if service == "lambda":
        function = {cls.__name__ for cls in _leaves(charge_errors.ChargeError)}
        return frozenset(STATES_ERRORS | LAMBDA_ERRORS | function)
    prefix = _PREFIXES.get(service, service)
    model = botocore.session.get_session().get_service_model(service)
    operation = model.operation_model(action[0].upper() + action[1:])
    modelled = {f"{prefix}.{shape.name}" for shape in operation.error_shapes}
    # What the AWS SDK of Step Functions calls all others.
    general = {"dynamodb": "AmazonDynamoDBException", "sqs": "AmazonSQSException"}
    others = {f"{prefix}.{general.get(service, '')}", f"{prefix}.SdkClientException"}
    return frozenset(STATES_ERRORS | modelled | others)


def _leaves(cls: type[Exception]) -> Iterator[type[Exception]]:
    subclasses = cls.__subclasses__()
    if not subclasses:
        yield cls
    for subclass in subclasses:
        yield from _leaves(subclass)


def _treats_the_functions_errors_by_their_group(state: Json) -> Iterator[str]:
    """Retry, Refuse and Alert in `charge.errors` say what the definition does."""
    if not state.get("Resource", "").endswith(":lambda:invoke"):
        return
    retried = _named(state, "Retry")
    caught = _named(state, "Catch")
    for cls in _leaves(charge_errors.ChargeError):
        name, transient = cls.__name__, issubclass(cls, charge_errors.Retry)
        if transient != (name in retried):
            yield f"{name} {'is not retried' if transient else 'is retried'}, against its group"
        if issubclass(cls, charge_errors.Refuse) != (name in caught):
            yield f"Catch and the group of {name} disagree about whether it is a refusal"


def _named(state: Json, kind: str) -> set[str]:
    return {name for handler in state.get(kind, []) for name in handler["ErrorEquals"]}


def _spreads_retries(state: Json) -> Iterator[str]:
    for number, retrier in enumerate(state.get("Retry", [])):
        if retrier.get("MaxAttempts") == 0:
            continue
        if retrier.get("JitterStrategy") != "FULL":
            yield f"Retry[{number}] has no full jitter: retries of many runs come at once"
        for name in ("IntervalSeconds", "BackoffRate", "MaxAttempts", "MaxDelaySeconds"):
            if name not in retrier:
                yield f"Retry[{number}] leaves {name} to its default"


def _ends_with_a_reason(state: Json) -> Iterator[str]:
    if state["Type"] == "Fail":
        for name in ("Error", "Cause"):
            if not state.keys() & {name, f"{name}Path"}:
                yield f"a Fail state without {name}"
    if state["Type"] == "Choice" and "Default" not in state:
        yield "a Choice without Default: States.NoChoiceMatched is caught by nobody"


def _is_read_alike_by_every_engine(state: Json) -> Iterator[str]:
    for name, value in _fields(state):
        if _NUMERIC_FIELDS.fullmatch(name) and isinstance(value, str) and _TOKEN.search(value):
            yield f"{name} is a number: a token in quotes would deploy as text"
        if not isinstance(value, str) or not _PATH_FIELDS.fullmatch(name):
            continue
        if _BARE_HYPHEN.search(value):
            yield f"{name}: {value!r} has a bare hyphen: write ['…'] around the field"
        if state["Type"] == "Choice" and value.startswith("$$"):
            yield f"{name}: {value!r}: not every engine compares with the context object"


def _fields(node: Any) -> Iterator[tuple[str, Any]]:
    """Every field in a state, at any depth."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield name, value
            yield from _fields(value)
    elif isinstance(node, list):
        for value in node:
            yield from _fields(value)


RULES: tuple[Callable[[Json], Iterator[str]], ...] = (
    _says_what_it_is_for,
    _bounds_a_task,
    _spells_errors_as_they_are,
    _treats_the_functions_errors_by_their_group,
    _spreads_retries,
    _ends_with_a_reason,
    _is_read_alike_by_every_engine,
)


def main(arguments: list[str]) -> int:
    """Lint the file named, or the project's own. Exit 1 when something is wrong with it."""
    path = Path(arguments[0]) if arguments else DEFINITION
    found = problems(path.read_text())
    for problem in found:
        print(f"{path}: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
