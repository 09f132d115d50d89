"""S3's "Object Created" event as EventBridge delivers it, built for one object version."""

from __future__ import annotations

import datetime
import uuid
from typing import Any


def object_created(
    *,
    bucket: str,
    key: str,
    version_id: str | None,
    etag: str,
    size: int = 0,
    sequencer: str | None = None,
) -> dict[str, Any]:
    """An event in AWS's shape: the key raw (never URL-encoded), the ETag without quotes.

    Every call makes another delivery: `id` and `time` differ, what names the work does not.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
    """
    s3_object: dict[str, Any] = {"key": key, "size": size, "etag": etag.strip('"')}
    if version_id is not None:
        s3_object["version-id"] = version_id
    if sequencer is not None:
        s3_object["sequencer"] = sequencer
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "Object Created",
        "source": "aws.s3",
        "account": "123456789012",
        "time": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "region": "us-east-1",
        "resources": [f"arn:aws:s3:::{bucket}"],
        "detail": {
            "version": "0",
            "bucket": {"name": bucket},
            "object": s3_object,
            "request-id": uuid.uuid4().hex[:16].upper(),
            "requester": "123456789012",
            "source-ip-address": "127.0.0.1",
            "reason": "PutObject",
        },
    }
