"""The deployed roles, asked by IAM's simulator: what the work needs, and nothing next to it."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any

import botocore.session
import pytest

from local.definition import load_definition
from local.stack import Stack
from tests.template.conftest import transformed_template
from tests.template.resources import listed, of_type, role_statements

pytestmark = pytest.mark.xdist_group("pipeline")

Json = dict[str, Any]

#: Where IAM knows no resource for an action, so that only "*" can be said.
#: Source: https://docs.aws.amazon.com/service-authorization/latest/reference/
ON_ANYTHING = {
    # Vended logs: https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html
    ("ChargeOrderRole", "logs:CreateLogDelivery"),
    ("ChargeOrderRole", "logs:DeleteLogDelivery"),
    ("ChargeOrderRole", "logs:DescribeLogGroups"),
    ("ChargeOrderRole", "logs:DescribeResourcePolicies"),
    ("ChargeOrderRole", "logs:GetLogDelivery"),
    ("ChargeOrderRole", "logs:ListLogDeliveries"),
    ("ChargeOrderRole", "logs:PutResourcePolicy"),
    ("ChargeOrderRole", "logs:UpdateLogDelivery"),
    # Traces: https://docs.aws.amazon.com/step-functions/latest/dg/concepts-xray-tracing.html
    ("ChargeOrderRole", "xray:GetSamplingRules"),
    ("ChargeOrderRole", "xray:GetSamplingTargets"),
    ("ChargeOrderRole", "xray:PutTelemetryRecords"),
    ("ChargeOrderRole", "xray:PutTraceSegments"),
    *(
        (f"{function}FunctionRole", action)
        for function in ("Charge", "Backstop", "Reconciler", "Provider")
        for action in ("xray:PutTelemetryRecords", "xray:PutTraceSegments")
    ),
}


@dataclass(frozen=True)
class Deployed:
    """The deployed stack's roles and resources, by logical name."""

    stack: Stack

    @functools.cached_property
    def physical(self) -> dict[str, str]:
        resources = self.stack.client("cloudformation").describe_stack_resources(
            StackName=self.stack.name
        )["StackResources"]
        return {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in resources}

    def allows(self, role: str, resource: str, actions: list[str]) -> set[str]:
        """Those of the actions that the role's policies allow on the resource."""
        iam = self.stack.client("iam")
        arn = iam.get_role(RoleName=self.physical[role])["Role"]["Arn"]
        results = iam.simulate_principal_policy(
            PolicySourceArn=arn, ActionNames=actions, ResourceArns=[resource]
        )["EvaluationResults"]
        assert len(results) == len(actions)
        return {one["EvalActionName"] for one in results if one["EvalDecision"] == "allowed"}

    @functools.cached_property
    def _definition(self) -> Any:
        description = self.stack.client("stepfunctions").describe_state_machine(
            stateMachineArn=self.stack.state_machine_arn
        )
        return json.loads(description["definition"])["States"]

    def target(self, state: str) -> str:
        """The ARN of what a Task state calls upon."""
        parameters = self._definition[state]["Parameters"]
        if "FunctionName" in parameters:
            return str(parameters["FunctionName"])
        if "QueueUrl" in parameters:
            answer = self.stack.client("sqs").get_queue_attributes(
                QueueUrl=parameters["QueueUrl"], AttributeNames=["QueueArn"]
            )
            return str(answer["Attributes"]["QueueArn"])
        answer = self.stack.client("dynamodb").describe_table(TableName=parameters["TableName"])
        return str(answer["Table"]["TableArn"])


@pytest.fixture(scope="module")
def deployed(stack: Stack) -> Deployed:
    return Deployed(stack)


#: Task states with the IAM action that each needs.
CALLS = {
    name: state["Resource"].removeprefix("arn:aws:states:::")
    for name, state in load_definition()["States"].items()
    if state["Type"] == "Task"
}


