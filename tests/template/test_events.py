"""The rules as they are deployed, held against events in AWS's shape by EventBridge's matcher."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.s3_event import object_created
from local.stack import Stack
from tests.template.resources import of_type

pytestmark = pytest.mark.xdist_group("pipeline")

Json = dict[str, Any]
ORDER = "orders/a b+c/ü.json"


def matches(stack: Stack, logical_name: str, event: Json) -> bool:
    """Whether the deployed rule takes the event."""
    events = stack.client("events")
    resource = stack.client("cloudformation").describe_stack_resource(
        StackName=stack.name, LogicalResourceId=logical_name
    )["StackResourceDetail"]
    rule = events.describe_rule(Name=resource["PhysicalResourceId"].rpartition("/")[2])
    assert rule["State"] == "ENABLED"
    answer = events.test_event_pattern(EventPattern=rule["EventPattern"], Event=json.dumps(event))
    return bool(answer["Result"])


def upload(stack: Stack, key: str = ORDER, bucket: str | None = None) -> Json:
    return object_created(bucket=bucket or stack.bucket, key=key, version_id="v1", etag="e", size=9)


# ---------------------------------------------------------------- orders


def test_the_bucket_tells_eventbridge(template: Json) -> None:
    notifications = of_type(template, "AWS::S3::Bucket")["OrderBucket"]["NotificationConfiguration"]

    assert notifications == {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}


@pytest.mark.parametrize(
    "key",
    [
        ORDER,
        "orders/.json",
        "orders/2026/11/29/a.json",
        "orders/" + "k" * 1012 + ".json",
        "orders/orders/x.json.json",
    ],
)
def test_an_order_starts_an_execution(stack: Stack, key: str) -> None:
    assert matches(stack, "OrderRule", upload(stack, key))


@pytest.mark.parametrize(
    "key",
    [
        "other/x.json",
        "x.json",
        "Orders/x.json",
        "/orders/x.json",
        "a/orders/x.json",
        "orders-2026/x.json",
        "orders/photo.png",
        "orders/x.JSON",
        "orders/x.json.bak",
        "orders/x.json/",
        "orders/xjson",
        "orders/",
    ],
)
def test_another_name_starts_nothing(stack: Stack, key: str) -> None:
    assert not matches(stack, "OrderRule", upload(stack, key))


@pytest.mark.parametrize(
    "kind",
    [
        "Object Deleted",
        "Object Restore Initiated",
        "Object Restore Completed",
        "Object Restore Expired",
        "Object Tags Added",
        "Object Tags Deleted",
        "Object ACL Updated",
        "Object Storage Class Changed",
        "Object Access Tier Changed",
    ],
)
def test_another_kind_of_event_starts_nothing(stack: Stack, kind: str) -> None:
    assert not matches(stack, "OrderRule", upload(stack) | {"detail-type": kind})


def test_another_bucket_starts_nothing(stack: Stack) -> None:
    assert not matches(stack, "OrderRule", upload(stack, bucket="somebody-elses"))


def test_another_source_starts_nothing(stack: Stack) -> None:
    assert not matches(stack, "OrderRule", upload(stack) | {"source": "com.example"})


@pytest.mark.parametrize("rule", ["OrderRule", "BackstopRule"])
def test_what_cannot_be_delivered_is_retried_for_a_day_and_then_kept(
    template: Json, rule: str
) -> None:
    (target,) = of_type(template, "AWS::Events::Rule")[rule]["Targets"]

    assert target["RetryPolicy"] == {
        "MaximumEventAgeInSeconds": 86_400,
        "MaximumRetryAttempts": 185,
    }
    assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": ["UndeliveredQueue", "Arn"]}}


# ---------------------------------------------------------------- runs that no Catch saw


def ended(stack: Stack, status: str, error: str | None = None) -> Json:
    """Source: https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html"""
    machine = stack.state_machine_arn
    return {
        "version": "0",
        "id": "315c1398-40ff-a850-213b-158f73e60175",
        "detail-type": "Step Functions Execution Status Change",
        "source": "aws.states",
        "account": "123456789012",
        "time": "2026-11-29T12:00:00Z",
        "region": "us-east-1",
        "resources": [f"{machine.replace(':stateMachine:', ':execution:')}:run"],
        "detail": {
            "executionArn": f"{machine.replace(':stateMachine:', ':execution:')}:run",
            "stateMachineArn": machine,
            "name": "run",
            "status": status,
            "startDate": 1_551_225_271_984,
            "stopDate": None if status == "RUNNING" else 1_551_225_291_984,
            "input": "{}",
            "output": None,
        }
        | ({} if error is None else {"error": error, "cause": "so it is"}),
    }


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("TIMED_OUT", None),
        ("ABORTED", None),
        ("ABORTED", "Operator"),
        ("FAILED", "States.Runtime"),
        ("FAILED", "States.DataLimitExceeded"),
        ("FAILED", "States.IntrinsicFailure"),
        ("FAILED", "FailureQueueUnreachable"),
    ],
)
def test_the_backstop_sees_what_no_catch_can(stack: Stack, status: str, error: str | None) -> None:
    assert matches(stack, "BackstopRule", ended(stack, status, error))


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("RUNNING", None),
        ("SUCCEEDED", None),
        ("FAILED", "OrderRejected"),
        ("FAILED", "ProviderUnavailable"),
        ("FAILED", "States.Timeout"),
        ("FAILED", "DynamoDB.ProvisionedThroughputExceededException"),
    ],
)
def test_the_backstop_leaves_alone_what_queued_its_own_message(
    stack: Stack, status: str, error: str | None
) -> None:
    assert not matches(stack, "BackstopRule", ended(stack, status, error))


def test_the_backstop_leaves_other_state_machines_alone(stack: Stack) -> None:
    event = ended(stack, "TIMED_OUT")
    event["detail"]["stateMachineArn"] += "-other"

    assert not matches(stack, "BackstopRule", event)
