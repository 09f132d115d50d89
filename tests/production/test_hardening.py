"""What is on in production, and what each optional protection turns on."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from local.definition import load_template
from local.paths import PROJECT
from local.transform import resolved, transformed
from tests.template.resources import listed, of_type

Json = dict[str, Any]

#: As prod of samconfig.toml has it, with everything that can be on.
HARDENED = resolved(Protection="on", CustomerManagedKey="on")
PLAIN = resolved(Protection="off")
KEY = {"Fn::GetAtt": ["DataKey", "Arn"]}

#: Where each kind of resource names its key.
KEY_PROPERTY = {
    "AWS::SQS::Queue": "KmsMasterKeyId",
    "AWS::SNS::Topic": "KmsMasterKeyId",
    "AWS::Logs::LogGroup": "KmsKeyId",
    "AWS::SecretsManager::Secret": "KmsKeyId",
}
ENCRYPTED = [
    (name, property_)
    for kind, property_ in KEY_PROPERTY.items()
    for name in of_type(HARDENED, kind)
]


# ---------------------------------------------------------------- the key of one's own


@pytest.mark.parametrize(("name", "property_"), ENCRYPTED)
def test_the_key_encrypts(name: str, property_: str) -> None:
    assert HARDENED["Resources"][name]["Properties"][property_] == KEY
    assert property_ not in PLAIN["Resources"][name].get("Properties", {})


@pytest.mark.parametrize("name", of_type(HARDENED, "AWS::DynamoDB::Table"))
def test_the_key_encrypts_a_table(name: str) -> None:
    specification = HARDENED["Resources"][name]["Properties"]["SSESpecification"]

    assert specification == {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": KEY}


@pytest.mark.parametrize("name", of_type(HARDENED, "AWS::S3::Bucket"))
def test_the_key_encrypts_a_bucket(name: str) -> None:
    encryption = HARDENED["Resources"][name]["Properties"]["BucketEncryption"]
    (rule,) = encryption["ServerSideEncryptionConfiguration"]

    assert rule == {
        "BucketKeyEnabled": True,
        "ServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY},
    }


def test_the_key_rotates_and_outlives_the_stack() -> None:
    key = HARDENED["Resources"]["DataKey"]

    assert key["Properties"]["EnableKeyRotation"] is True
    assert key["DeletionPolicy"] == key["UpdateReplacePolicy"] == "Retain"
    assert "DataKey" not in PLAIN["Resources"]


def test_the_key_admits_the_senders_that_have_no_role_and_holds_them_to_this_account() -> None:
    (statement,) = (
        one
        for one in HARDENED["Resources"]["DataKey"]["Properties"]["KeyPolicy"]["Statement"]
        if one["Sid"] == "SendersWithoutARole"
    )

    assert set(statement["Principal"]["Service"]) == {
        "events.amazonaws.com",
        "cloudwatch.amazonaws.com",
        "sns.amazonaws.com",
    }
    assert statement["Condition"] == {
        "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    }


def test_everybody_is_let_to_the_key_by_this_account_and_its_services_only() -> None:
    for statement in HARDENED["Resources"]["DataKey"]["Properties"]["KeyPolicy"]["Statement"]:
        if statement["Principal"] == {"AWS": "*"}:
            condition = statement["Condition"]["StringEquals"]
            assert condition["kms:CallerAccount"] == {"Ref": "AWS::AccountId"}
            assert len(condition["kms:ViaService"]) == 5
            break
    else:
        pytest.fail("no statement lets the services' users in")


# ---------------------------------------------------------------- protection of the ledger


@pytest.mark.parametrize(("template", "protected"), [(HARDENED, True), (PLAIN, False)])
def test_protection_is_a_switch(template: Json, protected: bool) -> None:
    ledger = template["Resources"]["LedgerTable"]["Properties"]

    assert ledger["DeletionProtectionEnabled"] is protected
    assert ledger["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": protected}


# ---------------------------------------------------------------- who may call, who is seen


def test_the_public_url_has_both_permissions_and_opens_the_url_alone() -> None:
    """Since October 2025 a public Function URL needs both.

    Source: https://docs.aws.amazon.com/lambda/latest/dg/urls-auth.html
    """
    open_to_all = [
        {key: value for key, value in one.items() if key not in {"FunctionName", "Principal"}}
        for one in of_type(PLAIN, "AWS::Lambda::Permission").values()
        if one["Principal"] == "*"
    ]

    assert sorted(open_to_all, key=lambda one: str(one["Action"])) == [
        {"Action": "lambda:InvokeFunction", "InvokedViaFunctionUrl": True},
        {"Action": "lambda:InvokeFunctionUrl", "FunctionUrlAuthType": "NONE"},
    ]


def test_with_a_real_provider_there_is_nothing_public() -> None:
    real = resolved(
        ProviderUrl="https://api.example.com",
        ProviderSecretArn="arn:aws:secretsmanager:us-east-1:123456789012:secret:key-AbCdEf",
    )

    principals = [one["Principal"] for one in of_type(real, "AWS::Lambda::Permission").values()]
    assert principals == ["events.amazonaws.com"]
    assert not of_type(real, "AWS::Lambda::Url")


@pytest.mark.parametrize("name", of_type(PLAIN, "AWS::Lambda::Function"))
def test_a_function_is_traced_and_may_write_its_own_log_only(name: str) -> None:
    function = PLAIN["Resources"][name]["Properties"]
    role = PLAIN["Resources"][function["Role"]["Fn::GetAtt"][0]]["Properties"]
    statements = [
        one for policy in role["Policies"] for one in policy["PolicyDocument"]["Statement"]
    ]
    by_sid = {one["Sid"]: one for one in statements}

    assert function["TracingConfig"] == {"Mode": "Active"}
    assert set(by_sid["Tracing"]["Action"]) == {
        "xray:PutTelemetryRecords",
        "xray:PutTraceSegments",
    }
    assert by_sid["Log"]["Resource"] == {
        "Fn::GetAtt": [function["LoggingConfig"]["LogGroup"]["Ref"], "Arn"]
    }
    logs = [one for one in statements if any("logs:" in what for what in listed(one["Action"]))]
    assert logs == [by_sid["Log"]]


@pytest.mark.parametrize(
    ("chosen", "level", "data"),
    [
        ({}, "ALL", False),
        ({"ExecutionLogLevel": "ERROR", "ExecutionLogData": "on"}, "ERROR", True),
    ],
)
def test_the_log_of_executions_has_payloads_only_when_asked(
    chosen: dict[str, str], level: str, data: bool
) -> None:
    machine = resolved(**chosen)["Resources"]["ChargeOrder"]["Properties"]

    assert machine["LoggingConfiguration"]["Level"] == level
    assert machine["LoggingConfiguration"]["IncludeExecutionData"] is data
    assert machine["TracingConfiguration"] == {"Enabled": True}


# ---------------------------------------------------------------- the pinned version

DESCRIPTION = transformed()["Resources"][
    next(name for name in transformed()["Resources"] if name.startswith("ChargeFunctionVersion"))
]["Properties"]["Description"]

#: Conditions that the function's properties depend on, and the parameters behind them.
BEHIND = {"MockProvider": {"ProviderUrl"}, "Faults": {"FaultInjection"}}


def parameters_in(node: Any) -> set[str]:
    """Every parameter that a part of the template depends on."""
    known = set(load_template()["Parameters"])
    match node:
        case {"Ref": str(name)}:
            return {name} & known
        case {"Fn::If": [str(condition), *branches]}:
            return BEHIND[condition].union(*map(parameters_in, branches))
        case {"Fn::Sub": [str(text), dict(values)]}:
            named = set(re.findall(r"\$\{(\w+)\}", text)) & known
            return named.union(*map(parameters_in, values.values()))
        case dict():
            return set().union(*map(parameters_in, node.values()))
        case list():
            return set().union(*map(parameters_in, node))
    return set()


def test_a_version_is_described_by_every_parameter_that_its_function_depends_on() -> None:
    """One too few: a changed parameter would reach no run. One too many: Lambda refuses a second
    version of an unchanged function."""
    function = transformed()["Resources"]["ChargeFunction"]["Properties"]

    assert parameters_in(DESCRIPTION) == parameters_in(function)


def test_the_longest_description_fits_into_a_version() -> None:
    """Lambda allows 256 characters."""
    parameters = load_template()["Parameters"]
    text, values = DESCRIPTION["Fn::Sub"]
    longest = {
        name: max(map(str, one.get("AllowedValues", [one.get("MaxValue", "")])), key=len)
        for name, one in parameters.items()
    } | {"LogSampleRate": "0.0001"}
    arn_without_name = len("arn:aws:secretsmanager:us-east-1:123456789012:secret:")
    provider = parameters["ProviderUrl"]["MaxLength"] + 1
    provider += parameters["ProviderSecretArn"]["MaxLength"] - arn_without_name
    filled = re.sub(r"\$\{(\w+)\}", lambda found: longest.get(found[1], ""), text)

    assert set(values) == {"Provider"}
    assert len(filled) + provider <= 256


# ---------------------------------------------------------------- the exceptions of the linters


def test_every_exception_of_checkov_has_its_reason() -> None:
    text = (PROJECT / ".checkov.yaml").read_text()
    silent = yaml.safe_load(text)["skip-check"]

    for check in silent:
        assert re.search(rf"  # .*\n(?:  # .*\n)*  - {check}\n", text), check


def test_every_exception_for_one_resource_has_its_reason() -> None:
    skipped = [
        one
        for resource in load_template()["Resources"].values()
        for one in resource.get("Metadata", {}).get("checkov", {}).get("skip", [])
    ]

    assert {one["id"] for one in skipped} == {"CKV_AWS_21", "CKV_AWS_28"}
    assert all(len(one["comment"]) > 20 for one in skipped)
