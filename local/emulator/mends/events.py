"""Mends of Amazon EventBridge and EventBridge Scheduler."""

import json
from typing import Any

from local.emulator import upstream


def dead_letter_what_cannot_be_delivered() -> None:
    """An event whose target does not exist, or may not be reached, goes to the dead-letter queue.

    Rule: EventBridge does not retry a missing target or missing permission but sends the event
    to the target's DLQ, with the attributes RULE_ARN, TARGET_ARN, ERROR_CODE and ERROR_MESSAGE.
    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html
    Queue policies count when the emulator runs with `--auth`.
    """
    eventbridge = upstream.module("services.eventbridge")
    sqs = upstream.module("services.sqs")
    lambda_svc = upstream.module("services.lambda_svc")
    stepfunctions = upstream.module("services.stepfunctions")

    def obstacle(arn: str, rule_arn: str) -> tuple[str, str] | None:
        """Why the target cannot be reached, as (ERROR_CODE, ERROR_MESSAGE); None if it can."""
        service = arn.split(":")[2]
        found = {
            "lambda": lambda: lambda_svc._get_func_record_for_ref(arn)[0],
            "sqs": lambda: sqs._queue_by_arn(arn),
            "states": lambda: stepfunctions._resolve_state_machine_arn(arn),
        }.get(service, lambda: True)()
        if not found:
            return "NO_RESOURCE", f"The target {arn} does not exist."
        if service == "sqs" and not may_send(arn, rule_arn):
            return "NO_PERMISSIONS", f"The policy of {arn} does not allow {rule_arn} to send."
        return None

    def may_send(queue_arn: str, rule_arn: str) -> bool:
        account = eventbridge.get_account_id()
        return bool(sqs.queue_policy_allows(queue_arn, "events.amazonaws.com", rule_arn, account))

    def invoke(original: Any, target: Any, event: Any, rule: Any, view: Any = None) -> None:
        rule_arn = rule.get("Arn", "")
        problem = obstacle(target["Arn"], rule_arn)
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
