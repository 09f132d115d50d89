"""The lint of the definition: the project's own passes, and each kind of mistake is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.lint_definition import main, problems
from local.paths import DEFINITION

Json = dict[str, Any]
TEXT = DEFINITION.read_text()


def state(definition: Json, name: str) -> Json:
    found: Json = definition["States"][name]
    return found


def misspell(definition: Json, kind: str, where: str, name: str) -> None:
    state(definition, where)[kind][0]["ErrorEquals"][0] = name


def lose_two_states(definition: Json) -> None:
    """Two that lead to each other, so that each has somebody who leads to it."""
    for name, other in (("Lost", "Found"), ("Found", "Lost")):
        definition["States"][name] = {"Type": "Pass", "Comment": "astray", "Next": other}


MISTAKES: dict[str, tuple[str, Callable[[Json], object]]] = {
    "an unreachable state": (
        "Lost",
        lambda d: d["States"].update(Lost={"Type": "Succeed", "Comment": "astray"}),
    ),
    "a circle that nothing leads into": ("Found: no path leads here", lose_two_states),
    "a target that does not exist": ("Claim", lambda d: state(d, "Claim").update(Next="Chrge")),
    "a catch to a state that does not exist": (
        "Charge",
        lambda d: state(d, "Charge")["Catch"][2].update(Next="QueueFail"),
    ),
    "a field that there is not": ("MarkDone", lambda d: state(d, "MarkDone").update(TimeOut=3)),
    "a task without a time-out": (
        "MarkDone: a Task without TimeoutSeconds",
        lambda d: state(d, "MarkDone").pop("TimeoutSeconds"),
    ),
    "a machine without a time-out": (
        "The state machine has no TimeoutSeconds",
        lambda d: d.pop("TimeoutSeconds"),
    ),
    "a machine without a comment": (
        "The state machine has no Comment",
        lambda d: d.pop("Comment"),
    ),
    "a state without a comment": (
        "AlreadySettled: no Comment",
        lambda d: state(d, "AlreadySettled").pop("Comment"),
    ),
    "a catch without a comment": (
        "TakeOver: Catch[1] has no Comment",
        lambda d: state(d, "TakeOver")["Catch"][1].pop("Comment"),
    ),
    "a task that is not retried": (
        "ReadRecord: a Task without Retry",
        lambda d: state(d, "ReadRecord").pop("Retry"),
    ),
    "a task that catches nothing": (
        "QueueFailure: the last Catch",
        lambda d: state(d, "QueueFailure").pop("Catch"),
    ),
    "a catch that leaves something out": (
        "Claim: the last Catch",
        lambda d: state(d, "Claim")["Catch"].pop(),
    ),
    "States.ALL before others": (
        "Charge",
        lambda d: state(d, "Charge")["Catch"].reverse(),
    ),
    "a result that replaces the order": (
        "MarkDone: without a ResultPath",
        lambda d: state(d, "MarkDone").pop("ResultPath"),
    ),
    "an error that replaces the order": (
        "Charge: Catch[2] has no ResultPath",
        lambda d: state(d, "Charge")["Catch"][2].pop("ResultPath"),
    ),
    "DynamoDB in the spelling of the SDK": (
        "Claim: Catch[0] waits for 'DynamoDb.ConditionalCheckFailedException'",
        lambda d: misspell(d, "Catch", "Claim", "DynamoDb.ConditionalCheckFailedException"),
    ),
    "an exception that DynamoDB does not have": (
        "Claim: Retry[0] waits for 'DynamoDB.ConditionalCheckFailed'",
        lambda d: misspell(d, "Retry", "Claim", "DynamoDB.ConditionalCheckFailed"),
    ),
    "an exception that only another action has": (
        "ReadRecord: Retry[0] waits for 'DynamoDB.ConditionalCheckFailedException'",
        lambda d: misspell(d, "Retry", "ReadRecord", "DynamoDB.ConditionalCheckFailedException"),
    ),
    "a Lambda error that there is not": (
        "Charge: Retry[0] waits for 'Lambda.TooManyRequests'",
        lambda d: misspell(d, "Retry", "Charge", "Lambda.TooManyRequests"),
    ),
    "a class that the function does not have": (
        "Charge: Catch[0] waits for 'PaymentRefused'",
        lambda d: misspell(d, "Catch", "Charge", "PaymentRefused"),
    ),
    "a group of errors instead of an error": (
        "Charge: Catch[0] waits for 'Refuse'",
        lambda d: misspell(d, "Catch", "Charge", "Refuse"),
    ),
    "States.Runtime, which nothing catches": (
        "TakeOver: Catch[0] waits for 'States.Runtime'",
        lambda d: misspell(d, "Catch", "TakeOver", "States.Runtime"),
    ),
    "a transient error that is not retried": (
        "Charge: KeyInUse is not retried",
        lambda d: state(d, "Charge")["Retry"][0]["ErrorEquals"].remove("KeyInUse"),
    ),
    "a decline that is retried": (
        "Charge: PaymentDeclined is retried",
        lambda d: state(d, "Charge")["Retry"][0]["ErrorEquals"].append("PaymentDeclined"),
    ),
    "a refusal without a catch of its own": (
        "Charge: Catch and the group of OrderRejected disagree",
        lambda d: state(d, "Charge")["Catch"].pop(1),
    ),
    "an alert that is caught as a refusal": (
        "Charge: Catch and the group of KeyReuseMismatch disagree",
        lambda d: state(d, "Charge")["Catch"][1]["ErrorEquals"].append("KeyReuseMismatch"),
    ),
    "retries in step": (
        "Charge: Retry[0] has no full jitter",
        lambda d: state(d, "Charge")["Retry"][0].pop("JitterStrategy"),
    ),
    "retries without a ceiling": (
        "Claim: Retry[1] leaves MaxDelaySeconds",
        lambda d: state(d, "Claim")["Retry"][1].pop("MaxDelaySeconds"),
    ),
    "a failure without a cause": (
        "ChargeFailed: a Fail state without Cause",
        lambda d: state(d, "ChargeFailed").pop("CausePath"),
    ),
    "a choice without a default": (
        "WhichRefusal?: a Choice without Default",
        lambda d: state(d, "WhichRefusal?").pop("Default"),
    ),
    "a bare hyphen in a rule": (
        "IsVersioned?: Variable: '$.detail.object.version-id' has a bare hyphen",
        lambda d: state(d, "IsVersioned?")["Choices"][0]["And"][0].update(
            Variable="$.detail.object.version-id"
        ),
    ),
    "a bare hyphen in an argument": (
        "IdentifyByVersion: idempotency_key.$",
        lambda d: state(d, "IdentifyByVersion")["Parameters"]["order"].update(
            {"idempotency_key.$": "States.Format('{}', $.detail.object.version-id)"}
        ),
    ),
    "a comparison with the context object": (
        "WhoHoldsTheClaim?: StringEqualsPath",
        lambda d: state(d, "WhoHoldsTheClaim?")["Choices"][3]["And"][1].update(
            StringEqualsPath="$$.Execution.Id"
        ),
    ),
    "a number in a token": (
        "Charge: MaxAttempts is a number",
        lambda d: state(d, "Charge")["Retry"][0].update(MaxAttempts="${Attempts}"),
    ),
}


def test_the_projects_definition_is_clean() -> None:
    assert problems(TEXT) == []


@pytest.mark.parametrize(("expected", "make"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_refused_by_the_name_of_its_state(
    expected: str, make: Callable[[Json], object]
) -> None:
    definition = copy.deepcopy(json.loads(TEXT))
    make(definition)

    found = problems(json.dumps(definition))

    assert any(expected in problem for problem in found), found


def test_a_token_outside_of_quotes_is_refused() -> None:
    (found,) = problems(TEXT.replace('"TimeoutSeconds": 3600', '"TimeoutSeconds": ${Seconds}'))

    assert "a token outside of quotes?" in found


def test_a_document_without_states_is_refused() -> None:
    assert problems("{}")


def test_the_command_names_the_file_and_the_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    definition = json.loads(TEXT)
    del definition["States"]["MarkDone"]["TimeoutSeconds"]
    file = tmp_path / "broken.asl.json"
    file.write_text(json.dumps(definition))

    assert main([str(file)]) == 1
    assert f"{file}: MarkDone: " in capsys.readouterr().err


def test_the_command_is_content_with_the_projects_definition() -> None:
    assert main([]) == 0
