"""The lab's tables: on a terminal while they fill, and as Markdown for the docs."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from local.lab.rows import Row
from local.lab.scenarios import CHARGE_ONCE, SCENARIOS
from local.lab.tallies import ARTICLE, POISON, TRANSIENT, fault_point
from local.progress import errors, output
from local.show import BAD, GOOD, OPEN, plain

#: What is seen of a cell while more may come.
UNDER_WAY = " …"

_ARTICLE_TITLE = "The well-known tallies, each handler with its own fault point"
_SCENARIOS_TITLE = "Charges for one order, every handler with the same fault points"


_WORST_ORDER = (
    "8 at once is played in the worst order: each delivery arrives while the one before is about "
    "to charge.\n`make lab` measures it, and all else, with real functions."
)


def sim(rows: Sequence[Row]) -> None:
    """Both tables of `sim`."""
    article = [row for row in rows if row.scenario in ARTICLE]
    output.print(_article_table(article))
    output.print(grid([row for row in rows if row.scenario not in ARTICLE], _SCENARIOS_TITLE))
    output.print(_WORST_ORDER, style="dim")


def limits(rows: Sequence[Row]) -> None:
    """The table of `limits`."""
    drawn = _table("handler", "charges", "record", title=f"One order: {rows[0].scenario}")
    for row in rows:
        drawn.add_row(row.handler, str(row.charges), plain(row.record or "none"))
    output.print(drawn)
    output.print(
        "The retry finds a record in progress and cannot tell whether the money moved. Only "
        "the provider can,\nby the key that both attempts hand it.",
        style="dim",
    )


def lab(rows: Sequence[Row]) -> None:
    """The measured table, and below it every cell with what it would mean."""
    output.print(grid(rows, _SCENARIOS_TITLE))
    columns = ("scenario", "handler", "charges", "record", "queued", "found", "meaning")
    drawn = _table(*columns, title="What that would mean")
    for scenario in _in_order(row.scenario for row in rows):
        for row in rows:
            if row.scenario == scenario:
                drawn.add_row(
                    plain(row.scenario),
                    row.handler,
                    str(row.charges),
                    plain(row.record or "none"),
                    str(row.queued),
                    plain(", ".join(row.findings) or "nothing"),
                    plain(row.meaning),
                )
        drawn.add_section()
    output.print(drawn)


def grid(
    rows: Iterable[Row], title: str, under_way: frozenset[tuple[str, str]] = frozenset()
) -> Table:
    """Scenarios down, handlers across. Cells `under_way` may still change."""
    rows = list(rows)
    handlers = _in_order(row.handler for row in rows)
    # With blanks for hyphens a narrow terminal can break the names.
    drawn = _table("", *(handler.replace("-", " ") for handler in handlers), title=title)
    cells = {(row.handler, row.scenario): row for row in rows}
    for scenario in _in_order(row.scenario for row in rows):
        texts = []
        for handler in handlers:
            row = cells.get((handler, scenario))
            if row is None:
                texts.append(Text("…", "dim"))
            elif (handler, scenario) in under_way:
                texts.append(Text(f"{row.charges}{UNDER_WAY}", "dim"))
            else:
                texts.append(_coloured(row))
        drawn.add_row(plain(scenario), *texts, end_section=True)
    return drawn


@contextmanager
def live() -> Iterator[Board]:
    """The table on stderr while it fills; without a terminal a line for each cell that is done."""
    board = Board()
    if not errors.is_terminal:
        yield board
        return
    with Live(get_renderable=board.draw, console=errors, transient=True, refresh_per_second=4):
        yield board


class Board:
    """Takes rows from several threads as they change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[tuple[str, str], Row] = {}
        self._final: set[tuple[str, str]] = set()

    def report(self, row: Row, final: bool) -> None:
        """A row as it stands now."""
        cell = row.handler, row.scenario
        with self._lock:
            if cell in self._final:
                return
            self._rows[cell] = row
            if final:
                self._final.add(cell)
        if final and not errors.is_terminal:
            errors.print(f"{row.handler}: {row.scenario}: {row.verdict}")

    def draw(self) -> RenderableType:
        """The table as it stands now."""
        with self._lock:
            rows = dict(self._rows)
            under_way = frozenset(rows.keys() - self._final)
        order = [scenario.name for scenario in SCENARIOS]
        by_scenario = sorted(rows.values(), key=lambda row: order.index(row.scenario))
        return grid(by_scenario, _SCENARIOS_TITLE, under_way)


