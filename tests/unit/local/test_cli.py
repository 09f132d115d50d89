"""The command line starts at once, and its help is complete."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from local.cli import app
from local.paths import PROJECT

#: Each of these alone takes longer to import than the help takes to be shown.
SLOW = {"boto3", "httpx", "moto", "pydantic", "samcli", "samtranslator", "starlette"}
COMMANDS = {
    *("local", "up", "down", "status", "order", "faults", "stop"),
    *("ledger", "charges", "queue", "executions", "replay", "reconcile"),
    *("deploy", "delete", "page", "picture", "sim", "limits", "lab", "chaos", "bench"),
}


@pytest.mark.parametrize("module", ["cli", "lifecycle"])
def test_help_and_status_load_nothing_slow(module: str) -> None:
    code = f"import json, sys, local.{module}; print(json.dumps(list(sys.modules)))"

    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
    ).stdout

    assert SLOW & set(json.loads(loaded)) == set()


def test_the_help_names_every_command() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output

    assert [
        command
        for command in COMMANDS
        if f"\N{BOX DRAWINGS LIGHT VERTICAL} {command} " not in shown
    ] == []
    assert "Measure: each figure comes with" in shown


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_explains_itself(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])

    assert result.exit_code == 0
    assert f"Usage: root {command} " in result.output


def test_the_help_tells_the_exit_statuses_and_offers_no_completion_of_python() -> None:
    shown = CliRunner().invoke(app, ["--help"]).output

    assert "Exit status: 0 when" in shown
    assert "--install-completion" not in shown


def test_colours_are_left_out_when_the_environment_says_so() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", "from local import show; show.ledger([{'status': 'done'}])"],
        cwd=PROJECT,
        env=os.environ | {"FORCE_COLOR": "1", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert "done" in shown
    assert "\x1b[32m" not in shown


def test_the_help_of_bench_names_its_measurements() -> None:
    shown = CliRunner().invoke(app, ["bench", "--help"]).output

    assert all(name in shown for name in ("reconcile", "coldstart", "cost", "orders", "all"))
