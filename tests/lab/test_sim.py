"""Every handler in every scenario, played: the rows are pinned, bugs and all."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from local import cli, progress
from local.lab import tallies
from local.lab.rows import Row
from tests.lab import pinned

pytestmark = pytest.mark.xdist_group("lab")

Played = dict[tuple[str, str], Row]


@pytest.mark.parametrize(("handler", "scenario", "expected"), pinned.ALL)
def test_a_handler_does_to_one_order_what_it_is_known_for(
    played: Played, handler: str, scenario: str, expected: pinned.Cell
) -> None:
    row = played[handler, scenario]

    assert (row.charges, row.record, row.queued, row.findings) == expected
    assert row.verdict == pinned.verdict(handler, scenario, row.charges)


def test_the_naive_handler_charges_twice_when_its_answer_is_lost(played: Played) -> None:
    row = played["naive", "fails after the charge, once"]

    assert row.charges == 2
    assert row.meaning == "The customer has paid 2 times for one file, and no record says why."


@pytest.mark.parametrize("recipe", ["version", "content"])
def test_claim_first_loses_an_order_that_failed_before_the_charge_and_tells_nobody(
    played: Played, recipe: str
) -> None:
    row = played[f"claim-first-by-{recipe}", "fails before the charge, once"]

    assert (row.charges, row.queued, row.is_silent) == (0, 0, True)
    assert "revenue is lost" in row.meaning


@pytest.mark.parametrize("recipe", ["version", "content"])
def test_claim_first_takes_money_for_work_that_it_reports_as_failed(
    played: Played, recipe: str
) -> None:
    row = played[f"claim-first-by-{recipe}", "fails after the charge, every attempt"]

    assert (row.charges, row.queued, row.is_silent) == (1, 0, True)
    assert "nobody is told that the two disagree" in row.meaning


def test_the_robust_handler_charges_again_in_the_window_and_records_success(
    played: Played,
) -> None:
    row = played["robust", "fails after the charge, once"]

    assert (row.charges, row.record) == (2, "done")
    assert "while the record says that all went well" in row.meaning


def test_charge_once_never_charges_more_than_once_and_is_never_silent(played: Played) -> None:
    rows = [played["charge-once", scenario] for scenario in pinned.SCENARIOS]

    assert max(row.charges for row in rows) == 1
    assert not any(row.is_silent for row in rows)


def test_the_reconciler_settles_what_was_charged_and_leaves_open_what_was_not(
    played: Played,
) -> None:
    charged = played["charge-once", "fails after the charge, every attempt"]
    dead = played["charge-once", "provider dead, every attempt"]

    assert (charged.charges, charged.repaired) == (1, "done")
    assert (dead.charges, dead.repaired) == (0, "in_progress")


@pytest.mark.parametrize(
    ("scenario", "charges"), [("transient", [2, 1, 1, 1, 1]), ("poison", [3, 1, 1, 0, 0])]
)
def test_the_article_s_tallies_come_out_as_published(
    sim_rows: list[Row], scenario: str, charges: list[int]
) -> None:
    rows = [row for row in sim_rows if row.scenario == scenario]

    assert [row.handler for row in rows] == list(pinned.CELLS)
    assert [row.charges for row in rows] == charges


def test_only_a_key_at_the_provider_closes_the_window() -> None:
    rows = tallies.limits()

    assert [(row.handler, row.charges) for row in rows] == [
        ("robust", 2),
        ("robust-with-key", 1),
        ("charge-once", 1),
    ]


@pytest.mark.parametrize("command", ["sim", "limits"])
def test_a_command_prints_one_document_with_the_rows(
    sim_rows: list[Row], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(tallies, command, lambda: sim_rows)

    result = CliRunner().invoke(cli.app, [command, "--json"])

    rows = json.loads(result.stdout)["rows"]
    assert len(rows) == len(sim_rows)
    assert list(rows[0]) == [
        *("handler", "scenario", "charges", "record", "queued", "findings"),
        "meaning",
    ]


def test_the_tables_name_every_handler_and_scenario(
    sim_rows: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tallies, "sim", lambda: sim_rows)
    monkeypatch.setattr(progress.output, "width", 300)

    result = CliRunner().invoke(cli.app, ["sim"])

    words = " ".join(result.stdout.split())
    for name in (*pinned.SCENARIOS, "charge once", "transient", "poison"):
        assert name in words
