"""Reading what there is to see: the ledger, the provider's charges, executions, the queue.

Everything is paged inside and comes as plain JSON values; integers stay integers.
"""

from __future__ import annotations

import base64
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self, SupportsBytes

from boto3.dynamodb.types import TypeDeserializer
from botocore.exceptions import BotoCoreError, ClientError

from local.errors import CommandError
from local.provider_api import ProviderApi
from local.stack import Stack
from local.text import read_json
from local.waiting import wait_for

Json = dict[str, Any]

_deserialize = TypeDeserializer().deserialize

#: The most that SQS hands out or takes in one request.
SQS_BATCH = 10
#: How long a message stays hidden from others while we read the whole queue.
PEEK_SECONDS = 10
#: Another look takes PEEK_SECONDS at most; who holds messages after three times that is at work.
PEEK_PATIENCE_SECONDS = 30


def plain_record(item: Json) -> Json:
    """A ledger record in plain JSON values, from DynamoDB's typed form.

    Also of a record that somebody else wrote: a fraction becomes text, since a float may not hold
    it; bytes become Base64; a set becomes a sorted list.
    """
    return {name: _plain(_deserialize(value)) for name, value in item.items()}


def _plain(value: Any) -> Any:
    match value:
        case Decimal():
            return int(value) if value == value.to_integral_value() else str(value)
        case SupportsBytes():
            return base64.b64encode(bytes(value)).decode()
        case set():
            order = bytes if any(isinstance(one, SupportsBytes) for one in value) else None
            return [_plain(one) for one in sorted(value, key=order)]
        case list():
            return [_plain(one) for one in value]
        case dict():
            return {name: _plain(one) for name, one in value.items()}
    return value


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
    """One execution: its input, and what its history tells.

    An input that is no JSON object, or that nests too deep to be read, is empty here.
    """

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
        input=_document(description["input"]),
        error=description.get("error"),
        path=[
            event["stateEnteredEventDetails"]["name"]
            for event in events
            if "stateEnteredEventDetails" in event
        ],
        events=events,
    )


def _document(text: str) -> Json:
    try:
        document = read_json(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


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
    known = -1
    try:
        # A message that comes again was hidden for too short a time: it would come for ever.
        while len(taken) > known:
            known = len(taken)
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
        return list(taken.values()), max(0, _depth(stack) - len(taken))
    except BaseException:
        # The reason is told; that they cannot be given back either would only cover it up.
        with contextlib.suppress(BotoCoreError, ClientError):
            give_back(stack, list(taken.values()))
        raise


def peek(stack: Stack) -> tuple[list[Message], int]:
    """The messages of the failure queue, left where they are, and how many could not be seen.

    What another reader holds is waited for, but not longer than PEEK_PATIENCE_SECONDS: a replay
    may hold it for as long as an execution takes. Both answers are of one look, the last: what an
    earlier one saw may be gone by now.
    """
    seen: list[Message] = []
    unseen = 0

    def all_seen() -> bool:
        nonlocal seen, unseen
        seen, unseen = take_available(stack, PEEK_SECONDS)
        give_back(stack, seen)
        return unseen == 0

    with contextlib.suppress(TimeoutError):
        wait_for(all_seen, PEEK_PATIENCE_SECONDS, stack.poll_seconds)
    return seen, unseen


def messages(stack: Stack) -> list[Message]:
    """Like `peek`, but every message. Raises CommandError when another reader keeps some."""
    seen, unseen = peek(stack)
    if unseen:
        raise CommandError(
            f"Another reader, such as a replay, holds {unseen} messages of the failure queue: "
            "try again when it has ended."
        )
    return seen


def give_back(stack: Stack, messages: list[Message]) -> None:
    """Make taken messages visible again at once."""
    for start in range(0, len(messages), SQS_BATCH):
        _hide(stack, messages[start : start + SQS_BATCH], 0)


def _hide(stack: Stack, batch: list[Message], seconds: int) -> None:
    """Hide up to SQS_BATCH taken messages for `seconds` from now.

    One that another reader has taken meanwhile, or deleted, is passed over: the answer names it
    as failed, and there is nothing to be done about it.
    """
    stack.client("sqs").change_message_visibility_batch(
        QueueUrl=stack.failure_queue_url,
        Entries=[
            {"Id": str(number), "ReceiptHandle": message.receipt, "VisibilityTimeout": seconds}
            for number, message in enumerate(batch)
        ],
    )


class Hold:
    """Keeps taken messages hidden while the block lasts; those still held at its end come back.

    They are hidden for `seconds` at a time, so a process that dies gives them back that soon. A
    renewal may fail or come too late. Then another reader has the message as well, which is
    harmless: whoever is second finds the order settled, or its owner running.
    """

    def __init__(self, stack: Stack, messages: list[Message], seconds: int) -> None:
        self._stack = stack
        self._seconds = seconds
        self._held = {message.message_id: message for message in messages}
        self._lock = threading.Lock()  # or a renewal could hide what was just given back
        self._over = threading.Event()
        self._renewal = threading.Thread(target=self._renew, daemon=True)

    def __enter__(self) -> Self:
        self._renewal.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.give_back(list(self._held.values()))
        self._renewal.join()

    def give_back(self, messages: list[Message]) -> None:
        """Make these visible again at once."""
        with self._lock:
            self._let_go(messages)
            give_back(self._stack, messages)

    def delete(self, messages: list[Message]) -> int:
        """Remove these for good; gives how many were still ours to remove."""
        with self._lock:
            self._let_go(messages)
            return sum(delete_message(self._stack, message) for message in messages)

    def _let_go(self, messages: list[Message]) -> None:
        for message in messages:
            self._held.pop(message.message_id, None)

    def _renew(self) -> None:
        # One renewal may fail before a message is lost.
        while not self._over.wait(self._seconds / 3):
            held = list(self._held.values())
            for start in range(0, len(held), SQS_BATCH):
                # The lock for each batch alone: thousands of messages take seconds.
                with self._lock, contextlib.suppress(BotoCoreError, ClientError):
                    batch = [
                        message
                        for message in held[start : start + SQS_BATCH]
                        if message.message_id in self._held
                    ]
                    if batch:
                        _hide(self._stack, batch, self._seconds)


def delete_message(stack: Stack, message: Message) -> bool:
    """Remove a message for good; False when another reader has taken or deleted it meanwhile."""
    try:
        stack.client("sqs").delete_message(
            QueueUrl=stack.failure_queue_url, ReceiptHandle=message.receipt
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "ReceiptHandleIsInvalid":
            raise
        return False
    return True


def _message(item: Json) -> Message:
    try:
        body = read_json(item["Body"])
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
