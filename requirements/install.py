"""Makes a virtual environment that holds exactly what is pinned: before anything is installed.

python requirements/install.py FOLDER REQUIREMENTS...

The first of the requirements holds uv, which installs the rest. Of two that run at once one waits,
and then finds nothing left to do.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

LOCK = Path(".local", "install.lock")
#: In an environment: touched when it is complete, and older than requirements that have changed.
MARKER = ".installed"


def main(arguments: list[str]) -> None:
    """Make the environment, unless it is there."""
    folder, requirements = Path(arguments[0]), [Path(name) for name in arguments[1:]]
    with alone() as lock:
        if is_current(folder / MARKER, requirements):
            return
        print(f"Installing the pinned requirements into {folder} (once) ...", file=sys.stderr)
        # What the programs leave there when they are interrupted goes with it.
        with tempfile.TemporaryDirectory() as temporary:
            install(folder, requirements, lock, os.environ | {"TMPDIR": temporary})
        (folder / MARKER).touch()


@contextlib.contextmanager
def alone() -> Iterator[int]:
    """Hold the lock. Gives its descriptor, for children: it is free when the last has ended."""
    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another make that installs ...", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def is_current(marker: Path, requirements: list[Path]) -> bool:
    """Whether the environment was completed after the requirements were written."""
    if not marker.exists():
        return False
    return all(file.stat().st_mtime <= marker.stat().st_mtime for file in requirements)


def install(folder: Path, requirements: list[Path], lock: int, environment: dict[str, str]) -> None:
    """Make the environment. Raises subprocess.CalledProcessError."""
    python, uv = folder / "bin" / "python", folder / "bin" / "uv"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    hashed = ["--require-hashes", *requirements]

    def run(*words: object) -> None:
        subprocess.run(list(map(str, words)), env=environment, pass_fds=[lock], check=True)

    run(sys.executable, "-m", "venv", folder)
    run(*pip, "--require-hashes", "--no-deps", "-r", requirements[0])
    run(uv, *without_cache(uv), "pip", "sync", "--quiet", "--python", python, *hashed)


def without_cache(uv: Path) -> list[str]:
    """uv's option where a home that cannot be written to has no room for its cache."""
    asked = subprocess.run([uv, "cache", "dir"], capture_output=True, text=True, check=False)
    cache = Path(asked.stdout.strip())
    with contextlib.suppress(OSError):
        cache.mkdir(parents=True, exist_ok=True)
    return [] if os.access(cache, os.W_OK) else ["--no-cache"]


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(f"Not installed, see above: {error.cmd[0]} failed. The package index is needed.")
    except KeyboardInterrupt:
        sys.exit(130)
