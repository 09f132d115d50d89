"""Reads order files from S3."""

from __future__ import annotations

from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from charge.charging import UNVERSIONED, ObjectGone, OrderReference, StoredOrder
from charge.errors import OrderUnreadable
from charge.order_file import MAX_FILE_BYTES

# NoSuchBucket is not among them: a wrong bucket is a wrong deployment, not a lost order.
# MethodNotAllowed is how S3 answers a GetObject for a version that is a delete marker.
_GONE = frozenset({"NoSuchKey", "NoSuchVersion", "PreconditionFailed", "MethodNotAllowed"})


class S3Client(Protocol):
    """The part of botocore's client that is used."""

    def get_object(self, **request: Any) -> Any: ...


class S3OrderStore:
    """An `OrderStore`. Its role needs s3:GetObject and s3:GetObjectVersion, and s3:ListBucket:
    without the latter S3 answers 403 for an object that is gone."""

    def __init__(self, s3: S3Client) -> None:
        self._s3 = s3

    def read(self, order: OrderReference) -> StoredOrder:
        """Reads no more than one byte over the limit of an order file."""
        which = (
            {"IfMatch": f'"{order.etag}"'}
            if order.version_id == UNVERSIONED
            else {"VersionId": order.version_id}
        )
        try:
            answer = self._s3.get_object(Bucket=order.bucket, Key=order.key, **which)
            with answer["Body"] as stream:
                body: bytes = stream.read(MAX_FILE_BYTES + 1)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code in _GONE:
                raise ObjectGone(code) from error
            # AccessDenied too: a policy is mended, and then the retry or the replay gets through.
            raise OrderUnreadable(f"S3 refused to hand over the object: {code}") from error
        except BotoCoreError as error:
            kind = type(error).__name__
            raise OrderUnreadable(f"S3 did not hand over the object: {kind}") from error
        return StoredOrder(body=body, last_modified=answer["LastModified"])
