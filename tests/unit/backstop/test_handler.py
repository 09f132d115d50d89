"""The backstop on runs of the real state machine, whose last events decide."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from backstop import handler
from backstop.message import order_of

from local.inprocess import Call, InProcess, Run, TaskFailure
from local.paths import SAMPLE_ORDER

pytestmark = pytest.mark.xdist_group("workflow-moto")

Json = dict[str, Any]


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcess]:
    """A pipeline whose every charge fails."""

    def around(call: Call, proceed: Callable[[], Any]) -> Any:
        if call.state == "Charge":
            raise TaskFailure("ProviderCredentialsRefused")
        return proceed()

    with InProcess(around=around) as pipeline:
        monkeypatch.setattr(handler, "_client", lambda service: HistoryReader(pipeline, service))
        monkeypatch.setenv("FAILURE_QUEUE_URL", pipeline.stack.failure_queue_url)
        yield pipeline


class HistoryReader:
    """Moto's clients, and the reverse order of histories that moto does not know."""

    def __init__(self, pipeline: InProcess, service: str) -> None:
        self._client = pipeline.client(service)

    def get_execution_history(self, **request: Any) -> Json:
        assert request.pop("reverseOrder")
        most = request.pop("maxResults")
        events = self._client.get_execution_history(**request)["events"]
        return {"events": events[::-1][:most]}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def ended(run: Run, event: Json) -> Json:
    """EventBridge's event of an execution that has ended, as far as it is read."""
    return {
        "detail": {
            "executionArn": run.arn,
            "status": run.status,
            "input": json.dumps(event),
            "error": run.error,
            "cause": run.cause,
        }
    }


def test_a_run_that_found_its_queue_deleted_is_queued_once_there_is_one(
    pipeline: InProcess,
) -> None:
    event = pipeline.drop("orders/a.json", SAMPLE_ORDER.read_bytes())
    sqs, url = pipeline.client("sqs"), pipeline.stack.failure_queue_url
    sqs.delete_queue(QueueUrl=url)
    run = pipeline.deliver(event)
    sqs.create_queue(QueueName=url.rpartition("/")[2])

    handler.handle(ended(run, event), None)

    assert run.error == "FailureQueueUnreachable"
    (message,) = pipeline.queue()
    assert message.error == "FailureQueueUnreachable"
    assert message.attributes["idempotency_key"] == order_of(event)["idempotency_key"]
    assert message.body["execution"] == run.arn
    assert message.body["order"] == order_of(event)


def test_a_run_that_queued_its_own_message_is_not_queued_again(pipeline: InProcess) -> None:
    event = pipeline.drop("orders/a.json", SAMPLE_ORDER.read_bytes())
    run = pipeline.deliver(event)

    handler.handle(ended(run, event), None)

    (message,) = pipeline.queue()
    assert message.error == "ProviderCredentialsRefused"


def test_a_missing_setting_is_named(pipeline: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    run = pipeline.deliver({"no": "order"})
    monkeypatch.delenv("FAILURE_QUEUE_URL")

    with pytest.raises(RuntimeError, match="FAILURE_QUEUE_URL is not set"):
        handler.handle(ended(run, {"no": "order"}), None)
