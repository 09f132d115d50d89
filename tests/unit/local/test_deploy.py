"""What `sam` is given, and what is said when it fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from local import deploy, processes
from local.errors import CommandError
from local.locks import is_held
from local.paths import PROJECT, STATE_VARIABLE
from local.processes import sam
from local.waiting import wait_for

TEMPLATE = """
Transform: AWS::Serverless-2016-10-31
Parameters:
  PythonVersion:
    Type: String
Resources:
  Function:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: function
      Handler: handler.handle
      Runtime: !Ref PythonVersion
"""


@pytest.fixture
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A template with one function that requires something, in a folder and a state of its own."""
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "a state"))
    monkeypatch.setattr(deploy, "BUILDS", tmp_path / "builds")
    function = tmp_path / "function"
    function.mkdir()
    (function / "handler.py").touch()
    (function / "requirements.txt").write_text("charge-once-not-there==1\n")
    path = tmp_path / "template.yaml"
    path.write_text(TEMPLATE)
    return path


def test_sam_is_found_wherever_the_project_was_installed(tmp_path: Path) -> None:
    result = subprocess.run([*sam(), "--version"], cwd=tmp_path, capture_output=True, check=False)

    assert sam()[0] == sys.executable
    assert result.stdout.startswith(b"SAM CLI, version")


def test_a_build_without_the_package_index_says_what_to_do(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setenv("HOME", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")

    with pytest.raises(CommandError, match="the package index must be reachable"):
        deploy._build("one-function", template, deploy.local_parameters())

    assert list(scratch.iterdir()) == []


def test_what_this_run_and_killed_ones_have_built_goes_with_the_next_build(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for name in (f"of-{dead.pid}", f"of-{os.getpid()}", "of-1", "of-1-kept", "build"):
        (tmp_path / name).mkdir()

    deploy._remove_left_copies(tmp_path)

    assert {path.name for path in tmp_path.iterdir()} == {"of-1", "of-1-kept", "build"}


#: A build by a sam that says so, and then does not end by itself.
BUILD = """
import sys
from pathlib import Path
from local import deploy
deploy.BUILDS = Path(sys.argv[1])
slow = "import sys, time; open(sys.argv[-1], 'w').write('building'); time.sleep(60)"
deploy.sam = lambda: [sys.executable, "-c", slow]
deploy._CONFIGURATION = (sys.argv[2],)
deploy._build("slow", Path("template.yaml"), {})
"""


def test_nobody_builds_beside_the_sam_of_a_killed_run_until_that_is_stopped(
    template: Path, tmp_path: Path
) -> None:
    began = tmp_path / "began"
    command = [sys.executable, "-c", BUILD, str(deploy.BUILDS), str(began)]
    with subprocess.Popen(command, cwd=PROJECT) as run:
        wait_for(began.exists, 20)
        run.kill()
    lock = deploy.BUILDS / "slow" / "lock"
    while_sam_lives = is_held(lock)

    stopped = processes.stop_all()

    assert while_sam_lives
    assert stopped == 1
    assert not is_held(lock)


def test_a_deployment_that_fails_leaves_nothing_of_what_was_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = tmp_path / "built"
    built.mkdir()

    def fail(*_: object, **__: object) -> None:
        raise CommandError("sam deploy failed")

    monkeypatch.setattr(deploy, "client", MagicMock())
    monkeypatch.setattr(deploy, "_sam", fail)

    with pytest.raises(CommandError, match="sam deploy failed"):
        deploy.deploy(built, "http://127.0.0.1:4566", {})

    assert not built.exists()
