"""Walk a definition state by state through the TestState API, with mocked answers.

Nothing is deployed and nothing is called: AWS evaluates each state and says what comes next.

Source: https://docs.aws.amazon.com/step-functions/latest/apireference/API_TestState.html
"""

from __future__ import annotations

import collections
import json
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Walk:
    """The states that were entered, and the error of the last one if it failed."""

    path: list[str]
    error: str | None


def walk(
    client: Any, definition: Json, answers: dict[str, list[Json]], given: Json, arn: str
) -> Walk:
    """Walk from `StartAt` to an end.

    `answers` holds for each Task state what each of its calls comes to: `{"Return": ...}` or
    `{"Throw": {"Error", "Cause"}}`. `arn` is the execution's. Raises IndexError when a state calls
    more often than there are answers.
    """
    path: list[str] = []
    calls: collections.Counter[str] = collections.Counter()
    state, retries = definition["StartAt"], 0
    while True:
        if not retries:
            path.append(state)
        request = {
            "definition": json.dumps(definition),
            "stateName": state,
            "input": json.dumps(given),
            "context": json.dumps(_context(arn, state, given)),
        }
        if definition["States"][state]["Type"] == "Task":
            request["mock"] = _mock(answers[state][calls[state]])
            request["stateConfiguration"] = {"retrierRetryCount": retries}
            calls[state] += 1
        result = client.test_state(**request)
        if result["status"] == "RETRIABLE":
            retries += 1
            continue
        retries = 0
        if "nextState" not in result:
            return Walk(path, result.get("error") if result["status"] == "FAILED" else None)
        state, given = result["nextState"], json.loads(result["output"])


def _mock(answer: Json) -> Json:
    if "Throw" in answer:
        thrown = answer["Throw"]
        return {"errorOutput": {"error": thrown["Error"], "cause": thrown["Cause"]}}
    # The answers say what the definition reads, not all that a service returns.
    return {"result": json.dumps(answer["Return"]), "fieldValidationMode": "NONE"}


def _context(arn: str, state: str, given: Json) -> Json:
    moment = "2026-11-29T12:00:00.000Z"
    name = arn.rpartition(":")[2]
    return {
        "Execution": {"Id": arn, "Name": name, "StartTime": moment, "Input": given},
        "State": {"Name": state, "EnteredTime": moment, "RetryCount": 0},
        "StateMachine": {"Id": arn.replace(":execution:", ":stateMachine:"), "Name": "ChargeOrder"},
    }
