"""Each difference between AWS and MiniStack as something that can be seen from outside.

A difference is looked at on a mended emulator, where what AWS does must be seen, and on one
without mends, where what MiniStack does must be seen: when it is not, upstream has changed.
"""

import io
import json
import time
import urllib.request
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError

from local.waiting import wait_for
from tests.emulator.bench import WAIT_SECONDS, Bench, package, unique


@dataclass(frozen=True)
class Difference:
    mend: str
    aws: Any
    ministack: Any
    look: Callable[[Bench], Any]
    auth: bool


DIFFERENCES: dict[str, Difference] = {}


def difference(
    mend: str, *, aws: Any, ministack: Any, auth: bool = False
) -> Callable[[Callable[[Bench], Any]], Callable[[Bench], Any]]:
    """Register a look at the emulator: what it returns on AWS, and what without the mend.

    With `auth` it looks at an emulator that checks permissions.
    """

    def register(look: Callable[[Bench], Any]) -> Callable[[Bench], Any]:
        DIFFERENCES[look.__name__] = Difference(mend, aws, ministack, look, auth)
        return look

    return register


def invoke_state(function: str, **fields: Any) -> dict[str, Any]:
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": {"FunctionName": function, "Payload.$": "$"},
        "End": True,
        **fields,
    }


def passing(**fields: Any) -> dict[str, Any]:
    return {"Type": "Pass", "End": True, **fields}


def choosing(rule: dict[str, Any]) -> dict[str, Any]:
    """A machine that yields true when the rule holds and false when not."""
    return {
        "Choose": {"Type": "Choice", "Choices": [{**rule, "Next": "Yes"}], "Default": "No"},
        "Yes": passing(Result=True),
        "No": passing(Result=False),
    }


# Amazon S3


@difference("s3-version-in-events", aws=True, ministack=None)
def event_names_the_object_version(bench: Bench) -> Any:
    bucket = bench.bucket()
    url, queue = bench.queue()
    bench.rule({"source": ["aws.s3"], "detail": {"bucket": {"name": [bucket]}}}, Arn=queue)

    put = bench.client("s3").put_object(Bucket=bucket, Key="orders/1.json", Body=b"{}")

    (message,) = bench.await_messages(url)
    version = json.loads(message["Body"])["detail"]["object"].get("version-id")
    return version and version == put["VersionId"]


@difference(
    "s3-event-time", aws=len("2026-01-01T00:00:00Z"), ministack=len("2026-01-01T00:00:00.000Z")
)
def an_event_happened_in_a_whole_second(bench: Bench) -> Any:
    bucket = bench.bucket()
    url, queue = bench.queue()
    bench.rule({"source": ["aws.s3"], "detail": {"bucket": {"name": [bucket]}}}, Arn=queue)

    bench.client("s3").put_object(Bucket=bucket, Key="orders/1.json", Body=b"{}")

    (message,) = bench.await_messages(url)
    return len(json.loads(message["Body"])["time"])


@difference("s3-key-length", aws=[200, "KeyTooLongError"], ministack=[200, 200])
def a_key_has_at_most_1024_bytes(bench: Bench) -> Any:
    bucket = bench.bucket()

    def put(key: str) -> Any:
        try:
            answer = bench.client("s3").put_object(Bucket=bucket, Key=key)
        except ClientError as error:
            return error.response["Error"]["Code"]
        return answer["ResponseMetadata"]["HTTPStatusCode"]

    # ü is two bytes.
    return [put("ü" * 512), put("ü" * 512 + "a")]


@difference(
    "s3-version-list-encoding",
    aws=["orders/a\x01+ü.json", "orders/b.json"],
    ministack=500,
)
def a_key_that_xml_cannot_hold_hides_no_other(bench: Bench) -> Any:
    bucket = bench.bucket()
    s3 = bench.server.client("s3", config=Config(retries={"max_attempts": 0}))
    for key in ("orders/a\x01+ü.json", "orders/b.json"):
        s3.put_object(Bucket=bucket, Key=key)

    pages = s3.get_paginator("list_object_versions").paginate(
        Bucket=bucket, Prefix="orders/", PaginationConfig={"PageSize": 1}
    )
    try:
        found = [version for page in pages for version in page["Versions"]]
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"]
    return [version["Key"] for version in found]


