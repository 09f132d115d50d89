"""The real pipeline under fire in this process: definition, functions, replay and reconciler.

Everything runs in one thread on a `Stage`: every call that the state machine, the charge function,
the provider's data base, the replay or the reconciler makes is a step, before which others may
act. So interleavings are real, moto's lack of atomic writes does not matter, and one seed gives
one story. Time is simulated: retry waits, visibility time-outs and key retention pass in no time.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, Self
from unittest.mock import patch

import backstop.handler
import time_machine
import urllib3
from botocore.exceptions import BotoCoreError, ClientError, ReadTimeoutError
from charge.handler import Function
from charge.order_store import S3OrderStore
from moto.moto_api._internal import mock_random
from provider.sqlite import SqliteStore
from provider.store import Answer, Marker
from reconciler.auditing import Audit, Progress, report
from reconciler.aws import DynamoLedger, S3Bucket, StepFunctions
from reconciler.provider_client import ProviderClient, ProviderUnreachable

from local import orders as local_orders
from local import replay as replaying
from local.chaos.bodies import order_body
from local.chaos.faults import Died, Faults
from local.chaos.invariants import (
    Books,
    Verdict,
    Version,
    Writer,
    judge,
    judge_write,
)
from local.chaos.moto_inline import PARSER, forget_executions, in_this_thread
from local.chaos.stage import Stage
from local.emulator.error_names import ERROR_NAMES
from local.errors import CommandError
from local.inprocess import Call, InProcess, InProcessProvider, TaskFailure
from local.inprocess.provider import API_KEY, URL, ProviderPool
from local.s3_event import object_created

Json = dict[str, Any]

#: Any moment will do; the same one for every run, so that a seed tells the whole story.
_DAWN = datetime(2027, 1, 1, 6, tzinfo=UTC)
_HORIZON = timedelta(days=14)
#: Above the reconciler's grace time and above the time that a replay hides messages.
_BETWEEN_REPAIRS_SECONDS = 1200.0
#: More than any story has needed; a story that needs more is told as a violation.
_REPAIR_ROUNDS = 8

_GRACE = timedelta(minutes=15)

_INTERNAL_ERROR: Any = {
    "Error": {"Code": "InternalError", "Message": "injected"},
    "ResponseMetadata": {"HTTPStatusCode": 500},
}
_BACKSTOP_ERRORS = ("States.Runtime", "States.DataLimitExceeded", "FailureQueueUnreachable")


@dataclass(frozen=True)
class Plan:
    """What happens in one schedule, apart from the dice.

    `deliveries`: for each order how often its event arrives; 0 when it never does. `days`: acts,
    with a night between them in which the provider forgets its keys. `rate`: how many steps fail.
    `faults`: None for dice, else the faults of an earlier run, by number.
    """

    deliveries: tuple[int, ...] = (2, 1, 3)
    bodies: tuple[str, ...] = ("good",)
    overwritten: bool = False
    days: int = 1
    rate: float = 0.06
    stops: int = 1
    replays: int = 1
    reconciles: int = 1
    outage: bool = False
    faults: Mapping[int, str] | None = None

    @classmethod
    def random(cls, dice: random.Random) -> Plan:
        """A plan of the campaign."""
        count = dice.choices((1, 2, 3), (3, 2, 1))[0]
        return cls(
            deliveries=tuple(
                dice.choices((0, 1, 2, 3, 4), (1, 6, 6, 4, 3))[0] for _ in range(count)
            ),
            bodies=tuple(
                dice.choices(("good", "declined", "broken"), (8, 1, 1))[0] for _ in range(count)
            ),
            overwritten=dice.random() < 0.1,
            days=dice.choices((1, 2), (4, 1))[0],
            rate=dice.choice((0.03, 0.08, 0.2)),
            stops=dice.choice((0, 1, 2)),
            replays=dice.choice((0, 1, 2)),
            reconciles=dice.choice((0, 1, 2, 3)),
            outage=dice.random() < 0.15,
        )


@dataclass(frozen=True)
class Outcome:
    """What came of one schedule."""

    seed: int
    plan: Plan
    verdict: Verdict
    deliveries: int
    injected: dict[tuple[str, str], int] = field(repr=False)
    faults: dict[int, str] = field(repr=False)
    story: list[str] = field(repr=False)
    trace: list[str] = field(repr=False)

    @property
    def violations(self) -> list[str]:
        return self.verdict.violations


class _SteppedStore(SqliteStore):
    """The provider's books, with a step between the claim of a key and the commit of its charge."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.before_commit: Callable[[], None] = lambda: None

    def forget_everything(self) -> None:
        """Empty books, as on the first day."""
        with self._transaction() as db:
            for table in ("keys", "charges", "faults", "requests", "clock"):
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names

    def commit(
        self,
        key: str,
        marker: Marker,
        answer: Answer,
        *,
        charge_id: str,
        reference: str | None,
        charge: str,
    ) -> bool:
        self.before_commit()
        return super().commit(
            key, marker, answer, charge_id=charge_id, reference=reference, charge=charge
        )


