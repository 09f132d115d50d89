"""What a million orders cost on AWS: computed from the definition and the template.

Counted from them: transitions, calls, write units with those of the indexes, memory, log events,
alarms. What no file can say is assumed, and named in `ASSUMPTIONS`.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.text import Text

from local.bench.machine import description
from local.bench.prices import AS_OF, PRICES, REGION
from local.definition import load_definition
from local.paths import PROJECT
from local.progress import output
from local.transform import resolved

Json = dict[str, Any]

ORDERS = 1_000_000
PAGE = PROJECT / "docs" / "costs.md"

#: Billed for one run of a warm function: reading S3, calling a provider that needs 200 ms.
CHARGE_SECONDS = 0.3
#: A function that keeps its own record calls DynamoDB twice more, and waits for it.
OWN_RECORD_SECONDS = 0.02
#: One order in a thousand finds the provider down for minutes, is queued, and replayed.
FAILING = 1 / 1000
#: START, END, REPORT, one line of ours and one metric.
FUNCTION_LOG_BYTES = 1_500
#: One event of an execution's log, without inputs and outputs.
EXECUTION_EVENT_BYTES = 400
#: Orders arrive evenly, so that X-Ray's reservoir of one a second takes each of them.
TRACED = 1.0
#: The checkpoints of one order in a durable function: its event and two results.
CHECKPOINT_BYTES = 2_000
#: How long Lambda keeps them unless it is told otherwise: 14 days.
CHECKPOINT_MONTHS = 14 / 30
#: docs/reconciler.md adds this up for a pass over a million orders.
PASS_USD = 0.146
HOURS_A_MONTH = 730

ASSUMPTIONS = (
    f"A warm run of the charge function takes {CHARGE_SECONDS * 1000:.0f} ms, most of it waiting "
    "for the provider; cold starts are too few to count.",
    f"One order in {1 / FAILING:,.0f} fails until its retries are used up, is queued, and is "
    "replayed once.",
    "Order file and ledger record are below 1 KB.",
    "The orders come evenly within one month, so every one is traced; a burst is traced by 5%.",
    f"A log event of an execution has {EXECUTION_EVENT_BYTES} bytes, the function writes "
    f"{FUNCTION_LOG_BYTES:,} per order.",
    "The others are triggered, deployed and logged in the same way, and keep one record per order.",
    "A durable function checkpoints its start and two steps, reading and charging: three "
    f"operations and {CHECKPOINT_BYTES:,} bytes per order.",
    "The payment provider's own bill and data transfer are not in it.",
)


@dataclass(frozen=True)
class Line:
    """`quantity` units of a price, for `ORDERS` orders."""

    price: str
    quantity: float

    @property
    def usd(self) -> float:
        return PRICES[self.price].of(self.quantity)

    def summary(self) -> Json:
        return {
            "what": self.price,
            "unit": PRICES[self.price].unit,
            "quantity": round(self.quantity, 3),
            "usd": round(self.usd, 2),
        }


@dataclass(frozen=True)
class Bill:
    name: str
    lines: list[Line]

    @property
    def usd(self) -> float:
        return sum(line.usd for line in self.lines)

    def summary(self) -> Json:
        return {
            "name": self.name,
            "usd": round(self.usd, 2),
            "lines": [line.summary() for line in self.lines],
        }


# ---------------------------------------------------------------- counted


def happy_path(definition: Json) -> list[str]:
    """The states that an order passes when all goes well: the first choice, then every `Next`."""
    path = [str(definition["StartAt"])]
    while True:
        state = definition["States"][path[-1]]
        following = state["Choices"][0]["Next"] if "Choices" in state else state.get("Next")
        if following is None:
            return path
        path.append(str(following))


def write_units(definition: Json, table: Json) -> int:
    """Write request units of the happy path: each write of the record, and of its indexes.

    An index takes a unit when its entry appears, changes or goes. Source:
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html
    """
    units = 0
    before: set[str] = set()
    for name in happy_path(definition):
        after = _attributes_after(definition["States"][name], before)
        if after is None:
            continue
        units += 1
        for index in table["GlobalSecondaryIndexes"]:
            keys = {key["AttributeName"] for key in index["KeySchema"]}
            units += keys <= before or keys <= after
        before = after
    return units


def _attributes_after(state: Json, before: set[str]) -> set[str] | None:
    """The record's attributes after a state has written it; None for a state that does not."""
    parameters = state.get("Parameters", {})
    match state.get("Resource", "").rpartition(":")[2]:
        case "putItem":
            return set(parameters["Item"])
        case "updateItem":
            names = parameters["ExpressionAttributeNames"]
            setting, _, removing = parameters["UpdateExpression"].partition(" REMOVE ")
            added = {names.get(name, name) for name in re.findall(r"([#\w]+) = ", setting)}
            removed = {names.get(name, name) for name in re.findall(r"[#\w]+", removing)}
            return (before | added) - removed
    return None


