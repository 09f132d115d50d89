"""An HTTP server on loopback that answers with exactly the bytes it was told to."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from ssl import SSLContext
from typing import Any, BinaryIO


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Scripted:
    """`script` holds an answer for each request: bytes for the wire, or a function that writes.

    `closes` ends each connection after its answer, without announcing it; `closed` says that one
    has been. `over` is set when the test is.
    """

    url: str = ""
    script: list[bytes | Callable[[BinaryIO], None]] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    closes: bool = False
    closed: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    def stay_silent(self, wire: BinaryIO) -> None:
        """An answer that does not come while anybody may reasonably wait for it."""
        self.over.wait(20)


def answer(status: int, body: object = b"", **headers: str) -> bytes:
    """A well-formed answer; a body that is not bytes is sent as JSON. `_` in a header is `-`."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"Content_Type": "application/json", "Content_Length": str(len(content))} | headers
    lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items()]
    return f"HTTP/1.1 {status} X\r\n{''.join(lines)}\r\n".encode() + content


@contextmanager
def scripted_server(tls: SSLContext | None = None) -> Iterator[Scripted]:
    scripted = Scripted()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            scripted.seen.append(Seen(self.command, self.path, dict(self.headers.items()), body))
            reply = scripted.script.pop(0)
            if isinstance(reply, bytes):
                self.wfile.write(reply)
            else:
                reply(self.wfile)  # type: ignore[arg-type]
            self.close_connection = scripted.closes

        do_GET = do_POST  # noqa: N815 - the name is http.server's

        def log_message(self, *args: object) -> None:
            """Tests are quiet."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def get_request(self) -> tuple[socket, object]:
            connection, address = super().get_request()
            scripted.connections += 1
            return connection, address

        def shutdown_request(self, request: Any) -> None:
            super().shutdown_request(request)
            scripted.closed.set()

        def handle_error(self, request: object, client_address: object) -> None:
            """A client that hangs up is what some of these tests are about."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        scripted.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield scripted
        finally:
            scripted.over.set()
            server.shutdown()
            thread.join()
