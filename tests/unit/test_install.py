"""`make install` on a machine of its own, whose programs note what they are asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from local.paths import PROJECT
from local.waiting import wait_for

WAIT_SECONDS = 20

#: Runs the installer with programs that note what they are asked for. Until `go` is there, making
#: an environment takes its time.
DRIVER = """
import pathlib, subprocess, sys, time
sys.path.insert(0, "requirements")
import install

def run(words, check, **_):
    with open("asked", "a") as notes:
        notes.write(" ".join(map(str, words[1:])) + "\\n")
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    pathlib.Path(".venv").mkdir(exist_ok=True)
    return subprocess.CompletedProcess(words, 0, stdout=sys.argv[1])

install.subprocess.run = run
install.main([".venv", "requirements/bootstrap.txt", "requirements/dev.txt"])
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "a clone"
    shutil.copytree(PROJECT / "requirements", folder / "requirements")
    shutil.copy(PROJECT / "Makefile", folder)
    return folder


def install(project: Path, cache: Path | str = "/") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(cache)],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def asked(project: Path) -> list[str]:
    notes = project / "asked"
    return notes.read_text().splitlines() if notes.exists() else []


def has_begun(project: Path) -> bool:
    return any("venv" in words for words in asked(project))


def said_by(one: subprocess.Popen[str]) -> str:
    said, _ = one.communicate(timeout=WAIT_SECONDS)
    assert one.returncode == 0, said
    return said


def test_of_two_at_once_one_installs_and_the_other_says_that_it_waits(project: Path) -> None:
    first = install(project)
    wait_for(lambda: has_begun(project), WAIT_SECONDS)
    second = install(project)
    assert second.stdout
    waits = second.stdout.readline()

    (project / "go").touch()

    assert waits == "Waiting for another make that installs ...\n"
    assert said_by(second) == ""
    assert said_by(first) == "Installing the pinned requirements into .venv (once) ...\n"
    assert sum("venv" in words.split() for words in asked(project)) == 1


def test_a_killed_one_keeps_nobody_waiting(project: Path) -> None:
    first = install(project)
    wait_for(lambda: has_begun(project), WAIT_SECONDS)
    first.kill()
    first.communicate()
    (project / "go").touch()

    assert "Installing" in said_by(install(project))
    assert (project / ".venv" / ".installed").exists()


def test_it_installs_again_only_when_the_requirements_have_changed(project: Path) -> None:
    (project / "go").touch()
    said_by(install(project))

    unchanged = said_by(install(project))
    later = (project / ".venv" / ".installed").stat().st_mtime + 1
    os.utime(project / "requirements" / "dev.txt", (later, later))
    changed = said_by(install(project))

    assert unchanged == ""
    assert "Installing" in changed


@pytest.mark.parametrize(("cache", "flags"), [("cache", []), ("/dev/null/cache", ["--no-cache"])])
def test_a_home_that_cannot_be_written_to_needs_no_cache(
    project: Path, tmp_path: Path, cache: str, flags: list[str]
) -> None:
    (project / "go").touch()

    said_by(install(project, tmp_path / cache))

    (sync,) = [words.split() for words in asked(project) if "sync" in words]
    assert sync[: len(flags) + 1] == [*flags, "pip"]


@pytest.mark.parametrize("python", ["/bin/false", "./none", ""], ids=["fails", "missing", "empty"])
def test_what_is_no_python_that_serves_is_named(project: Path, python: str) -> None:
    ran = subprocess.run(
        ["make", "install", f"PYTHON={python}"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 2
    assert f"needs Python 3.11 to 3.14, which '{python}' is not" in ran.stderr
