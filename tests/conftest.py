"""What every test may use: one local stack for each test process, started when first asked for."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import lifecycle
from local.paths import STATE_VARIABLE
from local.stack import Stack

# What `make test ARGS=…` was told is not meant for the makes that tests call.
for _name in ("MAKEFLAGS", "MAKEOVERRIDES", "MFLAGS", "MAKELEVEL", "ARGS"):
    os.environ.pop(_name, None)

#: Set it to play the fresh seed of an earlier run again. Every test process inherits it.
FRESH_SEED_VARIABLE = "CHAOS_FRESH_SEED"
os.environ.setdefault(FRESH_SEED_VARIABLE, str(secrets.randbelow(1_000_000)))

#: A tenth of the local run's: the order of the waits is what matters, not their length.
WAIT_SCALE = 0.002


def pytest_report_header() -> str:
    return f"{FRESH_SEED_VARIABLE}={os.environ[FRESH_SEED_VARIABLE]}"


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The real stack: the template built and deployed by sam onto the emulator.

    It has a state folder and ports of its own, so that a developer's stack is left alone. Built
    functions are cached in the project, since their requirements come from the network.
    """
    state: Path = tmp_path_factory.mktemp("stack")
    before = os.environ.get(STATE_VARIABLE)
    os.environ[STATE_VARIABLE] = str(state)
    try:
        yield lifecycle.up(wait_scale=WAIT_SCALE)
    finally:
        lifecycle.down()
        if before is None:
            del os.environ[STATE_VARIABLE]
        else:
            os.environ[STATE_VARIABLE] = before