class Simulation:
    """One world. Use it as a context manager, one at a time in a process; `run` plays schedules.

    `definition` replaces the one in the file, tokens included: a test breaks the product with it.
    """

    def __init__(self, *, definition: Json | None = None) -> None:
        self._store = _SteppedStore(":memory:")
        self._provider = InProcessProvider(store=self._store)
        self._pipeline = InProcess(
            charge=self._charge,
            around=self._around,
            provider=self._provider,
            definition=definition,
        )
        self._exit = contextlib.ExitStack()
        self._begin(0, Plan())

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opened:
            clock = opened.enter_context(time_machine.travel(_DAWN, tick=False))
            self._advance = clock.shift
            opened.callback(random.setstate, random.getstate())
            opened.callback(self._provider.close)
            opened.enter_context(self._pipeline)
            opened.enter_context(contextlib.redirect_stdout(io.StringIO()))
            opened.enter_context(self._one_thread())
            self._function = self._make_function()
            self._exit = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    # ---------------------------------------------------------------- one schedule

    def run(self, seed: int, plan: Plan) -> Outcome:
        """Play a schedule to its end, repair what it left open, and compare the books.

        Two runs with the same arguments in fresh simulations take the same steps.
        """
        self._begin(seed, plan)
        try:
            for day in range(plan.days):
                self._act(plan, first=day == 0)
                self._advance(25 * 3600.0 if day + 1 < plan.days else 60.0)
            self._faults.active = False
            self._repair()
            verdict = judge(self._books())
            verdict.violations += self._violations + self._left_open(verdict)
        finally:
            self._stage.dismiss()
            self._forget()
        return Outcome(
            seed=seed,
            plan=plan,
            verdict=verdict,
            deliveries=self._deliveries,
            injected=dict(self._faults.injected),
            faults=dict(self._faults.taken),
            story=self._faults.story,
            trace=self._stage.trace,
        )

    def _begin(self, seed: int, plan: Plan) -> None:
        self._seed = seed
        self._dice = _dice(seed, "world")
        self._faults = Faults(_dice(seed, "faults"), plan.rate, plan.faults)
        self._stage = Stage(_dice(seed, "steps"), time.time, self._pass_time)
        self._versions: list[Version] = []
        self._events: dict[str, Json] = {}
        self._runs: dict[str, Any] = {}
        self._records: dict[str, Json] = {}
        self._violations: list[str] = []
        self._findings: list[Json] = []
        self._deliveries = 0
        self._queued: set[str | None] = set()
        self._outage = False
        self._passes = 0
        random.seed(f"{seed} jitter")
        mock_random.seed(seed)

    def _act(self, plan: Plan, *, first: bool) -> None:
        """A day: orders arrive, everything fails now and then, operators try to help."""
        stage, dice = self._stage, self._dice
        if first:
            for number, times in enumerate(plan.deliveries):
                body = plan.bodies[number % len(plan.bodies)]
                stage.enter(f"S3 {number}", self._order(number, body, times))
            if plan.overwritten:
                stage.enter("S3 again", self._order(0, "good", 1, wait=dice.randrange(60)))
        else:
            for number, event in enumerate(list(self._events.values())):
                if dice.random() < 0.5:  # EventBridge may deliver again a day later
                    stage.enter(f"late delivery {number}", self._delivery(event, 0))
        for number in range(plan.stops):
            stage.enter(f"stop {number}", self._stop_somebody)
        for number in range(plan.replays):
            stage.enter(f"replay {number}", self._helper("replay", self._replay))
        for number in range(plan.reconciles):
            # Without a grace time it meets orders that are still on their way.
            grace = timedelta(0) if dice.random() < 0.75 else _GRACE
            act = functools.partial(self._reconcile, grace)
            stage.enter(f"reconcile {number}", self._helper("reconciler", act))
        if plan.outage:
            stage.enter("outage", self._fail_for_a_while)
        stage.play()

    def _repair(self) -> None:
        """Faults have stopped: replay and reconcile until there is nothing left to do."""
        for _ in range(_REPAIR_ROUNDS):
            self._advance(_BETWEEN_REPAIRS_SECONDS)
            self._alone("replay", self._replay)
            self._advance(_BETWEEN_REPAIRS_SECONDS)
            repaired = self._alone("reconcile", lambda: self._reconcile(_GRACE))
            if not repaired and not self._is_worth_a_replay():
                return

    def _is_worth_a_replay(self) -> bool:
        keys = self._queued_keys()
        records = {record["pk"]: record["status"] for record in self._pipeline.ledger()}
        before = self._queued
        self._queued = {key for key in keys if records.get(key or "") != "rejected"}
        return bool(self._queued) and self._queued != before

    def _alone(self, name: str, act: Callable[[], Any]) -> Any:
        answer: list[Any] = []
        self._stage.enter(name, lambda: answer.append(act()))
        self._stage.play()
        return answer[0] if answer else None

    def _left_open(self, verdict: Verdict) -> list[str]:
        """Only what has been overwritten may stay open: a person decides whether it is wanted."""
        overwritten = len(self._versions) - len({version.key for version in self._versions})
        if verdict.open_and_reported <= overwritten:
            return []
        return [f"{verdict.open_and_reported} orders stay open, {overwritten} were overwritten"]

    def _books(self) -> Books:
        found = {finding["idempotency_key"] for finding in self._findings}
        return Books(
            versions=self._versions,
            records=self._pipeline.ledger(),
            charges=self._pipeline.charges(),
            reported={key for key in self._queued_keys() | found if key},
        )

    def _queued_keys(self) -> set[str | None]:
        self._advance(_BETWEEN_REPAIRS_SECONDS)  # what somebody hid before dying is back
        return {message.idempotency_key for message in self._pipeline.queue()}

    def _forget(self) -> None:
        """Leave nothing of this schedule to the next one."""
        s3, stack = self._pipeline.client("s3"), self._pipeline.stack
        listing = s3.list_object_versions(Bucket=stack.bucket)
        for version in listing.get("Versions", []):
            s3.delete_object(
                Bucket=stack.bucket, Key=version["Key"], VersionId=version["VersionId"]
            )
        for record in self._pipeline.ledger():
            self._pipeline.client("dynamodb").delete_item(
                TableName=stack.table, Key={"pk": {"S": record["pk"]}}
            )
        self._advance(100.0)  # SQS lets a queue be purged once a minute
        self._pipeline.client("sqs").purge_queue(QueueUrl=stack.failure_queue_url)
        self._store.forget_everything()
        forget_executions(stack.state_machine_arn)

    # ---------------------------------------------------------------- who does what

    def _order(self, number: int, kind: str, times: int, *, wait: int = 0) -> Callable[[], None]:
        def act() -> None:
            self._stage.idle(wait)
            key = f"orders/{number}.json"
            body = order_body(self._dice, f"A-{self._seed}-{number}-{wait}", kind)
            answer = self._pipeline.client("s3").put_object(
                Bucket=self._pipeline.stack.bucket, Key=key, Body=body
            )
            version = Version(self._pipeline.stack.bucket, key, answer["VersionId"], body)
            self._versions.append(version)
            event = object_created(
                bucket=version.bucket,
                key=key,
                version_id=version.version_id,
                etag=answer["ETag"],
                size=len(body),
            )
            self._events[version.reference] = event
            for _ in range(times):
                self._stage.enter(
                    f"delivery of {number}", self._delivery(event, self._dice.randrange(40))
                )

        return act

    def _delivery(self, event: Json, steps: int) -> Callable[[], None]:
        def act() -> None:
            self._stage.idle(steps)
            self._deliveries += 1
            self._pipeline.client("stepfunctions").start_execution(
                stateMachineArn=self._pipeline.stack.state_machine_arn,
                name=f"delivery-{self._seed}-{self._deliveries}-{event['id']}",
                input=json.dumps(event),
            )

        return act

    def _stop_somebody(self) -> None:
        """An operator, or the machine's own time-out, ends a run in the middle."""
        self._stage.idle(self._dice.randrange(40))
        running = [arn for arn, worker in self._runs.items() if _is_running(worker)]
        owners = [
            record["owner"]
            for record in self._records.values()
            if record["status"] == "in_progress" and record["owner"] in running
        ]
        if not running:
            return
        # An owner's end is what leaves work behind.
        arn = self._dice.choice(owners if owners and self._dice.random() < 0.7 else running)
        timed_out = self._dice.random() < 0.3
        self._faults.note("execution", "timed out" if timed_out else "stopped", _name(arn))
        _end(self._runs[arn], timed_out=timed_out)
        if self._dice.random() < 0.5:  # the call that it was making arrives all the same, late
            self._stage.hold(_name(arn), self._dice.randrange(100))
        self._stage.enter(f"backstop of {_name(arn)}", lambda: self._backstop(arn))

    def _fail_for_a_while(self) -> None:
        self._stage.idle(self._dice.randrange(20))
        self._outage = True
        self._faults.note("provider", "outage begins")
        self._stage.sleep(float(self._dice.randrange(10, 900)))
        self._outage = False

    def _helper(self, who: str, act: Callable[[], object]) -> Callable[[], None]:
        """Somebody who tries to help at a random moment, and may die of any fault doing so."""

        def attempt() -> None:
            if self._dice.random() < 0.6:
                self._stage.wait(self._somebody_died, 3600)
            else:
                self._stage.sleep(float(self._dice.randrange(2000)))
            self._stage.idle(self._dice.randrange(10))
            try:
                act()
            except (BotoCoreError, ClientError, CommandError, ProviderUnreachable, Died) as error:
                self._faults.story.append(f"{who} ended with {type(error).__name__}")

        return attempt

    def _somebody_died(self) -> bool:
        """Whether a record is open whose owner has ended: what helpers are for."""
        return any(
            record["status"] == "in_progress" and not self._is_alive(record["owner"])
            for record in self._records.values()
        )

    def _replay(self) -> None:
        stack: Any = _SteppedStack(self._pipeline.stack, self._client_of("replay"))
        replaying.replay(stack)

    def _reconcile(self, grace: timedelta) -> int:
        """A pass with repairs; gives how many it started."""
        client = self._client_of("reconciler")
        stack = self._pipeline.stack
        provider = ProviderClient(URL, lambda: API_KEY)
        provider._pool = _SteppedPool(self, "reconciler")
        audit = Audit(
            bucket=S3Bucket(client("s3"), stack.bucket),
            ledger=DynamoLedger(client("dynamodb"), stack.table),
            provider=provider,
            executions=StepFunctions(client("stepfunctions"), stack.state_machine_arn),
            grace=grace,
            repair=True,
            now=lambda: datetime.now(UTC),
        )
        self._passes += 1
        progress: Progress = audit.begin(f"{self._seed}{self._passes:03d}"[-8:], _HORIZON)
        audit.carry_on(progress)
        document = report(progress)
        self._findings = document["findings"]
        return len(document["repaired"])

    def _backstop(self, arn: str) -> None:
        """EventBridge tells the backstop of a run that ended where no Catch sees; or forgets to."""
        self._stage.pause("backstop")
        if self._faults.at("backstop", ("event lost",), _name(arn)):
            return
        described = self._pipeline.client("stepfunctions").describe_execution(executionArn=arn)
        detail = {"executionArn": arn} | {
            name: described.get(name) for name in ("status", "error", "cause", "input")
        }
        for _ in range(3):  # Lambda's asynchronous retries
            with contextlib.suppress(BotoCoreError, ClientError, Died):
                backstop.handler.handle({"detail": detail}, None)
                return

    # ---------------------------------------------------------------- every step

    def _client_of(self, who: str) -> Callable[[str], Any]:
        return lambda service: _SteppedClient(self, who, service)

    def visit(self, place: str, act: Callable[[], Any]) -> Any:
        """A call to AWS by one of the functions or commands: before, the call, after."""
        self._stage.pause(place)
        fault = self._faults.at(place, ("error", "lost", "died"), ease=_ease(place))
        operation = place.rpartition(":")[2]
        if fault == "error":
            raise ClientError(_INTERNAL_ERROR, operation)
        if fault == "died":
            raise Died(place)
        answer = act()
        if fault == "lost":
            raise ReadTimeoutError(endpoint_url=f"injected at {place}")
        return answer

    def ask_provider(self, who: str, method: str, proceed: Callable[[], Any]) -> Any:
        """An HTTP request to the provider."""
        place = f"{who}:{'provider charge' if method == 'POST' else 'provider look-up'}"
        self._stage.pause(place)
        kinds = ("unreachable", "unavailable", "rate limit", "lost", "late", "died", "died after")
        fault = "unavailable" if self._outage else self._faults.at(place, kinds, ease=_ease(place))
        unheard = urllib3.exceptions.ProtocolError("injected: no answer")
        match fault:
            case "unreachable":
                raise unheard
            case "unavailable":
                return _answer(503)
            case "rate limit":
                return _answer(429, {"Retry-After": "1"})
            case "died":
                raise Died(place)
            case "late":  # the request hangs somewhere, and arrives when nobody listens any more
                self._stage.enter("late request", lambda: self._arrive_late(proceed))
                self._stage.sleep(10)
                raise unheard
        try:
            answer = proceed()
        except Died:  # the provider's process, between its claim and its commit
            raise unheard from None
        self._stage.pause(f"{place} answered")
        if fault == "died after":
            raise Died(place)
        if fault == "lost":
            raise unheard
        return answer

    def _arrive_late(self, proceed: Callable[[], Any]) -> None:
        self._stage.sleep(float(self._dice.randrange(40)))
        with contextlib.suppress(Died):
            proceed()

    def _commit_point(self) -> None:
        self._stage.pause("provider commit")
        if self._faults.at("provider commit", ("died",)):
            raise Died("provider commit")

    def _around(self, call: Call, proceed: Callable[[], Any]) -> Any:
        """Every call that the state machine makes."""
        self._stage.pause(call.state)
        kinds = ("error", "throttle", "lost", "repeat", "late", "delay")
        fault = self._faults.at(call.state, kinds)
        if call.service == "lambda":
            proceed = self._as_lambda(proceed)
        else:
            proceed = self._watched(self._writer(), proceed)
        match fault:
            case "error" | "throttle":
                raise TaskFailure(ERROR_NAMES[call.service, fault], "injected")
            case "delay":
                self._stage.sleep(5)
            case "repeat":
                with contextlib.suppress(Exception):
                    proceed()
                self._stage.pause(f"{call.state} again")
            case "late":  # the state gives up, the call does not
                self._stage.enter(f"late {call.state}", lambda: self._happen_late(proceed))
                self._stage.sleep(60 if call.service == "lambda" else 30)
                raise TaskFailure("States.Timeout", "injected")
        answer = proceed()
        self._stage.pause(f"{call.state} answered")
        if fault == "lost":
            raise TaskFailure(ERROR_NAMES[call.service, fault], "injected")
        return answer

    def _happen_late(self, proceed: Callable[[], Any]) -> None:
        self._stage.sleep(float(self._dice.randrange(50)))
        # Nobody hears of it; whatever it is, its caller is gone.
        with contextlib.suppress(Exception):
            proceed()

    def _writer(self) -> Writer:
        """The execution that is acting."""
        assert self._stage.acting is not None  # noqa: S101 - only executions make such calls
        arn, worker = next(
            (arn, worker)
            for arn, worker in self._runs.items()
            if _name(arn) == self._stage.acting.name
        )
        given = worker._evaluation_details.execution_details.inpt
        return Writer(arn, given.get("replay", {}).get("owner"))

    def _watched(self, writer: Writer, proceed: Callable[[], Any]) -> Callable[[], Any]:
        """`proceed`, after which every record that has changed is looked at."""

        def act() -> Any:
            try:
                return proceed()
            finally:
                now = {record["pk"]: record for record in self._pipeline.ledger()}
                for key in now.keys() | self._records.keys():
                    wrong = judge_write(
                        writer, self._records.get(key), now.get(key), self._is_alive
                    )
                    self._violations += [wrong] if wrong else []
                self._records = now

        return act

    def _is_alive(self, arn: str) -> bool:
        return arn in self._runs and _is_running(self._runs[arn])

    def _as_lambda(self, proceed: Callable[[], Any]) -> Callable[[], Any]:
        def act() -> Any:
            try:
                return proceed()
            except Died as death:
                name = self._dice.choice(("Runtime.ExitError", "Sandbox.Timedout"))
                raise TaskFailure(name, f"died at {death}") from None

        return act

    def _charge(self, payload: Json) -> Json:
        return self._function.run(payload, _Context())

    # ---------------------------------------------------------------- how it is made

    def _make_function(self) -> Function:
        settings = self._pipeline.charge_settings()
        function = Function(settings, pool=_SteppedPool(self, "charge"), sleep=self._sleep)
        function._store = S3OrderStore(_SteppedClient(self, "charge", "s3"))
        self._store.before_commit = self._commit_point
        return function

    @contextlib.contextmanager
    def _one_thread(self) -> Iterator[None]:
        """Everything that would wait for real, or beside the others, comes onto the stage."""
        worker = importlib.import_module(f"{PARSER}.backend.execution_worker").ExecutionWorker
        retries = importlib.import_module(f"{PARSER}.asl.component.common.retry.retrier_decl")
        endpoint = importlib.import_module("botocore.endpoint")
        queues = importlib.import_module("moto.sqs.models").SQSBackend

        def wait_for(condition: Callable[[], Any], seconds: float, _: float = 0) -> Any:
            deadline = time.time() + seconds
            while not (answer := condition()):
                if time.time() > deadline:
                    raise TimeoutError
                self._stage.sleep(5)
            return answer

        def start(worker: Any) -> None:
            arn = worker._evaluation_details.execution_details.arn
            self._runs[arn] = worker
            self._stage.enter(_name(arn), lambda: self._execute(arn, worker))

        replaced: list[tuple[Any, str, Any]] = [
            (worker, "start", start),
            (retries, "time", SimpleNamespace(sleep=self._sleep)),
            (endpoint, "time", SimpleNamespace(sleep=self._sleep, time=time.time)),
            (queues, "change_message_visibility", _change_visibility),
            (local_orders, "wait_for", wait_for),
            (backstop.handler, "_client", self._client_of("backstop")),
            (backstop.handler, "_queue_url", lambda: self._pipeline.stack.failure_queue_url),
            (backstop.handler, "logger", _Silent()),
        ]
        with in_this_thread(), contextlib.ExitStack() as stack:
            for owner, name, value in replaced:
                stack.enter_context(patch.object(owner, name, value))
            yield

    def _sleep(self, seconds: float) -> None:
        self._stage.sleep(seconds)

    def _pass_time(self, seconds: float) -> None:
        self._advance(seconds)

    def _execute(self, arn: str, worker: Any) -> None:
        worker._execution_logic()
        execution = worker._execution_communication.execution
        if execution.exec_status == "FAILED" and execution.error in _BACKSTOP_ERRORS:
            self._stage.enter(f"backstop of {_name(arn)}", lambda: self._backstop(arn))


