"""Keeps moto's interpreter in the thread that called it, and spares it some needless work."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, Self
from unittest.mock import patch

import reconciler.auditing
from moto.stepfunctions.parser.models import stepfunctions_parser_backends

from local import books, replay

PARSER = "moto.stepfunctions.parser"


class InlineThread:
    """A thread that does its work when it is started."""

    def __init__(self, target: Callable[..., Any], args: Sequence[Any] = (), **_: Any) -> None:
        self.start = lambda: target(*args)

    def join(self, timeout: float | None = None) -> None:
        """It has ended."""

    def is_alive(self) -> bool:
        return False


class InlinePool:
    """A thread pool for one thread: the work of `map` is done one after the other."""

    def __init__(self, *_: Any) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, function: Callable[..., Any], *items: Any, **_: Any) -> Iterator[Any]:
        return map(function, *items)

    def shutdown(self, **_: Any) -> None:
        pass


@contextlib.contextmanager
def in_this_thread() -> Iterator[None]:
    """While this lasts, neither moto nor replay nor reconciler starts a thread."""
    program = importlib.import_module(f"{PARSER}.asl.component.program.program")
    state = importlib.import_module(f"{PARSER}.asl.component.state.exec.execute_state")
    paths = importlib.import_module(f"{PARSER}.asl.utils.json_path")
    with contextlib.ExitStack() as stack:
        for owner, name, value in (
            (program, "threading", SimpleNamespace(Thread=InlineThread)),
            (state, "Thread", InlineThread),
            # Each path is parsed anew whenever it is used: a fifth of all the time.
            (paths, "parse", functools.cache(paths.parse)),
            (replay, "ThreadPoolExecutor", InlinePool),
            # A replay ends here long before its messages' time to be hidden does.
            (books.Hold, "_renew", lambda _: None),
            (reconciler.auditing, "ThreadPoolExecutor", InlinePool),
        ):
            stack.enter_context(patch.object(owner, name, value))
        yield


def forget_executions(state_machine_arn: str) -> None:
    """Names may be used again, and nothing piles up."""
    region, account = state_machine_arn.split(":")[3:5]
    backend = stepfunctions_parser_backends[account][region]
    backend.describe_state_machine(state_machine_arn).executions.clear()
