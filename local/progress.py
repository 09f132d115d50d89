"""Progress on stderr: what is being done, and how long it has taken so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

#: Everything that is not the answer goes here, so that stdout stays one clean document.
errors = Console(stderr=True, highlight=False)
#: The readable answer.
output = Console(highlight=False)


@contextmanager
def step(label: str) -> Iterator[None]:
    """Show `label` with a spinner while the block runs, then a tick with the time it took.

    Without a terminal one line is printed when the step ends. A step that raises gets a cross.
    """
    started = time.monotonic()
    mark = "[red]✗[/]"
    try:
        with errors.status(f"{label} …"):
            yield
        mark = "[green]✓[/]"
    finally:
        errors.print(f"{mark} {label} [dim]{time.monotonic() - started:.1f} s[/]")


@contextmanager
def counter(label: str) -> Iterator[Callable[[int, int], None]]:
    """Like `step`, for work in pieces: call what it gives with (done, total)."""
    started = time.monotonic()
    with errors.status(f"{label} …") as status:
        yield lambda done, total: status.update(f"{label} {done} of {total} …")
    errors.print(f"[green]✓[/] {label} [dim]{time.monotonic() - started:.1f} s[/]")
