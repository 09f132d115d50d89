"""The lab on a stack: real Lambda functions behind real notifications, and the real pipeline.

A cell of the table is one fresh object. Where S3 delivers its event once, S3 does it; where it
shall arrive more than once, the object lies where no notification is set, and the lab delivers
the event by asynchronous invocations, since S3 cannot be asked for a duplicate.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

from local import books as pipeline_books
from local import deploy, fault_names, faults, orders
from local.errors import CommandError
from local.lab import books
from local.lab.events import object_created
from local.lab.function.handlers.faults import fault_key
from local.lab.function.handlers.recipes import object_of
from local.lab.rows import Row, count_findings
from local.lab.scenarios import CHARGE_ONCE, LAB_HANDLERS, SCENARIOS, Scenario
from local.paths import PROJECT
from local.reconcile import reconcile
from local.stack import Stack

Json = dict[str, Any]
Report = Callable[[Row, bool], None]
"""Gets a row whenever it has changed, and whether it is final."""

TEMPLATE = PROJECT / "local" / "lab" / "template.yaml"
LAB_STACK = "charge-once-lab"

#: Below the emulator's first asynchronous retry (15 s), as on AWS 50 s are below 60 s; and long
#: enough for a busy machine, where an attempt that is cut off by chance spoils its cell.
HANDLER_TIMEOUT_SECONDS = 10
#: How often a cell that was spoiled by chance is measured again before the lab gives up.
REPEATS = 2
#: Two retries come 15 and 30 s apart here; on AWS they are 1 and 2 minutes.
LOCAL_PATIENCE_SECONDS = 150
AWS_PATIENCE_SECONDS = 900
POLL_SECONDS = 0.3
#: Orders of charge-once that are followed at the same time: two cores start cold functions slowly.
FOLLOWED_AT_ONCE = 3
_SLOW_CHARGE = faults.Fault("provider.slow", 1)


def deploy_lab(running: Stack) -> Stack:
    """Deploy the lab beside charge-once, onto the same emulator."""
    machine = deploy.local_parameters()
    parameters = {name: machine[name] for name in ("PythonVersion", "Architecture")}
    parameters["HandlerTimeoutSeconds"] = str(HANDLER_TIMEOUT_SECONDS)
    return deploy.deploy_beside(running, TEMPLATE, LAB_STACK, parameters)


# ---------------------------------------------------------------- the lab's handlers


@dataclass
class Seen:
    """What is known of one object so far."""

    entry: books.Entry = field(default_factory=books.Entry)
    queued: int = 0

    @property
    def deliveries_finished(self) -> int:
        """Deliveries that no retry will follow: the attempt went well, or Lambda gave up."""
        return self.entry.ended + self.queued


class Watch:
    """Reads table and queue of the lab again and again, for everybody who waits."""

    def __init__(self, lab: Stack) -> None:
        self._lab = lab
        self._patience = AWS_PATIENCE_SECONDS if lab.endpoint is None else LOCAL_PATIENCE_SECONDS
        self._changed = threading.Condition()
        self._seen: dict[str, Seen] = {}

    def refresh(self) -> None:
        """Read everything once."""
        lab = self._lab
        queued: Counter[str] = Counter()
        for message in pipeline_books.messages(lab):
            for record in message.body.get("requestPayload", {}).get("Records", []):
                queued[object_of(record).name] += 1
        # The books after the queue: what was given up is in them for good.
        items = books.items(lab.client("dynamodb"), lab.outputs["LabTable"])
        entries = books.entries(items)
        with self._changed:
            self._seen = {name: Seen(entry, queued[name]) for name, entry in entries.items()}
            self._changed.notify_all()

    def of(self, name: str) -> Seen:
        """What the last refresh saw of the object (bucket/key)."""
        with self._changed:
            return self._seen.get(name) or Seen()

    def started(self, name: str) -> Seen:
        """Wait for the object's first attempt. Raises CommandError."""
        return self._until(name, lambda seen: seen.entry.started >= 1)

    def finished(self, name: str, deliveries: int) -> Seen:
        """Wait until no retry of that many deliveries can follow. Raises CommandError."""
        return self._until(name, lambda seen: seen.deliveries_finished >= deliveries)

    def _until(self, name: str, condition: Callable[[Seen], bool]) -> Seen:
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self.of(name)), self._patience):
                raise CommandError(f"{name} came to no end in {self._patience} s: {self.of(name)}")
            return self.of(name)


