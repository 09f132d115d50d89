"""What MiniStack's interpreter does not hand from one function to the next: the current run.

Not a mend itself: several mends need to know which execution, and which context object, the
thread that calls them is working for.
"""

import contextvars
import functools
import threading
import time
from typing import Any

from local.emulator import upstream

_execution: contextvars.ContextVar[Any] = contextvars.ContextVar("execution", default=None)
_context: contextvars.ContextVar[Any] = contextvars.ContextVar("context", default=None)

_LAST_EVENTS = {"ExecutionAborted", "ExecutionFailed", "ExecutionSucceeded", "ExecutionTimedOut"}


class Ended(BaseException):
    """The execution has ended elsewhere: stopped, or out of time. Its thread has to leave.

    Not an `Exception`: the interpreter would turn one into a failed execution.
    """


class Execution(dict[str, Any]):
    """An execution's record, which ends exactly once.

    The first to set a final `status` has ended the run; any other gets `Ended`. The status shows
    to readers only with the history's last event, so that nobody sees a run that is over without
    its output.
    """

    def __init__(self, record: dict[str, Any]) -> None:
        super().__init__(record)
        self.ended = threading.Event()
        self.lock = threading.RLock()
        self._outcome: str | None = None

    def __setitem__(self, key: str, value: Any) -> None:
        if key != "status":
            super().__setitem__(key, value)
            return
        with self.lock:
            if self._outcome is not None:
                raise Ended
            self._outcome = value
            self.ended.set()

    def check_open_for(self, event_type: str) -> None:
        """Raises `Ended` unless the history may still grow by an event of this type."""
        if self._outcome is not None and event_type not in _LAST_EVENTS:
            raise Ended

    def show_outcome_after(self, event_type: str) -> None:
        """Let readers see the final status once the last event stands in the history."""
        if event_type in _LAST_EVENTS:
            super().__setitem__("status", self._outcome)


def execution() -> dict[str, Any] | None:
    """The record of the execution that this thread works for, if it works for one."""
    record: dict[str, Any] | None = _execution.get()
    return record


def context() -> dict[str, Any]:
    """The context object (`$$`) of the state that this thread works on; empty outside of one."""
    return _context.get() or {}


def sleep(seconds: float) -> None:
    """Sleep in the middle of a run, but leave it when it has ended meanwhile.

    Raises:
        Ended: it did.
    """
    record = execution()
    if not isinstance(record, Execution):
        time.sleep(max(seconds, 0))
    elif record.ended.wait(seconds):
        raise Ended


@functools.cache
def track() -> None:
    """Make `execution` and `context` known; called by each mend that needs them."""
    stepfunctions = upstream.module("services.stepfunctions")

    def run(original: Any, arn: str) -> None:
        _execution.set(stepfunctions._executions.get(arn))
        original(arn)

    def state(original: Any, definition: dict[str, Any], given: Any, *rest: Any) -> Any:
        token = _context.set(rest[-1] if rest else None)
        try:
            return original(definition, given, *rest)
        finally:
            _context.reset(token)

    upstream.wrap(stepfunctions, "_run_execution", run)
    for kind in ("pass", "task", "parallel", "map"):
        upstream.wrap(stepfunctions, f"_execute_{kind}", state)
