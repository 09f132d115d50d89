"""What the HTTP layer says when things go wrong, and what it does not say."""

import json
import logging
from collections.abc import Iterator
from typing import NoReturn

import pytest
from provider.api import Api, Request
from provider.core import Provider
from provider.sqlite import SqliteStore

ORDER = {"amount": 1999, "currency": "EUR", "source": "tok_visa", "reference": "my-reference"}
REQUEST = Request(
    method="POST",
    path="/v1/charges",
    query="",
    headers={"authorization": "Bearer my-api-key", "idempotency-key": "my-key"},
    body=json.dumps(ORDER).encode(),
)


class BrokenStore(SqliteStore):
    """A store that cannot be reached."""

    def claim(self, *_: object, **__: object) -> NoReturn:
        raise ConnectionError("host db-7 is down")


def make(store: SqliteStore) -> Api:
    provider = Provider(store, key_retention_seconds=60, in_flight_seconds=1, test_mode=False)
    return Api(provider, lambda key: key == "my-api-key")


@pytest.fixture
def broken() -> Iterator[Api]:
    store = BrokenStore(":memory:")
    yield make(store)
    store.close()


def test_a_broken_store_is_a_problem_that_tells_nothing_of_the_inside(
    broken: Api, caplog: pytest.LogCaptureFixture
) -> None:
    response = broken.respond(REQUEST)

    assert response.status == 500
    assert json.loads(response.body)["code"] == "internal-error"
    assert "db-7" not in response.body
    assert "db-7 is down" in caplog.text


def test_the_log_names_the_request_and_none_of_its_contents(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "provider")
    store = SqliteStore(":memory:")

    make(store).respond(REQUEST)

    store.close()
    assert caplog.messages == ["POST '/v1/charges' 201 key='my-key'"]
