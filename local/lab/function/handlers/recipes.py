"""What names one piece of work: two recipes for an idempotency key, both from the event alone.

A retry and a duplicate carry the same event, so they get the same key. A clock or a random number
would give every attempt a key of its own, and such a key deduplicates nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus


@dataclass(frozen=True, slots=True)
class S3Object:
    """The object that a notification is about. `key` is the real one, not the encoded one."""

    bucket: str
    key: str
    version_id: str  # "null" where the bucket keeps no versions
    etag: str
    sequencer: str

    @property
    def name(self) -> str:
        """Bucket and key: what faults and charges of the lab are counted under."""
        return f"{self.bucket}/{self.key}"


def object_of(record: dict[str, Any]) -> S3Object:
    """The object of one entry of a notification's `Records`. Raises KeyError.

    Unlike EventBridge, S3 URL-encodes the key here, with `+` for a blank.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
    """
    s3_object = record["s3"]["object"]
    return S3Object(
        bucket=record["s3"]["bucket"]["name"],
        key=unquote_plus(s3_object["key"]),
        version_id=s3_object.get("versionId", "null"),
        etag=s3_object["eTag"],
        sequencer=s3_object["sequencer"],
    )


def key_by_version(s3_object: S3Object) -> str:
    """Object key and version: readable, and useless without versioning.

    There every upload has the version "null", so the second upload of a name passes for a
    duplicate of the first.
    """
    return f"charge#{s3_object.name}#{s3_object.version_id}"


def key_by_content(s3_object: S3Object) -> str:
    """A hash of object key, eTag and sequencer: works without versioning.

    The eTag alone would merge two uploads of the same bytes; the sequencer tells them apart.
    """
    work = f"{s3_object.name}#{s3_object.etag}#{s3_object.sequencer}"
    return f"charge#{hashlib.sha256(work.encode()).hexdigest()}"