def iam_action(integration: str) -> str:
    """`dynamodb:putItem` is `dynamodb:PutItem` to IAM, `lambda:invoke` `lambda:InvokeFunction`."""
    service, action = integration.split(":")
    named = {"invoke": "InvokeFunction"}.get(action, action[0].upper() + action[1:])
    return f"{service}:{named}"


def actions_of(service: str) -> list[str]:
    """Every action of a service, as far as its API tells."""
    model = botocore.session.get_session().get_service_model(service)
    prefix = {"stepfunctions": "states"}.get(service, service)
    names = {"Invoke": "InvokeFunction"} if service == "lambda" else {}
    return [f"{prefix}:{names.get(name, name)}" for name in model.operation_names]


@pytest.mark.parametrize("state", CALLS)
def test_the_state_machine_may_make_the_call_of_each_state(deployed: Deployed, state: str) -> None:
    action = iam_action(CALLS[state])

    assert deployed.allows("ChargeOrderRole", deployed.target(state), [action]) == {action}


@pytest.mark.parametrize("service", ["dynamodb", "lambda", "sqs"])
def test_the_state_machine_may_do_nothing_else_to_what_it_calls(
    deployed: Deployed, service: str
) -> None:
    states = [state for state, call in CALLS.items() if call.startswith(f"{service}:")]
    needed = {iam_action(CALLS[state]) for state in states}
    (target,) = {deployed.target(state) for state in states}

    assert deployed.allows("ChargeOrderRole", target, actions_of(service)) == needed


@pytest.mark.parametrize("state", CALLS)
def test_the_state_machine_may_call_nobody_else(deployed: Deployed, state: str) -> None:
    service, *_ = CALLS[state].split(":")
    target = deployed.target(state)
    neighbour = (
        target.replace(":function:", ":function:other-")
        if service == "lambda"
        else f"{target}-other"
    )

    assert deployed.allows("ChargeOrderRole", neighbour, actions_of(service)) == set()


def test_the_rule_may_start_the_state_machine_and_nothing_else(deployed: Deployed) -> None:
    machine = deployed.stack.state_machine_arn

    assert deployed.allows("OrderRuleRole", machine, actions_of("stepfunctions")) == {
        "states:StartExecution"
    }
    assert deployed.allows("OrderRuleRole", f"{machine}-other", ["states:StartExecution"]) == set()


def test_only_the_state_machine_writes_the_ledger(deployed: Deployed, template: Json) -> None:
    writes = ["PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"]
    actions = [f"dynamodb:{write}" for write in (*writes, "PartiQLInsert", "PartiQLUpdate")]
    ledger = deployed.target("Claim")

    writers = {
        role
        for role in of_type(template, "AWS::IAM::Role")
        if deployed.allows(role, ledger, actions)
    }

    assert writers == {"ChargeOrderRole"}


def test_only_those_who_talk_to_the_provider_read_its_key(
    deployed: Deployed, template: Json
) -> None:
    secret = deployed.stack.outputs["ProviderSecretArn"]

    readers = {
        role
        for role in of_type(template, "AWS::IAM::Role")
        if deployed.allows(role, secret, ["secretsmanager:GetSecretValue"])
    }

    assert readers == {"ChargeFunctionRole", "ReconcilerFunctionRole", "ProviderFunctionRole"}


# ---------------------------------------------------------------- every role, every resource

#: S3's actions are not named like its API.
S3_ACTIONS = [
    f"s3:{verb}{noun}"
    for verb in ("Get", "Put", "Delete")
    for noun in ("Object", "ObjectVersion", "ObjectTagging", "BucketPolicy", "BucketVersioning")
] + ["s3:ListBucket", "s3:ListBucketVersions", "s3:PutObjectAcl", "s3:RestoreObject"]

LOGGED = {"logs:CreateLogStream", "logs:PutLogEvents"}
READ_OBJECT = {"s3:GetObject", "s3:GetObjectVersion"}
KEY = {"secretsmanager:GetSecretValue"}

