"""The emulator keeps to itself: loopback, its own credentials, no process left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from local.emulator import environment
from local.emulator.__main__ import main
from local.emulator.server import EmulatorError, Server
from local.paths import PROJECT, STATE_VARIABLE
from local.ports import free_port
from local.waiting import wait_for
from tests.emulator.bench import WAIT_SECONDS, Bench

# One worker starts the emulators, not each of them.
pytestmark = pytest.mark.xdist_group("emulator")


def is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def files(folder: Path) -> set[str]:
    """The names of all files below a folder."""
    return {path.name for path in folder.rglob("*") if not path.is_dir()}


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """An emulator of one's own, below folders of its own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "it's a state: deep"))
    with Server.start(tmp_path / "log") as running:
        yield running


def test_it_keeps_to_the_loopback_and_to_its_own_credentials(mended: Bench) -> None:
    function = mended.function("return dict(os.environ)")

    seen = mended.invoke(function)

    assert {name for name, value in seen.items() if "real" in value.lower()} == set()
    assert seen["AWS_ACCESS_KEY_ID"] == environment.ACCOUNT_ID
    assert seen["AWS_ENDPOINT_URL"] == mended.server.url
    assert seen.keys().isdisjoint({"AWS_PROFILE", "AWS_ENDPOINT_URL_S3", "HTTP_PROXY"})
    listening = {
        connection.laddr.ip
        for connection in psutil.Process(mended.server.process.pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_a_stop_leaves_no_process_and_no_file(server: Server, tmp_path: Path) -> None:
    function = Bench(server).function("return os.getpid()")
    environment_pid = Bench(server).invoke(function)
    # MiniStack writes a key that it would keep in /tmp, for all emulators of the machine.
    server.client("cognito-idp").list_user_pools(MaxResults=1)
    assert "cognito-rsa-key.pem" in files(tmp_path)

    server.stop()

    wait_for(lambda: not is_running(environment_pid), WAIT_SECONDS)
    assert files(tmp_path) == {"lock", "log"}
    server.stop()  # once more is harmless


def test_functions_and_files_leave_when_the_emulator_is_killed(
    server: Server, tmp_path: Path
) -> None:
    function = Bench(server).function("return os.getpid()")
    environment_pid = Bench(server).invoke(function)

    os.kill(server.process.pid, signal.SIGKILL)

    server.process.wait(WAIT_SECONDS)
    wait_for(lambda: not is_running(environment_pid), WAIT_SECONDS)
    assert "bootstrap" in files(tmp_path)
    server.stop()
    assert files(tmp_path) == {"lock", "log"}


def test_an_emulator_leaves_when_whoever_started_it_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    start = (
        "import pathlib, sys; from local.emulator.server import Server; "
        "print(Server.start(pathlib.Path(sys.argv[1])).process.pid, flush=True); input()"
    )
    command = [sys.executable, "-c", start, str(tmp_path / "log")]
    with subprocess.Popen(
        command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as starter:
        assert starter.stdout is not None
        emulator = int(starter.stdout.readline())

        starter.kill()

    wait_for(lambda: not is_running(emulator), WAIT_SECONDS)
    assert files(tmp_path) == {"lock", "log"}


def test_a_burst_of_invocations_waits_for_few_environments(mended: Bench) -> None:
    # On the shared emulator, since only the number of this function's processes counts. The
    # function takes a little while, or one environment would do for all of them.
    function = mended.function("time.sleep(0.02)\nreturn os.getpid()", Timeout=30)

    with ThreadPoolExecutor(40) as pool:
        pids = list(pool.map(lambda _: mended.invoke(function), range(80)))

    assert len(pids) == 80
    assert 1 < len(set(pids)) <= 16


def test_a_port_in_use_is_told(mended: Bench, tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match="already in use"):
        Server.start(tmp_path / "log", port=mended.server.port)


def test_functions_are_sent_to_a_loopback_endpoint_only(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--port", str(free_port()), "--function-endpoint", "https://example.com"]

    with pytest.raises(SystemExit):
        main(flags)

    assert "https://example.com is not on 127.0.0.1" in capsys.readouterr().err
