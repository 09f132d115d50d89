"""The engines: every test that asks for `engine` runs on both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.workflow.engines import Engine, MiniStack, Moto


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniStack]:
    log = tmp_path_factory.mktemp("workflow") / "emulator.log"
    with MiniStack.started(log) as engine:
        yield engine


@pytest.fixture(
    # Moto catches every call of its process, so it goes when its tests have gone.
    scope="module",
    params=[
        # One group each, so that both run side by side.
        pytest.param("moto", marks=pytest.mark.xdist_group("workflow-moto")),
        pytest.param("ministack", marks=pytest.mark.xdist_group("workflow-ministack")),
    ],
)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "moto":
        with Moto.started() as moto:
            yield moto
    else:
        yield request.getfixturevalue("ministack")
