"""The adapters for S3, DynamoDB and Step Functions, on moto's in-memory AWS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from reconciler.aws import BATCH_ATTEMPTS, DynamoLedger, S3Bucket, StepFunctions
from reconciler.books import Money, ObjectVersion, Page, Place, Run, Unreadable
from reconciler.order_file import MAX_FILE_BYTES

BUCKET, TABLE = "orders-bucket", "ledger"
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:ChargeOrder"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        yield lambda service: boto3.client(service, region_name="us-east-1")


@pytest.fixture
def s3(aws: Any) -> Any:
    client = aws("s3")
    client.create_bucket(Bucket=BUCKET)
    client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    return client


@pytest.fixture
def dynamodb(aws: Any) -> Any:
    client = aws("dynamodb")
    client.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"}
            for name in ("pk", "open_since", "order_id")
        ],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": index,
                "KeySchema": [
                    {"AttributeName": first, "KeyType": "HASH"},
                    {"AttributeName": second, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
            for index, first, second in (
                ("open-records", "pk", "open_since"),
                ("order-id", "order_id", "pk"),
            )
        ],
    )
    return client


def put(s3: Any, key: str, body: bytes = b"x") -> Place:
    return Place(BUCKET, key, s3.put_object(Bucket=BUCKET, Key=key, Body=body)["VersionId"])


def every(page_of: Any) -> list[Any]:
    items: list[Any] = []
    cursor = None
    while True:
        page: Page[Any] = page_of(cursor)
        items += page.items
        # A place is kept as JSON between two runs.
        cursor = json.loads(json.dumps(page.next))
        if cursor is None:
            return items


# ---------------------------------------------------------------- the order bucket


class SmallPages:
    """S3 that lists two at a time."""

    def __init__(self, s3: Any) -> None:
        self._s3 = s3

    def list_object_versions(self, **request: Any) -> Any:
        return self._s3.list_object_versions(MaxKeys=2, **request)


def test_every_version_is_listed_over_pages_and_markers_of_one_key(s3: Any) -> None:
    placed = [put(s3, "orders/many.json") for _ in range(5)]
    placed += [put(s3, key) for key in ("orders/a b+c/ü&.json", "orders/x.json")]
    put(s3, "elsewhere/x.json")
    s3.delete_object(Bucket=BUCKET, Key="orders/many.json")

    listed: list[ObjectVersion] = every(S3Bucket(SmallPages(s3), BUCKET).versions)

    assert sorted(item.place for item in listed) == sorted(placed)


def test_a_version_is_read_as_it_is_now(s3: Any) -> None:
    old, new = put(s3, "orders/a.json"), put(s3, "orders/a.json")
    put(s3, "orders/a.json.longer")
    bucket = S3Bucket(s3, BUCKET)

    versions = [bucket.version(place) for place in (old, new)]

    assert [item is not None and item.is_latest for item in versions] == [False, True]
    assert versions[0] is not None
    assert versions[0].etag == "9dd4e461268c8034f5c8564e155c67a6"
    assert versions[0].last_modified.tzinfo is not None


def test_below_a_delete_marker_no_version_is_the_latest(s3: Any) -> None:
    place = put(s3, "orders/a.json")
    s3.delete_object(Bucket=BUCKET, Key=place.key)

    version = S3Bucket(s3, BUCKET).version(place)

    assert version is not None
    assert not version.is_latest


def test_a_version_that_was_deleted_for_good_is_gone(s3: Any) -> None:
    place = put(s3, "orders/a.json")
    s3.delete_object(Bucket=BUCKET, Key=place.key, VersionId=place.version_id)

    assert S3Bucket(s3, BUCKET).version(place) is None
    assert S3Bucket(s3, BUCKET).ordered(place) is None


def test_an_object_that_s3_does_not_show_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="AccessDenied"):
        S3Bucket(Refusing("AccessDenied"), BUCKET).version(Place(BUCKET, "orders/a.json", "v"))


def test_the_order_file_of_just_this_version_is_read(s3: Any) -> None:
    first = put(s3, "orders/a.json", b'{"amount": "19.99", "currency": "EUR"}')
    put(s3, "orders/a.json", b'{"amount": "5.00", "currency": "EUR"}')

    assert S3Bucket(s3, BUCKET).ordered(first) == Money(1999, "EUR")


def test_a_file_too_large_for_an_order_is_not_read_whole(s3: Any) -> None:
    place = put(s3, "orders/a.json", b" " * (MAX_FILE_BYTES * 2))

    assert S3Bucket(s3, BUCKET).ordered(place) is None


# ---------------------------------------------------------------- the ledger


def write(dynamodb: Any, key: str, **attributes: Any) -> None:
    typed = {
        name: {"N": str(value)} if isinstance(value, int) else {"S": value}
        for name, value in attributes.items()
    }
    dynamodb.put_item(TableName=TABLE, Item={"pk": {"S": key}, **typed})


def test_records_are_looked_up_in_batches_and_repeated_keys_do_no_harm(dynamodb: Any) -> None:
    for number in range(150):
        write(dynamodb, f"k{number}", status="done", amount_minor=number)
    keys = [f"k{number}" for number in range(250)]

    found = DynamoLedger(dynamodb, TABLE).records([*keys, *keys], consistent=True)

    assert len(found) == 150
    assert found["k7"].amount_minor == 7
    assert (found["k7"].status, found["k7"].owner) == ("done", None)


def test_attributes_of_the_wrong_type_are_none(dynamodb: Any) -> None:
    dynamodb.put_item(
        TableName=TABLE,
        Item={"pk": {"S": "k"}, "status": {"N": "1"}, "amount_minor": {"N": "1.5"}},
    )

    record = DynamoLedger(dynamodb, TABLE).records(["k"])["k"]

    assert (record.status, record.amount_minor) == (None, None)


def test_settled_and_open_records_come_from_their_indexes(dynamodb: Any) -> None:
    write(dynamodb, "a", status="done", order_id="A-1", settled_at="2026-01-02T03:04:05.678Z")
    write(dynamodb, "b", status="done", order_id="A-1", settled_at="yesterday")
    write(dynamodb, "c", status="in_progress", open_since="2026-01-02T03:04:05Z")
    ledger = DynamoLedger(dynamodb, TABLE)

    settled = {item.key: item for item in every(ledger.settlements)}

    assert set(settled) == {"a", "b"}
    assert settled["a"].settled_at == datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
    assert settled["b"].settled_at is None
    assert [item.key for item in every(ledger.open_records)] == ["c"]
    assert sorted(ledger.keys_of_order("A-1")) == ["a", "b"]


def test_a_ledger_knows_its_age(dynamodb: Any) -> None:
    assert (datetime.now(UTC) - DynamoLedger(dynamodb, TABLE).created()).total_seconds() < 60


class Throttled:
    """Answers a batch with its first key alone, `times` times; then whole."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.asked: list[int] = []

    def batch_get_item(self, RequestItems: Any) -> Any:  # noqa: N803 - boto3's spelling
        keys = RequestItems[TABLE]["Keys"]
        self.asked.append(len(keys))
        self.times -= 1
        answered = keys[:1] if self.times >= 0 else keys
        left = keys[len(answered) :]
        return {
            "Responses": {TABLE: [{**key, "status": {"S": "done"}} for key in answered]},
            "UnprocessedKeys": {TABLE: {"Keys": left}} if left else {},
        }


