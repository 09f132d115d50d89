"""Two interpreters of the States Language, made to run the same scenarios."""

from __future__ import annotations

import abc
import collections
import contextlib
import functools
import io
import json
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3.dynamodb.types
import httpx
from backstop.message import order_of

from local import books
from local.definition import fill, ledger_shape, load_definition, load_template
from local.emulator.server import Server
from local.execution_names import execution_input
from local.inprocess import Call, InProcess, TaskFailure
from local.s3_event import object_created
from local.stack import LOCAL_REGION, Stack
from local.waiting import wait_for
from tests.workflow import scripted
from tests.workflow.scenarios import BROKEN, CHARGE, ME, SCENARIOS, Json, Raises, Scenario

END_SECONDS = 20.0
BUCKET = "orders-in"

_serialize = boto3.dynamodb.types.TypeSerializer().serialize


@dataclass(frozen=True)
class Outcome:
    """A run that has ended, with all that it left behind."""

    arn: str
    event: Json
    status: str
    error: str | None
    cause: str | None
    output: Json | None
    path: list[str]
    attempts: collections.Counter[str]
    record: Json | None
    messages: list[books.Message]

    @property
    def order(self) -> dict[str, str]:
        return order_of(self.event)


def event_of(scenario: Scenario) -> Json:
    """A delivery of an object version that no other run knows."""
    version = uuid.uuid4().hex if scenario.version == "v1" else scenario.version
    return object_created(
        bucket=BUCKET,
        key=scenario.object_key,
        version_id=version,
        etag=uuid.uuid4().hex,
        sequencer=uuid.uuid4().hex,
    )


class Engine(abc.ABC):
    """Runs scenarios, one after the other."""

    stack: Stack

    @abc.abstractmethod
    def machine(self, definition: Json) -> str:
        """Deploy a definition with its tokens filled in; gives the state machine's ARN."""

    @abc.abstractmethod
    def prepared(self, scenario: Scenario, change: Callable[[], None]) -> Any:
        """A context in which calls go as the scenario says; `change` is its `meanwhile`."""

    def run(self, scenario: Scenario, machine: str | None = None) -> Outcome:
        """Surround a run with what the scenario says, and see it end."""
        event = event_of(scenario)
        replay = {"replay": {"owner": scenario.replay_of}} if scenario.replay_of else {}
        return self.execute(event | replay, scenario, machine)

    def execute(self, event: Json, scenario: Scenario, machine: str | None = None) -> Outcome:
        """Like `run`, with an input of its own."""
        machine = machine or self.stack.state_machine_arn
        name = uuid.uuid4().hex
        arn = f"{machine.replace(':stateMachine:', ':execution:')}:{name}"
        with contextlib.suppress(KeyError):  # an input that names no order has no record
            self._put_record(order_of(event), scenario.record, arn)
        with self.prepared(scenario, functools.partial(self._change, event, scenario)) as started:
            self.stack.client("stepfunctions").start_execution(
                stateMachineArn=machine, name=name, input=execution_input(event)
            )
            started(arn)
            self._wait_for_end(arn)
        return self._outcome(arn, event)

    # ---------------------------------------------------------------- the ledger

    def _put_record(self, order: dict[str, str], record: Json | None, arn: str) -> None:
        if record is None:
            return
        own = {"pk": order["idempotency_key"], "bucket": order["bucket"]}
        own |= {"object_key": order["key"], "claimed_at": "2026-11-29T00:00:00Z"}
        owner = {"owner": arn} if record["owner"] == ME else {}
        since = {"open_since": own["claimed_at"]} if record["status"] == "in_progress" else {}
        self._put(own | since | record | owner)

    def _change(self, event: Json, scenario: Scenario) -> None:
        assert scenario.meanwhile is not None
        key = order_of(event)["idempotency_key"]
        changes = scenario.meanwhile.changes
        if changes is None:
            self.stack.client("dynamodb").delete_item(
                TableName=self.stack.table, Key={"pk": {"S": key}}
            )
            return
        record = books.record(self.stack, key)
        assert record is not None
        if "status" in changes:
            del record["open_since"]
        self._put(record | changes)

    def _put(self, record: Json) -> None:
        item = {name: _serialize(value) for name, value in record.items()}
        self.stack.client("dynamodb").put_item(TableName=self.stack.table, Item=item)

    # ---------------------------------------------------------------- the run

    def _wait_for_end(self, arn: str) -> None:
        client = self.stack.client("stepfunctions")
        wait_for(
            lambda: client.describe_execution(executionArn=arn)["status"] != "RUNNING", END_SECONDS
        )

    def _outcome(self, arn: str, event: Json) -> Outcome:
        found = books.execution(self.stack, arn)
        description = self.stack.client("stepfunctions").describe_execution(executionArn=arn)
        # MiniStack shows the error of a failed run as its output too; AWS shows none.
        output = description.get("output") if found.status == "SUCCEEDED" else None
        try:
            key = order_of(event)["idempotency_key"]
        except KeyError:
            key = None
        return Outcome(
            arn=arn,
            event=event,
            status=found.status,
            error=found.error,
            cause=description.get("cause"),
            output=json.loads(output) if output is not None else None,
            path=found.path,
            attempts=attempts(found.events),
            record=books.record(self.stack, key) if key else None,
            messages=self._take_messages(arn),
        )

    def _take_messages(self, arn: str) -> list[books.Message]:
        taken, _ = books.take_available(self.stack, hide_seconds=30)
        for message in taken:
            books.delete_message(self.stack, message)
        return [message for message in taken if message.body.get("execution") == arn]


def attempts(history: list[Json]) -> collections.Counter[str]:
    """How often each Task state made its call."""
    found: collections.Counter[str] = collections.Counter()
    state = ""
    for event in history:
        if "stateEnteredEventDetails" in event:
            state = event["stateEnteredEventDetails"]["name"]
        elif event["type"] == "TaskScheduled":
            found[state] += 1
    return found


