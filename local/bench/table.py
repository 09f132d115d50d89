"""`make bench`: every benchmark, one after the other, and the tables of docs/benchmarks.md."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from local.paths import PROJECT
from local.progress import output, step

Json = dict[str, Any]

PAGE = PROJECT / "docs" / "benchmarks.md"

#: In the order in which they are run and shown.
BENCHMARKS: dict[str, list[str]] = {
    "orders": ["--orders", "300"],
    "workflow": ["--executions", "200"],
    "reconcile": ["--objects", "1000000"],
    "coldstart": [],
}

_HEAD = """\
# Benchmarks

Written by `make bench`; do not edit. Measured on a small machine against an emulator: compare the
figures of one table with each other, not with AWS. What each benchmark does stands at the top of
`local/bench/NAME.py`, and `.venv/bin/python -m local bench --help` tells how to run one of them.
A ratio is charge-once's figure divided by the other handler's. What a month on AWS costs is
computed, not measured: [costs.md](costs.md).

"""


def command() -> None:
    """Run every benchmark and write docs/benchmarks.md."""
    write(PAGE)
    output.print(f"{PAGE.relative_to(PROJECT)} written.")


def write(path: Path) -> None:
    """Run every benchmark and write the page there."""
    figures = {}
    for name, options in BENCHMARKS.items():
        with step(f"Benchmark {name}"):
            figures[name] = _measured(name, options)
    path.write_text(page(figures, datetime.now(UTC)))


def _measured(name: str, options: list[str]) -> Json:
    """What a benchmark prints: each in a process of its own, for they measure memory too."""
    words = [sys.executable, "-m", "local", "bench", name, *options, "--json"]
    ran = subprocess.run(words, cwd=PROJECT, check=True, stdout=subprocess.PIPE, text=True)
    figures: Json = json.loads(ran.stdout)
    return figures


def page(figures: dict[str, Json], now: datetime) -> str:
    """docs/benchmarks.md: the tables of each benchmark, and what it was measured on."""
    return (
        _HEAD
        + f"Measured on {now:%Y-%m-%d}.\n"
        + "".join(_section(name, dict(found)) for name, found in figures.items())
    )


def _section(name: str, found: Json) -> str:
    cores, versions = found.pop("cores"), found.pop("versions")
    measured_on = ", ".join(f"{what} {version}" for what, version in sorted(versions.items()))
    single = {label: value for label, value in found.items() if not isinstance(value, dict)}
    nested = {label: value for label, value in found.items() if isinstance(value, dict)}
    tables = [_table("figure", single)] if single else []
    tables += [_table(label, values) for label, values in nested.items()]
    return f"\n## {name}\n\n" + "\n".join(tables) + f"\n{cores} cores; {measured_on}.\n"


def _table(label: str, values: Json) -> str:
    """A row for each value; a value that is a dictionary itself is a row of several columns."""
    rows = {
        name: value if isinstance(value, dict) else {"value": value}
        for name, value in values.items()
    }
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    lines = [[label, *columns], ["---"] * (len(columns) + 1)]
    lines += [
        [name, *(_shown(row.get(column, "")) for column in columns)] for name, row in rows.items()
    ]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)
