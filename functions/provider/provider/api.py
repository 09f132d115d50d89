"""HTTP without a server: one request in, one response out, the same wherever it runs."""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from provider import contract
from provider.core import Document, Provider, dump
from provider.problem import Problem, key_problem
from provider.store import Answer

_log = logging.getLogger("provider")

JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"


@dataclass(frozen=True)
class Request:
    """`headers` has lower-case names; `path` and `query` are as sent, still percent-encoded."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Response:
    """What goes on the wire."""

    status: int
    body: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """A request that is one of the contract's operations, with checked parameters."""

    request: Request
    operation: contract.Operation
    in_path: dict[str, str]
    in_query: dict[str, Any]

    def body(self) -> Document:
        """The checked body. Raises Problem."""
        content_type = self.request.headers.get("content-type", "")
        return self.operation.body(content_type, self.request.body)


class Api:
    """The contract's operations on a provider.

    `accepts` says whether a bearer key is the right one.
    """

    def __init__(self, provider: Provider, accepts: Callable[[str], bool]) -> None:
        self._provider = provider
        self._accepts = accepts
        self._handlers: dict[str, Callable[[Call], Response]] = {
            "create_charge": self._create_charge,
            "list_charges": lambda call: _json(provider.list_charges(**call.in_query)),
            "retrieve_charge": lambda call: _json(provider.retrieve(call.in_path["id"])),
            "arm_fault": lambda call: _json(provider.arm(call.body()), 201),
            "list_faults": lambda _: _json(provider.list_faults()),
            "clear_faults": lambda _: _nothing(provider.clear_faults),
            "list_requests": lambda call: _json(
                provider.list_requests(call.in_query["idempotency_key"])
            ),
            "show_clock": lambda _: _json(provider.show_clock()),
            "advance_clock": lambda call: _json(
                provider.advance_clock(call.body()["advance_seconds"])
            ),
            "reset_clock": lambda _: _nothing(provider.reset_clock),
            "describe": lambda _: Response(200, contract.DOCUMENT, {"Content-Type": JSON}),
            "health": lambda _: _json({"status": "ok"}),
        }

    def respond(self, request: Request) -> Response:
        """Answer a request; never raises."""
        try:
            response = self._route(request)
        except Problem as problem:
            response = refused(problem)
        except Exception:
            _log.exception("unexpected error")
            response = refused(
                Problem(
                    500,
                    "internal-error",
                    "Something went wrong",
                    "Whether anything was done is unknown.",
                )
            )
        # The client knows the request by its key, of 255 characters at most; anybody may send more.
        key = request.headers.get("idempotency-key", "")[:255]
        _log.info("%s %r %s key=%r", request.method, request.path, response.status, key)
        return response

    def _route(self, request: Request) -> Response:
        at_path = {
            operation.method: (operation, found)
            for operation in contract.operations()
            if (found := operation.path.fullmatch(request.path))
        }
        operations = [operation for operation, _ in at_path.values()]
        if not any(operation.public for operation in operations):
            self._authenticate(request.headers.get("authorization", ""))
        hidden = not self._provider.test_mode and any(each.test_only for each in operations)
        if not operations or hidden:
            raise Problem(404, "not-found", "Not found", "There is nothing at this path.")
        if request.method not in at_path:
            allowed = ", ".join(sorted(at_path))
            raise Problem(
                405,
                "method-not-allowed",
                "The method is not allowed",
                f"Allowed: {allowed}.",
                headers={"Allow": allowed},
            )
        operation, found = at_path[request.method]
        call = Call(request, operation, found.groupdict(), operation.parameters(request.query))
        return self._handlers[operation.name](call)

    def _authenticate(self, authorization: str) -> None:
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer" or not self._accepts(key.strip()):
            raise Problem(
                401,
                "credentials-invalid",
                "The credentials are not valid",
                "Send the API key as a bearer token.",
                headers={"WWW-Authenticate": "Bearer"},
            )

    def _create_charge(self, call: Call) -> Response:
        key = idempotency_key(call.request.headers.get("idempotency-key"))
        try:
            order = call.body()
        except Problem as problem:
            self._provider.log(key, "refused", problem.status)
            raise
        return _answered(self._provider.charge(key, order))


def idempotency_key(header: str | None) -> str:
    """The key in the header: bare, or a quoted string as the IETF draft has it.

    Raises Problem 400 when it is missing, or is not as the contract says.
    """
    if header is None:
        raise key_problem(
            400,
            "idempotency-key-missing",
            "Idempotency-Key is missing",
            "A charge needs an Idempotency-Key header.",
        )
    if not contract.key_pattern().fullmatch(header):
        raise key_problem(
            400,
            "idempotency-key-invalid",
            "Idempotency-Key is not valid",
            "Idempotency-Key: expected 1 to 255 printable ASCII characters, bare or quoted.",
        )
    if header.startswith('"'):
        return re.sub(r"\\(.)", r"\1", header[1:-1])
    return header


def refused(problem: Problem) -> Response:
    """A problem as it goes on the wire."""
    headers = {"Content-Type": PROBLEM} | problem.headers
    return Response(problem.status, dump(problem.document), headers)


def _answered(answer: Answer) -> Response:
    headers = {"Content-Type": JSON if answer.status < 400 else PROBLEM}
    if answer.replayed:
        headers["Idempotent-Replayed"] = "true"
    return Response(answer.status, answer.body, headers)


def _json(document: Document, status: int = 200) -> Response:
    return Response(status, dump(document), {"Content-Type": JSON})


def _nothing(act: Callable[[], None]) -> Response:
    act()
    return Response(204)
