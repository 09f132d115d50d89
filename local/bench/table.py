"""`make bench`: every benchmark, one after the other, and the table of docs/benchmarks.md."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from local.bench import coldstart, orders, reconcile, workflow
from local.bench.machine import flat
from local.paths import PROJECT
from local.progress import output, step

Json = dict[str, Any]

PAGE = PROJECT / "docs" / "benchmarks.md"

#: In the order in which they are run and shown, with what each is measured with.
BENCHMARKS: dict[str, Callable[[], Json]] = {
    "orders": lambda: orders.locally(300),
    "workflow": lambda: workflow.measure(200),
    "reconcile": lambda: reconcile.measure(1_000_000),
    "coldstart": lambda: coldstart.measure(coldstart.RUNS),
}

_HEAD = """\
# Benchmarks

Written by `make bench`; do not edit. Measured on a small machine against an emulator: compare the
figures of one table with each other, not with AWS. What each benchmark does stands at the top of
`local/bench/NAME.py`; `.venv/bin/python -m local bench NAME --json` runs one of them.

"""


def command() -> None:
    """Run every benchmark and write docs/benchmarks.md."""
    figures = {}
    for name, measure in BENCHMARKS.items():
        with step(f"Benchmark {name}"):
            figures[name] = measure()
    PAGE.write_text(page(figures, datetime.now(UTC)))
    output.print(f"{PAGE.relative_to(PROJECT)} written.")
    sys.stdout.flush()


def page(figures: dict[str, Json], now: datetime) -> str:
    """docs/benchmarks.md: one table for each benchmark, and what it was measured on."""
    return (
        _HEAD
        + f"Measured on {now:%Y-%m-%d}.\n"
        + "".join(_section(name, dict(found)) for name, found in figures.items())
    )


def _section(name: str, found: Json) -> str:
    cores, versions = found.pop("cores"), found.pop("versions")
    rows = "".join(f"| {line} | {_shown(value)} |\n" for line, value in flat(found))
    measured_on = ", ".join(f"{what} {version}" for what, version in sorted(versions.items()))
    return f"\n## {name}\n\n| figure | value |\n|---|---|\n{rows}\n{cores} cores; {measured_on}.\n"


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)
