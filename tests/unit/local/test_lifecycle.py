"""Whether a stack is up: one that is busy is, one that is gone is not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

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
