"""Progress on stderr: what is being done, and how long it has taken so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text


def console(**options: Any) -> Console:
    """A terminal that takes every string as it is; what has a style comes as `Text`."""
    return Console(highlight=False, markup=False, emoji=False, **options)


#: Everything that is not the answer goes here, so that stdout stays one clean document.
errors = console(stderr=True)
#: The readable answer.
output = console()

DONE = Text("✓", "green")


def visible(text: object) -> str:
    """Text from outside with a replacement character for each that moves or colours a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def line(*parts: object) -> Text:
    """One line, with a blank between the parts. What is not yet `Text` may come from outside."""
    return Text(" ").join(part if isinstance(part, Text) else Text(visible(part)) for part in parts)


@contextmanager
def step(label: str) -> Iterator[None]:
    """Show `label` with a spinner while the block runs, then a tick with the time it took.

    Without a terminal one line is printed when the step ends. A step that raises gets a cross.
    """
    started = time.monotonic()
    mark = Text("✗", "red")
    try:
        with errors.status(line(label, "…")):
            yield
        mark = DONE
    finally:
        _ended(mark, label, started)


@contextmanager
def counter(label: str) -> Iterator[Callable[[int, int], None]]:
    """Like `step`, for work in pieces: call what it gives with (done, total)."""
    started = time.monotonic()
    with errors.status(line(label, "…")) as status:
        yield lambda done, total: status.update(line(label, f"{done} of {total} …"))
    _ended(DONE, label, started)


def _ended(mark: Text, label: str, started: float) -> None:
    seconds = Text(f"{time.monotonic() - started:.1f} s", "dim")
    errors.print(line(mark, label, seconds), soft_wrap=True)
