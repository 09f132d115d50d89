"""The stand-alone server as a program, and as a server of bad HTTP."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.contract.provider.harness import (
    API_KEY,
    PATIENCE_SECONDS,
    ROOT,
    StandAlone,
    charge,
    charges,
    fresh_key,
    order,
    stand_alone,
)


def run(*options: str) -> subprocess.CompletedProcess[str]:
    """`python -m provider` with options that make it end by itself."""
    return subprocess.run(
        [sys.executable, "-m", "provider", *options],
        env=os.environ | {"PYTHONPATH": str(ROOT / "functions/provider")},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def exchange(server: StandAlone, request: bytes) -> bytes:
    """Bytes in, bytes out, until the server hangs up."""
    address = httpx.URL(server.url)
    with socket.create_connection((address.host, address.port), PATIENCE_SECONDS) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


class TestProgram:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_it_ends_cleanly_when_told_to(self, number: signal.Signals) -> None:
        assert StandAlone().end(number) == 0

    def test_it_listens_on_loopback_only(self, server: StandAlone) -> None:
        assert httpx.URL(server.url).host == "127.0.0.1"

    def test_its_books_outlive_it(self, tmp_path: Path) -> None:
        books, key, body = str(tmp_path / "books.sqlite"), fresh_key(), order()
        with stand_alone("--database", books) as first:
            made = charge(first.api, key, body)

        with stand_alone("--database", books) as second:
            again = charge(second.api, key, body)

        assert again.content == made.content
        assert again.headers["Idempotent-Replayed"] == "true"

    def test_a_busy_port_is_said(self, server: StandAlone) -> None:
        port = str(httpx.URL(server.url).port)

        outcome = run("--port", port)

        assert outcome.returncode == 1
        assert f"127.0.0.1:{port}" in outcome.stderr

    def test_a_file_that_cannot_be_opened_is_said(self, tmp_path: Path) -> None:
        outcome = run("--database", str(tmp_path / "missing" / "books.sqlite"))

        assert outcome.returncode == 1
        assert "missing" in outcome.stderr
        assert "Traceback" not in outcome.stderr

    def test_an_open_port_needs_a_key_of_its_own(self) -> None:
        outcome = run("--host", "0.0.0.0", "--port", "0")  # noqa: S104  # refused, not opened

        assert outcome.returncode == 2
        assert "--api-key" in outcome.stderr

    def test_without_test_mode_there_is_no_test(self) -> None:
        server = StandAlone(test_mode=False)
        paths = ("/v1/test/faults", "/v1/test/clock", "/v1/test/requests?idempotency_key=k")

        statuses = [server.api.get(path).status_code for path in paths]

        server.end()
        assert statuses == [404, 404, 404]


class TestBadHttp:
    @pytest.mark.parametrize(
        ("request_", "status"),
        [
            (b"nonsense\r\n\r\n", b"400"),
            (b"GET /healthz HTTP/9.9\r\n\r\n", b"505"),
            (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414"),
            (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", b"431"),
            (b"POST /v1/charges HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
            (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", b"400"),
            (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", b"413"),
            (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
        ],
        ids=lambda value: repr(value[:40]),
    )
    def test_it_is_refused_with_a_problem_and_a_closed_connection(
        self, server: StandAlone, request_: bytes, status: bytes
    ) -> None:
        answer = exchange(server, request_)

        assert answer.startswith(b"HTTP/1.1 " + status)
        assert b"application/problem+json" in answer
        assert b"Connection: close" in answer

    def test_half_a_request_does_nothing(self, server: StandAlone) -> None:
        body = order()
        head = (
            f"POST /v1/charges HTTP/1.1\r\nAuthorization: Bearer {API_KEY}\r\n"
            "Idempotency-Key: half\r\nContent-Length: 1000\r\n\r\n"
        )
        address = httpx.URL(server.url)
        with socket.create_connection((address.host, address.port)) as connection:
            connection.sendall(head.encode() + httpx.Request("POST", "/", json=body).read())
            connection.shutdown(socket.SHUT_WR)

            answer = connection.recv(1)

        assert answer == b""
        assert charges(server.api, reference=body["reference"]) == []

    def test_a_connection_serves_many_requests(self, server: StandAlone) -> None:
        request = b"GET /healthz HTTP/1.1\r\n\r\n"
        last = b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"

        answer = exchange(server, request + request + last)

        assert answer.count(b"HTTP/1.1 200 OK") == 3