@dataclass(frozen=True)
class Cell:
    """One object in one scenario."""

    handler: str
    scenario: Scenario
    bucket: str
    key: str

    @property
    def name(self) -> str:
        return f"{self.bucket}/{self.key}"

    def is_spoiled(self, seen: Seen) -> bool:
        """Whether an attempt was cut off that the scenario did not ask for."""
        return seen.entry.cut_off > self.scenario.time_outs

    def row(self, seen: Seen) -> Row:
        entry = seen.entry
        return Row(
            handler=self.handler,
            scenario=self.scenario.name,
            charges=entry.charges,
            record=entry.record,
            queued=seen.queued,
            findings=count_findings(charges=entry.charges, record=entry.record),
            disturbed=self.scenario.point is not None,
        )


class Lab:
    """The lab's stack at work."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._watch = Watch(stack)
        self._crowd = threading.Lock()
        self.cells: dict[tuple[str, Scenario], Cell] = {}

    def measure(self, handler: str, scenarios: Iterable[Scenario]) -> list[Row]:
        """One row of the table. Somebody else must call `refresh` meanwhile."""
        scenarios = tuple(scenarios)
        # Those that wait for Lambda's retries first: the others fit into their waiting.
        in_turn = sorted(scenarios, key=lambda scenario: scenario.deliveries)
        cells = {scenario: self._start(handler, scenario) for scenario in in_turn}
        rows = {}
        for _ in range(1 + REPEATS):
            spoiled = []
            for scenario, cell in cells.items():
                seen = self._watch.finished(cell.name, scenario.deliveries)
                if cell.is_spoiled(seen):
                    spoiled.append(scenario)
                else:
                    rows[scenario] = cell.row(seen)
            if not spoiled:
                return [rows[scenario] for scenario in scenarios]
            cells = {scenario: self._start(handler, scenario) for scenario in spoiled}
        raise CommandError(
            f"{handler}: attempts were cut off that nobody asked for, {1 + REPEATS} times. "
            "The machine is too busy to measure on."
        )

    def refresh(self, report: Report) -> None:
        """Look at everything, and tell how far each cell has come."""
        self._watch.refresh()
        for cell in list(self.cells.values()):
            seen = self._watch.of(cell.name)
            is_finished = seen.deliveries_finished >= cell.scenario.deliveries
            report(cell.row(seen), is_finished and not cell.is_spoiled(seen))

    def require_no_other_faults(self) -> None:
        """Raises CommandError when the stack was deployed to fail once by itself."""
        for handler in LAB_HANDLERS:
            name = function_of(self._stack, handler)
            settings = self._stack.client("lambda").get_function_configuration(FunctionName=name)
            if settings["Environment"]["Variables"].get("FAIL_ONCE", "never") != "never":
                raise CommandError(
                    f"{self._stack.name} makes every object fail once by itself: deploy it with "
                    "FailOnce=never to have the lab choose the fault points."
                )

    def _start(self, handler: str, scenario: Scenario) -> Cell:
        """Put a fresh object through the scenario; gives it before its last retry has ended."""
        # Nothing is set for by-hand/, so S3 stays silent there.
        folder = handler if scenario.deliveries == 1 else f"by-hand/{handler}"
        key = f"{folder}/{uuid.uuid4().hex}.json"
        cell = Cell(handler, scenario, self._stack.outputs["LabBucket"], key)
        self.cells[handler, scenario] = cell
        if scenario.deliveries == 1:
            self._have_s3_deliver(cell)
        else:
            self._deliver_by_hand(cell)
        return cell

    def _have_s3_deliver(self, cell: Cell) -> None:
        if cell.scenario.point:
            self._stack.client("dynamodb").put_item(
                TableName=self._stack.outputs["LabTable"],
                Item={
                    "pk": {"S": fault_key(cell.name, cell.scenario.point)},
                    "remaining": {"N": str(cell.scenario.times)},
                },
            )
        self._put(cell)
        # One cold start at a time for each handler: the next object finds a warm function.
        self._watch.started(cell.name)

    def _deliver_by_hand(self, cell: Cell) -> None:
        event = self._put(cell)
        deliveries = cell.scenario.deliveries
        if cell.scenario.together:
            # One crowd at a time: each starts as many workers as it has deliveries.
            with self._crowd, ThreadPoolExecutor(deliveries) as pool:
                list(pool.map(lambda _: self._invoke(cell.handler, event), range(deliveries)))
                self._watch.finished(cell.name, deliveries)
            return
        for number in range(1, deliveries + 1):
            self._invoke(cell.handler, event)
            self._watch.finished(cell.name, number)

    def _put(self, cell: Cell) -> Json:
        """Put the object; gives the event for deliveries by hand, with a sequencer made up."""
        body = b"{}"
        answer = self._stack.client("s3").put_object(Bucket=cell.bucket, Key=cell.key, Body=body)
        return object_created(
            bucket=cell.bucket,
            key=cell.key,
            version_id=answer["VersionId"],
            etag=answer["ETag"],
            sequencer=uuid.uuid4().hex[:18].upper(),
            size=len(body),
        )

    def _invoke(self, handler: str, event: Json) -> None:
        self._stack.client("lambda").invoke(
            FunctionName=function_of(self._stack, handler),
            InvocationType="Event",
            Payload=json.dumps(event),
        )


def function_of(lab: Stack, handler: str) -> str:
    """The name of a handler's function, an output: of `robust`, `RobustFunction`."""
    name = "".join(word.capitalize() for word in handler.split("-"))
    return lab.outputs[f"{name}Function"]