# AWS CloudFormation


@difference("generated-secrets", aws=True, ministack=False)
def a_generated_secret_has_no_punctuation_when_so_asked(bench: Bench) -> Any:
    secret = {
        "Type": "AWS::SecretsManager::Secret",
        # As long as it may be: by chance 4,096 characters are not all letters and digits.
        "Properties": {
            "GenerateSecretString": {"PasswordLength": 4096, "ExcludePunctuation": True}
        },
    }
    template = {"Resources": {"Key": secret}, "Outputs": {"Key": {"Value": {"Ref": "Key"}}}}
    name = bench.deploy(unique("stack"), template)["Key"]
    found = bench.client("secretsmanager").get_secret_value(SecretId=name)["SecretString"]
    return len(found) == 4096 and found.isalnum()


@difference(
    "secret-ref", aws=["the ARN", "the ARN", True], ministack=["the name", "the name", True]
)
def a_reference_to_a_secret_is_its_arn(bench: Bench) -> Any:
    stack = unique("stack")
    client = bench.client("secretsmanager")

    def deploy(description: str) -> str:
        secret = {
            "Type": "AWS::SecretsManager::Secret",
            "Properties": {"Description": description, "SecretString": "s"},
        }
        template = {"Resources": {"Key": secret}, "Outputs": {"Key": {"Value": {"Ref": "Key"}}}}
        return bench.deploy(stack, template)["Key"]

    def kind(reference: str) -> str:
        found = client.describe_secret(SecretId=reference)
        return {found["ARN"]: "the ARN", found["Name"]: "the name"}[reference]

    kinds = [kind(deploy("first")), kind(deploy("second"))]
    names = [secret["Name"] for secret in client.list_secrets()["SecretList"]]
    (own,) = [name for name in names if name.startswith(stack)]
    bench.client("cloudformation").delete_stack(StackName=stack)

    def is_gone() -> bool:
        return own not in [secret["Name"] for secret in client.list_secrets()["SecretList"]]

    return [*kinds, wait_for(is_gone, WAIT_SECONDS)]


@difference("sam-parameters", aws=["1", "2"], ministack=["1", "1"])
def new_code_is_a_new_version(bench: Bench) -> Any:
    bucket, stack = bench.bucket(), unique("stack")
    function = {
        "Type": "AWS::Serverless::Function",
        "Properties": {
            "CodeUri": {"Bucket": bucket, "Key": {"Ref": "Package"}},
            "Handler": "work.handler.handle",
            "Runtime": "python3.11",
            "AutoPublishAlias": "live",
        },
    }
    template = {
        "Transform": "AWS::Serverless-2016-10-31",
        "Parameters": {"Package": {"Type": "String"}},
        "Resources": {"Work": function},
        "Outputs": {"Version": {"Value": {"Ref": "Work.Version"}}},
    }

    def deploy(result: str) -> str:
        bench.client("s3").put_object(Bucket=bucket, Key=result, Body=package(f"return {result}"))
        return bench.deploy(stack, template, Package=result)["Version"].rpartition(":")[2]

    return [deploy("1"), deploy("2")]


# AWS Lambda


@difference(
    "python-runtime",
    aws=["KeyError", "Runtime.ExitError"],
    ministack=["Runtime.HandlerError", "Runtime.HandlerError"],
)
def errors_are_named_by_their_class(bench: Bench) -> Any:
    function = bench.function("raise KeyError('x') if event['how'] == 'raise' else os._exit(1)")
    return [bench.invoke(function, {"how": how})["errorType"] for how in ("raise", "exit")]


@difference("python-runtime", aws="ModuleNotFoundError", ministack=None)
def packages_of_the_emulator_are_not_there_for_functions(bench: Bench) -> Any:
    function = bench.function("import pytest")
    return (bench.invoke(function) or {}).get("errorType")


