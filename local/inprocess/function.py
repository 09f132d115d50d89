"""The real charge function, called in this process instead of by Lambda."""

from __future__ import annotations

import contextlib
import io
import time
from typing import Any

from charge.handler import Function
from charge.settings import Settings

from local.inprocess import provider

Json = dict[str, Any]


class ChargeFunction:
    """Takes the payload of the state `Charge`. What the function logs goes into `log`."""

    def __init__(self, settings: Settings, pool: provider.ProviderPool, seconds: float) -> None:
        """`seconds` is the function's time-out, which nobody enforces here."""
        self._seconds = seconds
        self.log = io.StringIO()
        with contextlib.redirect_stdout(self.log):
            self._function = Function(settings, pool=pool, sleep=lambda _: None)

    def __call__(self, payload: Json) -> Json:
        with contextlib.redirect_stdout(self.log):
            return self._function.run(payload, _Context(self._seconds))


class _Context:
    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds

    def get_remaining_time_in_millis(self) -> int:
        return int((self._deadline - time.monotonic()) * 1000)
