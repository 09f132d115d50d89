"""The walk through TestState where the emulator's differs from AWS: a retried call."""

from __future__ import annotations

from typing import Any

from tests.workflow.walking import Walk, walk

DEFINITION = {
    "StartAt": "Charge",
    "States": {"Charge": {"Type": "Task"}, "End": {"Type": "Succeed"}},
}
THROW = {"Throw": {"Error": "ProviderUnavailable", "Cause": "503"}}
RETURN: dict[str, Any] = {"Return": {"Payload": {}}}


class RetryingClient:
    """Answers as AWS does where a Retry matches: RETRIABLE until the call succeeds."""

    def __init__(self) -> None:
        self.retry_counts: list[int] = []

    def test_state(self, **request: Any) -> dict[str, Any]:
        if request["stateName"] == "End":
            return {"status": "SUCCEEDED", "output": request["input"]}
        self.retry_counts.append(request["stateConfiguration"]["retrierRetryCount"])
        if "errorOutput" in request["mock"]:
            return {"status": "RETRIABLE", "error": "ProviderUnavailable"}
        return {"status": "SUCCEEDED", "output": "{}", "nextState": "End"}


def test_a_retried_state_is_asked_again_with_the_number_of_its_retries() -> None:
    client = RetryingClient()

    found = walk(client, DEFINITION, {"Charge": [THROW, THROW, RETURN]}, {}, "arn:a:b:c:d:e:f")

    assert found == Walk(["Charge", "End"], None)
    assert client.retry_counts == [0, 1, 2]
