"""The order bucket, the ledger and the executions on AWS.

Clients come from outside and are set up to retry throttling and 5xx with back-off. What concerns
one entry alone is raised as `Unreadable`; everything else ends the run, which keeps its place.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError

from reconciler.books import (
    PREFIX,
    Cursor,
    Money,
    ObjectVersion,
    Page,
    Place,
    Record,
    Run,
    Settlement,
    Unreadable,
)
from reconciler.judging import as_time
from reconciler.order_file import MAX_FILE_BYTES, ordered_amount

CLIENT_CONFIG = Config(
    retries={"mode": "standard", "total_max_attempts": 8},
    connect_timeout=3,
    read_timeout=20,
    max_pool_connections=16,
)
"""8 attempts wait up to 20 s each: a throttled table is waited for rather than given up."""

KEYS_PER_BATCH = 100
"""The most that BatchGetItem takes."""

LONGEST_BATCH_WAIT_SECONDS = 20.0
BATCH_ATTEMPTS = 12
"""Unprocessed keys are asked for again after 0.05, 0.1, ... 20 s: two minutes in all."""

OPEN_INDEX = "open-records"
ORDER_INDEX = "order-id"

_FIELDS = {
    "key": "pk",
    "status": "status",
    "owner": "owner",
    "open_since": "open_since",
    "claimed_at": "claimed_at",
    "settled_at": "settled_at",
    "bucket": "bucket",
    "object_key": "object_key",
    "version_id": "version_id",
    "etag": "etag",
    "order_id": "order_id",
    "charge_id": "charge_id",
    "currency": "currency",
    "reason": "reason",
}

_GONE = frozenset({"404", "NoSuchKey", "NoSuchVersion", "405", "MethodNotAllowed"})


class S3Bucket:
    """An `auditing.Bucket`. `s3` is a boto3 client."""

    def __init__(self, s3: Any, name: str) -> None:
        self._s3 = s3
        self.name = name

    def versions(self, cursor: Cursor) -> Page[ObjectVersion]:
        """A page of up to 1,000; the cursor is the pair of markers of ListObjectVersions."""
        markers = {} if cursor is None else {"KeyMarker": cursor[0], "VersionIdMarker": cursor[1]}
        answer = self._s3.list_object_versions(Bucket=self.name, Prefix=PREFIX, **markers)
        following = (
            [answer["NextKeyMarker"], answer["NextVersionIdMarker"]]
            if answer["IsTruncated"]
            else None
        )
        return Page([self._version(item) for item in answer.get("Versions", [])], following)

    def version(self, place: Place) -> ObjectVersion | None:
        try:
            head = self._s3.head_object(
                Bucket=place.bucket, Key=place.key, VersionId=place.version_id
            )
        except ClientError as error:
            code = _code(error)
            if code in _GONE:
                return None
            raise Unreadable(f"S3 does not show the object version: {code}") from error
        # The newest entry of the first key with this prefix, which is this very key.
        answer = self._s3.list_object_versions(Bucket=place.bucket, Prefix=place.key, MaxKeys=1)
        newest = [*answer.get("Versions", []), *answer.get("DeleteMarkers", [])]
        return ObjectVersion(
            place=place,
            etag=head["ETag"].strip('"'),
            size=head["ContentLength"],
            last_modified=head["LastModified"],
            is_latest=any(
                (item["Key"], item["VersionId"]) == (place.key, place.version_id) for item in newest
            ),
        )

    def ordered(self, place: Place) -> Money | None:
        try:
            answer = self._s3.get_object(
                Bucket=place.bucket, Key=place.key, VersionId=place.version_id
            )
        except ClientError:
            return None  # gone or archived: then there is nothing to compare with
        with answer["Body"] as stream:
            return ordered_amount(stream.read(MAX_FILE_BYTES + 1))

    def _version(self, item: dict[str, Any]) -> ObjectVersion:
        return ObjectVersion(
            place=Place(self.name, item["Key"], item["VersionId"]),
            etag=item["ETag"].strip('"'),
            size=item["Size"],
            last_modified=item["LastModified"],
            is_latest=item["IsLatest"],
        )


class DynamoLedger:
    """An `auditing.Ledger`. `dynamodb` is a boto3 client; `sleep` takes seconds."""

    def __init__(
        self, dynamodb: Any, table: str, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._sleep = sleep

    def created(self) -> datetime:
        description = self._dynamodb.describe_table(TableName=self._table)
        moment: datetime = description["Table"]["CreationDateTime"]
        return moment.astimezone(UTC)

    def records(self, keys: Iterable[str], *, consistent: bool = False) -> dict[str, Record]:
        found: dict[str, Record] = {}
        remaining = iter(dict.fromkeys(keys))  # a key twice in one batch is refused
        while batch := list(islice(remaining, KEYS_PER_BATCH)):
            for item in self._batch(batch, consistent=consistent):
                record = _record(item)
                found[record.key] = record
        return found

    def _batch(self, keys: list[str], *, consistent: bool) -> Iterable[dict[str, Any]]:
        request = {
            self._table: {
                "Keys": [{"pk": {"S": key}} for key in keys],
                "ConsistentRead": consistent,
            }
        }
        for attempt in range(BATCH_ATTEMPTS):
            answer = self._dynamodb.batch_get_item(RequestItems=request)
            yield from answer["Responses"].get(self._table, [])
            request = answer.get("UnprocessedKeys") or {}
            if not request:
                return
            wait = min(LONGEST_BATCH_WAIT_SECONDS, 0.05 * 2**attempt)
            self._sleep(random.uniform(0, wait))  # noqa: S311 - jitter, no secret
        raise TimeoutError(
            f"DynamoDB left keys unprocessed after {BATCH_ATTEMPTS} attempts: the table is "
            f"throttled; the next run goes on from here"
        )

    def settlements(self, cursor: Cursor) -> Page[Settlement]:
        answer = self._scan(
            ORDER_INDEX,
            cursor,
            ProjectionExpression="pk, order_id, #status, settled_at",
            ExpressionAttributeNames={"#status": "status"},
        )
        return Page(
            [
                Settlement(
                    key=item["pk"]["S"],
                    order_id=item["order_id"]["S"],
                    status=_string(item, "status"),
                    settled_at=as_time(_string(item, "settled_at")),
                )
                for item in answer["Items"]
            ],
            answer.get("LastEvaluatedKey"),
        )

    def open_records(self, cursor: Cursor) -> Page[Record]:
        answer = self._scan(OPEN_INDEX, cursor)
        return Page([_record(item) for item in answer["Items"]], answer.get("LastEvaluatedKey"))

    def _scan(self, index: str, cursor: Cursor, **arguments: Any) -> dict[str, Any]:
        if cursor is not None:
            arguments["ExclusiveStartKey"] = cursor
        answer: dict[str, Any] = self._dynamodb.scan(
            TableName=self._table, IndexName=index, **arguments
        )
        return answer

    def keys_of_order(self, order_id: str) -> list[str]:
        pages = self._dynamodb.get_paginator("query").paginate(
            TableName=self._table,
            IndexName=ORDER_INDEX,
            KeyConditionExpression="order_id = :order_id",
            ExpressionAttributeValues={":order_id": {"S": order_id}},
            ProjectionExpression="pk",
        )
        return [item["pk"]["S"] for page in pages for item in page["Items"]]


class StepFunctions:
    """An `auditing.Executions`. `client` is a boto3 client of Step Functions."""

    def __init__(self, client: Any, state_machine_arn: str) -> None:
        self._client = client
        self._arn = state_machine_arn

    def run(self, arn: str) -> Run:
        if not arn:  # edited by hand; the client would refuse to ask
            return Run("GONE", None)
        try:
            answer = self._client.describe_execution(executionArn=arn)
        except ClientError as error:
            code = _code(error)
            if code in {"ExecutionDoesNotExist", "InvalidArn", "ValidationException"}:
                return Run("GONE", None)
            raise Unreadable(f"Step Functions does not show the owner {arn}: {code}") from error
        return Run(answer["status"], answer.get("error"))

    def start(self, name: str, execution_input: dict[str, Any]) -> str:
        try:
            answer = self._client.start_execution(
                stateMachineArn=self._arn, name=name, input=json.dumps(execution_input)
            )
        except ClientError as error:
            code = _code(error)
            if code == "ExecutionAlreadyExists":
                # Another run of this pass was here before; the name says that it is the same.
                return f"{self._arn.replace(':stateMachine:', ':execution:')}:{name}"
            raise Unreadable(f"Step Functions did not start {name}: {code}") from error
        return str(answer["executionArn"])


def _record(item: dict[str, Any]) -> Record:
    fields: dict[str, Any] = {name: _string(item, column) for name, column in _FIELDS.items()}
    amount = item.get("amount_minor", {}).get("N")
    # What is no whole number agrees with no charge.
    fields["amount_minor"] = int(amount) if amount and amount.lstrip("-").isdigit() else None
    return Record(**fields)


def _string(item: dict[str, Any], column: str) -> str | None:
    value = item.get(column, {}).get("S")
    return value if isinstance(value, str) else None


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
