"""Which provider the suite is pointed at.

PROVIDER_CONFORMANCE_URL and PROVIDER_CONFORMANCE_KEY name any provider with this contract. Without
them the suite runs against the stand-alone server and against the Lambda's handler.
"""

import os
from collections.abc import Iterator

import httpx
import pytest

from tests.contract.provider.harness import client

URL = os.environ.get("PROVIDER_CONFORMANCE_URL")
KEY = os.environ.get("PROVIDER_CONFORMANCE_KEY", "")
TARGETS = [URL] if URL else ["stand-alone", "function"]


@pytest.fixture(scope="session", params=TARGETS)
def api(request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    """An HTTP client of the provider under test."""
    if request.param == "stand-alone":
        yield request.getfixturevalue("server").api
    elif request.param == "function":
        yield request.getfixturevalue("function")
    else:
        with client(request.param, KEY) as reached:
            yield reached


@pytest.fixture
def test_mode(api: httpx.Client) -> Iterator[httpx.Client]:
    """The same, for what needs test mode: faults, the log of requests, the clock."""
    yield api
    api.delete("/v1/test/clock")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs test mode, where the provider at the URL has none."""
    if not URL:
        return
    with client(URL, KEY) as reached:
        if reached.get("/v1/test/clock").status_code == 200:
            return
    needing = [item for item in items if "test_mode" in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=needing)
    items[:] = [item for item in items if item not in needing]
