"""Waiting for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

#: On this machine asking costs nothing.
POLL_SECONDS = 0.02


def wait_for(
    condition: Callable[[], Any], seconds: float, poll_seconds: float = POLL_SECONDS
) -> Any:
    """Call `condition` until it returns something true, and return that.

    Raises TimeoutError when nothing true came within `seconds`.
    """
    deadline = time.monotonic() + seconds
    while True:
        if result := condition():
            return result
        if time.monotonic() > deadline:
            raise TimeoutError(f"{condition} stayed false for {seconds} s")
        time.sleep(poll_seconds)
