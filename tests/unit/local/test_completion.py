"""The command line completes what is typed, in a shell that asks for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from local import completion


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("ord", "order"), ("order --del", "--deliver"), ("bench reco", "reconcile")],
    ids=["command", "option", "command of a group"],
)
def test_bash_completes_what_is_typed(tmp_path: Path, typed: str, expected: str) -> None:
    words = [completion.NAME, *typed.split()]
    ask = f"""
        eval "$1"
        COMP_WORDS=({" ".join(words)}) COMP_CWORD={len(words) - 1}
        _charge_once_completion {completion.NAME}
        echo "${{COMPREPLY[@]}}"
    """

    answer = subprocess.run(
        ["bash", "-c", ask, "bash", completion.script("bash")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert expected in answer.stdout.split()
    assert answer.stderr == ""


def test_the_short_name_runs_the_command_line_from_any_folder(tmp_path: Path) -> None:
    answer = subprocess.run(
        [
            "bash",
            "-c",
            f'eval "$1"; {completion.NAME} order --help',
            "-",
            completion.script("bash"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    assert "--deliver" in answer.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_asks_the_program_and_not_its_short_name(shell: completion.Shell) -> None:
    script = completion.script(shell)

    questions = [line for line in script.splitlines() if f"=complete_{shell}" in line]
    assert questions
    for line in questions:
        assert line.count(f"=complete_{shell}") == line.count(" -m local")
