"""Whether a stack is up: one that is busy is, one that is gone is not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from local import lifecycle, processes, stack
from local.paths import STATE_VARIABLE

SLOWNESS_SECONDS = 0.3


@pytest.fixture
def slow() -> Iterator[ThreadingHTTPServer]:
    """A server that answers everything, late."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            over.wait(SLOWNESS_SECONDS)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Tests are quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        over.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def saved(
    slow: ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> stack.Stack:
    """A stack of its own state folder that is at the slow server."""
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    endpoint = f"http://127.0.0.1:{slow.server_port}"
    saved = stack.Stack(name="busy", region="us-east-1", endpoint=endpoint, outputs={})
    stack.save(saved)
    return saved


def test_a_stack_that_is_busy_is_up(saved: stack.Stack) -> None:
    assert lifecycle.healthy() == saved


def test_a_stack_that_never_answers_is_not_waited_for_without_end(
    saved: stack.Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "BUSY_SECONDS", SLOWNESS_SECONDS / 10)

    assert lifecycle.healthy() is None


def test_the_console_forgets_its_last_run_and_nothing_of_a_persons_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    own = tmp_path / ".stackport" / "endpoints.json"
    own.parent.mkdir()
    own.touch()
    start = MagicMock()
    monkeypatch.setattr(processes, "start", start)
    monkeypatch.setattr(processes, "wait_until", MagicMock())
    lifecycle._start_console("http://127.0.0.1:4566", 8080)
    remembered = Path(start.call_args.args[2]["STACKPORT_DATA_DIR"])
    remembered.mkdir()
    (remembered / "endpoints.json").touch()

    lifecycle._start_console("http://127.0.0.1:4567", 8080)

    assert own.exists()
    assert not remembered.exists()


@pytest.mark.parametrize("broken", ["{", '{"endpoint": null}'])
def test_a_broken_description_is_no_stack_and_goes_with_the_next_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    description = tmp_path / stack.STACK_FILE
    description.write_text(broken)

    assert lifecycle.healthy() is None
    assert lifecycle.down() == 0
    assert not description.exists()
