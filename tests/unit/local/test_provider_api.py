"""The provider's API as an operator asks it: the key may be exchanged at any time."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from local.errors import CommandError
from local.provider_api import ApiKey, ProviderApi


class Provider:
    """Knows one key; `asked` are the keys that it was shown."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.asked: list[str] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        given = request.headers["Authorization"].removeprefix("Bearer ")
        self.asked.append(given)
        if given != self.key:
            return httpx.Response(401, json={"error": "who are you?"})
        return httpx.Response(200, json={"data": [], "has_more": False})


@pytest.fixture
def provider() -> Provider:
    return Provider("first")


def api(provider: Provider, secret: Callable[[], str]) -> ProviderApi:
    return ProviderApi(
        "http://127.0.0.1:1", ApiKey(secret), transport=httpx.MockTransport(provider.answer)
    )


def test_the_key_is_read_once_for_many_questions(provider: Provider) -> None:
    secrets = iter(["first"])
    asked = api(provider, lambda: next(secrets))

    asked.faults()
    asked.faults()

    assert provider.asked == ["first", "first"]


def test_a_key_that_was_exchanged_is_read_again(provider: Provider) -> None:
    secrets = iter(["first", "second"])
    asked = api(provider, lambda: next(secrets))
    asked.faults()

    provider.key = "second"
    asked.faults()
    asked.faults()

    assert provider.asked == ["first", "first", "second", "second"]


def test_a_key_that_is_simply_wrong_is_tried_once(provider: Provider) -> None:
    asked = api(provider, lambda: "wrong")

    with pytest.raises(CommandError, match="401"):
        asked.faults()

    assert provider.asked == ["wrong"]
