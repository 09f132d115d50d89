"""Whether something answers on this machine, and which processes are a local run's own."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from local import processes
from local.cli import app
from local.locks import exclusive
from local.paths import PROJECT, STATE_VARIABLE, campaign_folder, campaign_lock
from local.processes import answers


class Echo(BaseHTTPRequestHandler):
    """Answers with the status that the path names."""

    def do_GET(self) -> None:
        self.send_response(int(self.path.strip("/")))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Echo) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "answered"), [(200, True), (404, True), (500, False), (503, False)]
)
def test_any_status_below_500_is_an_answer(server: str, status: int, answered: bool) -> None:
    assert answers(f"{server}/{status}") is answered


def test_a_proxy_of_the_shell_is_not_asked(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)

    assert answers(f"{server}/200")


def test_where_nobody_listens_nothing_answers() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))

        assert not answers(f"http://127.0.0.1:{taken.getsockname()[1]}")


def test_what_does_not_speak_http_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def say_something() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1024)
                connection.sendall(b"hello\r\n\r\n")

        thread = threading.Thread(target=say_something)
        thread.start()
        answered = answers(f"http://127.0.0.1:{listening.getsockname()[1]}")
        thread.join()

    assert not answered


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    return tmp_path


@contextlib.contextmanager
def sleeper(environment: Mapping[str, str], *, own_session: bool = False) -> Iterator[int]:
    """A process that only its killer ends; gives its id."""
    command = [sys.executable, "-S", "-c", "print('awake', flush=True); input()"]
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=own_session,
    ) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


def running() -> set[int]:
    return {process.pid for process in processes.running()}


@pytest.mark.parametrize("own_session", [True, False])
def test_a_process_that_only_shares_the_shells_variables_is_not_ours(
    state: Path, own_session: bool
) -> None:
    with sleeper(os.environ | {STATE_VARIABLE: str(state)}, own_session=own_session) as stranger:
        assert stranger not in running()


@pytest.mark.parametrize("own_session", [True, False])
def test_what_a_local_run_starts_is_ours(state: Path, own_session: bool) -> None:
    with sleeper(processes.clean_environment(), own_session=own_session) as ours:
        assert ours in running()


@pytest.mark.parametrize("theirs", ["other", "../other"])
def test_what_the_run_of_another_state_folder_starts_is_not_ours(
    state: Path, monkeypatch: pytest.MonkeyPatch, theirs: str
) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(state / theirs))
    environment = processes.clean_environment()
    monkeypatch.setenv(STATE_VARIABLE, str(state))

    with sleeper(environment) as stranger:
        assert stranger not in running()


def test_what_a_campaign_starts_is_ours_once_the_campaign_is_gone(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(campaign_folder()))
    environment = processes.clean_environment()
    monkeypatch.setenv(STATE_VARIABLE, str(state))

    with sleeper(environment) as process:
        with exclusive(campaign_lock(), "nobody"):
            while_it_lives = process in running()
        once_it_is_gone = process in running()

    assert not while_it_lives
    assert once_it_is_gone


def test_whoever_stops_a_run_from_inside_it_lives_on(state: Path) -> None:
    code = "from local import processes; print(processes.stop_all())"
    outer = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"

    ended = subprocess.run(
        [sys.executable, "-c", outer, code],
        cwd=PROJECT,
        env=processes.clean_environment(),
        capture_output=True,
        check=False,
    )

    assert (ended.returncode, ended.stdout) == (0, b"0\n")


@pytest.mark.parametrize("port", ["99999", "65536", "-5"])
def test_a_port_that_cannot_be_is_a_mistake_in_the_command(state: Path, port: str) -> None:
    result = CliRunner().invoke(app, ["page", "--port", port])

    assert result.exit_code == 2
    assert "Invalid value for '--port'" in result.output
