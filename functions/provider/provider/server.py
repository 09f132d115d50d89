"""HTTP/1.1 for the stand-alone provider, on the standard library's threading server."""

import sys
from http.client import responses
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from provider.api import Api, Request, Response, refused
from provider.contract import MAX_BODY_BYTES
from provider.problem import Problem

_IDLE_SECONDS: Final = 60  # a connection without a request is closed


class Server(ThreadingHTTPServer):
    """Serves an Api; a thread per connection, so that a hanging answer delays no other."""

    daemon_threads = True
    request_queue_size = 128  # the default of 5 turns a burst of clients away

    def __init__(self, address: tuple[str, int], api: Api) -> None:
        super().__init__(address, _Handler)
        self.api = api

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no error of ours: that is what its time-outs look like."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    # Headers and body leave in one packet: two would wait for each other (Nagle, delayed ACK).
    wbufsize = -1
    disable_nagle_algorithm = True

    def __getattr__(self, name: str) -> Any:
        # The base class looks for do_GET and so on. The Api knows which methods there are.
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _serve(self) -> None:
        try:
            body = self._body()
        except Problem as problem:
            self.close_connection = True  # what was not read is not the next request
            self._write(refused(problem))
            return
        path, _, query = self.path.partition("?")
        # As a Lambda's Function URL has them: lower-case names, repeated headers joined.
        headers = {name.lower(): ",".join(self.headers.get_all(name, ())) for name in self.headers}
        request = Request(self.command, path, query, headers, body)
        self._write(self.server.api.respond(request))

    def _body(self) -> bytes:
        if "Transfer-Encoding" in self.headers:
            raise Problem(411, "length-required", "The length is required", "Send Content-Length.")
        lengths = self.headers.get_all("Content-Length", ["0"])
        length = lengths[0]
        if len(lengths) > 1 or not (length.isascii() and length.isdigit()):
            raise Problem(400, "length-invalid", "The length is not valid", "One Content-Length.")
        if int(length[:20]) > MAX_BODY_BYTES:
            raise Problem(
                413, "body-too-large", "The body is too large", f"At most {MAX_BODY_BYTES} bytes."
            )
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise ConnectionAbortedError("the client hung up before the end of its request")
        return body

    def _write(self, response: Response) -> None:
        body = response.body.encode()
        self.send_response(response.status)
        for name, value in response.headers.items():
            self.send_header(name, value)
        if response.status != 204:
            self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class refuses: a request line or headers that are no HTTP."""
        self.close_connection = True
        self.request_version = self.protocol_version  # of 0.9, which has no headers, on bad lines
        title = message or responses.get(code, "")
        self._write(refused(Problem(code, "http-invalid", title, explain or title)))

    def version_string(self) -> str:
        """Without the version of Python."""
        return "mock-payment-provider"

    def log_message(self, format: str, *args: Any) -> None:
        """The Api logs."""
