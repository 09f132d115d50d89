"""The emulator as a child process: started, waited for, stopped with all its children."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import boto3

from local.emulator import environment

START_SECONDS = 30.0
"""Start-up takes under one second; a machine busy with something else gets far more."""

STOP_SECONDS = 10.0
"""A stop takes about two seconds: MiniStack waits for its connections first."""


class EmulatorError(RuntimeError):
    """The emulator ended, or never answered; the message holds the end of its log."""


@dataclass
class Server:
    """A running emulator. Use it as a context manager, or call `stop`."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @classmethod
    def start(cls, log: Path, *flags: str, port: int | None = None) -> Self:
        """Start `python -m local.emulator` in a session of its own and wait until it answers.

        Args:
            log: file for everything that it prints.
            flags: further command-line flags of `python -m local.emulator`.
            port: loopback port; a free one when None.

        Raises:
            EmulatorError: it ended or did not answer within `START_SECONDS`.
        """
        port = port or free_port()
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "local.emulator", "--port", str(port), *flags],
                cwd=Path(__file__).parents[2],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        server = cls(process, port, log)
        try:
            wait_for(server._is_ready, START_SECONDS)
        except TimeoutError:
            server.stop()
            raise EmulatorError(f"no answer on port {port}\n{server._end_of_log()}") from None
        except BaseException:
            server.stop()
            raise
        return server

    @property
    def url(self) -> str:
        """The endpoint of every AWS service."""
        return f"http://127.0.0.1:{self.port}"

    def client(self, service: str, **settings: Any) -> Any:
        """A boto3 client of `service` that talks to this emulator.

        Args:
            service: name that boto3 knows.
            settings: further arguments of `boto3.client`; they win over the throw-away credentials.
        """
        own = {
            "endpoint_url": self.url,
            "region_name": environment.DEFAULT_REGION,
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
        }
        return boto3.client(service, **(own | settings))  # type: ignore[call-overload]

    def stop(self) -> None:
        """End the emulator and whatever it started; harmless when it has already ended."""
        for wish, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, STOP_SECONDS)):
            try:
                os.killpg(self.process.pid, wish)
                self.process.wait(seconds)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        self.process.wait(STOP_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _is_ready(self) -> bool:
        if self.process.poll() is not None:
            raise EmulatorError(f"exit code {self.process.returncode}\n{self._end_of_log()}")
        try:
            with urllib.request.urlopen(f"{self.url}/_ministack/health", timeout=1):  # noqa: S310
                return True
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return False

    def _end_of_log(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]


def free_port() -> int:
    """A loopback port that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for(condition: Callable[[], Any], seconds: float) -> Any:
    """Call `condition` until it returns something true, and return that.

    Raises:
        TimeoutError: nothing true came within `seconds`.
    """
    deadline = time.monotonic() + seconds
    while True:
        if result := condition():
            return result
        if time.monotonic() > deadline:
            raise TimeoutError(f"{condition} stayed false for {seconds} s")
        time.sleep(0.02)
