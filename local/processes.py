"""The local run's background processes: start, wait, stop, leave nothing behind."""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from local.emulator.environment import credentials
from local.errors import CommandError
from local.locks import is_held
from local.paths import (
    PROJECT,
    RUN_VARIABLE,
    STATE_VARIABLE,
    campaign_folder,
    campaign_lock,
    state_folder,
)
from local.stack import LOCAL_REGION
from local.waiting import wait_for

#: A polite SIGTERM is given this long before SIGKILL: the emulator needs 2 s to end its workers.
STOP_SECONDS = 6
#: Each starts in about a second; a machine busy with something else gets far more.
START_SECONDS = 60
#: A stack that is up may be busy; taken for dead, it would be stopped with all that it holds.
BUSY_SECONDS = 20

#: Started by this very process, which must collect them when they have ended.
_children: list[subprocess.Popen[bytes]] = []


def clean_environment() -> dict[str, str]:
    """The shell's environment without anything that names an AWS account.

    Everything that a local run starts gets it: by RUN_VARIABLE `stop_all` finds it again.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("AWS_") and name not in {"PYTHONPATH", "PYTHONHOME"}
    }
    tools = str(Path(sys.executable).parent)
    return (
        environment
        | credentials(LOCAL_REGION)
        | {
            "PATH": f"{tools}{os.pathsep}{environment.get('PATH', os.defpath)}",
            STATE_VARIABLE: str(state_folder()),
            RUN_VARIABLE: str(state_folder()),
        }
    )


def start(name: str, arguments: list[str], environment: Mapping[str, str]) -> psutil.Process:
    """Start a background process in a session of its own; its output goes to logs/NAME.log."""
    logs = state_folder() / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    with (logs / f"{name}.log").open("wb") as log:
        child = subprocess.Popen(
            arguments,
            cwd=PROJECT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _children.append(child)
    return psutil.Process(child.pid)


def wait_until(condition: Callable[[], bool], name: str, process: psutil.Process) -> None:
    """Wait until `condition` holds for the background process `name`.

    Raises CommandError with the end of its log when it dies first, or after START_SECONDS.
    """

    def settled() -> bool:
        if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
            raise CommandError(f"{name} ended while starting:\n{log_tail(name)}")
        return condition()

    try:
        wait_for(settled, START_SECONDS)
    except TimeoutError:
        raise CommandError(
            f"{name} did not answer in {START_SECONDS} s:\n{log_tail(name)}"
        ) from None


def answers(url: str, patience_seconds: float = 5) -> bool:
    """Whether an HTTP server answers at `url`, with any status below 500.

    Where nobody listens, the connection is refused at once, whatever the patience.
    """
    # A proxy of the shell must not stand between us and loopback.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        direct.open(url, timeout=patience_seconds).close()
    except urllib.error.HTTPError as error:
        return error.code < 500
    except (OSError, http.client.HTTPException):
        return False
    return True


def log_tail(name: str, lines: int = 15) -> str:
    """The last lines of a background process's log."""
    path = state_folder() / "logs" / f"{name}.log"
    if not path.exists():
        return ""
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])


def running() -> list[psutil.Process]:
    """Every process of this local run, found by RUN_VARIABLE in its environment.

    Reliable where a pid file is not: after a crash, and for grandchildren whose parent is gone.
    With what a campaign has left that was killed; one that lives looks after its own.
    """
    ours = {str(state_folder())}
    if not is_held(campaign_lock()):
        ours.add(str(campaign_folder()))
    spared = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            if process.environ().get(RUN_VARIABLE) in ours and process.pid not in spared:
                found.append(process)
    return found


def stop_all() -> int:
    """Stop every process of this local run. Gives how many there were."""
    stopped = 0
    # Again, until none is found: a worker may be born while its siblings end.
    while processes := running():
        stopped += len(processes)
        for process in processes:
            _quietly(process.terminate)
        if not _all_end(processes):
            for process in processes:
                _quietly(process.kill)
            _all_end(processes)
    # Only those that have ended: the others belong to another state folder.
    _children[:] = [child for child in _children if child.poll() is None]
    return stopped


def _all_end(processes: list[psutil.Process]) -> bool:
    """Whether all of them end within STOP_SECONDS.

    One whose parent is another shell stays a zombie until that one looks: it has ended too.
    """

    def has_ended(process: psutil.Process) -> bool:
        try:
            return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    try:
        wait_for(lambda: all(map(has_ended, processes)), STOP_SECONDS)
    except TimeoutError:
        return False
    return True


def _quietly(action: Callable[[], None]) -> None:
    try:
        action()
    except psutil.NoSuchProcess:
        return


def sam() -> list[str]:
    """The words that run this Python's sam.

    As a module, since the first line of the script `sam` names the folder where it was installed:
    a project that has been moved would not find it. -P: nothing of the working folder is imported.
    Raises CommandError when it is missing.
    """
    if importlib.util.find_spec("samcli") is None:
        raise CommandError("sam is missing: run `make install`.")
    return [sys.executable, "-P", "-m", "samcli"]