@difference("runtime-latency", aws=True, ministack=False)
def a_warm_invocation_takes_less_than_40_ms(bench: Bench) -> Any:
    function = bench.function("return 1")
    # A custom runtime goes through the Runtime API with or without mends.
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("bootstrap", _CUSTOM_RUNTIME)
    client = bench.client("lambda")
    client.update_function_code(FunctionName=function, ZipFile=file.getvalue())
    client.update_function_configuration(FunctionName=function, Runtime="provided.al2023")

    def seconds() -> float:
        begin = time.perf_counter()
        bench.invoke(function)
        return time.perf_counter() - begin

    seconds()
    # The best of some: another program may be busy.
    return any(seconds() < 0.04 for _ in range(10))


_CUSTOM_RUNTIME = """#!/usr/bin/env python3
import http.client, os
api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
while True:
    api.request("GET", "/2018-06-01/runtime/invocation/next")
    event = api.getresponse()
    event.read()
    name = event.headers["Lambda-Runtime-Aws-Request-Id"]
    api.request("POST", f"/2018-06-01/runtime/invocation/{name}/response", b"1")
    api.getresponse().read()
"""


@difference(
    "lambda-failure-words",
    aws=["RequestId: … Error: Task timed out after 1.00 seconds", "Sandbox.Timedout"],
    ministack=["Task timed out after 1.00 seconds", "Sandbox.Timedout"],
)
def a_time_out_is_told_with_the_request_id(bench: Bench) -> Any:
    failure = bench.invoke(bench.function("time.sleep(9)", Timeout=1))
    message = failure["errorMessage"]
    if message.startswith("RequestId: "):
        message = " ".join(["RequestId: …", *message.split()[2:]])
    return [message, failure["errorType"]]


@difference("invoked-alias", aws="live", ministack="1")
def a_service_invokes_the_alias_that_it_names(bench: Bench) -> Any:
    function = bench.function("return context.invoked_function_arn")
    bench.client("lambda").publish_version(FunctionName=function)
    alias = bench.client("lambda").create_alias(
        FunctionName=function, Name="live", FunctionVersion="1"
    )

    run = bench.run({"Invoke": invoke_state(alias["AliasArn"])})

    return run.output["Payload"].rpartition(":")[2]


@difference("finish-invocations", aws="done", ministack="Runtime.HandlerError")
def an_update_lets_invocations_finish(bench: Bench) -> Any:
    (url, _), (updated, _) = bench.queue(), bench.queue()
    function = bench.function(
        "import urllib.request\n"
        f"body = 'Action=SendMessage&MessageBody=begun&QueueUrl={url}'.encode()\n"
        f"urllib.request.urlopen('{url}', body).close()\n"
        f"body = 'Action=ReceiveMessage&WaitTimeSeconds=9&QueueUrl={updated}'.encode()\n"
        f"urllib.request.urlopen('{updated}', body).close()\n"
        "return 'done'",
        Timeout=20,
    )
    with ThreadPoolExecutor() as pool:
        result = pool.submit(bench.invoke, function)
        bench.await_messages(url)

        bench.client("lambda").update_function_code(
            FunctionName=function, ZipFile=package("return 'new'")
        )
        bench.client("sqs").send_message(QueueUrl=updated, MessageBody="updated")

    return result.result() if isinstance(result.result(), str) else result.result()["errorType"]


@difference("function-url", aws=200, ministack="no such host")
def a_function_url_can_be_called_by_its_name(bench: Bench) -> Any:
    function = bench.function("return {'statusCode': 200, 'body': event['rawPath']}")
    created = bench.client("lambda").create_function_url_config(
        FunctionName=function, AuthType="NONE"
    )
    if not created["FunctionUrl"].startswith(bench.server.url):
        return "no such host"  # never ask the real AWS
    with urllib.request.urlopen(f"{created['FunctionUrl']}v1/charges") as answer:  # noqa: S310
        return answer.status if answer.read() == b"/v1/charges" else None