class _SteppedClient:
    """A boto3 client of the simulation: each call is a step, which may fail."""

    def __init__(self, simulation: Simulation, who: str, service: str) -> None:
        self._simulation = simulation
        self._who = who
        self._client = simulation._pipeline.client(service)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if name in ("get_paginator", "exceptions", "meta"):
            return method
        place = f"{self._who}:{name}"
        return lambda **request: self._simulation.visit(place, lambda: method(**request))


class _SteppedStack:
    """A stack whose clients are stepped."""

    def __init__(self, stack: Any, client: Callable[[str], Any]) -> None:
        self._stack = stack
        self.client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stack, name)


class _SteppedPool(ProviderPool):
    """HTTP to the provider of the simulation: each request is a step, which may fail."""

    def __init__(self, simulation: Simulation, who: str) -> None:
        super().__init__(simulation._provider)
        self._simulation = simulation
        self._who = who

    def request(self, method: str, url: str, **options: Any) -> urllib3.BaseHTTPResponse:  # type: ignore[override]
        options.setdefault("body", None)
        options.setdefault("timeout", urllib3.Timeout(total=10))
        send = super().request
        answer: urllib3.BaseHTTPResponse = self._simulation.ask_provider(
            self._who, method, lambda: send(method, url, **options)
        )
        return answer


