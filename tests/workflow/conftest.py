"""The engines, started once each: every test that asks for `engine` runs on both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.workflow.engines import Engine, MiniStack, Moto


@pytest.fixture(
    scope="session",
    params=[
        # One group each, so that both run side by side; moto catches every call of its process.
        pytest.param("moto", marks=pytest.mark.xdist_group("workflow-moto")),
        pytest.param("ministack", marks=pytest.mark.xdist_group("workflow-ministack")),
    ],
)
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    if request.param == "moto":
        with Moto.started() as moto:
            yield moto
    else:
        log = tmp_path_factory.mktemp("workflow") / "emulator.log"
        with MiniStack.started(log) as ministack:
            yield ministack
