"""Whether something answers on this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

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