# ---------------------------------------------------------------- charge-once


class ChargeOnce:
    """Charge-once's own pipeline, put through the same scenarios."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._began = time.time()

    def measure(self, scenarios: Iterable[Scenario], report: Report) -> list[Row]:
        """The last row of the table, the reconciler's findings and repairs included."""
        others_faults = faults.armed(self._stack)
        with ThreadPoolExecutor(FOLLOWED_AT_ONCE) as pool:
            orders_and_rows = list(
                pool.map(lambda scenario: self._follow(scenario, report), scenarios)
            )
        findings = self._reconcile(repair=False)
        for order, _ in orders_and_rows:
            self._mend_function(order)
        self._reconcile(repair=True)
        if not others_faults:
            faults.clear(self._stack)
        rows = []
        for order, row in orders_and_rows:
            key = order["idempotency_key"]
            found = findings.get(key, [])
            record = pipeline_books.record(self._stack, key)
            charges = pipeline_books.charges(self._stack, key)
            rows.append(
                replace(
                    row,
                    charges=sum(charge["status"] == "succeeded" for charge in charges),
                    findings=found,
                    repaired=record["status"] if found and record else None,
                )
            )
            report(rows[-1], True)
        return rows

    def _follow(self, scenario: Scenario, report: Report) -> tuple[Json, Row]:
        order = orders.follow(
            self._stack,
            orders.fresh_object_key(),
            orders.order_body(None, {}),
            times=scenario.deliveries,
            concurrently=scenario.together,
            # A charge takes some milliseconds here: a slow one makes sure that all of them overlap.
            armed=scenario.fault_of_charge_once + [_SLOW_CHARGE] * scenario.together,
        )
        ends = [run["path"][-1] for run in order["executions"]]
        if scenario.together and "ClaimedElsewhere" not in ends:
            raise CommandError(f"{scenario.name}: no two of them overlapped: {', '.join(ends)}.")
        record = order["record"]
        row = Row(
            handler=CHARGE_ONCE,
            scenario=scenario.name,
            charges=sum(charge["status"] == "succeeded" for charge in order["charges"]),
            record=record["status"] if record else None,
            queued=order["queued"],
            disturbed=scenario.point is not None,
        )
        report(row, False)
        return order, row

    def _mend_function(self, order: Json) -> None:
        """Take back the function's faults for this order; the provider stays as it is."""
        place = f"{order['object']['bucket']}/{order['object']['key']}"
        for name in fault_names.FUNCTION_FAULTS:
            self._stack.client("dynamodb").delete_item(
                TableName=self._stack.fault_table, Key={"pk": {"S": f"{place}#{name}"}}
            )

    def _reconcile(self, *, repair: bool) -> dict[str, list[str]]:
        """One pass; kinds by idempotency key. Orders older than this measurement are let alone."""
        days = (time.time() - self._began) / 86_400
        document = reconcile(self._stack, repair=repair, grace_seconds=0, horizon_days=days)
        found: defaultdict[str, list[str]] = defaultdict(list)
        for finding in document["findings"]:
            found[finding["idempotency_key"]].append(finding["kind"])
        return found


# ---------------------------------------------------------------- all of it


def measure(
    stack: Stack | None,
    lab_stack: Stack,
    report: Report,
    *,
    handlers: Iterable[str] = LAB_HANDLERS,
    scenarios: Iterable[Scenario] = SCENARIOS,
) -> list[Row]:
    """Measure the table: rows in the order of handlers and scenarios, charge-once last.

    Without a `stack` of charge-once, only the lab's handlers. Raises CommandError.
    """
    lab = Lab(lab_stack)
    lab.require_no_other_faults()
    scenarios = tuple(scenarios)
    with ThreadPoolExecutor() as pool:
        own = pool.submit(ChargeOnce(stack).measure, scenarios, report) if stack else None
        others = [pool.submit(lab.measure, handler, scenarios) for handler in handlers]
        pending: set[Future[Any]] = set(others)
        while pending:
            lab.refresh(report)
            done, pending = wait(pending, timeout=POLL_SECONDS)
            for future in done:
                future.result()  # its error ends the run, not only its row
        rows = [row for future in others for row in future.result()]
        return rows + (own.result() if own else [])