def test_a_key_that_is_asked_for_twice_is_sent_once() -> None:
    table = Throttled(0)

    DynamoLedger(table, TABLE).records(["k", "k"])

    assert table.asked == [1]


def test_unprocessed_keys_are_asked_for_again_after_growing_waits() -> None:
    throttled, waits = Throttled(3), list[float]()

    found = DynamoLedger(throttled, TABLE, waits.append).records(f"k{n}" for n in range(10))

    assert len(found) == 10
    assert throttled.asked == [10, 9, 8, 7]
    assert [wait <= limit for wait, limit in zip(waits, (0.05, 0.1, 0.2), strict=True)] == [
        True,
        True,
        True,
    ]


def test_a_table_that_stays_throttled_ends_the_run() -> None:
    throttled = Throttled(1000)

    with pytest.raises(TimeoutError, match="throttled"):
        DynamoLedger(throttled, TABLE, lambda _: None).records(f"k{n}" for n in range(100))

    assert len(throttled.asked) == BATCH_ATTEMPTS


# ---------------------------------------------------------------- executions


class Refusing:
    """Refuses every call with one error code."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __getattr__(self, name: str) -> Any:
        def refuse(**_: Any) -> Any:
            raise ClientError({"Error": {"Code": self.code, "Message": ""}}, name)

        return refuse


class Answering:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def describe_execution(self, **_: Any) -> Any:
        return self.answer

    def start_execution(self, **request: Any) -> Any:
        return {"executionArn": f"arn:{request['name']}:{request['input']}"}


def test_an_owner_is_described_with_its_error() -> None:
    client = Answering({"status": "FAILED", "error": "ProviderUnavailable"})

    assert StepFunctions(client, MACHINE).run("arn") == Run("FAILED", "ProviderUnavailable")


@pytest.mark.parametrize("code", ["ExecutionDoesNotExist", "InvalidArn"])
def test_an_owner_that_does_not_exist_is_dead(code: str) -> None:
    run = StepFunctions(Refusing(code), MACHINE).run("arn")

    assert run == Run("GONE", None)


def test_an_owner_without_a_name_is_dead_and_not_asked_for() -> None:
    run = StepFunctions(Refusing("AccessDenied"), MACHINE).run("")

    assert run == Run("GONE", None)
    assert not run.is_running


def test_an_owner_that_may_not_be_asked_for_is_not_taken_for_dead() -> None:
    with pytest.raises(Unreadable, match="AccessDenied"):
        StepFunctions(Refusing("AccessDeniedException"), MACHINE).run("arn")


def test_a_repair_is_started_by_name() -> None:
    arn = StepFunctions(Answering(None), MACHINE).start("repair-1", {"detail": {}})

    assert arn == 'arn:repair-1:{"detail": {}}'


def test_a_repair_that_was_started_before_is_that_one() -> None:
    arn = StepFunctions(Refusing("ExecutionAlreadyExists"), MACHINE).start("repair-1", {})

    assert arn == "arn:aws:states:us-east-1:123456789012:execution:ChargeOrder:repair-1"


def test_a_repair_that_cannot_be_started_is_reported() -> None:
    with pytest.raises(Unreadable, match="ExecutionLimitExceeded"):
        StepFunctions(Refusing("ExecutionLimitExceeded"), MACHINE).start("repair-1", {})
