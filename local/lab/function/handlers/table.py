"""The lab's one table: the ledger's records, the provider's charges, and the faults to come.

| pk | attributes | whose |
|---|---|---|
| `charge#…` (the idempotency key) | `status`: claimed, in_progress or done; `object` | ours |
| `provider#<bucket>/<key>` | `charges` (N): how often money moved for this object | theirs |
| `provider-key#…` | none: a key that the provider was given | theirs |
| `fault#<bucket>/<key>#<point>` | `remaining` (N): how often to fail there | the lab's |
| `attempts#<bucket>/<key>` | `started`, `ended`, `failed` (N): invocations so far | the lab's |

All of it is kept here and nothing in memory: Lambda reuses an environment for the next attempt
and drops it after a time-out, so a variable remembers too much or too little.
"""

from __future__ import annotations

from typing import Any, Protocol

from botocore.exceptions import ClientError


class DynamoDBClient(Protocol):
    """The part of botocore's client that is used."""

    def get_item(self, **request: Any) -> Any: ...
    def put_item(self, **request: Any) -> Any: ...
    def update_item(self, **request: Any) -> Any: ...
    def transact_write_items(self, **request: Any) -> Any: ...


class Table:
    """The few conditional writes that everything here is made of."""

    def __init__(self, dynamodb: DynamoDBClient, name: str) -> None:
        self._dynamodb = dynamodb
        self.name = name

    def get(self, pk: str) -> dict[str, Any] | None:
        """The item, read consistently, in DynamoDB's typed form; or None."""
        answer = self._dynamodb.get_item(
            TableName=self.name, Key={"pk": {"S": pk}}, ConsistentRead=True
        )
        item: dict[str, Any] | None = answer.get("Item")
        return item

    def create(self, pk: str, **attributes: dict[str, str]) -> bool:
        """Put the item unless there is one: one atomic write, so exactly one caller gets True."""
        try:
            self._dynamodb.put_item(
                TableName=self.name,
                Item={"pk": {"S": pk}, **attributes},
                ConditionExpression="attribute_not_exists(pk)",
            )
        except ClientError as error:
            if _code(error) == "ConditionalCheckFailedException":
                return False
            raise
        return True

    def set_status(self, pk: str, status: str) -> None:
        """Overwrite the status of an item."""
        self._dynamodb.update_item(
            TableName=self.name,
            Key={"pk": {"S": pk}},
            UpdateExpression="SET #status = :status",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={":status": {"S": status}},
        )

    def count(self, pk: str, what: str) -> None:
        """Add one to the attribute `what`."""
        self._dynamodb.update_item(TableName=self.name, **self._one_more(pk, what))

    def count_once(self, pk: str, what: str, marker: str) -> bool:
        """Add one to `what` unless `marker` exists, and create `marker`: both or neither."""
        marking = {
            "TableName": self.name,
            "Item": {"pk": {"S": marker}},
            "ConditionExpression": "attribute_not_exists(pk)",
        }
        counting = {"TableName": self.name, **self._one_more(pk, what)}
        try:
            self._dynamodb.transact_write_items(
                TransactItems=[{"Put": marking}, {"Update": counting}]
            )
        except ClientError as error:
            if _code(error) == "TransactionCanceledException" and self.get(marker):
                return False
            raise
        return True

    def take(self, pk: str) -> bool:
        """Subtract one from `remaining` if there is any left; whether there was."""
        is_left = "remaining > :none"
        try:
            self._dynamodb.update_item(
                TableName=self.name,
                Key={"pk": {"S": pk}},
                UpdateExpression="ADD remaining :minus_one",
                ConditionExpression=is_left,
                ExpressionAttributeValues={":none": {"N": "0"}, ":minus_one": {"N": "-1"}},
            )
        except ClientError as error:
            if _code(error) == "ConditionalCheckFailedException":
                return False
            raise
        return True

    @staticmethod
    def _one_more(pk: str, what: str) -> dict[str, Any]:
        return {
            "Key": {"pk": {"S": pk}},
            "UpdateExpression": "ADD #what :one",
            "ExpressionAttributeNames": {"#what": what},
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }


class Ledger:
    """Our own book: one record under each idempotency key, which names its object."""

    def __init__(self, table: Table, work: str) -> None:
        self._table = table
        self._work = work

    def status(self, key: str) -> str | None:
        """What the record says, or None where there is no record."""
        record = self._table.get(key)
        return record["status"]["S"] if record else None

    def claim(self, key: str, status: str) -> bool:
        """Write the first record under `key`; False where somebody else already has."""
        return self._table.create(key, status={"S": status}, object={"S": self._work})

    def mark_done(self, key: str) -> None:
        """Record that the work was finished."""
        self._table.set_status(key, "done")


class Provider:
    """Whoever takes the money. It counts charges, and dedupes only when it is given a key."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def charge(self, work: str, idempotency_key: str | None = None) -> None:
        """Move money for `work`; with a key that it has seen before, do nothing."""
        account = f"provider#{work}"
        if idempotency_key is None:
            self._table.count(account, "charges")
        else:
            self._table.count_once(account, "charges", f"provider-key#{idempotency_key}")


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
