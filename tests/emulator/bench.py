"""A workbench on a running emulator: deploy a function or a machine, run it, look at the result."""

import functools
import io
import json
import uuid
import zipfile
from dataclasses import dataclass
from typing import Any

from local.emulator.server import Server
from local.waiting import wait_for

ROLE = "arn:aws:iam::000000000000:role/any"
WAIT_SECONDS = 20.0


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def package(body: str) -> bytes:
    """A function's zip file: `def handle(event, context):` with this body, in `work/handler.py`."""
    source = "import json, os, time\n\ndef handle(event, context):\n"
    source += "".join(f"    {line}\n" for line in body.strip().splitlines())
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("work/handler.py", source)
    return file.getvalue()


@dataclass(frozen=True)
class Run:
    """An execution that has ended."""

    arn: str
    status: str
    error: str | None
    output: Any
    events: list[dict[str, Any]]

    def types(self) -> list[str]:
        return [event["type"] for event in self.events]


class Bench:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.client = functools.cache(server.client)

    # Step Functions

    def machine(self, states: dict[str, Any], role: str = ROLE, **fields: Any) -> str:
        """Create a state machine that starts at the first of `states`; returns its ARN."""
        definition = {"StartAt": next(iter(states)), "States": states, **fields}
        created = self.client("stepfunctions").create_state_machine(
            name=unique("machine"), definition=json.dumps(definition), roleArn=role
        )
        return str(created["stateMachineArn"])

    def start(self, machine: str, given: Any = None, **fields: Any) -> str:
        started = self.client("stepfunctions").start_execution(
            stateMachineArn=machine, input=json.dumps(given or {}), **fields
        )
        return str(started["executionArn"])

    def describe(self, execution: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client("stepfunctions").describe_execution(
            executionArn=execution
        )
        return found

    def history(self, execution: str) -> list[dict[str, Any]]:
        pages = self.client("stepfunctions").get_paginator("get_execution_history")
        return [
            event for page in pages.paginate(executionArn=execution) for event in page["events"]
        ]

    def wait_for_event(self, execution: str, kind: str) -> None:
        wait_for(lambda: kind in [event["type"] for event in self.history(execution)], WAIT_SECONDS)

    def finish(self, execution: str) -> Run:
        wait_for(lambda: self.describe(execution)["status"] != "RUNNING", WAIT_SECONDS)
        found = self.describe(execution)
        return Run(
            arn=execution,
            status=found["status"],
            error=found.get("error"),
            output=json.loads(found.get("output") or "null"),
            events=self.history(execution),
        )

    def run(self, states: dict[str, Any], given: Any = None, **fields: Any) -> Run:
        """Run a machine of `states` to its end; `fields` are top-level fields of the machine."""
        return self.finish(self.start(self.machine(states, **fields), given))

    # Lambda

    def function(self, body: str, *, role: str = ROLE, **settings: Any) -> str:
        """Deploy `def handle(event, context):` with this body; returns the function's name."""
        name = unique("function")
        self.client("lambda").create_function(
            FunctionName=name,
            Runtime="python3.11",
            Handler="work.handler.handle",
            Role=role,
            Code={"ZipFile": package(body)},
            **settings,
        )
        return name

    def invoke(self, function: str, event: Any = None, **settings: Any) -> Any:
        answer = self.client("lambda").invoke(
            FunctionName=function, Payload=json.dumps(event or {}), **settings
        )
        return json.loads(answer["Payload"].read())

    # CloudFormation

    def deploy(self, stack: str, template: dict[str, Any], **parameters: str) -> dict[str, str]:
        """Create or update a stack, wait for it, and return its outputs."""
        client = self.client("cloudformation")
        known = [found["StackName"] for found in client.describe_stacks()["Stacks"]]
        operate = client.update_stack if stack in known else client.create_stack
        operate(
            StackName=stack,
            TemplateBody=json.dumps(template),
            Parameters=[
                {"ParameterKey": name, "ParameterValue": value}
                for name, value in parameters.items()
            ],
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        )

        def status() -> str:
            (found,) = client.describe_stacks(StackName=stack)["Stacks"]
            return str(found["StackStatus"])

        wait_for(lambda: not status().endswith("IN_PROGRESS"), WAIT_SECONDS)
        assert status() in ("CREATE_COMPLETE", "UPDATE_COMPLETE"), status()
        (found,) = client.describe_stacks(StackName=stack)["Stacks"]
        return {output["OutputKey"]: output["OutputValue"] for output in found["Outputs"]}

    # EventBridge and SQS

    def queue(self) -> tuple[str, str]:
        """A queue, as (URL, ARN)."""
        sqs = self.client("sqs")
        url = sqs.create_queue(QueueName=unique("queue"))["QueueUrl"]
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return url, attributes["Attributes"]["QueueArn"]

    def receive(self, url: str) -> list[dict[str, Any]]:
        answer = self.client("sqs").receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        )
        found: list[dict[str, Any]] = answer.get("Messages", [])
        return found

    def await_messages(self, url: str, count: int = 1) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []

        def enough() -> bool:
            messages.extend(self.receive(url))
            return len(messages) >= count

        wait_for(enough, WAIT_SECONDS)
        return messages

    def rule(self, pattern: dict[str, Any], **target: Any) -> str:
        """An enabled rule on the default bus with one target; returns its ARN."""
        name = unique("rule")
        events = self.client("events")
        arn = events.put_rule(Name=name, EventPattern=json.dumps(pattern))["RuleArn"]
        events.put_targets(Rule=name, Targets=[{"Id": "target", **target}])
        return str(arn)

    def put_event(self, source: str, detail: Any = None) -> None:
        self.client("events").put_events(
            Entries=[{"Source": source, "DetailType": "test", "Detail": json.dumps(detail or {})}]
        )

    def bucket(self, *, versioned: bool = True) -> str:
        """A bucket that tells EventBridge; returns its name."""
        s3, name = self.client("s3"), unique("bucket")
        s3.create_bucket(Bucket=name)
        if versioned:
            s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        s3.put_bucket_notification_configuration(
            Bucket=name, NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
        return name
