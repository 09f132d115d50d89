"""One pipeline in this process: tables, queue, bucket and state machine from the template."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self
from unittest.mock import patch

import boto3
from charge.settings import Settings
from moto import mock_aws
from moto.core.config import DefaultConfig

from local import books
from local.definition import fill, ledger_shape, load_definition, load_template
from local.emulator.environment import credentials
from local.execution_names import execution_input
from local.inprocess import engine, provider
from local.inprocess.function import ChargeFunction
from local.s3_event import object_created
from local.stack import LOCAL_CREDENTIALS, LOCAL_REGION, LOCAL_STACK, Stack

Json = dict[str, Any]

BUCKET = "in-process-orders"
_CHARGE_FUNCTION = f"arn:aws:lambda:{LOCAL_REGION}:123456789012:function:charge:1"
_ROLE = "arn:aws:iam::123456789012:role/ChargeOrder"
_MOTO: DefaultConfig = {
    "stepfunctions": {"execute_state_machine": True},
    "core": {"reset_boto3_session": False},
}


_one_at_a_time = threading.Lock()


@functools.cache
def _client(service: str) -> Any:
    """One for all pipelines of this process: making it takes longer than a whole execution.

    Where moto is not in charge, it holds throw-away credentials only.
    """
    session = boto3.Session(region_name=LOCAL_REGION)
    return session.client(service, **LOCAL_CREDENTIALS)  # type: ignore[call-overload]


@dataclass(frozen=True)
class Run:
    """An execution that has ended. `waits` are its retry waits in seconds, none of them slept."""

    arn: str
    status: str
    error: str | None
    cause: str | None
    output: Json | None = field(repr=False)
    path: list[str]
    history: list[Json] = field(repr=False)
    waits: list[float] = field(repr=False)


@dataclass(frozen=True)
class InProcessStack(Stack):
    """Lets everything that reads a stack read this one."""

    clients: Callable[[str], Any] = field(kw_only=True)

    def client(self, service: str) -> Any:
        return self.clients(service)


class InProcess:
    """A pipeline of its own; use it as a context manager, one at a time in a process.

    `charge` stands in for the charge function (see the package); None runs the real one, against
    `provider`, which is a new one unless given. `definition` replaces the one in the file, tokens
    included. `around` may be set anew at any time.
    """

    def __init__(
        self,
        *,
        charge: engine.Charge | None = None,
        around: engine.Around = engine.unhindered,
        provider: provider.InProcessProvider | None = None,
        definition: Json | None = None,
    ) -> None:
        self.charge = charge
        self.around = around
        self._provider = provider
        self._definition = definition or load_definition()
        self._template = load_template()
        self._exit = contextlib.ExitStack()
        self._waits: list[float] = []

    def __enter__(self) -> Self:
        if not _one_at_a_time.acquire(blocking=False):
            raise RuntimeError("another pipeline is open in this process: moto has one of all")
        with contextlib.ExitStack() as opened:
            opened.callback(_one_at_a_time.release)
            settings = credentials(LOCAL_REGION) | {"POWERTOOLS_SERVICE_NAME": "in-process"}
            opened.enter_context(patch.dict(os.environ, settings))
            for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
                os.environ.pop(name, None)
            opened.enter_context(mock_aws(config=_MOTO))
            opened.enter_context(
                engine.in_our_hands(
                    client=self.client,
                    charge=self._charge,
                    around=self._around,
                    sleep=self._waits.append,
                )
            )
            self.stack = self._deploy()
            if self.charge is None:
                self.charge = self._real_charge(opened)
            self._exit = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def client(self, service: str) -> Any:
        """A boto3 client that reaches this pipeline."""
        return _client(service)

    # ---------------------------------------------------------------- what happens

    def drop(self, key: str, body: bytes) -> Json:
        """Put a new version of an order file; gives the event that S3 would send for it."""
        answer = self.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body)
        return object_created(
            bucket=BUCKET,
            key=key,
            version_id=answer["VersionId"],
            etag=answer["ETag"],
            size=len(body),
        )

    def deliver(self, event: Json, *, name: str | None = None) -> Run:
        """Start an execution with `event` as its input and see it end.

        For a takeover add `"replay": {"owner": ARN}`. The name of an ended execution is taken.
        """
        self._waits.clear()
        started = self.client("stepfunctions").start_execution(
            stateMachineArn=self.stack.state_machine_arn,
            name=name or str(uuid.uuid4()),
            input=execution_input(event),
        )
        return self.run(started["executionArn"])

    def create_machine(self, definition: Json, name: str | None = None) -> str:
        """Another state machine on the same tables and queue; gives its ARN.

        `definition` has its tokens still.
        """
        created = self.client("stepfunctions").create_state_machine(
            name=name or str(uuid.uuid4()),
            roleArn=_ROLE,
            definition=json.dumps(fill(definition, self._template, self._physical)),
        )
        return str(created["stateMachineArn"])

    def stop(self, arn: str) -> None:
        """Abort a run in the middle: for `around`, which runs inside of one."""
        self.client("stepfunctions").stop_execution(executionArn=arn)

    # ---------------------------------------------------------------- what there is to see

    def run(self, arn: str) -> Run:
        """An execution as it stands; `waits` are those of the last one that was delivered."""
        client = self.client("stepfunctions")
        description = client.describe_execution(executionArn=arn)
        history = client.get_execution_history(executionArn=arn)["events"]
        entered = [event.get("stateEnteredEventDetails") for event in history]
        output = description.get("output")
        return Run(
            arn=arn,
            status=description["status"],
            error=description.get("error"),
            cause=description.get("cause"),
            output=json.loads(output) if output is not None else None,
            path=[details["name"] for details in entered if details],
            history=history,
            waits=list(self._waits),
        )

    def record(self, idempotency_key: str) -> Json | None:
        """The ledger's record under this key, or None."""
        return books.record(self.stack, idempotency_key)

    def ledger(self) -> list[Json]:
        """Every record of the ledger."""
        return list(books.records(self.stack))

    def queue(self) -> list[books.Message]:
        """Every message of the failure queue, left where it is."""
        return books.messages(self.stack)

    @property
    def provider(self) -> provider.InProcessProvider:
        """The provider. Raises RuntimeError where a stand-in charges without one."""
        if self._provider is None:
            raise RuntimeError("this pipeline's charge function is a stand-in without a provider")
        return self._provider

    def charges(self, reference: str | None = None) -> list[Json]:
        """The provider's charges, oldest first."""
        return self.provider.charges(reference)

    # ---------------------------------------------------------------- how it is made

    def _charge(self, payload: Json) -> Json:
        assert self.charge is not None  # noqa: S101 - set before anything can be delivered
        return self.charge(payload)

    def _around(self, call: engine.Call, proceed: Callable[[], Any]) -> Any:
        return self.around(call, proceed)

    def _real_charge(self, opened: contextlib.ExitStack) -> ChargeFunction:
        if self._provider is None:
            self._provider = provider.InProcessProvider()
            opened.callback(self._provider.close)
        pool = provider.ProviderPool(self._provider)
        return ChargeFunction(self.charge_settings(), pool, self._default("ChargeTimeoutSeconds"))

    def charge_settings(self) -> Settings:
        """The charge function's settings by the template's defaults; makes the provider's key."""
        secret = self.client("secretsmanager").create_secret(
            Name="provider-key", SecretString=provider.API_KEY
        )
        return Settings(
            provider_url=provider.URL,
            provider_secret_arn=secret["ARN"],
            provider_timeout_seconds=self._default("ProviderTimeoutSeconds"),
            provider_key_retention_seconds=self._default("ProviderKeyRetentionSeconds"),
            record_ttl_seconds=self._default("RecordTtlDays") * 86_400,
            fault_table=None,  # a crash here would be ours: `around` stands for one
        )

    def _default(self, parameter: str) -> int:
        return int(self._template["Parameters"][parameter]["Default"])

    def _deploy(self) -> InProcessStack:
        s3 = self.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        self.client("dynamodb").create_table(
            TableName="LedgerTable", **ledger_shape(self._template)
        )
        queue = self.client("sqs").create_queue(QueueName="FailureQueue")["QueueUrl"]
        self._physical = {
            "LedgerTable": "LedgerTable",
            "FailureQueue": queue,
            "ChargeFunction.Version": _CHARGE_FUNCTION,
        }
        outputs = {
            "OrderBucket": BUCKET,
            "LedgerTable": "LedgerTable",
            "FailureQueueUrl": queue,
            "StateMachineArn": self.create_machine(self._definition, "ChargeOrder"),
        }
        return InProcessStack(
            LOCAL_STACK, LOCAL_REGION, "in-process", outputs, engine="moto", clients=self.client
        )
