"""The failure message of an execution that could not write its own."""

from __future__ import annotations

import hashlib
import json
from typing import Any

#: Names for endings that carry no error of their own.
ERROR_OF_STATUS = {"TIMED_OUT": "ExecutionTimedOut", "ABORTED": "ExecutionAborted"}


def failure_message(detail: dict[str, Any]) -> dict[str, Any]:
    """The same message that the state `QueueFailure` sends.

    `detail` is that of a "Step Functions Execution Status Change" event. The order and its key
    are read from the execution's input; when that was no S3 event, or too large to travel in
    the event, both are None and `input` holds what there was.

    Source: https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html
    """
    name = detail.get("error") or ERROR_OF_STATUS.get(detail["status"], detail["status"])
    message: dict[str, Any] = {
        "execution": detail["executionArn"],
        "idempotency_key": None,
        "order": None,
        "error": {"Error": name, "Cause": detail.get("cause") or ""},
    }
    try:
        order = order_of(json.loads(detail["input"]))
    except (KeyError, TypeError, ValueError):
        return message | {"input": detail.get("input")}
    return message | {"idempotency_key": order["idempotency_key"], "order": order}


def order_of(execution_input: dict[str, Any]) -> dict[str, str]:
    """The order that an execution's input names, with its idempotency key.

    The recipes are those of the states `IdentifyByVersion` and `IdentifyByContent`; a test
    holds them together. Raises KeyError or TypeError when the input is not an S3 event.
    """
    bucket = execution_input["detail"]["bucket"]["name"]
    s3_object = execution_input["detail"]["object"]
    key, etag = s3_object["key"], s3_object["etag"]
    order: dict[str, str] = {"bucket": bucket, "key": key, "etag": etag}
    version = s3_object.get("version-id")
    if version is not None and version != "null":
        order["version_id"] = version
        work = f"{bucket}/{key}#{version}"
    else:
        order |= {"version_id": "null", "sequencer": s3_object["sequencer"]}
        work = f"{bucket}/{key}#{etag}#{s3_object['sequencer']}"
    digest = hashlib.sha256(work.encode()).hexdigest()
    return order | {"idempotency_key": f"charge#{digest}"}


def queued_its_own(latest_events: list[dict[str, Any]]) -> bool:
    """Whether the run had already sent its message when it ended.

    `latest_events` is the last page of its history, newest first. A run can be stopped between
    `QueueFailure` and its end; a second message would only send a person looking twice.
    """
    older = iter(latest_events)
    for event in older:
        if event.get("stateExitedEventDetails", {}).get("name") == "QueueFailure":
            # A state is also left by its Catch: what its task did stands just before.
            return next(older, {}).get("type") == "TaskSucceeded"
    return False
