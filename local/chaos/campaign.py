"""The whole local stack under fire: real processes, real sockets, faults at every boundary.

A stack of its own is started, with fault points in the emulator and a fault-injecting proxy
between the functions and AWS. N orders are dropped and delivered again at random moments, while
calls fail, processes are killed, executions are stopped and the provider goes away for a while.
Then the faults stop, and replay and reconciler get the time that they need. What the books must
say is decided by `invariants` alone.

The seed decides what is dropped, when it is delivered again, and which calls fail; the machine's
own timing decides the rest, so a seed repeats the plan, not the interleaving. `simulation` repeats
both.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from local import faults, lifecycle, orders
from local import reconcile as reconciling
from local import replay as replaying
from local.books import plain_record
from local.chaos.bodies import order_body
from local.chaos.invariants import Books, Settlements, Verdict, Version, judge
from local.chaos.report import Report
from local.chaos.trouble import Proxy, Trouble
from local.errors import CommandError
from local.locks import exclusive
from local.paths import STATE_VARIABLE, campaign_folder, campaign_lock
from local.progress import errors, step
from local.provider_api import ProviderApi
from local.stack import Stack
from local.waiting import wait_for

Json = dict[str, Any]

#: Retry waits, scaled: eight retries of a charge, 337 s on average on AWS, take 3.4 s.
WAIT_SCALE = 0.01
#: Deliveries that are followed at the same time: two cores are busy with about as many.
AT_ONCE = 10
#: Processes of one function at most: each one more that must start takes time from all others.
ENVIRONMENTS = 6
#: How long a delivery is followed before the next one gets its place.
PATIENCE_SECONDS = 6.0
#: Above the longest retries of a run, with the time-outs that the provider may add.
QUIET_SECONDS = 180
REPAIR_ROUNDS = 6
OUTAGE_SECONDS = 6.0
#: Of all orders, those whose function dies around the charge.
FUNCTION_DIES = 0.1


@dataclass(order=True)
class _Delivery:
    """Due at `at` seconds of the campaign. The first of an order is S3's own."""

    at: float
    order: int = field(compare=False)
    first: bool = field(compare=False)


@contextlib.contextmanager
def own_stack(proxy: Proxy) -> Iterator[Stack]:
    """A stack with fault points, in a folder of its own, gone afterwards."""
    flags = ["--fault-points", "--function-endpoint", proxy.url]
    flags += ["--environments", str(ENVIRONMENTS)]
    with exclusive(campaign_lock(), "another campaign"), _own_state():
        try:
            stack = lifecycle.up(WAIT_SCALE, emulator_flags=flags, shown=False)
            assert stack.endpoint is not None  # noqa: S101 - a local stack has one
            proxy.start(stack.endpoint)
            yield stack
        finally:
            lifecycle.down()


@contextlib.contextmanager
def _own_state() -> Iterator[None]:
    before = os.environ.get(STATE_VARIABLE)
    os.environ[STATE_VARIABLE] = str(campaign_folder())
    try:
        yield
    finally:
        if before is None:
            del os.environ[STATE_VARIABLE]
        else:
            os.environ[STATE_VARIABLE] = before


def run(count: int, seed: int) -> Report:
    """Start a stack, and give it `count` orders and all the trouble that `seed` chooses."""
    return run_several(count, [seed])[seed]


def run_several(count: int, seeds: Sequence[int]) -> dict[int, Report]:
    """Several campaigns on one stack, each with orders of its own."""
    proxy = Proxy()
    reports = {}
    with own_stack(proxy) as stack:
        for seed in seeds:
            reports[seed] = Campaign(stack, count, seed).run(Trouble(stack, proxy, seed))
            forget(stack)
    return reports


def forget(stack: Stack) -> None:
    """Empty the queue: what is left there are rejected orders of a campaign that is over."""
    stack.client("sqs").purge_queue(QueueUrl=stack.failure_queue_url)


