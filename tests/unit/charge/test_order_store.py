"""S3: exactly one version is read, and what S3 answers is told apart."""

from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    IncompleteReadError,
    ReadTimeoutError,
)
from charge.charging import UNVERSIONED, ObjectGone, StoredOrder
from charge.errors import OrderUnreadable
from charge.order_file import MAX_FILE_BYTES
from charge.order_store import S3OrderStore

from tests.unit.charge.fakes import REFERENCE

LAST_MODIFIED = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


class FakeS3:
    def __init__(self, body: BytesIO | None = None, error: Exception | None = None) -> None:
        self.body = body or BytesIO(b"{}")
        self.error = error
        self.requests: list[dict[str, Any]] = []

    def get_object(self, **request: Any) -> Any:
        self.requests.append(request)
        if self.error:
            raise self.error
        return {"Body": self.body, "LastModified": LAST_MODIFIED}


class BrokenBody(BytesIO):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def read(self, size: int | None = -1, /) -> bytes:
        raise self.error


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, "GetObject")


def test_the_version_of_the_event_is_read() -> None:
    s3 = FakeS3(BytesIO(b'{"a": 1}'))

    stored = S3OrderStore(s3).read(REFERENCE)

    assert stored == StoredOrder(b'{"a": 1}', LAST_MODIFIED)
    assert s3.requests == [
        {"Bucket": REFERENCE.bucket, "Key": REFERENCE.key, "VersionId": REFERENCE.version_id}
    ]


def test_without_versions_the_content_of_the_event_is_read() -> None:
    s3 = FakeS3()

    S3OrderStore(s3).read(replace(REFERENCE, version_id=UNVERSIONED))

    assert s3.requests == [
        {"Bucket": REFERENCE.bucket, "Key": REFERENCE.key, "IfMatch": f'"{REFERENCE.etag}"'}
    ]


def test_no_more_is_read_than_shows_that_it_is_too_much() -> None:
    s3 = FakeS3(BytesIO(b"x" * (MAX_FILE_BYTES + 1000)))

    stored = S3OrderStore(s3).read(REFERENCE)

    assert len(stored.body) == MAX_FILE_BYTES + 1
    assert s3.body.closed


@pytest.mark.parametrize(
    "code", ["NoSuchKey", "NoSuchVersion", "PreconditionFailed", "MethodNotAllowed"]
)
def test_a_version_that_does_not_exist_is_gone(code: str) -> None:
    store = S3OrderStore(FakeS3(error=refused(code)))

    with pytest.raises(ObjectGone, match=code):
        store.read(REFERENCE)


@pytest.mark.parametrize("code", ["SlowDown", "InternalError", "AccessDenied", "NoSuchBucket"])
def test_another_refusal_may_pass(code: str) -> None:
    store = S3OrderStore(FakeS3(error=refused(code)))

    with pytest.raises(OrderUnreadable, match=code):
        store.read(REFERENCE)


@pytest.mark.parametrize(
    "s3",
    [
        FakeS3(error=ConnectTimeoutError(endpoint_url="https://s3.example")),
        FakeS3(BrokenBody(ReadTimeoutError(endpoint_url="https://s3.example"))),
        FakeS3(BrokenBody(IncompleteReadError(actual_bytes=1, expected_bytes=2))),
    ],
    ids=["no connection", "body stalls", "body breaks off"],
)
def test_a_broken_connection_may_pass(s3: FakeS3) -> None:
    with pytest.raises(OrderUnreadable, match="Error"):
        S3OrderStore(s3).read(REFERENCE)
