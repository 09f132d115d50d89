"""The measurements: what is counted, and what a cold start has to fetch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from local.bench import coldstart, cost
from local.cli import app
from local.definition import load_definition
from local.transform import resolved
from tests.e2e.test_pipeline import HAPPY_PATH

pytestmark = pytest.mark.xdist_group("upgrade")

DEFINITION = load_definition()
LEDGER = resolved()["Resources"]["LedgerTable"]["Properties"]

LARGEST_PACKAGE = 1_500_000


@pytest.fixture(scope="module")
def figures() -> Any:
    """The document of `bench cost --json`."""
    result = CliRunner().invoke(app, ["bench", "cost", "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_happy_path_is_the_one_that_runs_take() -> None:
    assert cost.happy_path(DEFINITION) == HAPPY_PATH


def test_the_record_is_written_twice_and_its_indexes_three_times() -> None:
    """Claim: the record, and it appears among the open ones. Settled: the record, it leaves the
    open ones, and its order id appears."""
    assert cost.write_units(DEFINITION, LEDGER) == 2 + 3


@pytest.mark.parametrize(
    ("schedule", "passes"),
    [("rate(1 hour)", 730), ("rate(5 minutes)", 8760), ("rate(1 day)", 730 / 24)],
)
def test_a_rate_is_so_many_passes_a_month(schedule: str, passes: float) -> None:
    assert cost.passes_a_month(schedule) == pytest.approx(passes)


def test_a_cron_expression_is_no_rate() -> None:
    with pytest.raises(ValueError, match="not a rate"):
        cost.passes_a_month("cron(0 3 * * ? *)")


def test_a_bill_is_the_sum_of_its_lines(figures: Any) -> None:
    for bill in figures["bills"]:
        assert bill["usd"] == pytest.approx(sum(line["usd"] for line in bill["lines"]), abs=0.05)


def test_the_transitions_are_most_of_our_bill(figures: Any) -> None:
    ours = figures["bills"][0]
    (transitions,) = (line for line in ours["lines"] if line["what"] == "transitions")

    assert ours["name"] == "charge-once"
    assert transitions["quantity"] == pytest.approx(5_017_000)
    assert transitions["usd"] > ours["usd"] / 2


def test_the_bill_comes_with_its_date_its_assumptions_and_the_others(figures: Any) -> None:
    assert [bill["name"] for bill in figures["bills"]] == [
        "charge-once",
        "claim-first Lambda",
        "Powertools idempotency",
        "Lambda durable function",
    ]
    assert figures["prices_as_of"] == "2026-11-29"
    assert len(figures["assumptions"]) == len(cost.ASSUMPTIONS)
    assert figures["cores"] > 0


def test_the_charge_functions_package_is_small(built: Path) -> None:
    assert coldstart.package(built).stat().st_size < LARGEST_PACKAGE


def test_the_charge_function_loads_no_boto3_and_no_idempotency_utility(built: Path) -> None:
    unwanted = "['boto3', 'aws_lambda_powertools.utilities.idempotency']"
    code = (
        f"import sys; {coldstart.CHARGE}; sys.exit(any(one in sys.modules for one in {unwanted}))"
    )

    loaded = coldstart.load(code, built / "ChargeFunction", runs=1)

    assert loaded["cpu_ms"] > 0
