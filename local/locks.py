"""One at a time, also between shells."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def exclusive(path: Path, waiting_for: str) -> Iterator[int]:
    """Hold the lock file `path`; says what it waits for while another process holds it.

    Gives the descriptor. A child that inherits it holds the lock too, for as long as it lives.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            from local.progress import step  # noqa: PLC0415 - slow to import, and seldom needed

            with step(f"Wait for {waiting_for}"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def is_held(path: Path) -> bool:
    """Whether a process holds the lock file `path`. The lock of one that was killed is free."""
    try:
        with path.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except BlockingIOError:
        return True
    return False