# Step Functions: the language


@difference("missing-path", aws=["FAILED"] * 5, ministack=["SUCCEEDED"] * 5)
def a_path_that_selects_nothing_fails_the_execution(bench: Bench) -> Any:
    states = (
        passing(Parameters={"x.$": "$.nothing"}),
        passing(Parameters={"x.$": "States.Format('{}', $.nothing)"}),
        passing(InputPath="$.nothing"),
        passing(OutputPath="$.nothing"),
        passing(Parameters={"x.$": "$$.Execution.Nothing"}),
    )
    runs = [bench.run({"State": state}, {"some": 1}) for state in states]
    return [run.status for run in runs if run.error in ("States.Runtime", None)]


@difference("missing-path", aws="States.Runtime", ministack=None)
def a_choice_on_a_missing_field_fails_the_execution(bench: Bench) -> Any:
    return bench.run(choosing({"Variable": "$.nothing", "StringEquals": "x"})).error


@difference("choice-comparisons", aws=True, ministack=False)
def a_field_that_holds_null_is_present(bench: Bench) -> Any:
    return bench.run(choosing({"Variable": "$.a", "IsPresent": True}), {"a": None}).output


@difference("choice-comparisons", aws=[True, True, True], ministack=[False, False, False])
def two_fields_can_be_compared(bench: Bench) -> Any:
    given = {"early": "2026-01-01T00:00:00Z", "late": "2026-01-01T02:00:00+01:00"}
    given |= {"same": "2026-01-01T01:00:00+01:00"}
    rules = (
        {"Variable": "$.early", "TimestampLessThanPath": "$.late"},
        {"Variable": "$.early", "StringLessThanPath": "$.late"},
        {"Variable": "$.early", "TimestampEqualsPath": "$.same"},
    )
    return [bench.run(choosing(rule), given).output for rule in rules]


@difference("terminal-errors", aws="States.Runtime", ministack=None)
def a_runtime_error_cannot_be_caught(bench: Bench) -> Any:
    function = bench.function("raise type('States.Runtime', (Exception,), {})('made up')")
    task = invoke_state(function, Catch=[{"ErrorEquals": ["States.ALL"], "Next": "Caught"}])
    return bench.run({"Invoke": task, "Caught": passing()}).error


@difference("retry-waits", aws=True, ministack=False)
def the_wait_before_a_retry_has_a_ceiling(bench: Bench) -> Any:
    retry = {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 20, "MaxDelaySeconds": 1}
    run = bench.run({"Invoke": invoke_state("nobody", Retry=[{**retry, "MaxAttempts": 1}])})
    failed = next(event for event in run.events if event["type"] == "TaskFailed")
    tried_again = [event for event in run.events if event["type"] == "TaskScheduled"][1]
    # 20 s are one second on these emulators, and 1 s a twentieth.
    return (tried_again["timestamp"] - failed["timestamp"]).total_seconds() < 0.9


@difference("result-selector-context", aws=True, ministack=False)
def a_result_selector_sees_the_context(bench: Bench) -> Any:
    task = invoke_state(
        bench.function("return 1"), ResultSelector={"execution.$": "$$.Execution.Id"}
    )
    run = bench.run({"Invoke": task})
    return (run.output or {}).get("execution") == run.arn


# Step Functions: executions


@difference("no-head-start", aws=True, ministack=False)
def an_execution_begins_when_it_is_started(bench: Bench) -> Any:
    machine = bench.machine({"Pass": passing()})

    def seconds() -> float:
        started, entered, *_ = bench.finish(bench.start(machine)).events
        return float((entered["timestamp"] - started["timestamp"]).total_seconds())

    # The best of some: another program may be busy.
    return any(seconds() < 0.1 for _ in range(5))


@difference("start-idempotently", aws="the same execution", ministack="ExecutionAlreadyExists")
def starting_again_returns_the_running_execution(bench: Bench) -> Any:
    machine = bench.machine({"Wait": {"Type": "Wait", "Seconds": 9999, "End": True}})
    first = bench.start(machine, {"a": 1}, name="one")
    try:
        again = bench.start(machine, {"a": 1}, name="one")
    except ClientError as error:
        return error.response["Error"]["Code"]
    return "the same execution" if again == first else again


@difference(
    "start-checks",
    aws=["InvalidName", "InvalidName", "InvalidExecutionInput", "ValidationException"],
    ministack=[None, None, None, None],
)
def bad_names_and_inputs_start_nothing(bench: Bench) -> Any:
    machine = bench.machine({"Pass": passing()})
    client = bench.server.client(
        "stepfunctions", config=Config(parameter_validation=False, retries={"max_attempts": 0})
    )

    def refusal(**fields: str) -> str | None:
        try:
            client.start_execution(stateMachineArn=machine, **fields)
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return None

    return [
        refusal(name="a" * 81),
        refusal(name="a b"),
        refusal(input="{"),
        refusal(input=json.dumps("x" * 262_144)),
    ]


@difference(
    "stop-for-good", aws=["ABORTED", "ExecutionAborted"], ministack=["FAILED", "ExecutionFailed"]
)
def a_stopped_execution_stays_stopped(bench: Bench) -> Any:
    retry = {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 10, "MaxAttempts": 1}
    machine = bench.machine({"Invoke": invoke_state("nobody", Retry=[retry])})
    arn = bench.start(machine)
    bench.wait_for_event(arn, "TaskFailed")

    bench.client("stepfunctions").stop_execution(executionArn=arn)

    # When the retry of a later run has come and failed, that of this one would have, too.
    bench.finish(bench.start(machine))
    run = bench.finish(arn)
    return [run.status, run.types()[-1]]


@difference("machine-time-out", aws=["TIMED_OUT", "ExecutionTimedOut"], ministack="no time-out")
def a_machine_times_out(bench: Bench) -> Any:
    # 30 s are one and a half on these emulators; time-outs are not scaled.
    wait = {"Type": "Wait", "Seconds": 30, "End": True}
    run = bench.run({"Wait": wait}, TimeoutSeconds=1)
    return [run.status, run.types()[-1]] if run.status != "SUCCEEDED" else "no time-out"


@difference(
    "history",
    aws=["TaskScheduled", "TaskStarted", "TaskTimedOut"],
    ministack=["TaskScheduled", "TaskFailed"],
)
def the_history_of_a_timed_out_task_reads_as_on_aws(bench: Bench) -> Any:
    task = invoke_state(bench.function("time.sleep(3)", Timeout=5), TimeoutSeconds=1)
    run = bench.run({"Invoke": task})
    kinds = [kind for kind in run.types() if kind.startswith("Task") and "State" not in kind]
    linked = [event.get("previousEventId") for event in run.events]
    in_a_line = linked == [0, 0, *range(2, len(linked))]
    return kinds if in_a_line or "TaskStarted" not in kinds else linked


@difference("history", aws=["lambda", "invoke"], ministack=["lambda", None])
def the_history_names_service_and_action_apart(bench: Bench) -> Any:
    run = bench.run({"Invoke": invoke_state("nobody")})
    (failed,) = [event for event in run.events if event["type"] == "TaskFailed"]
    scheduled = next(event for event in run.events if event["type"] == "TaskScheduled")
    kind = scheduled["taskScheduledEventDetails"]["resourceType"]
    action = failed["taskFailedEventDetails"]["resource"]
    return [kind, action if ":" not in action else None]


@difference("context-object", aws=[True, 0], ministack=[False, None])
def the_context_names_the_role(bench: Bench) -> Any:
    fields = {"role.$": "$$.Execution.RoleArn", "redrives.$": "$$.Execution.RedriveCount"}
    output = bench.run({"Pass": passing(Parameters=fields)}).output or {}
    return [bool(output.get("role")), output.get("redrives")]


