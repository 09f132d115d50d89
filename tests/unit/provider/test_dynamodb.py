"""Answers of DynamoDB that only a crowd or a bad network brings about."""

from collections.abc import Iterator

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import ANY, Stubber
from provider import dynamodb
from provider.dynamodb import DynamoDbStore
from provider.store import Answer, KeyState, Marker

MARKER = Marker(token="a", fingerprint="f", lease_until=110.0, expires_at=200)


@pytest.fixture
def dynamo(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[DynamoDbStore, Stubber]]:
    """A store on a client whose answers the test writes."""
    monkeypatch.setattr(dynamodb, "_COMMIT_PAUSE_SECONDS", 0)
    client = boto3.client(
        "dynamodb", region_name="eu-central-1", aws_access_key_id="-", aws_secret_access_key="-"
    )
    with Stubber(client) as answers:
        yield DynamoDbStore("table", client), answers
        answers.assert_no_pending_responses()


def claim(store: DynamoDbStore) -> KeyState | None:
    return store.claim("key", MARKER, now=100, wall=100)


def commit(store: DynamoDbStore) -> bool:
    return store.commit(
        "key", MARKER, Answer(201, "{}"), charge_id="ch", reference=None, charge="{}"
    )


def cancel(answers: Stubber, *reasons: str) -> None:
    answers.add_client_error(
        "transact_write_items",
        "TransactionCanceledException",
        modeled_fields={"CancellationReasons": [{"Code": reason} for reason in reasons]},
    )


def test_a_claim_that_meets_a_commit_finds_the_key_in_flight(
    dynamo: tuple[DynamoDbStore, Stubber],
) -> None:
    store, answers = dynamo
    answers.add_client_error("put_item", "TransactionConflictException")

    assert claim(store) == KeyState("f", None)


def test_a_claim_that_the_sdk_sent_twice_is_ours(dynamo: tuple[DynamoDbStore, Stubber]) -> None:
    store, answers = dynamo
    ours = {"fingerprint": {"S": "f"}, "token": {"S": "a"}, "lease_until": {"N": "110.0"}}
    answers.add_client_error(
        "put_item", "ConditionalCheckFailedException", modeled_fields={"Item": ours}
    )

    assert claim(store) is None


def test_a_commit_that_meets_another_transaction_tries_again(
    dynamo: tuple[DynamoDbStore, Stubber],
) -> None:
    store, answers = dynamo
    cancel(answers, "TransactionConflict", "None")
    answers.add_response("transact_write_items", {})

    assert commit(store)


def test_a_commit_does_not_try_for_ever(dynamo: tuple[DynamoDbStore, Stubber]) -> None:
    store, answers = dynamo
    for _ in range(dynamodb._COMMIT_ATTEMPTS):
        cancel(answers, "TransactionConflict", "None")

    with pytest.raises(ClientError, match="TransactionCanceledException"):
        commit(store)


def test_a_lost_marker_is_told_apart_from_other_reasons(
    dynamo: tuple[DynamoDbStore, Stubber],
) -> None:
    store, answers = dynamo
    cancel(answers, "ConditionalCheckFailed", "None")
    cancel(answers, "None", "ThrottlingError")

    assert not commit(store)
    with pytest.raises(ClientError, match="TransactionCanceledException"):
        commit(store)


def test_every_look_up_is_consistent(dynamo: tuple[DynamoDbStore, Stubber]) -> None:
    store, answers = dynamo
    anything = {"TableName": ANY, "ConsistentRead": True}
    query = anything | {"KeyConditionExpression": ANY, "ExpressionAttributeValues": ANY}
    answers.add_response("get_item", {}, anything | {"Key": ANY})
    answers.add_response("query", {"Items": []}, query | {"Limit": ANY})

    assert store.charge("ch_1") is None
    assert list(store.charges("ref", "", 1)) == []
