"""What the reconciler says on a terminal, and what it may be told."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import pytest
from reconciler.settings import Settings
from rich.console import Console
from typer.testing import CliRunner

from local import progress
from local import reconcile as reconciling
from local.cli import app
from local.errors import CommandError
from local.stack import Stack

REPORT: dict[str, Any] = {
    "complete": True,
    "scanned": {"objects": 1205, "records": 1190, "charges": 1203},
    "findings": [],
    "repaired": [],
    "younger_than_grace": 0,
    "beyond_horizon": 0,
    "settled_beyond_horizon": 0,
    "foreign_charges": 3,
    "unreadable": [],
    "omitted": 0,
    "orders_in": 1200,
    "records_out": 1199,
    "grace_seconds": 900.0,
}
FINDING = {
    "kind": "stuck",
    "idempotency_key": "charge#1",
    "object": {"bucket": "b", "key": "orders/a.json", "version_id": "v1"},
    "detail": "Its owner is gone.",
}


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Console:
    console = progress.console(record=True, width=200, file=io.StringIO())
    monkeypatch.setattr(reconciling, "output", console)
    return console


def test_books_that_agree_are_told_with_what_was_compared(shown: Console) -> None:
    reconciling.show(REPORT)

    assert shown.export_text() == (
        "The books agree. orders: 1,200, with a record: 1,199, charges: 1,200, "
        "orders beyond the horizon: 0.\n"
    )


@pytest.mark.parametrize("book", ["beyond_horizon", "settled_beyond_horizon"])
def test_orders_that_are_too_old_are_not_said_to_agree(shown: Console, book: str) -> None:
    reconciling.show(REPORT | {book: 4})

    text = shown.export_text()
    assert "The books agree as far as they were compared." in text
    assert ("orders beyond the horizon: 4." in text) is (book == "beyond_horizon")
    assert ("provider: 4 settled before the horizon" in text) is (book == "settled_beyond_horizon")


def test_a_finding_is_told_as_it_is(shown: Console) -> None:
    place = {"bucket": "b", "key": "bar]:key:", "version_id": "v1"}
    unreadable = {"idempotency_key": "[/", "object": None, "error": "x]\\"}
    finding = FINDING | {"kind": "[/foo", "object": place, "detail": "[conceal"}

    reconciling.show(REPORT | {"findings": [finding], "unreadable": [unreadable]})

    text = shown.export_text()
    assert "[/foo bar]:key:\n  [conceal" in text
    assert "not readable [/: x]\\\n" in text


def test_orders_that_are_too_young_are_not_said_to_agree(shown: Console) -> None:
    reconciling.show(REPORT | {"younger_than_grace": 2})

    text = shown.export_text()
    assert "The books agree as far as they were compared." in text
    assert "Not judged yet: 2 younger than the grace time of 15 minutes" in text


@pytest.mark.parametrize("young", [0, 2])
def test_a_difference_is_named_whatever_is_too_young(shown: Console, young: int) -> None:
    reconciling.show(REPORT | {"findings": [FINDING], "younger_than_grace": young, "omitted": 7})

    text = shown.export_text()
    assert "Its owner is gone." in text
    assert "The books disagree." in text
    assert "agree as far" not in text
    assert ("Not judged yet: 2" in text) is bool(young)
    assert "Not listed: 7 more findings." in text


@pytest.mark.parametrize("option", ["--grace-seconds", "--horizon-days"])
@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "1e9", "-1", "soon"])
def test_a_time_that_cannot_be_is_wrong_usage(
    option: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reached(*_: object, **__: object) -> None:
        raise AssertionError("it went on")

    monkeypatch.setattr("local.cli.chosen", reached)

    result = CliRunner().invoke(app, ["reconcile", option, value], env={"COLUMNS": "200"})

    assert result.exit_code == 2, result.output
    assert f"'{option}': '{value}' is not a number from 0 to " in result.output


def test_the_longest_times_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.cli.chosen", lambda _: None)
    asked: dict[str, Any] = {}
    monkeypatch.setattr(reconciling, "reconcile", lambda _, **how: asked.update(how))

    words = ("reconcile", "--grace-seconds", "86400", "--horizon-days", "36500", "--json")
    result = CliRunner().invoke(app, words)

    assert result.exit_code == 0, result.output
    assert (asked["grace_seconds"], asked["horizon_days"]) == (86_400, 36_500)


@pytest.mark.parametrize("days", [76, 36_500])
def test_a_horizon_that_outlasts_the_records_is_refused_with_the_bound(
    days: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(
        order_bucket="b",
        ledger_table="t",
        state_machine_arn="arn",
        reports_bucket="r",
        provider_url="http://127.0.0.1",
        provider_secret_arn="arn",
        record_ttl=timedelta(days=90),
        horizon=timedelta(days=14),
        grace=timedelta(minutes=15),
        repair=False,
    )
    monkeypatch.setattr(reconciling, "deployed_settings", lambda _: settings)
    nowhere = Stack("s", "us-east-1", None, {})

    with pytest.raises(
        CommandError, match=rf"^--horizon-days must be less than 76 here, not {days}"
    ):
        reconciling.reconcile(nowhere, horizon_days=days)
