"""Mends of Amazon S3."""

import contextvars
import json
from typing import Any

from local.emulator import upstream

_MAX_KEY_BYTES = 1024

# The elements of a list of versions that hold a key, or a part of one.
_KEY_ELEMENTS = {"Delimiter", "Key", "KeyMarker", "NextKeyMarker", "Prefix"}

_version_id: contextvars.ContextVar[str | None] = contextvars.ContextVar("version_id", default=None)
_encoding: contextvars.ContextVar[str] = contextvars.ContextVar("encoding", default="")


def name_the_version_in_events() -> None:
    """`detail.object["version-id"]` names the version on a versioned bucket.

    Rule: EventBridge event message structure, field `version-id`: "the version ID of the object,
    if the bucket is versioning-enabled". https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html
    """
    s3 = upstream.module("services.s3")
    eventbridge = upstream.module("services.eventbridge")

    def fire(original: Any, *args: Any, **kwargs: Any) -> None:
        # A thread of its own runs each event, in a context of its own: nothing leaks.
        _version_id.set(kwargs.get("version_id"))
        original(*args, **kwargs)

    def dispatch(original: Any, event: dict[str, Any], *args: Any) -> None:
        version_id = _version_id.get()
        if version_id and event.get("Source") == "aws.s3":
            detail = json.loads(event["Detail"])
            detail["object"]["version-id"] = version_id
            event = {**event, "Detail": json.dumps(detail)}
        original(event, *args)

    upstream.wrap(s3, "_fire_s3_event", fire)
    upstream.wrap(eventbridge, "_dispatch_event", dispatch)


def tell_event_times_in_seconds() -> None:
    """The `time` of an event is in whole seconds.

    Rule: the examples of https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html and
    of every EventBridge event: `2021-11-12T00:00:00Z`.
    """
    eventbridge = upstream.module("services.eventbridge")

    def dispatch(original: Any, event: dict[str, Any], *args: Any) -> None:
        moment = event.get("Time")
        if isinstance(moment, str):
            event = {**event, "Time": moment.partition(".")[0].rstrip("Z") + "Z"}
        original(event, *args)

    upstream.wrap(eventbridge, "_dispatch_event", dispatch)


def refuse_keys_that_are_too_long() -> None:
    """An object key of more than 1,024 bytes is refused with `KeyTooLongError`.

    Rule: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
    """
    s3 = upstream.module("services.s3")

    def put(original: Any, bucket: str, key: str, *rest: Any, **named: Any) -> Any:
        if len(key.encode()) > _MAX_KEY_BYTES:
            return s3._error("KeyTooLongError", "Your key is too long", 400)
        return original(bucket, key, *rest, **named)

    for name in ("_put_object", "_copy_object", "_create_multipart_upload"):
        upstream.wrap(s3, name, put)


def encode_keys_in_lists_of_versions() -> None:
    """ListObjectVersions writes keys as `encoding-type=url` asks, as the other lists do.

    Rule: `EncodingType` of https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectVersions.html:
    "returns encoded key name values in the following response elements: KeyMarker, NextKeyMarker,
    Prefix, Key, and Delimiter", since a key can hold characters that XML cannot. AWS's SDKs ask
    for it by themselves. Without it one such key makes the list of all others fail.
    """
    s3 = upstream.module("services.s3")

    def list_versions(original: Any, bucket: str, query: dict[str, Any]) -> Any:
        token = _encoding.set(s3._qp(query, "encoding-type"))
        try:
            return original(bucket, query)
        finally:
            _encoding.reset(token)

    def body(original: Any, root: Any) -> bytes:
        if _encoding.get() == "url" and root.tag == "ListVersionsResult":
            for element in root.iter():
                if element.tag in _KEY_ELEMENTS:
                    element.text = s3._url_encode(element.text or "")
            s3.SubElement(root, "EncodingType").text = "url"
        return bytes(original(root))

    upstream.wrap(s3, "_list_object_versions", list_versions)
    upstream.wrap(s3, "_xml_body", body)