#: What each role may do, by what it does it to. Whatever is not said here is denied.
ALLOWED: dict[tuple[str, str], set[str]] = {
    ("OrderRuleRole", "state machine"): {"states:StartExecution"},
    ("ChargeOrderRole", "ledger"): {"dynamodb:PutItem", "dynamodb:GetItem", "dynamodb:UpdateItem"},
    ("ChargeOrderRole", "charge function's version"): {"lambda:InvokeFunction"},
    ("ChargeOrderRole", "failure queue"): {"sqs:SendMessage"},
    ("ChargeFunctionRole", "order"): READ_OBJECT,
    # Without it S3 answers 403 for what is gone.
    ("ChargeFunctionRole", "order bucket"): {"s3:ListBucket"},
    ("ChargeFunctionRole", "provider's key"): KEY,
    ("ChargeFunctionRole", "faults"): {"dynamodb:UpdateItem"},
    ("ChargeFunctionRole", "charge logs"): LOGGED,
    ("BackstopFunctionRole", "failure queue"): {"sqs:SendMessage"},
    ("BackstopFunctionRole", "undelivered queue"): {"sqs:SendMessage"},
    ("BackstopFunctionRole", "execution"): {"states:GetExecutionHistory"},
    ("BackstopFunctionRole", "backstop logs"): LOGGED,
    ("ReconcilerFunctionRole", "order"): READ_OBJECT,
    ("ReconcilerFunctionRole", "object under orders/"): READ_OBJECT,
    ("ReconcilerFunctionRole", "order bucket"): {"s3:ListBucket", "s3:ListBucketVersions"},
    ("ReconcilerFunctionRole", "ledger"): {"dynamodb:BatchGetItem", "dynamodb:DescribeTable"},
    ("ReconcilerFunctionRole", "index open-records"): {"dynamodb:Scan"},
    ("ReconcilerFunctionRole", "index order-id"): {"dynamodb:Scan", "dynamodb:Query"},
    ("ReconcilerFunctionRole", "state machine"): {"states:StartExecution"},
    ("ReconcilerFunctionRole", "execution"): {"states:DescribeExecution"},
    ("ReconcilerFunctionRole", "provider's key"): KEY,
    ("ReconcilerFunctionRole", "report"): {"s3:PutObject"},
    ("ReconcilerFunctionRole", "position"): {"s3:PutObject", "s3:GetObject"},
    ("ReconcilerFunctionRole", "reports bucket"): {"s3:ListBucket"},
    ("ReconcilerFunctionRole", "missed passes"): {"sqs:SendMessage"},
    ("ReconcilerFunctionRole", "reconciler logs"): LOGGED,
    ("ReconcilerScheduleRole", "reconciler function"): {"lambda:InvokeFunction"},
    ("ReconcilerScheduleRole", "missed passes"): {"sqs:SendMessage"},
    ("ProviderFunctionRole", "provider's books"): {
        f"dynamodb:{verb}" for verb in ("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query")
    },
    ("ProviderFunctionRole", "provider's key"): KEY,
    ("ProviderFunctionRole", "provider logs"): LOGGED,
}
ROLES = list(of_type(transformed_template(), "AWS::IAM::Role"))

