"""What a figure depends on."""

from __future__ import annotations

import os
import platform
import resource
import sys
from typing import Any


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
