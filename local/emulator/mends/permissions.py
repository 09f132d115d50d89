"""Mends of AWS Identity and Access Management; they matter when the emulator runs with `--auth`.

MiniStack then checks signatures, users and the execution roles of functions. What a state machine
or a rule may do, it does not ask.
"""

import contextvars
from typing import Any

from local.emulator import upstream
from local.emulator.mends import running

_DENIED = {
    "dynamodb": "DynamoDB.AmazonDynamoDBException",
    "lambda": "Lambda.AWSLambdaException",
    "sqs": "SQS.AmazonSQSException",
}


def is_checked() -> bool:
    """Whether the emulator runs with `--auth`."""
    return bool(upstream.module("app").AUTH)


def role_allows(role_arn: str, action: str, resource: str) -> bool:
    """Whether the policies of a role allow `action`, such as `sqs:SendMessage`, on an ARN."""
    evaluator = upstream.module("core.iam_evaluator")
    account = role_arn.split(":")[4]
    policies = evaluator._gather_role_policies(role_arn.rpartition("/")[2], account)
    return bool(
        evaluator.evaluate(_request(role_arn, action, resource), policies).decision == "Allow"
    )


def policy_allows(policy: Any, service: str, action: str, resource: str, source_arn: str) -> bool:
    """Whether a resource's policy lets an AWS service act on behalf of `source_arn`."""
    evaluator = upstream.module("core.iam_evaluator")
    request = _request("*", action, resource)
    request.service_context["aws:sourcearn"] = source_arn
    result = evaluator.evaluate_resource_policy(policy, request, service=service)
    return bool(result.decision == "Allow")


def _request(principal: str, action: str, resource: str) -> Any:
    responses = upstream.module("core.responses")
    return upstream.module("core.iam_evaluator").EvalContext(
        principal_arn=principal,
        principal_type="AssumedRole",
        principal_account=responses.get_account_id(),
        action=action,
        resource_arn=resource,
        region=responses.get_region(),
    )


def ask_the_machines_role() -> None:
    """A state machine may call what its role allows, and nothing else.

    Rule: https://docs.aws.amazon.com/step-functions/latest/dg/procedure-create-iam-role.html; a
    refusal is the service's general exception, whose cause names the action.
    """
    if not is_checked():
        return
    stepfunctions = upstream.module("services.stepfunctions")
    running.track()

    def invoke(original: Any, resource: str, given: Any) -> Any:
        service, _, call = resource.rpartition(":::")[2].partition(":")
        machine = running.context().get("StateMachine", {}).get("Id")
        if service in _DENIED and machine is not None:
            role = stepfunctions._state_machines[machine]["roleArn"]
            action = "InvokeFunction" if service == "lambda" else call[0].upper() + call[1:]
            target = _target(service, given)
            if not role_allows(role, f"{service}:{action}", target):
                raise stepfunctions._ExecutionError(
                    _DENIED[service],
                    f"{role} is not authorized to perform: {service}:{action} on resource: "
                    f"{target} (Error Code: AccessDeniedException)",
                )
        return original(resource, given)

    upstream.wrap(stepfunctions, "_invoke_resource", invoke)


def _target(service: str, given: dict[str, Any]) -> str:
    """The ARN that an optimised integration acts upon."""
    responses = upstream.module("core.responses")
    if service == "sqs":
        kind, name = "", given["QueueUrl"].rpartition("/")[2]
    elif service == "lambda":
        kind, name = "function:", given["FunctionName"]
    else:
        kind, name = "table/", given["TableName"]
    if name.startswith("arn:"):
        return str(name)
    return f"arn:aws:{service}:{responses.get_region()}:{responses.get_account_id()}:{kind}{name}"


def take_the_loopback_for_tls() -> None:
    """Requests count as sent over TLS, since on AWS they are.

    Rule: `aws:SecureTransport` is true for what AWS's SDKs and services send. A bucket or queue
    policy that denies anything else would deny everything on the emulator's plain loopback.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html
    """
    evaluator = upstream.module("core.iam_evaluator")
    evaluator._request_origin = contextvars.ContextVar(
        "request_origin", default=("127.0.0.1", True)
    )

    def pin(original: Any, source_ip: str, _secure: bool) -> None:
        original(source_ip, True)

    upstream.wrap(upstream.module("app"), "pin_request_origin", pin)
