"""Progress on stderr: what is being done, and how long it has taken so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

#: Everything that is not the answer goes here, so that stdout stays one clean document.
errors = Console(stderr=True, highlight=False)
#: The readable answer.
output = Console(highlight=False)


def visible(text: object) -> str:
    """Text from outside with a replacement character for each that moves or colours a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def one_line(text: object) -> str:
    """Text from outside, on one line: neither markup nor control characters reach the terminal."""
    return escape(visible(text))


@contextmanager
def step(label: str) -> Iterator[None]:
    """Show `label` with a spinner while the block runs, then a tick with the time it took.

    Without a terminal one line is printed when the step ends. A step that raises gets a cross.
    """
    started = time.monotonic()
    mark = "[red]✗[/]"
    try:
        with errors.status(f"{one_line(label)} …"):
            yield
        mark = "[green]✓[/]"
    finally:
        _ended(mark, label, started)


@contextmanager
def counter(label: str) -> Iterator[Callable[[int, int], None]]:
    """Like `step`, for work in pieces: call what it gives with (done, total)."""
    started = time.monotonic()
    with errors.status(f"{one_line(label)} …") as status:
        yield lambda done, total: status.update(f"{one_line(label)} {done} of {total} …")
    _ended("[green]✓[/]", label, started)


def _ended(mark: str, label: str, started: float) -> None:
    seconds = time.monotonic() - started
    errors.print(f"{mark} {one_line(label)} [dim]{seconds:.1f} s[/]", soft_wrap=True)