def log_events(definition: Json) -> int:
    """Events of the happy path in the execution's log: entered, exited, and three for a task."""
    path = happy_path(definition)
    tasks = len([name for name in path if definition["States"][name]["Type"] == "Task"])
    return 2 + 2 * len(path) + 3 * tasks


def failing_transitions(definition: Json) -> int:
    """What an order costs in transitions that fails for good and is then replayed, beyond one
    that does not: the retries, the end, and the path through the takeover.

    Raises ValueError when the definition has lost a state of that path.
    """
    retries = sum(retrier["MaxAttempts"] for retrier in definition["States"]["Charge"]["Retry"])
    to_the_end = ["QueueFailure", "ChargeFailed"]
    replay = ["IsVersioned?", "IdentifyByVersion", "Claim", "ReadRecord", "WhoHoldsTheClaim?"]
    replay += ["TakeOver", "Charge", "MarkDone"]
    if unknown := {*to_the_end, *replay} - set(definition["States"]):
        raise ValueError(f"the definition has no {sorted(unknown)}")
    return int(retries) + len(to_the_end) + len(replay) - 1  # instead of MarkDone


def passes_a_month(schedule: str) -> float:
    """How often a `rate(…)` expression fires in a month. Raises ValueError for another form."""
    found = re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", schedule)
    if found is None:
        raise ValueError(f"not a rate: {schedule}")
    hours = {"minute": 1 / 60, "hour": 1, "day": 24}[found[2]] * int(found[1])
    return HOURS_A_MONTH / hours


# ---------------------------------------------------------------- bills


def _common(events: int, seconds: float, function: Json, retries: float = 0) -> Iterator[Line]:
    """What every handler pays: the upload, its event, the function, its log, the trace."""
    runs = ORDERS * (1 + retries)
    (architecture,) = function["Architectures"]
    gigabytes = function["MemorySize"] / 1024
    yield Line("puts", ORDERS)
    yield Line("events", ORDERS)
    yield Line("gets", runs)
    yield Line("invocations", runs)
    yield Line(f"compute-{architecture}", runs * seconds * gigabytes)
    yield Line("logs", (runs * FUNCTION_LOG_BYTES + ORDERS * events * EXECUTION_EVENT_BYTES) / 1e9)
    yield Line("traces", ORDERS * TRACED)


def bills() -> list[Bill]:
    """Ours, and what a user would take instead, each for `ORDERS` orders."""
    definition = load_definition()
    resources = resolved()["Resources"]
    function = resources["ChargeFunction"]["Properties"]
    retries = sum(retrier["MaxAttempts"] for retrier in definition["States"]["Charge"]["Retry"])
    transitions = len(happy_path(definition)) + FAILING * failing_transitions(definition)
    ours = [
        Line("transitions", ORDERS * transitions),
        Line("writes", ORDERS * write_units(definition, resources["LedgerTable"]["Properties"])),
        *_common(log_events(definition), CHARGE_SECONDS, function, FAILING * (retries + 1)),
        Line("messages", ORDERS * FAILING * 3),  # sent, received, deleted
    ]
    with_record = [
        Line("writes", ORDERS * 2),
        *_common(0, CHARGE_SECONDS + OWN_RECORD_SECONDS, function),
    ]
    durable = [
        Line("operations", ORDERS * 3),
        Line("checkpoints", ORDERS * CHECKPOINT_BYTES / 1e9),
        Line("checkpoints kept", ORDERS * CHECKPOINT_BYTES / 1e9 * CHECKPOINT_MONTHS),
        *_common(0, CHARGE_SECONDS, function),
    ]
    return [
        Bill("charge-once", ours),
        Bill("claim-first Lambda", with_record),
        Bill("Powertools idempotency", with_record),
        Bill("Lambda durable function", durable),
    ]


