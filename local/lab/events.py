"""S3's own notification, as it invokes a Lambda function, built for one object version."""

from __future__ import annotations

import datetime
import uuid
from typing import Any
from urllib.parse import quote_plus


def object_created(
    *,
    bucket: str,
    key: str,
    version_id: str | None,
    etag: str,
    sequencer: str,
    size: int = 0,
) -> dict[str, Any]:
    """A notification in AWS's shape: the key URL-encoded, the eTag without quotes.

    `version_id` is None for a bucket without versioning: then S3 leaves the field out. A
    duplicate delivery is this very document again.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
    """
    s3_object: dict[str, Any] = {
        "key": quote_plus(key, safe="/"),
        "size": size,
        "eTag": etag.strip('"'),
        "sequencer": sequencer,
    }
    if version_id is not None:
        s3_object["versionId"] = version_id
    now = datetime.datetime.now(datetime.UTC)
    return {
        "Records": [
            {
                "eventVersion": "2.1",
                "eventSource": "aws:s3",
                "awsRegion": "us-east-1",
                "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
                "eventName": "ObjectCreated:Put",
                "userIdentity": {"principalId": "AWS:LAB"},
                "requestParameters": {"sourceIPAddress": "127.0.0.1"},
                "responseElements": {
                    "x-amz-request-id": uuid.uuid4().hex[:16].upper(),
                    "x-amz-id-2": uuid.uuid4().hex,
                },
                "s3": {
                    "s3SchemaVersion": "1.0",
                    "configurationId": "lab",
                    "bucket": {
                        "name": bucket,
                        "ownerIdentity": {"principalId": "LAB"},
                        "arn": f"arn:aws:s3:::{bucket}",
                    },
                    "object": s3_object,
                },
            }
        ]
    }
