"""A whole life of a stack, in the shell of somebody with an unusual machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from local import processes
from local.paths import PROJECT, STATE_VARIABLE

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

    def local(*words: str) -> str:
        result = subprocess.run(
            [sys.executable, "-m", "local", *words],
            cwd=PROJECT,
            env=shell,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    try:
        local("up")
        order = json.loads(local("order", "--json"))
        (emulator,) = [one for one in processes.running() if "local.emulator" in one.cmdline()]
        emulator.kill()
    finally:
        local("down")

    assert order["record"]["status"] == "done"
    assert list(temporary.iterdir()) == []
    assert files(state / "scratch") == {"lock"}
    assert not (state / "stack.json").exists()
