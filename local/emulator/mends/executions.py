"""Mends of how AWS Step Functions starts, runs, records and ends an execution."""

import time
from typing import Any

from local.emulator import upstream

# MiniStack's own sleep in front of every execution, which nothing else in its module equals.
_HEAD_START_SECONDS = 0.15


class _Clock:
    """The `time` module for MiniStack's interpreter, without its head start."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    @staticmethod
    def sleep(seconds: float) -> None:
        if seconds != _HEAD_START_SECONDS:
            time.sleep(seconds)


def start_at_once() -> None:
    """An execution begins when it is started.

    MiniStack sleeps 0.15 s before the first state, which is most of an order's local latency.
    """
    upstream.module("services.stepfunctions").time = _Clock()
