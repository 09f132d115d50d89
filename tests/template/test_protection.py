"""Whatever keeps data is encrypted, private and reached over TLS only."""

from __future__ import annotations

from typing import Any

import pytest

from local.transform import resolved
from tests.template.conftest import transformed_template
from tests.template.resources import of_type, statements

Json = dict[str, Any]
TEMPLATE = transformed_template()
DEPLOYED = resolved(FaultInjection="on")

BUCKETS = of_type(DEPLOYED, "AWS::S3::Bucket")
QUEUES = of_type(DEPLOYED, "AWS::SQS::Queue")
TABLES = of_type(DEPLOYED, "AWS::DynamoDB::Table")
TOPICS = of_type(DEPLOYED, "AWS::SNS::Topic")

_POLICIES = {
    "AWS::S3::BucketPolicy": "Bucket",
    "AWS::SQS::QueuePolicy": "Queues",
    "AWS::SNS::TopicPolicy": "Topics",
}


def policy_statements(name: str) -> list[Json]:
    """The statements of the resource policies on a resource."""
    found = []
    for kind, field in _POLICIES.items():
        for policy in of_type(TEMPLATE, kind).values():
            on = policy[field]
            if {"Ref": name} in (on if isinstance(on, list) else [on]):
                found += statements(policy)
    return found


def test_the_template_keeps_data_in_every_kind_of_place() -> None:
    """Else the tests below would look at nothing."""
    assert {"OrderBucket"} <= set(BUCKETS)
    assert {"FailureQueue", "UndeliveredQueue"} <= set(QUEUES)
    assert {"LedgerTable", "ProviderTable", "FaultTable"} <= set(TABLES)


@pytest.mark.parametrize("name", BUCKETS)
def test_a_bucket_is_encrypted(name: str) -> None:
    (rule,) = BUCKETS[name]["BucketEncryption"]["ServerSideEncryptionConfiguration"]

    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] in ("AES256", "aws:kms")


@pytest.mark.parametrize("name", BUCKETS)
def test_a_bucket_is_private(name: str) -> None:
    assert BUCKETS[name]["PublicAccessBlockConfiguration"] == {
        "BlockPublicAcls": True,
        "BlockPublicPolicy": True,
        "IgnorePublicAcls": True,
        "RestrictPublicBuckets": True,
    }
    assert BUCKETS[name]["OwnershipControls"] == {
        "Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]
    }


@pytest.mark.parametrize("name", QUEUES)
def test_a_queue_is_encrypted_with_the_queues_own_key(name: str) -> None:
    """The AWS-managed KMS key would shut out EventBridge and CloudWatch."""
    assert QUEUES[name]["SqsManagedSseEnabled"] is True
    assert "KmsMasterKeyId" not in QUEUES[name]


@pytest.mark.parametrize("name", QUEUES)
def test_a_queue_keeps_its_messages_for_as_long_as_there_is(name: str) -> None:
    assert QUEUES[name]["MessageRetentionPeriod"] == 14 * 86_400


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_encrypted(name: str) -> None:
    assert TABLES[name]["SSESpecification"] == {"SSEEnabled": True, "SSEType": "KMS"}


@pytest.mark.parametrize("name", [*BUCKETS, *QUEUES, *TOPICS])
def test_nobody_gets_in_without_tls(name: str) -> None:
    (deny,) = (one for one in policy_statements(name) if one["Effect"] == "Deny")

    assert deny["Principal"] == "*"
    assert deny["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


@pytest.mark.parametrize("name", [*BUCKETS, *QUEUES, *TOPICS])
def test_a_service_that_may_send_is_held_to_its_source(name: str) -> None:
    for statement in policy_statements(name):
        if statement["Effect"] == "Allow":
            assert set(statement["Principal"]) == {"Service"}
            keys = {key for condition in statement["Condition"].values() for key in condition}
            assert keys <= {"aws:SourceArn", "aws:SourceAccount"}
            assert "aws:SourceArn" in keys


@pytest.mark.parametrize("name", BUCKETS)
def test_nobody_is_let_into_a_bucket_by_its_policy(name: str) -> None:
    assert {statement["Effect"] for statement in policy_statements(name)} == {"Deny"}


def test_undelivered_events_come_from_the_two_rules_only() -> None:
    (allow,) = (one for one in policy_statements("UndeliveredQueue") if one["Effect"] == "Allow")

    assert allow["Principal"] == {"Service": "events.amazonaws.com"}
    assert allow["Condition"] == {
        "ArnEquals": {
            "aws:SourceArn": [
                {"Fn::GetAtt": ["OrderRule", "Arn"]},
                {"Fn::GetAtt": ["BackstopRule", "Arn"]},
            ]
        }
    }


def test_nobody_but_roles_may_send_to_the_failure_queue() -> None:
    assert all(one["Effect"] == "Deny" for one in policy_statements("FailureQueue"))


@pytest.mark.parametrize("name", ["OrderBucket", "LedgerTable", "FailureQueue"])
def test_what_cannot_be_made_again_outlives_the_stack(name: str) -> None:
    resource = TEMPLATE["Resources"][name]

    assert resource["DeletionPolicy"] == resource["UpdateReplacePolicy"] == "Retain"


def test_orders_are_versioned() -> None:
    assert BUCKETS["OrderBucket"]["VersioningConfiguration"] == {"Status": "Enabled"}


def test_only_what_was_charged_ever_expires() -> None:
    assert TABLES["LedgerTable"]["TimeToLiveSpecification"] == {
        "AttributeName": "expires_at",
        "Enabled": True,
    }


@pytest.mark.parametrize("name", of_type(TEMPLATE, "AWS::Logs::LogGroup"))
def test_logs_end_some_day(name: str) -> None:
    group = TEMPLATE["Resources"][name]["Properties"]

    assert group["RetentionInDays"] == {"Ref": "LogRetentionDays"}


@pytest.mark.parametrize("name", of_type(TEMPLATE, "AWS::Lambda::Function"))
def test_a_function_writes_into_a_log_group_of_the_stack(name: str) -> None:
    function = TEMPLATE["Resources"][name]["Properties"]
    group = function["LoggingConfig"]["LogGroup"]["Ref"]

    assert group in of_type(TEMPLATE, "AWS::Logs::LogGroup")


def test_every_parameter_says_what_it_is_for() -> None:
    for name, parameter in TEMPLATE["Parameters"].items():
        assert parameter.get("Description", "").endswith("."), name


def test_every_parameter_is_shown_in_a_group() -> None:
    groups = TEMPLATE["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    shown = [name for group in groups for name in group["Parameters"]]

    assert sorted(shown) == sorted(TEMPLATE["Parameters"])
