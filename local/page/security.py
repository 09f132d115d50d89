"""Keeps other people's pages away from this one.

A page on loopback can be reached by every site that the same browser shows: by a form post
across sites, or after DNS rebinding, by name. So only loopback names are answered, posts must
come from this very page, and nothing runs in it but its own files.
"""

from __future__ import annotations

import hmac
import secrets
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK_NAMES = {"127.0.0.1", "localhost", "::1"}
MAX_BODY_BYTES = 64 * 1024  # forms hold a few short fields

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """ASGI middleware: refuses foreign hosts and foreign posts, and sets the headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if not scope["path"].startswith("/static/"):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        refusal = why_refused(scope["method"], Headers(scope=scope))
        if refusal is None:
            await self._app(scope, receive, guarded)
        else:
            status, why = refusal
            await PlainTextResponse(why + "\n", status)(scope, receive, guarded)


def why_refused(method: str, headers: Headers) -> tuple[int, str] | None:
    """The status and reason of a refusal, or None for a request that may pass."""
    host = headers.get("host", "")
    # urlsplit also takes "[::1]:8081" apart.
    if _hostname(f"//{host}") not in LOOPBACK_NAMES:
        return 421, "This page answers only under a loopback name, such as 127.0.0.1."
    if method in {"GET", "HEAD"}:
        return None
    # A browser says where a request comes from in one of these two, and a page cannot forge them.
    origin = headers.get("origin")
    if origin is not None and origin != f"http://{host}":
        return 403, "This request comes from another site."
    if headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return 403, "This request comes from another site."
    return None


def _hostname(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


class Token:
    """The secret that every form of this process carries, so that only its own pages can post."""

    def __init__(self) -> None:
        self.value = secrets.token_urlsafe(32)

    def fits(self, given: str) -> bool:
        """Whether a post brought it."""
        return hmac.compare_digest(given.encode(), self.value.encode())


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form post, each once. Raises ValueError for anything else."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/x-www-form-urlencoded":
        raise ValueError("a form is expected (application/x-www-form-urlencoded)")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise ValueError(f"a form has at most {MAX_BODY_BYTES} bytes")
    fields = parse_qs(body.decode(errors="replace"), keep_blank_values=True)
    return {name: values[-1] for name, values in fields.items()}
