"""The store of the Lambda: one DynamoDB table.

The table: partition key `pk` (S), sort key `sk` (S), on demand, TTL on `expires_at`. No index.

    pk                      sk         what
    key#<Idempotency-Key>   key        marker (token, lease_until) or answer (status, body)
    charge                  charge id  the charge
    reference#<reference>   charge id  the same text again: one query answers a look-up
    request#<key>           entry id   what was answered (test mode)
    fault                   fault id   a fault and its remaining (test mode)
    clock                   clock      offset_seconds (test mode)

All charges share one partition, because that makes every list, and every page of it, consistent
and in order without an index. It bounds a provider at about 400 small charges per second (a
partition takes 1,000 write units per second, a transactional write of up to 1 KB costs 2): plenty
for a mock.

The role needs `dynamodb:` GetItem, PutItem, UpdateItem, DeleteItem and Query on this table; a
transaction is authorised by the writes that it consists of.
"""

import json
import random
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import boto3
from botocore.config import Config

from provider.store import Answer, Fault, KeyState, Marker

# All attempts of a call together stay below a marker's lease of 10 s. A slower one would be safe,
# since a commit needs the marker, but would have to give way to a successor.
_CONFIG = Config(
    connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 3}
)

_COMMIT_ATTEMPTS = 4  # transactions that touch one key meet for milliseconds
_COMMIT_PAUSE_SECONDS = 0.05

Item = dict[str, dict[str, str]]