# ---------------------------------------------------------------- Markdown


def markdown_grid(rows: Sequence[Row]) -> str:
    """Handlers down, scenarios across, verdicts in the cells."""
    scenarios = _in_order(row.scenario for row in rows)
    cells = {(row.handler, row.scenario): row.verdict for row in rows}
    lines = [_line("handler", *scenarios), _line(*["---"] * (1 + len(scenarios)))]
    for handler in _in_order(cell[0] for cell in cells):
        name = f"**{handler}**" if handler == CHARGE_ONCE else handler
        lines.append(_line(name, *(cells[handler, scenario] for scenario in scenarios)))
    return "\n".join(lines) + "\n"


def markdown_argument(rows: Sequence[Row]) -> str:
    """Scenarios down, handlers across; what a business would regret is bold.

    The key recipes of one handler share a column: where they differ, the cell names both verdicts.
    """
    handlers = _in_order(_without_recipe(row.handler) for row in rows)
    heads = [f"**{name}**" if name == CHARGE_ONCE else name for name in handlers]
    lines = [_line("one order", *heads), _line(*["---"] * (1 + len(heads)))]
    for scenario in _in_order(row.scenario for row in rows):
        cells: dict[str, list[str]] = {name: [] for name in handlers}
        for row in rows:
            if row.scenario == scenario:
                is_bad = row.charges > 1 or row.is_silent
                cells[_without_recipe(row.handler)].append(
                    f"**{row.verdict}**" if is_bad else row.verdict
                )
        lines.append(_line(scenario, *(" or ".join(_in_order(found)) for found in cells.values())))
    return "\n".join(lines) + "\n"


def _without_recipe(handler: str) -> str:
    return handler.partition("-by-")[0]


def markdown_cells(rows: Sequence[Row]) -> str:
    """Every cell with what the books say and what that would mean, a table for each scenario."""
    notes = {scenario.name: scenario.note for scenario in SCENARIOS}
    parts = []
    for scenario in _in_order(row.scenario for row in rows):
        parts.append(f"**{scenario}.** {notes[scenario]}\n")
        columns = ("handler", "charges", "record", "queued", "found", "what it would mean")
        lines = [_line(*columns), _line(*["---"] * len(columns))]
        lines += [
            _line(
                row.handler,
                str(row.charges),
                row.record or "none",
                str(row.queued),
                ", ".join(f"`{kind}`" for kind in row.findings) or "nothing",
                row.meaning,
            )
            for row in rows
            if row.scenario == scenario
        ]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def markdown_article(rows: Sequence[Row]) -> str:
    """The article's tallies with their fault points."""
    lines = [_line("handler", TRANSIENT, POISON, "where it fails"), _line(*["---"] * 4)]
    lines += [_line(*cells) for cells in _article_cells(rows)]
    return "\n".join(lines) + "\n"


def markdown_limits(rows: Sequence[Row]) -> str:
    """The tallies of `limits`."""
    lines = [_line("handler", "charges", "record"), _line(*["---"] * 3)]
    lines += [_line(row.handler, str(row.charges), row.record or "none") for row in rows]
    return "\n".join(lines) + "\n"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


# ---------------------------------------------------------------- shared


def _table(*columns: str, title: str) -> Table:
    drawn = Table(*columns, title=title, title_justify="left", box=box.SIMPLE)
    drawn.min_width = len(title)  # or the title would be broken
    return drawn


def _article_table(rows: Sequence[Row]) -> Table:
    drawn = _table("handler", TRANSIENT, POISON, "where it fails", title=_ARTICLE_TITLE)
    for cells in _article_cells(rows):
        drawn.add_row(*map(plain, cells))
    return drawn


def _article_cells(rows: Sequence[Row]) -> list[tuple[str, str, str, str]]:
    cells = {(row.handler, row.scenario): str(row.charges) for row in rows}
    return [
        (
            handler,
            cells[handler, TRANSIENT],
            cells[handler, POISON],
            "; then ".join(
                _in_order(fault_point(ARTICLE[name][handler]) for name in (TRANSIENT, POISON))
            ),
        )
        for handler in _in_order(row.handler for row in rows)
    ]


def _coloured(row: Row) -> Text:
    colour = GOOD
    if row.charges > 1 or row.is_silent:
        colour = BAD
    elif row.charges == 0 or row.queued:
        colour = OPEN
    return Text(plain(row.verdict), colour)


def _in_order(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
