"""Reading the functions' logs from CloudWatch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from local.stack import Stack

Json = dict[str, Any]


def streams(stack: Stack, group: str) -> Iterator[list[str]]:
    """The lines of each stream of a log group, oldest first."""
    logs = stack.client("logs")
    for page in logs.get_paginator("describe_log_streams").paginate(logGroupName=group):
        for stream in page["logStreams"]:
            where = {"logGroupName": group, "logStreamName": stream["logStreamName"]}
            lines: list[str] = []
            answer = logs.get_log_events(**where, startFromHead=True)
            while answer["events"]:
                lines += [event["message"] for event in answer["events"]]
                answer = logs.get_log_events(
                    **where, startFromHead=True, nextToken=answer["nextForwardToken"]
                )
            yield lines


def groups(stack: Stack) -> list[str]:
    """The names of all log groups of the stack, by its template."""
    pages = stack.client("cloudformation").get_paginator("list_stack_resources")
    return [
        one["PhysicalResourceId"]
        for page in pages.paginate(StackName=stack.name)
        for one in page["StackResourceSummaries"]
        if one["ResourceType"] == "AWS::Logs::LogGroup"
    ]


def written_by(stack: Stack, execution: str) -> Iterator[tuple[str, Json]]:
    """The charge function's own lines about an execution, with the version that wrote them."""
    for lines in streams(stack, f"/aws/lambda/{stack.name}-charge"):
        version = ""
        for line in lines:
            if line.startswith("START "):
                version = line.rpartition("Version: ")[2].strip()
            elif line.startswith("{") and (one := json.loads(line)).get("execution") == execution:
                yield version, one
