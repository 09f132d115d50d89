"""The generated parts of `docs/lab.md` and `README.md`: what was measured, what is left behind."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from local.lab import show, tallies
from local.lab.books import Json
from local.lab.offline import Offline, offline
from local.lab.rows import Row
from local.lab.scenarios import AFTER_ONCE, CHARGE_ONCE, PROVIDER_DEAD
from local.paths import PROJECT

PAGE = PROJECT / "docs" / "lab.md"
README = PROJECT / "README.md"


def measured_blocks(rows: Sequence[Row]) -> dict[str, str]:
    """The blocks that show the rows of `lab`."""
    machine = (
        f"Measured on {datetime.now(UTC):%d %B %Y} with MiniStack "
        f"{importlib.metadata.version('ministack')}, Python {platform.python_version()} and "
        f"{os.cpu_count()} cores.\n"
    )
    return {
        "measured": f"{show.markdown_grid(rows)}\n{machine}",
        "cells": show.markdown_cells(rows),
    }


def readme_blocks(rows: Sequence[Row]) -> dict[str, str]:
    """The block of the README that argues with the rows of `lab`."""
    return {"lab": show.markdown_argument(rows)}


def played_blocks(rows: Sequence[Row]) -> dict[str, str]:
    """The blocks that this process can make alone, out of the rows of `sim`: always the same."""
    with offline() as lab:
        return {
            "article": show.markdown_article(
                [row for row in rows if row.scenario in tallies.ARTICLE]
            ),
            "played": show.markdown_grid(
                [row for row in rows if row.scenario not in tallies.ARTICLE]
            ),
            "limits": show.markdown_limits(tallies.limits_of(lab)),
            "handwriting": _handwriting(lab),
            "notice": _notice(rows),
        }


def write(blocks: Mapping[str, str], page: Path = PAGE) -> None:
    """Put each block in the place of the one that bears its name. Raises ValueError."""
    text = page.read_text()
    for name, block in blocks.items():
        # Not as a replacement string: a backslash in the block would mean something there.
        parts = _pattern(name).split(text)
        if len(parts) != 5:
            raise ValueError(f"{page} has no single block named {name}")
        before, start, _, end, after = parts
        text = f"{before}{start}{block}\n{end}{after}"
    page.write_text(text)


def read(name: str, page: Path = PAGE) -> str:
    """A block as it stands in the page. Raises ValueError."""
    found = _pattern(name).search(page.read_text())
    if found is None:
        raise ValueError(f"{page} has no block named {name}")
    return found[2]


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name}:start -->\n\n)(.*?)\n?(<!-- {name}:end -->)", re.DOTALL)


# ---------------------------------------------------------------- what is left in the table


def _handwriting(lab: Offline) -> str:
    """The lab's table after each handler, when the first attempt failed after the charge."""
    parts = []
    for handler in ("naive", "claim-first-by-version", "claim-first-by-content", "robust"):
        lab.run(handler, AFTER_ONCE)
        # The lab's own count of attempts is no handler's handwriting.
        left = [item for item in lab.items() if not item["pk"]["S"].startswith("attempts#")]
        parts.append(f"After **{handler}**:\n\n```text\n{_plain(left)}```\n")
    return "\n".join(parts)


def _plain(items: Sequence[Json]) -> str:
    """Items as text, with made-up names in the place of random ones."""
    rows = []
    for item in items:
        values = {name: _tidy(str(next(iter(value.values())))) for name, value in item.items()}
        pk = values.pop("pk")
        rows.append((pk, "  ".join(f"{name}={value}" for name, value in sorted(values.items()))))
    width = max(len(pk) for pk, _ in rows)
    return "".join(f"{pk:<{width}}  {rest}\n" for pk, rest in rows)


def _tidy(text: str) -> str:
    text = re.sub(r"charge#[0-9a-f]{64}", "charge#5e884898…", text)
    text = re.sub(r"#[0-9a-f]{32}", "#3HL4kqt…", text)
    return re.sub(r"/[0-9a-f]{32}\.json", "/order.json", text)


def _notice(rows: Sequence[Row]) -> str:
    """What counting shows of each mistake, and what it does not."""
    lines = [
        "| what happened | files in | charges out | record | queue | counting says |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    wanted = (
        ("naive", AFTER_ONCE.name),
        ("claim-first-by-version", PROVIDER_DEAD.name),
        ("claim-first-by-version", AFTER_ONCE.name),
        ("robust", PROVIDER_DEAD.name),
        ("robust", AFTER_ONCE.name),
        (CHARGE_ONCE, AFTER_ONCE.name),
    )
    cells = {(row.handler, row.scenario): row for row in rows}
    for handler, scenario in wanted:
        row = cells[handler, scenario]
        says = ", ".join(f"`{kind}`" for kind in row.findings) or "nothing"
        lines.append(
            f"| {handler}, {scenario} | 1 | {row.charges} | {row.record or 'none'} "
            f"| {row.queued} | {says} |"
        )
    return "\n".join(lines) + "\n"