class DynamoDbStore:
    """See `provider.store.Store`. `client` is a boto3 DynamoDB client, made here by default."""

    def __init__(self, table: str, client: Any = None) -> None:
        self._table = table
        self._client = client or boto3.client("dynamodb", config=_CONFIG)

    def claim(self, key: str, marker: Marker, *, now: float, wall: float) -> KeyState | None:
        unknown = "attribute_not_exists(pk)"
        forgotten = "expires_at <= :now"
        abandoned = "(lease_until <= :wall AND fingerprint = :fingerprint)"
        try:
            self._client.put_item(
                TableName=self._table,
                Item=_key(f"key#{key}", "key")
                | {
                    "fingerprint": _s(marker.fingerprint),
                    "token": _s(marker.token),
                    "lease_until": _n(marker.lease_until),
                    "expires_at": _n(marker.expires_at),
                },
                ConditionExpression=f"{unknown} OR {forgotten} OR {abandoned}",
                ExpressionAttributeValues={
                    ":now": _n(now),
                    ":wall": _n(wall),
                    ":fingerprint": _s(marker.fingerprint),
                },
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except self._client.exceptions.ConditionalCheckFailedException as refusal:
            held: Item = refusal.response["Item"]
        except self._client.exceptions.TransactionConflictException:
            # Somebody is committing this very key: that is what "in flight" means.
            return KeyState(marker.fingerprint, None)
        else:
            return None
        if held.get("token") == _s(marker.token):
            return None  # our own write, whose answer was lost and which the SDK sent again
        answer = Answer(int(held["status"]["N"]), held["body"]["S"]) if "status" in held else None
        return KeyState(held["fingerprint"]["S"], answer)

    def commit(
        self,
        key: str,
        marker: Marker,
        answer: Answer,
        *,
        charge_id: str,
        reference: str | None,
        charge: str,
    ) -> bool:
        answered: dict[str, Any] = {
            "Item": _key(f"key#{key}", "key")
            | {
                "fingerprint": _s(marker.fingerprint),
                "status": _n(answer.status),
                "body": _s(answer.body),
                "expires_at": _n(marker.expires_at),
            },
            "ConditionExpression": "#token = :token",
            "ExpressionAttributeNames": {"#token": "token"},
            "ExpressionAttributeValues": {":token": _s(marker.token)},
        }
        books = ["charge"] if reference is None else ["charge", f"reference#{reference}"]
        entries = [{"Item": _key(book, charge_id) | {"charge": _s(charge)}} for book in books]
        for attempt in range(1, _COMMIT_ATTEMPTS + 1):
            try:
                self._client.transact_write_items(
                    TransactItems=[
                        {"Put": {"TableName": self._table} | write}
                        for write in (answered, *entries)
                    ]
                )
            except self._client.exceptions.TransactionCanceledException as cancelled:
                reasons = {reason["Code"] for reason in cancelled.response["CancellationReasons"]}
                if "ConditionalCheckFailed" in reasons:
                    return False
                if "TransactionConflict" not in reasons or attempt == _COMMIT_ATTEMPTS:
                    raise
                time.sleep(random.uniform(0, _COMMIT_PAUSE_SECONDS))  # noqa: S311
            else:
                return True
        raise AssertionError("bug: the last attempt returns or raises")

    def release(self, key: str, marker: Marker) -> None:
        try:
            self._client.delete_item(
                TableName=self._table,
                Key=_key(f"key#{key}", "key"),
                ConditionExpression="#token = :token",
                ExpressionAttributeNames={"#token": "token"},
                ExpressionAttributeValues={":token": _s(marker.token)},
            )
        except self._client.exceptions.ConditionalCheckFailedException:
            return

    def charge(self, charge_id: str) -> str | None:
        found = self._client.get_item(
            TableName=self._table, Key=_key("charge", charge_id), ConsistentRead=True
        ).get("Item")
        return found["charge"]["S"] if found else None

    def charges(self, reference: str | None, first: str, limit: int) -> Iterator[str]:
        book = "charge" if reference is None else f"reference#{reference}"
        for item in self._query(book, first, limit):
            yield item["charge"]["S"]

    def add_fault(self, fault: Fault) -> None:
        self._client.put_item(
            TableName=self._table,
            Item=_key("fault", fault.id)
            | {
                "fault": _s(json.dumps(asdict(fault))),
                "remaining": _n(fault.remaining),
            },
        )

    def faults(self) -> list[Fault]:
        items = ((item, int(item["remaining"]["N"])) for item in self._query("fault"))
        return [
            Fault(**json.loads(item["fault"]["S"]) | {"remaining": left})
            for item, left in items
            if left > 0
        ]

    def take_fault(self, fault_id: str) -> bool:
        try:
            self._client.update_item(
                TableName=self._table,
                Key=_key("fault", fault_id),
                UpdateExpression="SET remaining = remaining - :one",
                ConditionExpression="remaining > :none",
                ExpressionAttributeValues={":one": _n(1), ":none": _n(0)},
            )
        except self._client.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def clear_faults(self) -> None:
        for item in self._query("fault"):
            self._client.delete_item(TableName=self._table, Key=_key("fault", item["sk"]["S"]))

    def log_request(self, key: str, entry_id: str, entry: str, expires_at: int) -> None:
        self._client.put_item(
            TableName=self._table,
            Item=_key(f"request#{key}", entry_id)
            | {
                "entry": _s(entry),
                "expires_at": _n(expires_at),
            },
        )

    def requests(self, key: str, limit: int) -> list[str]:
        return [item["entry"]["S"] for item in self._query(f"request#{key}", limit=limit)]

    def clock_offset(self) -> int:
        found = self._client.get_item(
            TableName=self._table, Key=_key("clock", "clock"), ConsistentRead=True
        ).get("Item")
        return int(found["offset_seconds"]["N"]) if found else 0

    def advance_clock(self, seconds: int) -> int:
        changed = self._client.update_item(
            TableName=self._table,
            Key=_key("clock", "clock"),
            UpdateExpression="ADD offset_seconds :seconds",
            ExpressionAttributeValues={":seconds": _n(seconds)},
            ReturnValues="UPDATED_NEW",
        )
        return int(changed["Attributes"]["offset_seconds"]["N"])

    def reset_clock(self) -> None:
        self._client.delete_item(TableName=self._table, Key=_key("clock", "clock"))

    def _query(self, pk: str, first: str = "", limit: int | None = None) -> Iterator[Item]:
        """Items of a partition from a sort key on, consistently, one page in memory."""
        condition = "pk = :pk" + (" AND sk >= :first" if first else "")
        values = {":pk": _s(pk)} | ({":first": _s(first)} if first else {})
        request: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ConsistentRead": True,
        }
        left = limit
        while left is None or left > 0:
            page = self._client.query(**request, **({} if left is None else {"Limit": left}))
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
            left = None if left is None else left - len(page["Items"])


def _key(pk: str, sk: str) -> Item:
    return {"pk": _s(pk), "sk": _s(sk)}


def _s(text: str) -> dict[str, str]:
    return {"S": text}


def _n(number: float) -> dict[str, str]:
    return {"N": str(number)}
