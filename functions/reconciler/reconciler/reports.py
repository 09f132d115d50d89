"""Where a pass is kept between two runs, and its report when it is complete.

Both are JSON in the reports bucket. Every write of the position is conditional on what was read
before: of two runs that overlap, one saves, and the other learns that it was not alone.
"""

from __future__ import annotations

import json
from typing import Any

from botocore.exceptions import ClientError

from reconciler.auditing import Progress, report

POSITION = "position.json"

_LOST = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey"})


class Overtaken(Exception):
    """Another run has saved the position meanwhile: this one's place is no longer of use."""


class Reports:
    """`s3` is a boto3 client; `bucket` the name of the reports bucket."""

    def __init__(self, s3: Any, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket
        self._etag: str | None = None

    def position(self) -> Progress | None:
        """The pass that an earlier run had to leave; None when there is none."""
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=POSITION)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") == "NoSuchKey":
                return None
            raise
        self._etag = answer["ETag"]
        with answer["Body"] as stream:
            content = stream.read()
        try:
            saved = json.loads(content)["pass"]
            return None if saved is None else Progress.load(saved)
        except (KeyError, TypeError, ValueError):
            return None  # of another release: a pass that begins anew loses nothing but time

    def save(self, progress: Progress) -> None:
        """Keep the place of a pass. Raises Overtaken."""
        self._write_position(progress.dump())

    def publish(self, progress: Progress) -> str:
        """Write the report of a complete pass; gives its key. Raises Overtaken.

        The report comes first: a run that dies in between writes the same report again.
        """
        key = f"reports/{progress.started:%Y/%m/%d}/{progress.name}.json"
        self._put(key, report(progress))
        self._write_position(None)
        return key

    def _write_position(self, document: dict[str, Any] | None) -> None:
        condition = {"IfNoneMatch": "*"} if self._etag is None else {"IfMatch": self._etag}
        try:
            self._etag = self._put(POSITION, {"pass": document}, **condition)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in _LOST:
                raise Overtaken(POSITION) from error
            raise

    def _put(self, key: str, document: dict[str, Any], **condition: str) -> str:
        answer = self._s3.put_object(
            Bucket=self._bucket,
            Key=key,
            Body=json.dumps(document, ensure_ascii=False).encode(),
            ContentType="application/json",
            **condition,
        )
        return str(answer["ETag"])