def monthly() -> Bill:
    """What is paid every month, orders or not."""
    resources = resolved()["Resources"]
    kinds = [resource["Type"] for resource in resources.values()]
    shown = json.dumps(resources["Dashboard"]["Properties"]["DashboardBody"])
    metrics = set(re.findall(r'\[\\+"ChargeOnce\\+", \\+"(\w+)\\+"', shown))
    return Bill(
        "every month",
        [
            Line("alarms", kinds.count("AWS::CloudWatch::Alarm")),
            Line("metrics", len(metrics)),
            Line("dashboards", kinds.count("AWS::CloudWatch::Dashboard")),
            Line("secrets", 1),
        ],
    )


def reconciling() -> Json:
    """The reconciler's month, when a million orders came in it evenly: by schedule."""
    parameters = resolved()["Parameters"]
    in_horizon = min(1.0, parameters["HorizonDays"]["Default"] / 30)
    default = parameters["ReconcileSchedule"]["Default"]
    return {
        schedule: round(passes_a_month(schedule) * in_horizon * PASS_USD, 2)
        for schedule in dict.fromkeys([default, "rate(6 hours)", "rate(1 day)"])
    }


def measure() -> Json:
    """The document of `bench cost`."""
    return {
        "orders": ORDERS,
        "region": REGION,
        "prices_as_of": AS_OF,
        "bills": [bill.summary() for bill in bills()],
        "monthly": monthly().summary(),
        "reconciler_monthly_usd": reconciling(),
        "assumptions": list(ASSUMPTIONS),
        **description(),
    }


# ---------------------------------------------------------------- the page


def blocks() -> dict[str, str]:
    """The generated parts of docs/costs.md."""
    made = bills()
    used = list(dict.fromkeys(line.price for bill in made for line in bill.lines))
    rows = ["| what | unit price |" + "".join(f" {bill.name} |" for bill in made)]
    rows.append("|---|---|" + "---|" * len(made))
    for price in used:
        cells = []
        for bill in made:
            usd = sum(line.usd for line in bill.lines if line.price == price)
            quantity = sum(line.quantity for line in bill.lines if line.price == price)
            cells.append(f" {usd:.2f} ({_amount(quantity)}) |" if quantity else " |")
        rows.append(f"| {PRICES[price].unit} | {_unit_price(price)} |" + "".join(cells))
    rows.append("| **dollars** | |" + "".join(f" **{bill.usd:.2f}** |" for bill in made))
    month = monthly()
    fixed = ["| what | how many | dollars |", "|---|---|---|"]
    fixed += [
        f"| {PRICES[line.price].unit} | {line.quantity:g} | {line.usd:.2f} |"
        for line in month.lines
    ]
    fixed.append(f"| **in all** | | **{month.usd:.2f}** |")
    passes = ["| `ReconcileSchedule` | dollars a month |", "|---|---|"]
    passes += [f"| `{schedule}` | {usd:.2f} |" for schedule, usd in reconciling().items()]
    sources = sorted({PRICES[line.price].source for bill in [*made, month] for line in bill.lines})
    return {
        "bill": "\n".join(rows) + "\n",
        "monthly": "\n".join(fixed) + "\n",
        "reconciler": "\n".join(passes) + "\n",
        "assumptions": "\n".join(f"- {one}" for one in ASSUMPTIONS) + "\n",
        "sources": f"{REGION}, list prices as written down on {AS_OF}, without free tiers. They "
        "were not fetched from AWS; the pages that decide are: "
        + ", ".join(f"<{source}>" for source in sources)
        + ".\n",
    }


def _amount(quantity: float) -> str:
    if quantity >= 100_000:
        return f"{quantity / 1e6:.3g} M"
    return f"{quantity:,.0f}" if quantity >= 100 else f"{quantity:.2g}"


def _unit_price(name: str) -> str:
    price = PRICES[name]
    if price.per == 1:
        return f"{price.usd:.10f}".rstrip("0").rstrip(".")
    return f"{price.usd:g} a million" if price.per == math.pow(10, 6) else f"{price.usd:g}"


def command(
    write_docs: Annotated[
        bool, typer.Option("--write-docs", help="Put the tables into docs/costs.md.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else.")
    ] = False,
) -> None:
    """What a million orders cost on AWS, beside what a user would take instead."""
    if write_docs:
        from local.lab import docs  # noqa: PLC0415 - imports a whole emulator

        docs.write(blocks(), PAGE)
    if as_json:
        sys.stdout.write(json.dumps(measure(), indent=2) + "\n")
        return
    for bill in [*bills(), monthly()]:
        output.print(Text(bill.name, "bold"), f"{bill.usd:.2f} USD")
        for line in bill.lines:
            output.print(f"  {line.usd:8.2f}  {_amount(line.quantity)} {PRICES[line.price].unit}")
