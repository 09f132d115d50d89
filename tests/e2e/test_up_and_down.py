"""A whole life of a stack, in the shell of somebody with an unusual machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from local import processes
from local.paths import PROJECT, STATE_VARIABLE
from tests.e2e.command import document

pytestmark = pytest.mark.xdist_group("up-and-down")


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_stack_leaves_nothing_behind_even_when_its_emulator_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    state = tmp_path / "it's a state: deep"
    monkeypatch.setenv(STATE_VARIABLE, str(state))
    shell = os.environ | {
        "HOME": "/dev/null",
        "TMPDIR": str(temporary),
        STATE_VARIABLE: os.path.relpath(state, PROJECT),
    }

    try:
        document("up", shell=shell)
        order = document("order", shell=shell)
        (emulator,) = [one for one in processes.running() if "local.emulator" in one.cmdline()]
        emulator.kill()
    finally:
        document("down", shell=shell)

    assert order["record"]["status"] == "done"
    assert list(temporary.iterdir()) == []
    assert files(state / "scratch") == {"lock"}
    assert not (state / "stack.json").exists()
