"""Reading what there is to see: the ledger, the provider's charges, executions, the queue.

Everything is paged inside and comes as plain JSON values; integers stay integers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import boto3.dynamodb.types
from botocore.exceptions import ClientError

from local.errors import CommandError
from local.provider_api import ProviderApi
from local.stack import Stack
from local.waiting import wait_for

Json = dict[str, Any]

_deserialize = boto3.dynamodb.types.TypeDeserializer().deserialize

#: The most that SQS hands out or takes in one request.
SQS_BATCH = 10
#: How long a message stays hidden from others while we read the whole queue.
PEEK_SECONDS = 10
#: Another reader may hold messages for PEEK_SECONDS; after three times that, something is wrong.
PEEK_PATIENCE_SECONDS = 30


def plain_record(item: Json) -> Json:
    """A ledger record in plain JSON values, from DynamoDB's typed form."""
    record = {name: _deserialize(value) for name, value in item.items()}
    return {
        name: int(value) if isinstance(value, Decimal) else value for name, value in record.items()
    }


def record(stack: Stack, idempotency_key: str) -> Json | None:
    """The ledger's record under this key, read consistently, or None."""
    answer = stack.client("dynamodb").get_item(
        TableName=stack.table, Key={"pk": {"S": idempotency_key}}, ConsistentRead=True
    )
    return plain_record(answer["Item"]) if "Item" in answer else None


def records(stack: Stack) -> Iterator[Json]:
    """Every record of the ledger, in no order."""
    pages = stack.client("dynamodb").get_paginator("scan").paginate(TableName=stack.table)
    for page in pages:
        yield from map(plain_record, page["Items"])


def charges(stack: Stack, reference: str | None = None) -> Iterator[Json]:
    """The provider's charges, oldest first; only those with this reference if one is given."""
    with ProviderApi.of(stack) as provider:
        yield from provider.charges(reference)


# ---------------------------------------------------------------- executions


@dataclass(frozen=True)
class Execution:
    """One execution: its input, and what its history tells."""

    arn: str
    status: str
    input: Json
    error: str | None
    path: list[str]
    events: list[Json]

    def failed_attempts(self) -> list[str]:
        """The errors of the attempts that failed, oldest first; a retry leaves no other trace."""
        details = (
            event.get("taskFailedEventDetails") or event.get("taskTimedOutEventDetails")
            for event in self.events
        )
        return [detail.get("error", "unknown") for detail in details if detail]

    def summary(self) -> Json:
        """The item shape of the command-line contract."""
        return {"arn": self.arn, "status": self.status, "path": self.path, "error": self.error}


def execution(stack: Stack, arn: str) -> Execution:
    """One execution with its history. Raises CommandError when it does not exist."""
    client = stack.client("stepfunctions")
    try:
        description = client.describe_execution(executionArn=arn)
    except ClientError as error:
        if error.response["Error"]["Code"] in {"ExecutionDoesNotExist", "InvalidArn"}:
            raise CommandError(f"There is no execution {arn}.") from error
        raise
    pages = client.get_paginator("get_execution_history").paginate(executionArn=arn)
    events = [event for page in pages for event in page["events"]]
    return Execution(
        arn=arn,
        status=description["status"],
        input=json.loads(description["input"]),
        error=description.get("error"),
        path=[
            event["stateEnteredEventDetails"]["name"]
            for event in events
            if "stateEnteredEventDetails" in event
        ],
        events=events,
    )


def execution_arns(stack: Stack, since: float | None = None) -> Iterator[str]:
    """Every execution of the state machine, newest first; down to `since` (epoch seconds)."""
    pages = (
        stack.client("stepfunctions")
        .get_paginator("list_executions")
        .paginate(stateMachineArn=stack.state_machine_arn)
    )
    for page in pages:
        for item in page["executions"]:
            if since is not None and item["startDate"].timestamp() < since:
                return
            yield item["executionArn"]


# ---------------------------------------------------------------- the failure queue


