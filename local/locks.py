"""One at a time, also between shells."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from local.progress import step


@contextlib.contextmanager
def exclusive(path: Path, waiting_for: str) -> Iterator[None]:
    """Hold the lock file `path`; says what it waits for while another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with step(f"Wait for {waiting_for}"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield
