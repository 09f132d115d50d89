"""`make delete`: take a stack from AWS, say what stays, and empty buckets only when told to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError, WaiterError

from local.errors import CommandError
from local.stack import Stack

Json = dict[str, Any]

#: S3 takes this many keys in one DeleteObjects.
KEYS_AT_ONCE = 1000

_BUCKET = "AWS::S3::Bucket"
#: Marked to be kept, but only until their function goes.
_GOES_WITH_ITS_FUNCTION = "AWS::Lambda::Version"


@dataclass(frozen=True)
class Kept:
    """A resource that outlives the stack, by its logical name, type and physical id."""

    name: str
    type: str
    id: str

    def summary(self) -> Json:
        return {"name": self.name, "type": self.type, "id": self.id}


@dataclass(frozen=True)
class Unfinished:
    """What nobody would see any more: open records, and messages in the failure queue."""

    open_records: int
    queued: int


def kept(stack: Stack) -> list[Kept]:
    """What the deployed template says is to be retained, as far as it exists."""
    cloudformation = stack.client("cloudformation")
    template = cloudformation.get_template(StackName=stack.name, TemplateStage="Processed")
    resources = template["TemplateBody"]["Resources"]
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack.name)
    return [
        Kept(name, one["ResourceType"], one["PhysicalResourceId"])
        for page in pages
        for one in page["StackResourceSummaries"]
        if resources.get(name := one["LogicalResourceId"], {}).get("DeletionPolicy") == "Retain"
        and one["ResourceType"] != _GOES_WITH_ITS_FUNCTION
    ]


def unfinished(stack: Stack) -> Unfinished:
    """How many orders are not settled. SQS's number is approximate."""
    scan = stack.client("dynamodb").get_paginator("scan")
    pages = scan.paginate(TableName=stack.table, IndexName="open-records", Select="COUNT")
    attributes = stack.client("sqs").get_queue_attributes(
        QueueUrl=stack.failure_queue_url, AttributeNames=["ApproximateNumberOfMessages"]
    )["Attributes"]
    return Unfinished(
        open_records=sum(page["Count"] for page in pages),
        queued=int(attributes["ApproximateNumberOfMessages"]),
    )


def delete_stack(stack: Stack) -> None:
    """Delete the stack and wait until it is gone. Raises CommandError."""
    cloudformation = stack.client("cloudformation")
    try:
        cloudformation.delete_stack(StackName=stack.name)
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack.name)
    except (ClientError, WaiterError) as error:
        raise CommandError(f"{stack.name} was not deleted: {error}") from error


def remove_bucket(stack: Stack, bucket: str) -> int:
    """Delete every version and delete marker, then the bucket. Gives how many there were.

    Raises CommandError when S3 refuses one of them, or when something lands meanwhile.
    """
    s3 = stack.client("s3")
    removed = 0
    pages = s3.get_paginator("list_object_versions").paginate(
        Bucket=bucket, PaginationConfig={"PageSize": KEYS_AT_ONCE}
    )
    for page in pages:
        found = [
            {"Key": one["Key"], "VersionId": one["VersionId"]}
            for one in (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))
        ]
        if not found:
            continue
        answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": found, "Quiet": True})
        if errors := answer.get("Errors"):
            first = errors[0]
            raise CommandError(f"{bucket}: {first['Key']} was not deleted: {first['Message']}")
        removed += len(found)
    try:
        s3.delete_bucket(Bucket=bucket)
    except ClientError as error:
        raise CommandError(f"{bucket} was emptied and not deleted: {error}") from error
    return removed


def buckets(resources: list[Kept]) -> list[Kept]:
    return [one for one in resources if one.type == _BUCKET]
