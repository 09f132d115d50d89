"""Folders for temporary files: below the state folder, and gone with the process that uses them.

Each is locked by its process for as long as that lives, so that whoever comes next can tell what
a killed one has left from what is in use.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from local.locks import exclusive, is_held
from local.paths import campaign_folder, state_folder

_LOCK = "lock"
#: Whatever else lies there is somebody's own: the state folder may be any folder of this machine.
_PREFIX = "charge-once-"


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A new folder, removed afterwards; what killed processes have left is removed first."""
    root = _root(state_folder())
    with contextlib.ExitStack() as held:
        with _one_at_a_time(root):
            _sweep(root)
            own = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
            held.enter_context(exclusive(own / _LOCK, "nobody: the folder is new"))
        held.callback(shutil.rmtree, own, ignore_errors=True)
        yield own


def sweep() -> None:
    """Remove what killed processes have left, those of a chaos campaign too."""
    for root in map(_root, (state_folder(), campaign_folder())):
        if root.is_dir():
            with _one_at_a_time(root):
                _sweep(root)


def _sweep(root: Path) -> None:
    for lock in root.glob(f"{_PREFIX}*/{_LOCK}"):
        if not is_held(lock):
            shutil.rmtree(lock.parent, ignore_errors=True)


def _one_at_a_time(root: Path) -> contextlib.AbstractContextManager[int]:
    """No folder is looked at between its making and its locking."""
    return exclusive(root / _LOCK, "another process that makes room")


def _root(state: Path) -> Path:
    return state / "scratch"
