"""One emulator with every mend, one with none, one with fault points: each started once."""

from collections.abc import Iterator

import pytest

from local.emulator.server import Server
from tests.emulator.bench import Bench

# Waits shrink to a twentieth: a retry interval of 10 s is half a second.
WAIT_SCALE = 0.05


def _serve(tmp_path_factory: pytest.TempPathFactory, *flags: str) -> Iterator[Bench]:
    log = tmp_path_factory.mktemp("emulator") / "log"
    settings = ("--wait-scale", str(WAIT_SCALE), "--async-retry-base-seconds", "0.1")
    with Server.start(log, *settings, *flags) as server:
        yield Bench(server)


@pytest.fixture(scope="session")
def mended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    yield from _serve(tmp_path_factory)


@pytest.fixture(scope="session")
def upstream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    yield from _serve(tmp_path_factory, "--no-mends")


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    yield from _serve(tmp_path_factory, "--fault-points")


@pytest.fixture(scope="session")
def mended_with_auth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    yield from _serve(tmp_path_factory, "--auth")


@pytest.fixture(scope="session")
def upstream_with_auth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    yield from _serve(tmp_path_factory, "--auth", "--no-mends")
