"""Temporary files go when their process goes, however it goes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local import locks, scratch
from local.paths import PROJECT, STATE_VARIABLE, campaign_folder

USE = """
from local import scratch
with scratch.folder() as folder:
    (folder / "file").touch()
    print(folder, flush=True)
    input()
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    return tmp_path


@contextmanager
def another_process() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """One that uses a folder, and the folder."""
    command = [sys.executable, "-c", USE]
    with subprocess.Popen(
        command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_a_folder_is_below_the_state_folder_and_gone_afterwards(state: Path) -> None:
    with scratch.folder() as folder:
        (folder / "file").touch()
        there = folder.is_dir() and folder.is_relative_to(state)

    assert there
    assert not folder.exists()


def test_a_folder_goes_also_when_its_use_fails() -> None:
    with pytest.raises(ZeroDivisionError), scratch.folder() as folder:
        raise ZeroDivisionError

    assert not folder.exists()


def test_a_folder_in_use_by_another_process_is_left_alone() -> None:
    with another_process() as (_, folder):
        scratch.sweep()
        with scratch.folder() as own:
            assert own != folder

        assert (folder / "file").exists()


def test_what_a_killed_process_has_left_goes_with_the_next_one() -> None:
    with another_process() as (process, folder):
        process.kill()
        process.wait()
        left = (folder / "file").exists()

    with scratch.folder():
        assert left
        assert not folder.exists()


def test_a_sweep_removes_also_what_a_killed_campaign_has_left(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(campaign_folder()))
    with another_process() as (process, folder):
        monkeypatch.setenv(STATE_VARIABLE, str(state))
        scratch.sweep()
        in_use = folder.exists()
        process.kill()
        process.wait()

        scratch.sweep()

    assert in_use
    assert not folder.exists()


def test_a_sweep_without_a_state_folder_makes_none(state: Path) -> None:
    scratch.sweep()

    assert list(state.iterdir()) == []


@pytest.mark.parametrize("name", ["thesis/chapter", "thesis/lock", "charge-once-thesis/chapter"])
def test_what_a_person_keeps_beside_the_folders_is_left_alone(state: Path, name: str) -> None:
    kept = state / "scratch" / name
    kept.parent.mkdir(parents=True)
    kept.touch()

    scratch.sweep()
    with scratch.folder():
        pass

    assert kept.exists()


def test_a_sweep_looks_at_no_folder_that_is_just_being_made(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = []

    def look(_: Path) -> bool:
        alone.append(locks.is_held(state / "scratch" / "lock"))
        return True

    with scratch.folder():
        monkeypatch.setattr(scratch, "is_held", look)

        scratch.sweep()

    assert alone == [True]
