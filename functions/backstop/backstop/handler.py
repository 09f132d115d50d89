"""Entry point: one event of an execution that ended where no Catch can see."""

from __future__ import annotations

import functools
import json
import os
from typing import TYPE_CHECKING, Any

import boto3
from aws_lambda_powertools import Logger

from backstop.message import failure_message, queued_its_own

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import MessageAttributeValueTypeDef

#: The last message comes from one of a run's last states, which fill a handful of events.
LATEST_EVENTS = 20

logger = Logger()


def handle(event: dict[str, Any], context: object) -> None:
    """Send the failure message of the execution in `event`, unless it sent its own.

    Raises what AWS raises: Lambda tries twice more, then the event goes to the queue of
    undelivered events.
    """
    detail = event["detail"]
    execution = detail["executionArn"]
    history = _client("stepfunctions").get_execution_history(
        executionArn=execution, reverseOrder=True, maxResults=LATEST_EVENTS
    )
    if queued_its_own(history["events"]):
        logger.info("execution had queued its own message", execution=execution)
        return
    message = failure_message(detail)
    attributes: dict[str, MessageAttributeValueTypeDef] = {
        "error": {"DataType": "String", "StringValue": message["error"]["Error"]}
    }
    if message["idempotency_key"]:
        attributes["idempotency_key"] = {
            "DataType": "String",
            "StringValue": message["idempotency_key"],
        }
    _client("sqs").send_message(
        QueueUrl=_queue_url(), MessageBody=json.dumps(message), MessageAttributes=attributes
    )
    logger.warning(
        "execution given to the failure queue",
        execution=execution,
        idempotency_key=message["idempotency_key"],
        error=message["error"]["Error"],
    )


@functools.cache
def _client(service: str) -> Any:
    return boto3.client(service)  # type: ignore[call-overload]


def _queue_url() -> str:
    try:
        return os.environ["FAILURE_QUEUE_URL"]
    except KeyError:
        raise RuntimeError("FAILURE_QUEUE_URL is not set: the failure queue's URL") from None
