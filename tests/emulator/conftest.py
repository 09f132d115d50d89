"""One emulator with every mend, one with none, one with fault points: each started once."""

from collections.abc import Iterator

import pytest

from local.emulator.server import Server
from tests.emulator.bench import Bench

# Waits shrink to a twentieth: a retry interval of 10 s is half a second.
WAIT_SCALE = 0.05

# Of somebody who works with the real AWS; nothing of it may reach the emulator.
SHELL = {
    "AWS_ACCESS_KEY_ID": "AKIAREALREALREALREAL",
    "AWS_SECRET_ACCESS_KEY": "real",
    "AWS_SESSION_TOKEN": "real",
    "AWS_PROFILE": "production",
    "AWS_ENDPOINT_URL_S3": "https://s3.eu-west-1.amazonaws.com",
    "HTTP_PROXY": "http://192.0.2.1:3128",
    "LAMBDA_EXECUTOR": "docker",
}


def _serve(tmp_path_factory: pytest.TempPathFactory, *flags: str) -> Iterator[Bench]:
    log = tmp_path_factory.mktemp("emulator") / "log"
    settings = ("--wait-scale", str(WAIT_SCALE), "--async-retry-base-seconds", "0.1")
    with pytest.MonkeyPatch.context() as shell:
        for name, value in SHELL.items():
            shell.setenv(name, value)
        server = Server.start(log, *settings, *flags)
    with server:
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
