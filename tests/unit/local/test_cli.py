"""The command line starts at once, and its help is complete."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from local.chaos import explorer, shrink
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


def test_options_that_change_the_sample_order_do_not_go_with_a_file(tmp_path: Path) -> None:
    file = tmp_path / "order.json"
    file.write_text("{}")

    result = CliRunner().invoke(app, ["order", str(file), "--amount", "5"])

    assert result.exit_code == 2
    assert "leave out amount" in result.output


def test_a_schedule_s_story_is_one_document_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrink, "story_of", lambda seed: f"seed {seed}\n  [/one:key:")

    as_json = CliRunner().invoke(app, ["chaos", "--schedule", "1", "--json"])

    assert json.loads(as_json.stdout) == {"schedule": 1, "story": "seed 1\n  [/one:key:"}


@pytest.mark.parametrize("mode", [["--schedule", "1"], ["--exhaustive"]])
@pytest.mark.parametrize("other", [["--orders", "5"], ["--seed", "1"], ["--in-process"]])
def test_what_throws_no_dice_takes_no_options_for_them(
    monkeypatch: pytest.MonkeyPatch, mode: list[str], other: list[str]
) -> None:
    monkeypatch.setattr(shrink, "story_of", str)
    monkeypatch.setattr(explorer, "explore_all", list)

    result = CliRunner().invoke(app, ["chaos", *mode, *other])

    assert result.exit_code == 2


def test_chaos_is_one_schedule_or_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrink, "story_of", str)

    assert CliRunner().invoke(app, ["chaos", "--schedule", "1", "--exhaustive"]).exit_code == 2


PRINTING = """
import sys
from local import cli, show
from local.progress import step

def app(**_):
    with step("Tell"):
        show.executions([
            {"arn": "run-\\u00fc", "status": "FAILED", "error": None, "path": ["Claim", "Charge"]}
        ])
    cli.document({"name": "\\u00fc\\u2192\\U0001f511"})

cli.app = app
cli.main()
"""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_every_terminal_takes_what_is_printed(encoding: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", PRINTING],
        cwd=PROJECT,
        env=os.environ | {"PYTHONIOENCODING": encoding},
        capture_output=True,
        encoding=encoding,
        check=False,
    )

    assert result.returncode == 0, result.stderr
    readable, _, json_text = result.stdout.partition("{")
    assert "Claim" in readable
    assert json.loads("{" + json_text) == {"name": "\u00fc\u2192\U0001f511"}


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
def test_a_polite_end_is_heard_also_in_the_background_of_a_script(ending: signal.Signals) -> None:
    """Where `make local &` runs, Ctrl-C is ignored: it is meant for the foreground."""
    serving = """
import time
from local import cli

def app(**_):
    print("serving", flush=True)
    time.sleep(60)

cli.app = app
cli.main()
"""
    with subprocess.Popen(
        ["bash", "-c", 'trap "" INT; exec "$@"', "-", sys.executable, "-c", serving],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=PROJECT,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "serving\n"
        process.send_signal(ending)
        try:
            ended = process.wait(10)
        finally:
            process.kill()

    assert ended != 0