def _dice(seed: int, purpose: str) -> random.Random:
    return random.Random(f"{seed} {purpose}")  # noqa: S311 - chaos, no secret


def _ease(place: str) -> float:
    """A helper makes so many calls that it would never come to an end among as many faults."""
    return 1.0 if place.startswith("charge:") else 0.2


class _Silent:
    """A logger that keeps quiet: its output would stand on a terminal, not in CloudWatch."""

    def info(self, *_: object, **__: object) -> None: ...

    warning = info


class _Context:
    """Lambda's context; a function that takes too long is ended by a fault instead."""

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        return 45_000


def _answer(status: int, headers: Mapping[str, str] | None = None) -> urllib3.HTTPResponse:
    return urllib3.HTTPResponse(
        body=io.BytesIO(b""), headers=headers, status=status, preload_content=False
    )


def _change_visibility(
    backend: Any, queue_name: str, receipt_handle: str, visibility_timeout: int
) -> None:
    """As moto does it, less its limit: 12 hours since a message was sent, on AWS since received."""
    queue = backend.get_queue(queue_name)
    for message in queue._messages:
        if message.had_receipt_handle(receipt_handle):
            message.change_visibility(visibility_timeout)
            if message.visible and message in queue.pending_messages:
                queue.pending_messages.remove(message)


def _is_running(worker: Any) -> bool:
    return worker.env is not None and worker.env.is_running()


def _end(worker: Any, *, timed_out: bool) -> None:
    """End a run as StopExecution does: at once to all who ask, whatever is still in flight."""
    if timed_out:
        worker.env.set_timed_out()
    else:
        worker.stop(datetime.now(UTC), None, None)
    execution = worker._execution_communication.execution
    execution.exec_status = type(execution.exec_status)("TIMED_OUT" if timed_out else "ABORTED")


def _name(arn: str) -> str:
    return arn.rpartition(":")[2]
