"""The provider's API as an operator uses it: reading its books, and arming faults."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterator
from typing import Any, Self

import httpx

from local.errors import CommandError
from local.stack import Stack, require_loopback

Json = dict[str, Any]

#: Above the charge function's patience: a person waits longer than a machine.
TIMEOUT_SECONDS = 30
PAGE = 100


class ApiKey(httpx.Auth):
    """The provider's key, read once, and once more when the provider refuses it.

    So a client may live longer than a key that is exchanged now and then.
    """

    def __init__(self, read: Callable[[], str]) -> None:
        self._read = read
        self._key = read()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """The request with the key; a second one only with another key."""
        request.headers["Authorization"] = f"Bearer {self._key}"
        answer = yield request
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            refused, self._key = self._key, self._read()
            if self._key != refused:
                request.headers["Authorization"] = f"Bearer {self._key}"
                yield request


class ProviderApi:
    """A client of the provider of one stack. Use it as a context manager."""

    def __init__(
        self, url: str, key: httpx.Auth, *, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._http = httpx.Client(
            base_url=url,
            auth=key,
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
            transport=transport,
        )

    @classmethod
    def of(cls, stack: Stack) -> ProviderApi:
        """The provider of `stack`, with the API key from its secret."""
        if stack.endpoint is not None:
            require_loopback(stack.provider_url)
        secret = functools.partial(
            stack.client("secretsmanager").get_secret_value,
            SecretId=stack.outputs["ProviderSecretArn"],
        )
        return cls(stack.provider_url, ApiKey(lambda: str(secret()["SecretString"])))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def charges(self, reference: str | None = None, *, after: str | None = None) -> Iterator[Json]:
        """Charges oldest first, page by page.

        Only those with `reference` if one is given, and only those after the charge id `after`.
        """
        query: dict[str, str | int] = {"limit": PAGE}
        if reference is not None:
            query["reference"] = reference
        if after is not None:
            query["starting_after"] = after
        while True:
            page = self._call("GET", "/v1/charges", params=query)
            yield from page["data"]
            if not page["has_more"]:
                return
            query["starting_after"] = page["data"][-1]["id"]

    def requests(self, idempotency_key: str) -> list[Json]:
        """What the provider saw for a key, oldest first. Test mode only."""
        answer = self._call("GET", "/v1/test/requests", params={"idempotency_key": idempotency_key})
        return list(answer["data"])

    def arm_fault(self, fault: Json) -> None:
        """Arm a fault; see the provider's OpenAPI document. Test mode only."""
        self._call("POST", "/v1/test/faults", json=fault)

    def faults(self) -> list[Json]:
        """The faults that are armed. Test mode only."""
        return list(self._call("GET", "/v1/test/faults")["data"])

    def clear_faults(self) -> None:
        """Disarm every fault. Test mode only."""
        self._call("DELETE", "/v1/test/faults")

    def _call(self, method: str, path: str, **arguments: Any) -> Json:
        try:
            answer = self._http.request(method, path, **arguments)
        except httpx.HTTPError as error:
            raise CommandError(
                f"The provider at {self._http.base_url} does not answer: {error}"
            ) from error
        if answer.is_error:
            raise CommandError(
                f"The provider refused {method} {path}: {answer.status_code} {answer.text}"
            )
        return dict(answer.json()) if answer.content else {}