@dataclass(frozen=True)
class Message:
    """A message of the failure queue. `receipt` lets it be deleted or shown again.

    `sent_at` is in milliseconds since the epoch.
    """

    message_id: str
    receipt: str
    sent_at: int
    body: Json
    attributes: dict[str, str]

    @property
    def idempotency_key(self) -> str | None:
        key = self.body.get("idempotency_key")
        return key if isinstance(key, str) else None

    @property
    def error(self) -> str:
        return self.attributes.get("error", "unknown")

    def summary(self) -> Json:
        """What `queue --json` prints of it."""
        return {
            "message_id": self.message_id,
            "idempotency_key": self.idempotency_key,
            "error": self.error,
            **{name: self.body.get(name) for name in ("execution", "order")},
            "cause": self.body.get("error"),
        }


def take_available(stack: Stack, hide_seconds: int) -> tuple[list[Message], int]:
    """The messages that can be had now, hidden from others for `hide_seconds`, and how many
    another reader holds. The caller gives them back with `give_back`, or deletes them.
    """
    taken: dict[str, Message] = {}
    while True:
        answer = stack.client("sqs").receive_message(
            QueueUrl=stack.failure_queue_url,
            MaxNumberOfMessages=SQS_BATCH,
            VisibilityTimeout=hide_seconds,
            # On AWS a short poll asks only some of the queue's servers.
            WaitTimeSeconds=1 if stack.endpoint is None else 0,
            MessageAttributeNames=["All"],
            AttributeNames=["SentTimestamp"],
        )
        for item in answer.get("Messages", []):
            taken[item["MessageId"]] = _message(item)
        if not answer.get("Messages"):
            return list(taken.values()), max(0, _depth(stack) - len(taken))


def messages(stack: Stack) -> list[Message]:
    """Every message of the failure queue, left where it is.

    What another reader holds is waited for. Raises CommandError when it does not come back.
    """
    seen: dict[str, Message] = {}

    def all_seen() -> bool:
        taken, _ = take_available(stack, PEEK_SECONDS)
        give_back(stack, taken)
        seen.update({message.message_id: message for message in taken})
        return len(seen) >= _depth(stack)

    try:
        wait_for(all_seen, PEEK_PATIENCE_SECONDS, stack.poll_seconds)
    except TimeoutError:
        raise CommandError(
            "Another reader holds messages of the failure queue: try again in a minute."
        ) from None
    return list(seen.values())


def give_back(stack: Stack, messages: list[Message]) -> None:
    """Make taken messages visible again at once."""
    for start in range(0, len(messages), SQS_BATCH):
        stack.client("sqs").change_message_visibility_batch(
            QueueUrl=stack.failure_queue_url,
            Entries=[
                {"Id": str(number), "ReceiptHandle": message.receipt, "VisibilityTimeout": 0}
                for number, message in enumerate(messages[start : start + SQS_BATCH])
            ],
        )


def delete_message(stack: Stack, message: Message) -> None:
    """Remove a message for good."""
    stack.client("sqs").delete_message(
        QueueUrl=stack.failure_queue_url, ReceiptHandle=message.receipt
    )


def _message(item: Json) -> Message:
    try:
        body = json.loads(item["Body"])
    except ValueError:
        body = None
    return Message(
        message_id=item["MessageId"],
        receipt=item["ReceiptHandle"],
        sent_at=int(item["Attributes"]["SentTimestamp"]),
        # Somebody else's message is shown, not lost.
        body=body if isinstance(body, dict) else {"error": item["Body"]},
        attributes={
            name: value.get("StringValue", "")
            for name, value in item.get("MessageAttributes", {}).items()
        },
    )


def _depth(stack: Stack) -> int:
    counters = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    attributes = stack.client("sqs").get_queue_attributes(
        QueueUrl=stack.failure_queue_url, AttributeNames=list(counters)
    )["Attributes"]
    return sum(int(attributes[name]) for name in counters)
