"""What the page reads, as one small interface, and the deployed stack behind it."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from backstop.message import order_of

from local import books, faults
from local.provider_api import ProviderApi
from local.stack import Stack
from local.text import read_json

Json = dict[str, Any]

#: BatchGetItem's own limit.
BATCH_KEYS = 100


@dataclass(frozen=True)
class Listed:
    """An execution as a listing shows it."""

    arn: str
    status: str
    started: datetime


@dataclass(frozen=True)
class Described:
    """An execution's status and the order in its input; `order` is None when it names none."""

    status: str
    order: Json | None


class Source(Protocol):
    """The books, read only. Every method may raise CommandError or a botocore error."""

    def records(self) -> Iterator[Json]:
        """Every record of the ledger."""

    def records_of(self, keys: Collection[str]) -> dict[str, Json]:
        """The records under these keys, read consistently; those that exist."""

    def charges(self, after: str | None = None) -> Iterator[Json]:
        """The provider's charges, oldest first; only those after the charge id `after`."""

    def charges_of(self, key: str) -> list[Json]:
        """The provider's charges with this reference."""

    def requests_of(self, key: str) -> list[Json]:
        """What the provider saw for this idempotency key, oldest first."""

    def executions(self) -> Iterator[Listed]:
        """Every execution, newest first."""

    def describe(self, arn: str) -> Described:
        """One execution, without its history."""

    def execution(self, arn: str) -> books.Execution:
        """One execution with its history."""

    def queue_depth(self) -> int:
        """How many messages the failure queue holds, hidden ones included; may lag on AWS."""

    def messages(self) -> tuple[list[Json], int]:
        """The failure queue's messages, and how many another reader holds just now."""

    def faults(self) -> list[Json]:
        """The faults that are armed."""


class StackSource:
    """A deployed stack's books."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._provider: ProviderApi | None = None
        self._lock = threading.Lock()

    @property
    def _api(self) -> ProviderApi:
        # One for the page's life: it keeps connections open, and sees to its key itself.
        with self._lock:
            if self._provider is None:
                self._provider = ProviderApi.of(self._stack)
            return self._provider

    def records(self) -> Iterator[Json]:
        return books.records(self._stack)

    def records_of(self, keys: Collection[str]) -> dict[str, Json]:
        client, table = self._stack.client("dynamodb"), self._stack.table
        found = {}
        ordered = sorted(keys)
        for start in range(0, len(ordered), BATCH_KEYS):
            chunk = ordered[start : start + BATCH_KEYS]
            pending: Json = {
                table: {"Keys": [{"pk": {"S": key}} for key in chunk], "ConsistentRead": True}
            }
            while pending:
                answer = client.batch_get_item(RequestItems=pending)
                for item in answer["Responses"].get(table, []):
                    record = books.plain_record(item)
                    found[record["pk"]] = record
                pending = answer.get("UnprocessedKeys", {})
        return found

    def charges(self, after: str | None = None) -> Iterator[Json]:
        return self._api.charges(after=after)

    def charges_of(self, key: str) -> list[Json]:
        return list(self._api.charges(key))

    def requests_of(self, key: str) -> list[Json]:
        return self._api.requests(key)

    def executions(self) -> Iterator[Listed]:
        pages = (
            self._stack.client("stepfunctions")
            .get_paginator("list_executions")
            .paginate(stateMachineArn=self._stack.state_machine_arn)
        )
        for page in pages:
            for item in page["executions"]:
                yield Listed(item["executionArn"], item["status"], item["startDate"])

    def describe(self, arn: str) -> Described:
        description = self._stack.client("stepfunctions").describe_execution(executionArn=arn)
        return Described(description["status"], order_in(description["input"]))

    def execution(self, arn: str) -> books.Execution:
        return books.execution(self._stack, arn)

    def queue_depth(self) -> int:
        counters = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        attributes = self._stack.client("sqs").get_queue_attributes(
            QueueUrl=self._stack.failure_queue_url, AttributeNames=list(counters)
        )["Attributes"]
        return sum(int(attributes[name]) for name in counters)

    def messages(self) -> tuple[list[Json], int]:
        taken, held = books.take_available(self._stack, books.PEEK_SECONDS)
        books.give_back(self._stack, taken)
        return [message.summary() | {"sent_at": message.sent_at} for message in taken], held

    def faults(self) -> list[Json]:
        return faults.armed(self._stack)


def order_in(execution_input: str | Json) -> Json | None:
    """The order that an execution's input names, or None."""
    try:
        document = (
            read_json(execution_input) if isinstance(execution_input, str) else execution_input
        )
        return dict(order_of(document))
    except (KeyError, TypeError, ValueError):
        return None
