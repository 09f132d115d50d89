"""What `sam` is given, and what is said when it fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from local import deploy
from local.errors import CommandError
from local.paths import STATE_VARIABLE
from local.processes import sam

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


def test_what_killed_runs_have_built_goes_with_the_next_build(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for name in (f"of-{dead.pid}", "of-1", "of-1-kept", "build"):
        (tmp_path / name).mkdir()

    deploy._remove_left_copies(tmp_path)

    assert {path.name for path in tmp_path.iterdir()} == {"of-1", "of-1-kept", "build"}
