"""The benchmarks that need no stack, and the page that is written from all of them."""

from __future__ import annotations

from datetime import UTC, datetime

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
        "one": {"a": {"p50_ms": 1234.5}, "cores": 2, "versions": {"python": "3.11", "b": "1"}},
        "two": {"found": "much", "cores": 2, "versions": {}},
    }

    page = table.page(figures, datetime(2027, 1, 2, tzinfo=UTC))

    assert "Measured on 2027-01-02." in page
    assert "## one\n" in page
    assert "| a / p50_ms | 1,234.5 |" in page
    assert "2 cores; b 1, python 3.11." in page
    assert "| found | much |" in page
