"""Orders per second on the local stack, and from put to settled; beside the lab's handlers.

All in one run on one warm emulator, so that the ratios mean something where the figures do not:
an emulator on two cores is no AWS. What is compared is a whole promise against handlers that keep
less of it. The lab's handlers count their attempts and look for faults in their table, five
writes that they would not make elsewhere; charge-once looks for its faults too, and its provider
is a function of its own that is called over HTTP, where the lab's is a counter in a table.
"""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from local import lifecycle
from local.bench.machine import description, print_figures
from local.lab.measure import deploy_lab
from local.lab.scenarios import CHARGE_ONCE, LAB_HANDLERS
from local.orders import order_body, put
from local.progress import step
from local.stack import Stack

Json = dict[str, Any]

#: Objects that are put at the same time, and clients that put them.
CLIENTS = 8
#: More than the emulator starts processes of one function, so that all of them are warm.
WARM_UP = 24
#: How exactly a single order's end is seen.
POLL_SECONDS = 0.005
PATIENCE_SECONDS = 120


@dataclass(frozen=True)
class Handler:
    """One way to handle an object: how to drop one, and whether it has been settled.

    `drop` gives a name for what was dropped; `settled` counts all that are, `is_settled` one.
    """

    name: str
    drop: Callable[[], str]
    is_settled: Callable[[str], bool]
    settled: Callable[[], int]


def measure(running: Stack, orders: int) -> Json:
    """The document of `bench orders`."""
    lab = deploy_lab(running)
    handlers = [_charge_once(running), *(_of_lab(lab, name) for name in LAB_HANDLERS)]
    figures = {}
    for handler in handlers:
        with step(f"{orders} orders for {handler.name}"):
            figures[handler.name] = _measure(handler, orders)
    ours = figures[CHARGE_ONCE]
    machine = description()
    return {
        "orders": orders,
        "clients": CLIENTS,
        "handlers": figures,
        # How much charge-once costs in the lab's terms: 0.5 is half as many orders a second.
        "ratios": {
            name: {
                "orders_per_second": round(ours["orders_per_second"] / of["orders_per_second"], 2),
                "p50": round(ours["p50_ms"] / of["p50_ms"], 2),
            }
            for name, of in figures.items()
            if name != CHARGE_ONCE
        },
        **machine,
        "versions": machine["versions"] | running.versions,
    }


def _measure(handler: Handler, orders: int) -> Json:
    _drop_and_wait(handler, WARM_UP)
    latencies = sorted(_latency_ms(handler) for _ in range(max(orders // 4, 20)))
    cuts = statistics.quantiles(latencies, n=100, method="inclusive")
    return {
        "orders_per_second": round(orders / _drop_and_wait(handler, orders), 1),
        **{f"p{share}_ms": round(cuts[share - 1], 1) for share in (50, 95, 99)},
    }


def _drop_and_wait(handler: Handler, orders: int) -> float:
    """Drop that many at once. Gives the seconds until the last of them is settled."""
    wanted = handler.settled() + orders
    started = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda _: handler.drop(), range(orders)))
    _wait(lambda: handler.settled() >= wanted, 0.05, handler.name)
    return time.perf_counter() - started


def _latency_ms(handler: Handler) -> float:
    started = time.perf_counter()
    name = handler.drop()
    _wait(lambda: handler.is_settled(name), POLL_SECONDS, handler.name)
    return (time.perf_counter() - started) * 1000


def _wait(condition: Callable[[], bool], seconds: float, name: str) -> None:
    deadline = time.perf_counter() + PATIENCE_SECONDS
    while not condition():
        if time.perf_counter() > deadline:
            raise TimeoutError(f"{name} came to no end in {PATIENCE_SECONDS} s")
        time.sleep(seconds)


def _charge_once(stack: Stack) -> Handler:
    dynamodb, table = stack.client("dynamodb"), stack.table

    def drop() -> str:
        key = f"orders/bench-{uuid.uuid4().hex}.json"
        return put(stack, key, order_body(None, {})).idempotency_key

    def is_settled(key: str) -> bool:
        item = dynamodb.get_item(TableName=table, Key={"pk": {"S": key}}).get("Item", {})
        return bool(item.get("status", {}).get("S") == "done")

    def settled() -> int:
        return _count(dynamodb, table, "#what = :value", "status", {"S": "done"})

    return Handler(CHARGE_ONCE, drop, is_settled, settled)


def _of_lab(lab: Stack, name: str) -> Handler:
    dynamodb, table = lab.client("dynamodb"), lab.outputs["LabTable"]
    bucket = lab.outputs["LabBucket"]

    def drop() -> str:
        key = f"{name}/{uuid.uuid4().hex}.json"
        lab.client("s3").put_object(Bucket=bucket, Key=key, Body=b"{}")
        return f"attempts#{bucket}/{key}"

    def is_settled(attempts: str) -> bool:
        answer = dynamodb.get_item(TableName=table, Key={"pk": {"S": attempts}})
        return "ended" in answer.get("Item", {})

    def settled() -> int:
        prefix = {"S": f"attempts#{bucket}/{name}/"}
        rule = "attribute_exists(ended) AND begins_with(#what, :value)"
        return _count(dynamodb, table, rule, "pk", prefix)

    return Handler(name, drop, is_settled, settled)


def _count(dynamodb: Any, table: str, rule: str, name: str, value: Json) -> int:
    pages = dynamodb.get_paginator("scan").paginate(
        TableName=table,
        Select="COUNT",
        FilterExpression=rule,
        ExpressionAttributeNames={"#what": name},
        ExpressionAttributeValues={":value": value},
    )
    return sum(page["Count"] for page in pages)


def locally(orders: int) -> Json:
    """Measure on the local stack. One that had to be started for this is stopped again."""
    running = lifecycle.healthy()
    started_here = running is None
    running = running or lifecycle.up(shown=False)
    try:
        return measure(running, orders)
    finally:
        if started_here:
            lifecycle.down()


def command(
    orders: Annotated[int, typer.Option(min=1, help="For each handler.")] = 300,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else.")
    ] = False,
) -> None:
    """Orders per second and from put to settled, beside the lab's handlers, on the local stack."""
    print_figures(locally(orders), as_json=as_json)