class Campaign:
    """One campaign on a stack that nobody else uses."""

    def __init__(self, stack: Stack, count: int, seed: int) -> None:
        self._stack = stack
        self._dice = random.Random(f"{seed} campaign")  # noqa: S311 - chaos, no secret
        self._count = count
        self._seed = seed
        # What an earlier campaign has left is not judged again; everything else is.
        self._older_records: set[str] = set()
        self._older_records = {record["pk"] for record in self._records()}
        with ProviderApi.of(stack) as provider:
            self._older_charges = {charge["id"] for charge in provider.charges()}
        self._placed: dict[int, tuple[orders.Placed, bytes]] = {}
        self._deaths: dict[int, str] = {}
        self._settlements = Settlements()
        self._violations: list[str] = []
        self._deliveries = 0

    def run(self, trouble: Trouble) -> Report:
        """Everything from the first order to the verdict."""
        with step("Warm up"), ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self._put, range(min(AT_ONCE, self._count))))
            self._wait_until_quiet()
        began = time.monotonic()
        with step(f"{self._count} orders under fire (seed {self._seed})"):
            trouble.begin()
            self._deliver_all(trouble)
            trouble.end()
            self._count_deaths(trouble)
        errors.print(f"{sum(trouble.injected.values())} faults injected.")
        with step("Wait until nothing runs"):
            self._wait_until_quiet()
        rounds, reported = self._repair()
        with step("Compare the books"):
            verdict = self._verdict(reported)
        return Report(
            seed=self._seed,
            deliveries=self._deliveries,
            injected=+trouble.injected,
            verdict=verdict,
            seconds=time.monotonic() - began,
            more={"repair_rounds": rounds},
        )

    # ---------------------------------------------------------------- under fire

    def _deliver_all(self, trouble: Trouble) -> None:
        """Every delivery in its turn, with an outage, replays and reconcilers in between."""
        due = self._plan()
        total = len(due)
        operators = self._operators(trouble)
        with ThreadPoolExecutor(AT_ONCE) as pool, ThreadPoolExecutor(2) as helpers:
            place = threading.Semaphore(AT_ONCE)

            def deliver(delivery: _Delivery) -> None:
                try:
                    self._deliver(delivery)
                finally:
                    place.release()

            pending = []
            while due:
                while operators and len(due) <= total * (1 - operators[0][0]):
                    pending.append(helpers.submit(operators.pop(0)[1]))
                place.acquire()
                pending.append(pool.submit(deliver, heapq.heappop(due)))
            for future in pending:
                future.result()

    def _plan(self) -> list[_Delivery]:
        """Deliveries as a heap. Repeats come soon after the first, or much later."""
        due = []
        for number in range(self._count):
            if number not in self._placed:  # the warm-up's are there already
                due.append(_Delivery(number, number, first=True))
            for _ in range(self._dice.choices((0, 1, 2, 3), (4, 3, 2, 1))[0]):
                delay = self._dice.choice((0.5, 3.0, self._dice.uniform(0, self._count)))
                due.append(_Delivery(number + delay, number, first=False))
            if self._dice.random() < FUNCTION_DIES and number not in self._placed:
                self._deaths[number] = self._dice.choice(
                    ("exit_before_charge", "exit_after_charge")
                )
        heapq.heapify(due)
        return due

    def _operators(self, trouble: Trouble) -> list[tuple[float, Callable[[], None]]]:
        """Who does what when: the share of all deliveries after which somebody acts."""

        def outage() -> None:
            with trouble.outage():
                time.sleep(OUTAGE_SECONDS)

        def reconcile() -> None:
            with contextlib.suppress(CommandError):  # it may well meet a fault
                reconciling.reconcile(self._stack, repair=True, grace_seconds=2)

        def restart_reconciler() -> None:
            """As scheduled, killed in the middle, and begun again."""
            client, name = self._stack.client("lambda"), self._stack.outputs["ReconcilerFunction"]
            for _ in range(2):
                client.invoke(FunctionName=name, InvocationType="Event", Payload=b"{}")
                time.sleep(1.5)
                trouble.kill_reconciler()
            client.invoke(FunctionName=name, InvocationType="Event", Payload=b"{}")

        def replay() -> None:
            with contextlib.suppress(CommandError, ClientError):
                replaying.replay(self._stack)

        return [
            (0.15, replay),
            (0.25, reconcile),
            (0.40, restart_reconciler),
            (0.50, outage),
            (0.60, replay),
            (0.75, reconcile),
            (0.90, replay),
        ]

    def _deliver(self, delivery: _Delivery) -> None:
        if delivery.first:
            self._put(delivery.order)
        elif delivery.order in self._placed:  # its upload, due earlier, may still be under way
            placed, _ = self._placed[delivery.order]
            self._deliveries += 1
            arn = orders.start_execution(self._stack, placed.event())
            client = self._stack.client("stepfunctions")
            _give_it_time(
                lambda: client.describe_execution(executionArn=arn)["status"] != "RUNNING"
            )
        if self._deliveries % 200 == 0:
            self._violations += self._settlements.watch(self._records())

    def _put(self, number: int) -> None:
        key = f"orders/{self._seed}/{number:06}.json"
        if number in self._deaths:
            faults.arm(self._stack, [faults.Fault(f"function.{self._deaths[number]}", 1)], key)
        dice = random.Random(f"{self._seed} order {number}")  # noqa: S311 - chaos, no secret
        body = order_body(dice, f"A-{self._seed}-{number}")
        placed = orders.put(self._stack, key, body)
        self._placed[number] = placed, body
        self._deliveries += 1
        _give_it_time(lambda: self._status(placed.idempotency_key) not in (None, "in_progress"))

    def _status(self, key: str) -> str | None:
        item = (
            self._stack.client("dynamodb")
            .get_item(TableName=self._stack.table, Key={"pk": {"S": key}})
            .get("Item")
        )
        return item["status"]["S"] if item else None

    def _count_deaths(self, trouble: Trouble) -> None:
        client, table = self._stack.client("dynamodb"), self._stack.fault_table
        for page in client.get_paginator("scan").paginate(TableName=table):
            for item in page["Items"]:
                if item["remaining"]["N"] == "0":
                    trouble.injected["charge function", item["pk"]["S"].rpartition("#")[2]] += 1
                client.delete_item(TableName=table, Key={"pk": item["pk"]})

    # ---------------------------------------------------------------- afterwards

    def _wait_until_quiet(self) -> None:
        client = self._stack.client("stepfunctions")
        wait_for(
            lambda: (
                not client.list_executions(
                    stateMachineArn=self._stack.state_machine_arn, statusFilter="RUNNING"
                )["executions"]
            ),
            QUIET_SECONDS,
        )

    def _repair(self) -> tuple[int, set[str]]:
        """Replay and reconcile until neither has anything left to do.

        Gives how many rounds that took, and which orders are reported to a person.
        """
        for number in range(1, REPAIR_ROUNDS + 1):
            with step(f"Repair, round {number}"):
                replayed = replaying.replay(self._stack)
                report = reconciling.reconcile(self._stack, repair=True, grace_seconds=0)
            if not replayed.replayed and not report["findings"]:
                break
        told = {item["idempotency_key"] for item in [*replayed.left, *report["findings"]]}
        return number, {key for key in told if key}

    def _verdict(self, reported: set[str]) -> Verdict:
        with ProviderApi.of(self._stack) as provider:
            charges = [
                charge for charge in provider.charges() if charge["id"] not in self._older_charges
            ]
        books = Books(
            versions=[
                Version(placed.bucket, placed.key, str(placed.version_id), body)
                for placed, body in self._placed.values()
            ],
            records=self._records(),
            charges=charges,
            reported=reported,
        )
        verdict = judge(books)
        verdict.violations += self._violations + self._settlements.watch(books.records)
        return verdict

    def _records(self) -> list[Json]:
        pages = self._stack.client("dynamodb").get_paginator("scan")
        return [
            plain_record(item)
            for page in pages.paginate(TableName=self._stack.table, ConsistentRead=True)
            for item in page["Items"]
            if item["pk"]["S"] not in self._older_records
        ]


def _give_it_time(condition: Callable[[], bool]) -> None:
    """Wait for an end that need not come: what does not settle now is what replays are for."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.2)
