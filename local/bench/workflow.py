"""How many executions a second the pipeline makes inside one process, on moto's interpreter.

No emulator, no socket: what is measured is the definition, and in the second figure the real
charge function and provider with it. It tells what a workflow test costs.
"""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable
from typing import Annotated, Any

import typer

from local.bench.machine import description, print_figures
from local.orders import order_body
from local.progress import step

Json = dict[str, Any]

_CHARGED: Json = {
    "charge_id": "ch_1",
    "amount_minor": 1999,
    "currency": "EUR",
    "order_id": "A-1",
    "replayed": False,
    "charged_at": "2027-01-01T00:00:00Z",
    "expires_at": 1_900_000_000,
}


def measure(executions: int) -> Json:
    """The document of `bench workflow`: executions per second, the charge scripted or real."""
    machine = description()
    versions = {name: importlib.metadata.version(name) for name in ("moto", "boto3")}
    return {
        "executions": executions,
        "per_second": {
            "definition alone": _rate(executions, charge=lambda _: _CHARGED),
            "with charge function and provider": _rate(executions, charge=None),
        },
        **machine,
        "versions": machine["versions"] | versions,
    }


def _rate(executions: int, charge: Callable[[Json], Json] | None) -> float:
    # Moto alone takes longer to import than most commands take to run.
    from local.inprocess import InProcess  # noqa: PLC0415

    with InProcess(charge=charge) as pipeline:
        events = [
            pipeline.drop(f"orders/{number}.json", order_body(None, {}))
            for number in range(executions + 1)
        ]
        pipeline.deliver(events.pop())  # the first one parses the definition
        started = time.perf_counter()
        for event in events:
            run = pipeline.deliver(event)
            assert run.status == "SUCCEEDED", run  # noqa: S101 - else it measures nothing
        return round(executions / (time.perf_counter() - started), 1)


def command(
    executions: Annotated[int, typer.Option(min=1, help="In each of the two figures.")] = 200,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else.")
    ] = False,
) -> None:
    """Executions per second in one process, on moto's interpreter."""
    with step(f"Run {executions} executions, twice"):
        figures = measure(executions)
    print_figures(figures, as_json=as_json)