@difference("payload-limit", aws="States.DataLimitExceeded", ministack=None)
def a_result_of_more_than_256_kib_fails_the_execution(bench: Bench) -> Any:
    large = invoke_state(bench.function("return 'x' * 262_144"))
    return bench.run({"Invoke": large}).error


# Step Functions: other services


@difference("mock-attempts", aws="SUCCEEDED", ministack="FAILED")
def a_mocked_task_recovers_after_a_throw(bench: Bench) -> Any:
    retry = {"ErrorEquals": ["Once"], "IntervalSeconds": 1, "MaxAttempts": 2}
    machine = bench.machine({"Invoke": invoke_state("nobody", Retry=[retry])})
    name = machine.rpartition(":")[2]
    responses = {"0": {"Throw": {"Error": "Once", "Cause": "c"}}, "1": {"Return": {"ok": True}}}
    mocks = {
        "StateMachines": {name: {"TestCases": {"Recovers": {"Invoke": "ThenOk"}}}},
        "MockedResponses": {"ThenOk": responses},
    }
    urllib.request.urlopen(  # noqa: S310 - loopback
        f"{bench.server.url}/_ministack/config",
        json.dumps({"stepfunctions._sfn_mock_config": mocks}).encode(),
    ).close()
    return bench.finish(bench.start(f"{machine}#Recovers")).status


@difference(
    "response-metadata",
    aws=["ExecutedVersion", "Payload", "SdkHttpMetadata", "SdkResponseMetadata", "StatusCode"],
    ministack=["Payload", "StatusCode"],
)
def an_invocation_result_describes_the_response(bench: Bench) -> Any:
    return sorted(bench.run({"Invoke": invoke_state(bench.function("return 1"))}).output)


@difference("throttling-error", aws="Lambda.TooManyRequestsException", ministack="Lambda.Unknown")
def throttling_has_its_own_name(bench: Bench) -> Any:
    function = bench.function("return 1")
    bench.client("lambda").put_function_concurrency(
        FunctionName=function, ReservedConcurrentExecutions=0
    )
    return bench.run({"Invoke": invoke_state(function)}).error


# Amazon EventBridge


@difference("target-dead-letters", aws=["NO_RESOURCE", True], ministack=None)
def an_event_without_a_target_goes_to_the_dead_letter_queue(bench: Bench) -> Any:
    source, (url, queue) = unique("source"), bench.queue()
    seen_url, seen = bench.queue()
    gone = "arn:aws:states:us-east-1:000000000000:stateMachine:gone"
    rule = bench.rule({"source": [source]}, Arn=gone, DeadLetterConfig={"Arn": queue})
    bench.rule({"source": [source]}, Arn=seen)

    bench.put_event(source, {"order": 1})

    bench.await_messages(seen_url)
    messages = bench.receive(url)
    if not messages:
        return None
    attributes = {
        name: value["StringValue"] for name, value in messages[0]["MessageAttributes"].items()
    }
    told = attributes["RULE_ARN"] == rule and attributes["TARGET_ARN"] == gone
    return [
        attributes["ERROR_CODE"],
        told and json.loads(messages[0]["Body"])["detail"] == {"order": 1},
    ]


@difference("event-retries", aws=3, ministack=1)
def a_rule_retries_a_failing_function(bench: Bench) -> Any:
    source, (url, _) = unique("source"), bench.queue()
    function = bench.function(
        "import urllib.request\n"
        f"body = 'Action=SendMessage&MessageBody=tried&QueueUrl={url}'.encode()\n"
        f"urllib.request.urlopen('{url}', body).close()\n"
        "raise ValueError"
    )
    arn = bench.client("lambda").get_function(FunctionName=function)["Configuration"]
    bench.rule({"source": [source]}, Arn=arn["FunctionArn"])

    bench.put_event(source)

    messages = bench.await_messages(url)
    # The retries come 0.1 and 0.2 s later; where none comes, three times that has to do.
    deadline = time.monotonic() + 1

    def no_more_to_come() -> bool:
        messages.extend(bench.receive(url))
        return len(messages) >= 3 or time.monotonic() > deadline

    wait_for(no_more_to_come, WAIT_SECONDS)
    return len(messages)


