"""The lab without a network: real handlers, real pipeline, in this process.

Lambda's asynchronous invocation is played: three attempts, then the queue. What plays no part:
time, and true concurrency. "8 at once" here means the worst order of events: each delivery
arrives while the one before is about to charge.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import urllib3
from backstop.message import order_of
from reconciler.provider_client import TIMEOUT_SECONDS
from reconciler.settings import Settings as ReconcilerSettings
from reconciler.wiring import audit_of

from local import orders
from local.inprocess import Call, InProcess, TaskFailure
from local.inprocess.engine import unhindered
from local.inprocess.provider import URL, ProviderPool
from local.lab import books
from local.lab.events import object_created
from local.lab.function.handlers.app import Context, Function, Settings
from local.lab.function.handlers.faults import (
    AFTER_CHARGE,
    BEFORE_CHARGE,
    PROVIDER_DEAD,
    TIMEOUT_AFTER_CHARGE,
    fault_key,
)
from local.lab.function.handlers.recipes import object_of
from local.lab.function.handlers.table import Provider, Table
from local.lab.rows import Row, count_findings
from local.lab.scenarios import CHARGE_ONCE, Scenario

Json = dict[str, Any]

BUCKET = "lab"
#: Lambda's asynchronous invocation: the first attempt and two retries.
ATTEMPTS = 3


class TimedOut(BaseException):
    """Lambda ended the invocation: nothing in the handler can catch that."""


class _Context:
    def get_remaining_time_in_millis(self) -> int:
        return 3000


def _time_out(_: Context) -> None:
    raise TimedOut


@dataclass
class Offline:
    """One lab in one process. Make it with `offline()`."""

    pipeline: InProcess
    queue: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._dynamodb = self.pipeline.client("dynamodb")
        self._table = self._fresh_table()
        outputs = self.pipeline.stack.outputs
        self._settings = ReconcilerSettings(
            order_bucket=outputs["OrderBucket"],
            ledger_table=outputs["LedgerTable"],
            state_machine_arn=outputs["StateMachineArn"],
            reports_bucket="none",
            provider_url=URL,
            provider_secret_arn="provider-key",  # noqa: S106 - its name
            record_ttl=timedelta(days=90),
            horizon=timedelta(days=14),
            # An order of this process is either ended or lost: there is no time to give it.
            grace=timedelta(0),
            repair=False,
        )
        with patch(
            "reconciler.provider_client.urllib3.PoolManager",
            return_value=_Wire(self.pipeline.provider),
        ):
            self._audit = audit_of(self._settings, self.pipeline.client)

    def run(self, handler: str, scenario: Scenario) -> Row:
        """Put one fresh object through `scenario` and read the books."""
        if handler == CHARGE_ONCE:
            return self._charge_once(scenario)
        self._table = self._fresh_table()
        settings = Settings(self._table.name, handler)
        function = Function(settings, self._dynamodb, hang=_time_out)
        event = fresh_event(handler)
        if scenario.point:
            self._arm(event, scenario.point, scenario.times)
        self._deliver(function, event, scenario)
        return self._row(handler, scenario, event)

    def items(self) -> list[Json]:
        """What the last handler left in its table, in DynamoDB's typed form, in order."""
        return books.items(self._dynamodb, self._table.name)

    def _fresh_table(self) -> Table:
        """A table for one object: what there is to read stays short."""
        name = f"Lab-{uuid.uuid4().hex}"
        self._dynamodb.create_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        return Table(self._dynamodb, name)

    # ---------------------------------------------------------------- the lab's handlers

    def _arm(self, event: Json, point: str, times: int) -> None:
        self._table.create(
            fault_key(object_of(event["Records"][0]).name, point), remaining={"N": str(times)}
        )

    def _deliver(self, function: Function, event: Json, scenario: Scenario) -> None:
        if scenario.together:
            function.provider = _Crowded(
                self._table, scenario.deliveries - 1, lambda: self._invoke(function, event)
            )
            self._invoke(function, event)
            return
        for _ in range(scenario.deliveries):
            self._invoke(function, event)

    def _invoke(self, function: Function, event: Json) -> None:
        """Invoke asynchronously: retries, then the on-failure destination."""
        for _ in range(ATTEMPTS):
            try:
                function.run(event, _Context())
            except (Exception, TimedOut):  # noqa: S112 - as Lambda: whatever it was, try again
                continue
            return
        self.queue.append(event)

    def _row(self, handler: str, scenario: Scenario, event: Json) -> Row:
        name = object_of(event["Records"][0]).name
        entry = books.entries(self.items()).get(name, books.Entry())
        return Row(
            handler=handler,
            scenario=scenario.name,
            charges=entry.charges,
            record=entry.record,
            queued=self.queue.count(event),
            findings=count_findings(charges=entry.charges, record=entry.record),
            disturbed=scenario.point is not None,
        )

    # ---------------------------------------------------------------- charge-once

    def _charge_once(self, scenario: Scenario) -> Row:
        pipeline = self.pipeline
        event = pipeline.drop(orders.fresh_object_key(), orders.order_body(None, {}))
        key = order_of(event)["idempotency_key"]
        if scenario.point == PROVIDER_DEAD:
            pipeline.provider.arm_fault(
                {"fault": "unavailable", "times": scenario.times, "reference": key}
            )
        pipeline.around = _Fault(scenario, lambda: pipeline.deliver(event))
        pipeline.deliver(event)
        if not scenario.together:
            for _ in range(scenario.deliveries - 1):
                pipeline.deliver(event)
        record = self._status(key)
        queued = sum(message.idempotency_key == key for message in pipeline.queue())
        findings = self._reconcile(key, repair=False)
        # The cause of our own failures is mended; a dead provider stays dead to this order.
        pipeline.around = unhindered
        repaired = None
        if findings:
            self._reconcile(key, repair=True)
            repaired = self._status(key)
        return Row(
            handler=CHARGE_ONCE,
            scenario=scenario.name,
            charges=len(pipeline.charges(key)),
            record=record,
            queued=queued,
            findings=findings,
            disturbed=scenario.point is not None,
            repaired=repaired,
        )

    def _status(self, key: str) -> str | None:
        record = self.pipeline.record(key)
        return str(record["status"]) if record else None

    def _reconcile(self, key: str, *, repair: bool) -> list[str]:
        """One pass of the real reconciler over all books; the kinds that it finds under `key`."""
        audit = replace(self._audit, repair=repair)
        progress = audit.begin(uuid.uuid4().hex, self._settings.horizon)
        audit.carry_on(progress)
        return [item["kind"] for item in progress.findings if item["idempotency_key"] == key]