def scripts() -> dict[str, list[Json]]:
    """What the scripted charge function does, by object key; "*" for any other."""
    return {"*": [{"return": CHARGE}]} | {
        scenario.object_key: [
            {"raise": step.error, "message": step.message}
            if isinstance(step, Raises)
            else {"return": step}
            for step in scenario.charge
        ]
        for scenario in (*SCENARIOS, *BROKEN)
    }


class Moto(Engine):
    """The interpreter of moto, in this process."""

    def __init__(self, pipeline: InProcess) -> None:
        self._pipeline = pipeline
        self.stack = pipeline.stack

    @classmethod
    @contextlib.contextmanager
    def started(cls) -> Iterator[Moto]:
        charge = scripted.Scripted(scripts())
        with InProcess(charge=charge) as pipeline:
            yield cls(pipeline)

    def machine(self, definition: Json) -> str:
        return self._pipeline.create_machine(definition)

    @contextlib.contextmanager
    def prepared(
        self, scenario: Scenario, change: Callable[[], None]
    ) -> Iterator[Callable[[str], None]]:
        left = {fault: fault.times for fault in scenario.faults}
        due = scenario.meanwhile

        def around(call: Call, proceed: Callable[[], Any]) -> Any:
            nonlocal due
            if due and due.before == call.state:
                due = None
                change()
            for fault, times in left.items():
                if fault.at == call.state and times != 0:
                    left[fault] = None if times is None else times - 1
                    time.sleep(fault.seconds)
                    if fault.kind in ("repeat", "lost"):
                        proceed()
                    if fault.kind in ("repeat", "delay"):
                        return proceed()
                    raise TaskFailure(fault.error, f"Injected: {fault.kind} at {call.state}")
            return proceed()

        self._pipeline.around = around
        yield lambda _arn: None


class TooLate(Exception):
    """The call was made before the record could be changed."""


class MiniStack(Engine):
    """The interpreter of MiniStack, in the emulator with its mends and fault points."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._template = load_template()
        self._clients = functools.cache(server.client)
        # How long a call is held up while the record changes before it; doubled when too short.
        self._hold_seconds = 0.2
        self._physical = self._deploy()
        outputs = {
            "LedgerTable": self._physical["LedgerTable"],
            "FailureQueueUrl": self._physical["FailureQueue"],
            "StateMachineArn": self.machine(load_definition()),
        }
        self.stack = Served("workflow", LOCAL_REGION, server.url, outputs, clients=self._clients)

    @classmethod
    @contextlib.contextmanager
    def started(cls, log: Path) -> Iterator[MiniStack]:
        with Server.start(log, "--wait-scale", "0", "--fault-points") as server:
            yield cls(server)

    def machine(self, definition: Json) -> str:
        created = self._clients("stepfunctions").create_state_machine(
            name=f"ChargeOrder-{uuid.uuid4().hex[:8]}",
            roleArn="arn:aws:iam::000000000000:role/any",
            definition=json.dumps(fill(definition, self._template, self._physical)),
        )
        return str(created["stateMachineArn"])

    def run(self, scenario: Scenario, machine: str | None = None) -> Outcome:
        while True:
            try:
                return super().run(scenario, machine)
            except TooLate:
                self._hold_seconds *= 2

    @contextlib.contextmanager
    def prepared(
        self, scenario: Scenario, change: Callable[[], None]
    ) -> Iterator[Callable[[str], None]]:
        plan: list[Json] = [
            {
                "at": fault.at,
                "kind": fault.kind,
                "times": fault.times,
                "seconds": fault.seconds,
                "error_name": fault.error,
            }
            for fault in scenario.faults
        ]
        if scenario.meanwhile:
            hold = {"kind": "delay", "times": 1, "seconds": self._hold_seconds}
            plan.append({"at": scenario.meanwhile.before} | hold)
        self._set_faults(plan)

        def started(arn: str) -> None:
            if scenario.meanwhile:
                state = scenario.meanwhile.before
                wait_for(lambda: self._attempts(arn)[state], END_SECONDS)
                change()
                if books.execution(self.stack, arn).events[-1]["type"] != "TaskStarted":
                    raise TooLate

        yield started

    def _attempts(self, arn: str) -> collections.Counter[str]:
        return attempts(books.execution(self.stack, arn).events)

    def _set_faults(self, plan: list[Json]) -> None:
        answer = httpx.post(f"{self._server.url}/_faults", json={"faults": plan})
        answer.raise_for_status()

    def _deploy(self) -> dict[str, str]:
        """What the definition's tokens refer to, by logical name."""
        self._clients("dynamodb").create_table(
            TableName="LedgerTable", **ledger_shape(self._template)
        )
        function = self._clients("lambda").create_function(
            FunctionName="charge",
            Runtime="python3.11",
            Handler="scripted.handle",
            Role="arn:aws:iam::000000000000:role/any",
            Timeout=10,
            Publish=True,
            Code={"ZipFile": _package()},
        )
        queue = self._clients("sqs").create_queue(QueueName="FailureQueue")
        return {
            "LedgerTable": "LedgerTable",
            "FailureQueue": queue["QueueUrl"],
            "ChargeFunction.Version": function["FunctionArn"],
        }


@dataclass(frozen=True)
class Served(Stack):
    """A stack whose clients end with the emulator that they talk to."""

    clients: Callable[[str], Any] = field(kw_only=True)

    def client(self, service: str) -> Any:
        return self.clients(service)


def _package() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("scripted.py", Path(scripted.__file__).read_text())
        archive.writestr("scripts.json", json.dumps(scripts()))
    return file.getvalue()
