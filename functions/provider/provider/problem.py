"""Every answer that is not what the caller asked for (RFC 9457, `application/problem+json`)."""

from typing import Any


class Problem(Exception):
    """A refusal, with all that goes on the wire.

    `code` is stable and meant for programs, `detail` is for people.
    `hang_seconds` is how long an armed fault keeps the caller waiting for this answer.
    """

    def __init__(
        self,
        status: int,
        code: str,
        title: str,
        detail: str,
        *,
        headers: dict[str, str] | None = None,
        hang_seconds: float = 0,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.headers = headers or {}
        self.hang_seconds = hang_seconds
        self.document: dict[str, Any] = {
            "type": f"urn:problem:{code}",
            "title": title,
            "status": status,
            "code": code,
            "detail": detail,
        }


def key_problem(
    status: int, code: str, title: str, detail: str, headers: dict[str, str] | None = None
) -> Problem:
    """A problem with an Idempotency-Key. The IETF draft wants a link to the documentation in it."""
    link = {"Link": '<../openapi.json>; rel="describedby"; type="application/json"'}
    return Problem(status, code, title, detail, headers=link | (headers or {}))


def invalid(detail: str) -> Problem:
    """A request that breaks the contract: 400, never stored under its key."""
    return Problem(400, "request-invalid", "The request is not valid", detail)
