"""The pages for operators are complete: nothing of the template or the code is missing in them."""

from __future__ import annotations

import re

import pytest
from reconciler.judging import Kind

from local.bench import cost
from local.definition import load_definition, load_template
from local.lab.docs import read
from local.paths import PROJECT
from tests.production.test_hardening import PLAIN
from tests.template.resources import of_type

RUNBOOK = (PROJECT / "docs" / "runbook.md").read_text()
DEPLOYING = (PROJECT / "docs" / "deploying.md").read_text()
STATES = load_definition()["States"]


def rows(page: str, heading: str) -> dict[str, list[str]]:
    """The rows of the first table below a heading: the names in its first column, its cells."""
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found: dict[str, list[str]] = {}
    for line in re.findall(r"^\| (`.*) \|$", section, re.MULTILINE):
        first, *cells = re.split(r" *\| *", line)
        found |= dict.fromkeys(re.findall(r"`([^`]+)`", first), cells)
    return found


def test_every_parameter_is_in_the_table_with_its_default_and_description() -> None:
    table = rows(DEPLOYING, "Parameters")

    assert table == {
        name: [
            f"`{default}`" if (default := parameter.get("Default", "")) != "" else "",
            parameter["Description"],
        ]
        for name, parameter in load_template()["Parameters"].items()
    }


def test_every_alarm_is_in_the_runbook() -> None:
    assert set(rows(RUNBOOK, "Alarms")) == set(of_type(PLAIN, "AWS::CloudWatch::Alarm"))


def test_every_finding_is_in_the_runbook() -> None:
    assert set(rows(RUNBOOK, "Findings")) == {kind.value for kind in Kind}


def test_every_end_of_a_run_is_in_the_runbook() -> None:
    ends = {
        name
        for name, state in STATES.items()
        if state["Type"] in {"Succeed", "Fail"} or state.get("End")
    }

    assert set(rows(RUNBOOK, "Ends of a run")) == ends


def test_every_error_that_the_definition_names_is_in_the_runbook() -> None:
    """Besides those of Lambda and Step Functions, which have a full stop in their names."""
    named = {
        error
        for state in STATES.values()
        for rule in [*state.get("Retry", []), *state.get("Catch", [])]
        for error in rule["ErrorEquals"]
    } | {
        state["Parameters"]["Error"]
        for state in STATES.values()
        if "Error" in state.get("Parameters", {})
    }
    ours = {error for error in named if "." not in error}

    assert ours <= set(rows(RUNBOOK, "Errors in the failure queue"))


@pytest.mark.parametrize("heading", ["Alarms", "Findings", "Ends of a run"])
def test_every_row_of_the_runbook_says_something_in_every_column(heading: str) -> None:
    table = rows(RUNBOOK, heading)

    assert table
    assert all(all(cells) for cells in table.values())


@pytest.mark.parametrize("block", ["bill", "monthly", "reconciler", "assumptions", "sources"])
def test_the_costs_are_what_the_code_computes(block: str) -> None:
    """`python -m local bench cost --write-docs` mends it."""
    assert read(block, cost.PAGE).strip() == cost.blocks()[block].strip()


def test_the_correlation_query_asks_for_fields_that_are_logged() -> None:
    """The functions' own; `type`, `execution_arn` are of the log of Step Functions.

    Source: https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html
    """
    (query,) = re.findall(r"```\n(fields .*?)```", DEPLOYING, re.DOTALL)
    asked = set(re.findall(r"\b[a-z_]+\b", query.splitlines()[0])) - {"fields"}
    handler = (PROJECT / "functions" / "charge" / "charge" / "handler.py").read_text()
    logged = set(re.findall(r'"(\w+)": ', handler)) | set(re.findall(r"(\w+)=", handler))

    assert asked - {"timestamp", "log", "type", "message"} <= logged
