"""Mends of Amazon EventBridge and EventBridge Scheduler."""

import json
from typing import Any

from local.emulator import upstream
from local.emulator.mends import permissions

_ACTIONS = {
    "lambda": "lambda:InvokeFunction",
    "sqs": "sqs:SendMessage",
    "states": "states:StartExecution",
}


def dead_letter_what_cannot_be_delivered() -> None:
    """An event whose target does not exist, or may not be reached, goes to the dead-letter queue.

    Rule: EventBridge does not retry a missing target or missing permission but sends the event
    to the target's DLQ, with the attributes RULE_ARN, TARGET_ARN, ERROR_CODE and ERROR_MESSAGE.
    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html
    Roles and policies count when the emulator runs with `--auth`.
    """
    eventbridge = upstream.module("services.eventbridge")
    sqs = upstream.module("services.sqs")
    lambda_svc = upstream.module("services.lambda_svc")
    stepfunctions = upstream.module("services.stepfunctions")

    def obstacle(target: dict[str, Any], rule_arn: str) -> tuple[str, str] | None:
        """Why the target cannot be reached, as (ERROR_CODE, ERROR_MESSAGE); None if it can."""
        arn = target["Arn"]
        service = arn.split(":")[2]
        found = {
            "lambda": lambda: lambda_svc._get_func_record_for_ref(arn)[0],
            "sqs": lambda: sqs._queue_by_arn(arn),
            "states": lambda: stepfunctions._resolve_state_machine_arn(arn),
        }.get(service, lambda: True)()
        if not found:
            return "NO_RESOURCE", f"The target {arn} does not exist."
        if service in _ACTIONS and permissions.is_checked() and not may(service, target, rule_arn):
            return "NO_PERMISSIONS", f"{rule_arn} is not authorized to {_ACTIONS[service]} on {arn}"
        return None

    def may(service: str, target: dict[str, Any], rule_arn: str) -> bool:
        """By the target's role, where it has one, else by the policy of the resource."""
        arn, action = target["Arn"], _ACTIONS[service]
        if role := target.get("RoleArn"):
            return permissions.role_allows(role, action, arn)
        if service == "sqs":
            return may_send(arn, rule_arn)
        policy, _ = lambda_svc.function_policy_for_arn(arn) or (None, None)
        return permissions.policy_allows(policy, "events.amazonaws.com", action, arn, rule_arn)

    def may_send(queue_arn: str, rule_arn: str) -> bool:
        account = eventbridge.get_account_id()
        return bool(sqs.queue_policy_allows(queue_arn, "events.amazonaws.com", rule_arn, account))

    def invoke(original: Any, target: Any, event: Any, rule: Any, view: Any = None) -> None:
        rule_arn = rule.get("Arn", "")
        problem = obstacle(target, rule_arn)
        if problem is None:
            original(target, event, rule, view)
            return
        queue_arn = (target.get("DeadLetterConfig") or {}).get("Arn", "")
        queue = sqs._queue_by_arn(queue_arn)
        if queue is None or not may_send(queue_arn, rule_arn):
            eventbridge.logger.warning("EventBridge: event lost, no dead-letter queue: %s", problem)
            return
        attributes = {
            "RULE_ARN": rule_arn,
            "TARGET_ARN": target["Arn"],
            "ERROR_CODE": problem[0],
            "ERROR_MESSAGE": problem[1],
        }
        view = view or eventbridge._pattern_event_view(event)
        sqs._act_send_message(
            {
                "MessageBody": json.dumps(view.event_with_detail()),
                "MessageAttributes": {
                    name: {"DataType": "String", "StringValue": value}
                    for name, value in attributes.items()
                },
            },
            queue["url"],
        )

    upstream.wrap(eventbridge, "_invoke_target", invoke)


def retry_functions() -> None:
    """A rule or schedule invokes a function asynchronously: two retries, then its destination.

    Rule: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
    """
    eventbridge = upstream.module("services.eventbridge")
    lambda_svc = upstream.module("services.lambda_svc")

    def dispatch(original: Any, arn: str, payload: str) -> None:
        function, config, _ = lambda_svc._get_func_record_for_ref(arn)
        if not function or not config:
            original(arn, payload)
            return
        record = lambda_svc._execution_record_for_config(function, config)
        lambda_svc.invoke_async_with_retry(record, json.loads(payload))

    upstream.wrap(eventbridge, "_dispatch_to_lambda", dispatch)