# AWS Identity and Access Management


def role(bench: Bench, service: str, *allowed: str) -> str:
    """A role that `service` assumes, which allows these actions on everything; returns its ARN."""
    iam, name = bench.client("iam"), unique("role")
    trust = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(trust))["Role"]["Arn"]
    allow = {"Effect": "Allow", "Action": list(allowed), "Resource": "*"}
    iam.put_role_policy(RoleName=name, PolicyName="allowed", PolicyDocument=policy(allow))
    return str(arn)


def user_client(bench: Bench, service: str, *allowed: str) -> Any:
    """A client with the keys of a user who may do these actions on everything."""
    iam, name = bench.client("iam"), unique("user")
    iam.create_user(UserName=name)
    allow = {"Effect": "Allow", "Action": list(allowed), "Resource": "*"}
    iam.put_user_policy(UserName=name, PolicyName="allowed", PolicyDocument=policy(allow))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return bench.server.client(
        service,
        aws_access_key_id=key["AccessKeyId"],
        aws_secret_access_key=key["SecretAccessKey"],
    )


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


@difference("tls-loopback", aws=200, ministack="AccessDenied", auth=True)
def a_policy_that_demands_tls_lets_the_sdk_in(bench: Bench) -> Any:
    bucket = bench.bucket()
    deny = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [f"arn:aws:s3:::{bucket}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    bench.client("s3").put_bucket_policy(Bucket=bucket, Policy=policy(deny))
    try:
        answer = user_client(bench, "s3", "s3:*").put_object(Bucket=bucket, Key="orders/1.json")
    except ClientError as error:
        return error.response["Error"]["Code"]
    return answer["ResponseMetadata"]["HTTPStatusCode"]


@difference(
    "machine-role",
    aws=["SQS.AmazonSQSException", None],
    ministack=[None, None],
    auth=True,
)
def a_state_machine_needs_a_role_that_allows_the_call(bench: Bench) -> Any:
    url, _ = bench.queue()
    send = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sqs:sendMessage",
        "Parameters": {"QueueUrl": url, "MessageBody": "sent"},
        "End": True,
    }

    def error_with(action: str) -> str | None:
        machine_role = role(bench, "states.amazonaws.com", action)
        return bench.finish(bench.start(bench.machine({"Send": send}, role=machine_role))).error

    return [error_with("sqs:ReceiveMessage"), error_with("sqs:SendMessage")]


@difference("target-dead-letters", aws=["NO_PERMISSIONS"] * 3, ministack=[None] * 3, auth=True)
def a_rule_needs_permission_for_its_target(bench: Bench) -> Any:
    url, queue = bench.queue()
    allow = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": queue,
    }
    bench.client("sqs").set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy(allow)})
    name = bench.function("return 1", role=role(bench, "lambda.amazonaws.com", "s3:GetObject"))
    function = bench.client("lambda").get_function(FunctionName=name)
    targets = (
        {"Arn": function["Configuration"]["FunctionArn"]},
        {"Arn": bench.queue()[1]},
        {
            "Arn": bench.machine(
                {"Pass": passing()}, role=role(bench, "states.amazonaws.com", "s3:*")
            ),
            "RoleArn": role(bench, "events.amazonaws.com", "states:DescribeExecution"),
        },
    )

    def code(target: dict[str, str]) -> str | None:
        source = unique("source")
        bench.rule({"source": [source]}, **target, DeadLetterConfig={"Arn": queue})
        # The same event to the queue itself, to know when all have been delivered.
        bench.rule({"source": [source]}, Arn=queue)
        bench.put_event(source)
        found = bench.await_messages(url)
        found += bench.receive(url)
        codes = [message.get("MessageAttributes", {}).get("ERROR_CODE") for message in found]
        return next((code["StringValue"] for code in codes if code), None)

    return [code(target) for target in targets]
