"""The emulator as a child process: started, waited for, stopped with all its children."""

import contextlib
import functools
import http
import http.client
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import boto3
import botocore.session
from botocore.config import Config

from local import scratch
from local.emulator import environment
from local.ports import free_port
from local.waiting import wait_for

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

        It does not outlive this process, even one that is killed.

        Args:
            log: file for everything that it prints.
            flags: further command-line flags of `python -m local.emulator`.
            port: loopback port; a free one when None.

        Raises:
            EmulatorError: the port is taken, or the emulator ended or did not answer within
                `START_SECONDS`.
        """
        port = port or free_port()
        if _is_taken(port):
            raise EmulatorError(f"port {port} is already in use")
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "local.emulator"),
                    *("--port", str(port)),
                    *("--leave-with", str(os.getpid())),
                    *flags,
                ],
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
        config = Config(proxies={}).merge(settings.pop("config", Config()))
        return _session().client(service, config=config, **(own | settings))

    def stop(self) -> None:
        """End the emulator and whatever it started; harmless when it has already ended."""
        for wish in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, wish)
            except ProcessLookupError:
                break
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_SECONDS)
        scratch.sweep()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _is_ready(self) -> bool:
        if self.process.poll() is not None:
            raise EmulatorError(f"exit code {self.process.returncode}\n{self._end_of_log()}")
        # Not urllib, which would ask the proxy of the shell.
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
        try:
            connection.request("GET", "/_ministack/health")
            return connection.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()

    def _end_of_log(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]


@functools.cache
def _session() -> Any:
    """A session that reads no profile and no file, whatever the shell names."""
    ignored: dict[str, Any] = {
        "profile": (None, None, None, None),
        "config_file": (None, None, os.devnull, None),
        "credentials_file": (None, None, os.devnull, None),
    }
    return boto3.Session(botocore_session=botocore.session.Session(session_vars=ignored))


def _is_taken(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0
