"""The lab's page shows what the lab does."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.lab import docs, show
from local.lab.rows import Row
from tests.lab import pinned

pytestmark = pytest.mark.xdist_group("lab")


def cells(block: str) -> dict[tuple[str, str], str]:
    """The verdicts of a Markdown table by handler and scenario."""
    lines = [line for line in block.splitlines() if line.startswith("|")]
    head, _, *rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines]
    return {
        (handler, scenario): verdict
        for handler, *verdicts in rows
        for scenario, verdict in zip(head[1:], verdicts, strict=True)
    }


def test_the_measured_table_shows_what_is_pinned() -> None:
    measured = cells(docs.read("measured"))

    race = int(measured.pop(pinned.RACE))
    assert 1 <= race <= 8
    assert measured == {
        (handler, scenario): pinned.verdict(handler, scenario, cell[0])
        for handler, scenario, cell in pinned.ALL
        if (handler, scenario) != pinned.RACE
    }


def test_the_readme_argues_with_the_measured_table() -> None:
    argument = cells(docs.read("lab", docs.README))

    assert argument == {
        (scenario, handler.partition("-by-")[0]): verdict
        for (handler, scenario), verdict in cells(docs.read("measured")).items()
    }


def test_the_argument_names_both_verdicts_where_the_key_recipes_differ() -> None:
    lost = Row("claim-first-by-version", "a fault", charges=0, record="claimed", queued=0)
    charged = Row("claim-first-by-content", "a fault", charges=1, record="claimed", queued=0)

    block = show.markdown_argument([lost, charged])

    assert block.splitlines()[-1] == "| a fault | **0, silently lost** or 1 |"


def test_every_measured_cell_says_what_it_would_mean() -> None:
    block = docs.read("cells")

    for scenario in pinned.SCENARIOS:
        assert f"**{scenario}.**" in block
    rows = [
        line
        for line in block.splitlines()
        if line.startswith(tuple(f"| {h}" for h in pinned.CELLS))
    ]
    assert len(rows) == len(pinned.ALL)
    assert all(row.endswith(". |") for row in rows)


def test_the_played_blocks_are_what_playing_gives_today(sim_rows: list[Row]) -> None:
    blocks = docs.played_blocks(sim_rows)

    assert {name: docs.read(name) for name in blocks} == blocks


def test_a_block_that_the_page_does_not_have_is_refused_and_nothing_is_written(
    tmp_path: Path,
) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- a:start -->\n\n<!-- a:end -->\n")

    with pytest.raises(ValueError, match="no single block named b"):
        docs.write({"a": "new\n", "b": "new\n"}, page)

    assert "new" not in page.read_text()


def test_a_block_is_replaced_whatever_is_in_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- a:start -->\n\nold\n\n<!-- a:end -->\nafter\n")

    docs.write({"a": "back\\1slash\n"}, page)

    assert docs.read("a", page) == "back\\1slash\n"
    assert page.read_text().startswith("before\n") and page.read_text().endswith("after\n")
