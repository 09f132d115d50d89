"""The benchmarks that need no stack, and the page that is written from all of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from local.bench import table, workflow

pytestmark = pytest.mark.xdist_group("chaos-simulation")


def test_workflow_runs_the_definition_and_the_whole() -> None:
    figures = workflow.measure(2)

    assert set(figures["per_second"]) == {"definition alone", "with charge function and provider"}
    assert all(rate > 0 for rate in figures["per_second"].values())
    assert figures["cores"] >= 1
    assert "moto" in figures["versions"]


def test_the_page_has_a_table_for_each_benchmark_with_what_it_was_measured_on() -> None:
    figures = {
        "one": {
            "runs": 1200,
            "handlers": {"ours": {"p50_ms": 1234.5}, "theirs": {"p50_ms": 2}},
            "cores": 2,
            "versions": {"python": "3.11", "b": "1"},
        },
        "two": {"found": {"much": 3}, "cores": 2, "versions": {}},
    }

    page = table.page(figures, datetime(2027, 1, 2, tzinfo=UTC))

    assert "Measured on 2027-01-02." in page
    assert "## one\n\n| figure | value |\n| --- | --- |\n| runs | 1,200 |\n" in page
    assert "| handlers | p50_ms |\n| --- | --- |\n| ours | 1,234.5 |\n| theirs | 2 |\n" in page
    assert "2 cores; b 1, python 3.11." in page
    assert "| found | value |\n| --- | --- |\n| much | 3 |\n" in page


def test_each_benchmark_of_the_page_is_a_command_that_prints_one_document(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(table, "BENCHMARKS", {"reconcile": ["--objects", "1000"]})

    table.write(tmp_path / "benchmarks.md")

    assert "| objects | 1,000 |" in (tmp_path / "benchmarks.md").read_text()
