"""Mends of how AWS Step Functions calls other services."""

import json
import uuid
from typing import Any

from local.emulator import upstream
from local.emulator.mends import running

_OPTIMISED = ("arn:aws:states:::dynamodb:", "arn:aws:states:::sqs:", "arn:aws:states:::lambda:")


def describe_the_response() -> None:
    """Results of optimised integrations carry what the SDK adds, `ExecutedVersion` included.

    Rule: Developer Guide, connect-lambda: the result of `lambda:invoke` has `ExecutedVersion`,
    `SdkHttpMetadata`, `SdkResponseMetadata` and `StatusCode` beside `Payload`; those of DynamoDB
    and SQS have the metadata too. https://docs.aws.amazon.com/step-functions/latest/dg/connect-lambda.html
    """
    stepfunctions = upstream.module("services.stepfunctions")
    lambda_svc = upstream.module("services.lambda_svc")

    def invoke(original: Any, resource: str, given: Any) -> Any:
        result = original(resource, given)
        if not resource.startswith(_OPTIMISED) or not isinstance(result, dict):
            return result
        request_id = str(uuid.uuid4())
        headers = {"Content-Type": "application/json", "x-amzn-RequestId": request_id}
        described = {
            **result,
            "SdkHttpMetadata": {
                "AllHttpHeaders": {name: [value] for name, value in headers.items()},
                "HttpHeaders": headers,
                "HttpStatusCode": 200,
            },
            "SdkResponseMetadata": {"RequestId": request_id},
        }
        if "lambda" in resource:
            _, config, _ = lambda_svc._get_func_record_for_ref(given["FunctionName"])
            described["ExecutedVersion"] = (config or {}).get("Version", "$LATEST")
        return described

    upstream.wrap(stepfunctions, "_invoke_resource", invoke)


def name_throttling() -> None:
    """A throttled invocation fails the task with `Lambda.TooManyRequestsException`.

    Rule: Developer Guide, sfn-best-practices, transient Lambda errors.
    https://docs.aws.amazon.com/step-functions/latest/dg/sfn-best-practices.html
    """
    stepfunctions = upstream.module("services.stepfunctions")

    def call(original: Any, reference: str, event: Any) -> Any:
        try:
            return original(reference, event)
        except stepfunctions._ExecutionError as error:
            if error.error == "Lambda.Unknown" and "TooManyRequestsException" in error.cause:
                message = json.loads(error.cause).get("message", "Rate Exceeded.")
                raise stepfunctions._ExecutionError(
                    "Lambda.TooManyRequestsException", message
                ) from None
            raise

    upstream.wrap(stepfunctions, "_call_lambda", call)


def advance_mocked_responses() -> None:
    """A mocked task that throws once and then returns does so.

    Rule: mocked service integrations: each attempt of a state takes the response with its number.
    https://docs.aws.amazon.com/step-functions/latest/dg/sfn-local-mock-cfg-file.html
    MiniStack looks the response up once per state and throws the same error at every retry.
    """
    stepfunctions = upstream.module("services.stepfunctions")
    running.track()
    look_up = stepfunctions._get_mock_response

    def none_before_the_attempt(_original: Any, *_: Any) -> None:
        return None

    def invoke(original: Any, resource: str, given: Any) -> Any:
        execution, context = running.execution(), running.context()
        if execution is None or not execution.get("testCase"):
            return original(resource, given)
        state = context["State"]["Name"]
        attempts = execution["mockAttempts"]
        mocked = look_up(
            context["StateMachine"]["Name"], execution["testCase"], state, attempts.get(state, 0)
        )
        if mocked is None:
            return original(resource, given)
        attempts[state] = attempts.get(state, 0) + 1
        if "Throw" in mocked:
            raise stepfunctions._ExecutionError(
                mocked["Throw"].get("Error", ""), mocked["Throw"].get("Cause", "")
            )
        return mocked.get("Return", {})

    upstream.wrap(stepfunctions, "_get_mock_response", none_before_the_attempt)
    upstream.wrap(stepfunctions, "_invoke_resource", invoke)
