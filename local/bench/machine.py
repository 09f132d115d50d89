"""What a figure depends on."""

from __future__ import annotations

import json
import os
import platform
import resource
import sys
from typing import Any

from rich.text import Text

from local.progress import output


def description() -> dict[str, Any]:
    """`cores` that this process may use, and `versions`."""
    return {
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "versions": {"python": platform.python_version(), "machine": platform.machine()},
    }


def peak_rss_mb() -> float:
    """The most memory that this process has had, in megabytes of 10**6 bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Kibibytes on Linux, bytes on macOS.
    return round((peak if sys.platform == "darwin" else peak * 1024) / 1e6, 1)


def print_figures(figures: dict[str, Any], *, as_json: bool) -> None:
    """As the one JSON document on stdout, or a line for each figure."""
    if as_json:
        sys.stdout.write(json.dumps(figures, indent=2) + "\n")
        return
    for name, value in flat(figures):
        output.print(Text(name, "dim"), str(value))


def flat(figures: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Nested figures as lines: `handlers / naive / p50_ms`."""
    lines: list[tuple[str, Any]] = []
    for name, value in figures.items():
        path = f"{prefix} / {name}" if prefix else name
        lines += flat(value, path) if isinstance(value, dict) else [(path, value)]
    return lines
