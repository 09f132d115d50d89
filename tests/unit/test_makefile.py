"""`make install` on a machine of its own: a Python that notes what it is asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from local.paths import PROJECT
from local.waiting import wait_for

WAIT_SECONDS = 20

#: Makes an environment that holds nothing but itself; until `go` is there, that takes its time.
PYTHON = f"""#!/bin/sh
case "$*" in
*"-m venv"*)
    echo install >>asked
    until test -e go; do sleep 0.02; done
    mkdir -p .venv/bin && cp "$0" .venv/bin/python && cp "$0" .venv/bin/uv ;;
*fcntl*) echo lock >>asked; exec '{sys.executable}' "$@" ;;
*"cache dir"*) echo "$HOME/cache" ;;
*"pip sync"*) echo "$*" >>asked ;;
*"-m pip"*) ;;
*) exec '{sys.executable}' "$@" ;;
esac
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "a clone"
    shutil.copytree(PROJECT / "requirements", folder / "requirements")
    shutil.copy(PROJECT / "Makefile", folder)
    python = folder / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    return folder


def install(project: Path, home: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["make", "install", "PYTHON=./python"],
        cwd=project,
        # Not the variables of a make that runs these tests.
        env={"PATH": os.environ["PATH"], "HOME": home},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def asked(project: Path) -> list[str]:
    notes = project / "asked"
    return notes.read_text().splitlines() if notes.exists() else []


def test_of_two_at_once_one_installs_and_the_other_waits(project: Path, tmp_path: Path) -> None:
    both = [install(project, str(tmp_path)) for _ in range(2)]
    wait_for(lambda: asked(project).count("lock") == 2, WAIT_SECONDS)
    wait_for(lambda: "install" in asked(project), WAIT_SECONDS)
    (project / "go").touch()

    ends = [one.wait(WAIT_SECONDS) for one in both]

    said = "".join(one.communicate()[0] for one in both)
    assert ends == [0, 0], said
    assert asked(project).count("install") == 1
    assert said.count("Installing") == 1, said


def test_the_one_that_waits_says_so(project: Path, tmp_path: Path) -> None:
    first = install(project, str(tmp_path))
    wait_for(lambda: "install" in asked(project), WAIT_SECONDS)

    second = install(project, str(tmp_path))
    said: list[str] = []
    reading = threading.Thread(target=lambda: said.extend(second.stdout or ()))
    reading.start()

    try:
        wait_for(lambda: said, WAIT_SECONDS)
    finally:
        (project / "go").touch()
        reading.join(WAIT_SECONDS)
        ends = [one.wait(WAIT_SECONDS) for one in (first, second)]
        second.communicate()
    assert said == ["Waiting for another make that installs ...\n"]
    assert "Waiting" not in first.communicate()[0]
    assert ends == [0, 0]


def test_a_killed_one_keeps_nobody_waiting(project: Path, tmp_path: Path) -> None:
    first = install(project, str(tmp_path))
    wait_for(lambda: "install" in asked(project), WAIT_SECONDS)
    first.kill()
    (project / "go").touch()

    second = install(project, str(tmp_path))

    assert second.wait(WAIT_SECONDS) == 0
    assert (project / ".venv" / ".installed").exists()
    for one in (first, second):
        one.communicate()


@pytest.mark.parametrize(("home", "flags"), [("here", []), ("/dev/null", ["--no-cache"])])
def test_a_home_that_cannot_be_written_to_needs_no_cache(
    project: Path, tmp_path: Path, home: str, flags: list[str]
) -> None:
    (project / "go").touch()

    one = install(project, str(tmp_path / home))

    said, _ = one.communicate(timeout=WAIT_SECONDS)
    assert one.returncode == 0, said
    (sync,) = [words.split() for words in asked(project) if "sync" in words]
    assert sync[: len(flags) + 1] == [*flags, "pip"]