#: Resources by a short name: their logical name, or what CloudFormation does not name, and the
#: service whose actions are tried on them.
RESOURCES = {
    "order": ("s3", "{OrderBucket}/orders/a.json"),
    "object under orders/": ("s3", "{OrderBucket}/orders/a.png"),
    "other object": ("s3", "{OrderBucket}/other/a.json"),
    "order bucket": ("s3", "{OrderBucket}"),
    "report": ("s3", "{ReportsBucket}/reports/a.json"),
    "position": ("s3", "{ReportsBucket}/position.json"),
    "reports bucket": ("s3", "{ReportsBucket}"),
    "ledger": ("dynamodb", "table/{LedgerTable}"),
    "index open-records": ("dynamodb", "table/{LedgerTable}/index/open-records"),
    "index order-id": ("dynamodb", "table/{LedgerTable}/index/order-id"),
    "faults": ("dynamodb", "table/{FaultTable}"),
    "provider's books": ("dynamodb", "table/{ProviderTable}"),
    "failure queue": ("sqs", "{FailureQueue}"),
    "undelivered queue": ("sqs", "{UndeliveredQueue}"),
    "missed passes": ("sqs", "{MissedPassQueue}"),
    "provider's key": ("secretsmanager", "{ProviderKey}"),
    "state machine": ("stepfunctions", "{ChargeOrder}"),
    "execution": ("stepfunctions", "{ChargeOrder}:a"),
    "charge function's version": ("lambda", "function:{ChargeFunction}:1"),
    "charge function's latest": ("lambda", "function:{ChargeFunction}"),
    "reconciler function": ("lambda", "function:{ReconcilerFunction}"),
    "charge logs": ("logs", "log-group:{ChargeLogs}:log-stream:a"),
    "backstop logs": ("logs", "log-group:{BackstopLogs}:log-stream:a"),
    "reconciler logs": ("logs", "log-group:{ReconcilerLogs}:log-stream:a"),
    "provider logs": ("logs", "log-group:{ProviderLogs}:log-stream:a"),
}


def arn(deployed: Deployed, name: str) -> str:
    """The ARN of one of `RESOURCES`."""
    service, pattern = RESOURCES[name]
    account = deployed.stack.state_machine_arn.split(":")[4]
    physical = {
        # Of a queue CloudFormation gives the URL, of others the name, of some the whole ARN.
        logical: given.rpartition("/")[2] if "://" in given else given
        for logical, given in deployed.physical.items()
    }
    named = pattern.format_map(physical)
    if name == "execution":
        return named.replace(":stateMachine:", ":execution:")
    if named.startswith("arn:"):
        return named
    where = "" if service == "s3" else deployed.stack.region
    owner = "" if service == "s3" else account
    return f"arn:aws:{service}:{where}:{owner}:{named}"


@pytest.mark.parametrize("resource", RESOURCES)
@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_what_its_work_needs_and_nothing_else(
    deployed: Deployed, role: str, resource: str
) -> None:
    service, _ = RESOURCES[resource]
    actions = S3_ACTIONS if service == "s3" else actions_of(service)
    # What is allowed on anything is held to a list of its own.
    actions = [action for action in actions if (role, action) not in ON_ANYTHING]

    allowed = deployed.allows(role, arn(deployed, resource), actions)

    assert allowed == ALLOWED.get((role, resource), set())


def test_every_allowed_action_is_about_a_role_and_a_resource_that_there_are() -> None:
    assert {role for role, _ in ALLOWED} <= set(ROLES)
    assert {resource for _, resource in ALLOWED} <= set(RESOURCES)


# ---------------------------------------------------------------- without a deployment


def test_what_is_allowed_on_anything_can_be_allowed_on_nothing_less(template: Json) -> None:
    found = {
        (role, action)
        for role, statement in role_statements(template)
        if "*" in listed(statement["Resource"])
        for action in listed(statement["Action"])
    }

    assert found == ON_ANYTHING


def test_no_role_allows_a_whole_service(template: Json) -> None:
    for role, statement in role_statements(template):
        assert not any("*" in action for action in listed(statement["Action"])), role


def test_roles_have_no_managed_policies(template: Json) -> None:
    """Those that SAM attaches by itself allow a function to write into every log group."""
    for role in of_type(template, "AWS::IAM::Role").values():
        assert "ManagedPolicyArns" not in role


@pytest.mark.parametrize("name", ["ChargeOrderRole", "OrderRuleRole"])
def test_a_role_of_a_service_is_assumed_for_this_account_only(template: Json, name: str) -> None:
    role = of_type(template, "AWS::IAM::Role")[name]
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]

    assert statement["Condition"] == {
        "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    }
