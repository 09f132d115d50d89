"""The mock provider, asked without a socket and without waiting."""

from __future__ import annotations

import io
import json
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

import urllib3
from provider.api import Api, Request, Response
from provider.core import Provider
from provider.settings import DEFAULT_IN_FLIGHT_SECONDS, DEFAULT_KEY_RETENTION_SECONDS
from provider.sqlite import SqliteStore

from local.errors import CommandError

Json = dict[str, Any]

API_KEY = "sk_test_in_process"
#: Never resolved: the requests end here.
URL = "https://provider.invalid"

_PAGE = 100


class InProcessProvider:
    """The provider's own rules and interface, with its books in memory.

    When it would sleep, it only notes for how long: a caller with a shorter time-out has then
    waited in vain, as over a network.
    """

    def __init__(
        self,
        *,
        key_retention_seconds: int = DEFAULT_KEY_RETENTION_SECONDS,
        store: SqliteStore | None = None,
    ) -> None:
        self._store = store or SqliteStore(":memory:")
        self._slept = 0.0
        provider = Provider(
            self._store,
            key_retention_seconds=key_retention_seconds,
            in_flight_seconds=DEFAULT_IN_FLIGHT_SECONDS,
            test_mode=True,
            sleep=self._sleep,
        )
        self._api = Api(provider, lambda key: key == API_KEY)

    def close(self) -> None:
        self._store.close()

    def respond(self, request: Request) -> tuple[Response, float]:
        """The answer, and for how many seconds the client waits for it."""
        self._slept = 0.0
        return self._api.respond(request), self._slept

    def ask(self, method: str, path: str, body: Json | None = None, **query: Any) -> Json:
        """One request with the right key. Raises CommandError when the provider refuses it."""
        headers = {"authorization": f"Bearer {API_KEY}", "content-type": "application/json"}
        content = b"" if body is None else json.dumps(body).encode()
        request = Request(method, path, urlencode(query), headers, content)
        answer, _ = self.respond(request)
        if answer.status >= 400:
            raise CommandError(f"The provider refused {method} {path}: {answer.body}")
        return cast(Json, json.loads(answer.body)) if answer.body else {}

    def charges(self, reference: str | None = None) -> list[Json]:
        """The provider's charges, oldest first; only those with this reference if one is given."""
        query: Json = {"limit": _PAGE} | ({} if reference is None else {"reference": reference})
        found: list[Json] = []
        while True:
            page = self.ask("GET", "/v1/charges", **query)
            found += page["data"]
            if not page["has_more"]:
                return found
            query["starting_after"] = found[-1]["id"]

    def arm_fault(self, fault: Json) -> None:
        """Arm a fault, in the words of `POST /v1/test/faults`."""
        self.ask("POST", "/v1/test/faults", fault)

    def clear_faults(self) -> None:
        """Disarm every fault."""
        self.ask("DELETE", "/v1/test/faults")

    def advance_clock(self, seconds: int) -> None:
        """Let the provider's clock run ahead, for example past its key retention."""
        self.ask("POST", "/v1/test/clock", {"advance_seconds": seconds})

    def _sleep(self, seconds: float) -> None:
        self._slept += seconds


class ProviderPool(urllib3.PoolManager):
    """Carries the charge function's requests to a provider in this process."""

    def __init__(self, provider: InProcessProvider) -> None:
        super().__init__()
        self._provider = provider

    def request(self, method: str, url: str, **options: Any) -> urllib3.BaseHTTPResponse:  # type: ignore[override]
        """One request. Raises ReadTimeoutError when the answer takes longer than the time-out."""
        parts = urlsplit(url)
        headers = {name.lower(): value for name, value in options["headers"].items()}
        body = options["body"] or b""
        answer, seconds = self._provider.respond(
            Request(method, parts.path, parts.query, headers, body)
        )
        if seconds >= options["timeout"].total:
            pool = self.connection_from_url(url)
            raise urllib3.exceptions.ReadTimeoutError(pool, parts.path, "Read timed out.")
        return urllib3.HTTPResponse(
            body=io.BytesIO(answer.body.encode()),
            headers=answer.headers,
            status=answer.status,
            preload_content=False,
            decode_content=False,
        )
