"""A counting-house on a stack in memory, reached as a browser on this machine would."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from starlette.testclient import TestClient

from local.page.app import About, CountingHouse
from tests.unit.page.fakes import FakeBench, FakeStack

HERE = "http://127.0.0.1:8081"
ABOUT = About(
    name="charge-once",
    region="us-east-1",
    on_aws=False,
    machine_url="http://127.0.0.1:8080/resources/stepfunctions",
    console_name="StackPort",
)


@dataclass
class House:
    """The application with everything around it."""

    stack: FakeStack
    bench: FakeBench
    app: CountingHouse
    client: TestClient

    def post(self, action: str, **fields: str) -> int:
        """Press a button as the page itself would; gives the status."""
        return self.client.post(
            f"/bench/{action}",
            data={"token": self.app.token.value} | fields,
            headers={"Accept": "application/json", "Origin": HERE},
        ).status_code


@pytest.fixture
def house() -> Iterator[House]:
    """Three settled orders, all of them read."""
    stack, bench = FakeStack(), FakeBench()
    for number in (1, 2, 3):
        stack.settle(number)
    app = CountingHouse(ABOUT, stack, bench)
    app.reader.refresh()
    with TestClient(app.app(), base_url=HERE) as client:
        yield House(stack, bench, app, client)
