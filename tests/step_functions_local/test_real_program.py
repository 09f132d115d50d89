"""The real Step Functions Local: collected only where STEP_FUNCTIONS_LOCAL_JAR names it.

Its waits between retries are not scaled, so nothing here depends on many of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local.stack import Stack
from tests.step_functions_local.contract import TheStack
from tests.step_functions_local.machine import Machine, with_the_real_program

pytestmark = pytest.mark.xdist_group("sfn-local")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    real = with_the_real_program(tmp_path_factory.mktemp("step-functions-local"))
    yield real
    real.command("down")


@pytest.fixture(scope="module")
def stack(machine: Machine) -> Stack:
    return machine.up()


class TestTheRealProgram(TheStack):
    pass