class _Wire(ProviderPool):
    """Carries the reconciler's requests to the provider in this process."""

    def request(self, method: str, url: str, **options: Any) -> urllib3.BaseHTTPResponse:  # type: ignore[override]
        given = {"body": None, "timeout": urllib3.Timeout(total=TIMEOUT_SECONDS)} | options
        return super().request(method, url, **given)


@contextlib.contextmanager
def offline() -> Iterator[Offline]:
    """A lab of its own, gone when the block ends. One at a time in a process."""
    with InProcess() as pipeline:
        yield Offline(pipeline)


def fresh_event(handler: str) -> Json:
    """A notification for an object that nobody has seen before."""
    return object_created(
        bucket=BUCKET,
        key=f"{handler}/{uuid.uuid4().hex}.json",
        version_id=uuid.uuid4().hex,
        etag=uuid.uuid4().hex,
        sequencer=uuid.uuid4().hex[:16].upper(),
    )


class _Crowded(Provider):
    """Lets the other deliveries in whenever somebody is about to charge."""

    def __init__(self, table: Table, others: int, deliver: Callable[[], None]) -> None:
        super().__init__(table)
        self._others = others
        self._deliver = deliver

    def charge(self, work: str, idempotency_key: str | None = None) -> None:
        while self._others:
            self._others -= 1
            self._deliver()
        super().charge(work, idempotency_key)


class _Fault:
    """The scenario's failure around the state `Charge`, as its function would fail on AWS."""

    def __init__(self, scenario: Scenario, deliver: Callable[[], object]) -> None:
        self._point = scenario.point
        self._left = scenario.times
        self._others = scenario.deliveries - 1 if scenario.together else 0
        self._deliver = deliver

    def __call__(self, call: Call, proceed: Callable[[], Any]) -> Any:
        if call.state != "Charge":
            return proceed()
        while self._others:
            self._others -= 1
            self._deliver()
        if self._is_due(BEFORE_CHARGE):
            raise TaskFailure("Runtime.ExitError", "Runtime exited without providing a reason")
        answer = proceed()
        if self._is_due(AFTER_CHARGE):
            raise TaskFailure("Runtime.ExitError", "Runtime exited without providing a reason")
        if self._is_due(TIMEOUT_AFTER_CHARGE):
            raise TaskFailure("Sandbox.Timedout", "Task timed out")
        return answer

    def _is_due(self, point: str) -> bool:
        if self._point != point or not self._left:
            return False
        self._left -= 1
        return True
