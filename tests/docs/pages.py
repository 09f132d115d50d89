"""What the pages hold: blocks, tables, and commands as words."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from local.paths import PROJECT

PAGES = sorted([*PROJECT.glob("*.md"), *PROJECT.glob("docs/**/*.md")])

#: Blocks in these languages hold commands; in the last two only where a line looks like one.
SHELLS = ("bash", "console", "")
_COMMAND = re.compile(r"(make|\S*python -m local)\b ?(?!=)")


def name(page: Path) -> str:
    """The page's path in the project."""
    return str(page.relative_to(PROJECT))


def blocks(text: str, language: str | None = None) -> Iterator[tuple[str, str]]:
    """The language and the text of each fenced block; only those of `language` if one is given."""
    for found, block in re.findall(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", text, re.M | re.S):
        if language in {None, found}:
            yield found, block


def table(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    section = re.split(rf"^#+ {re.escape(heading)}\n", text, flags=re.MULTILINE)[1]
    section = re.split(r"^#", section, flags=re.MULTILINE)[0]
    lines = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert lines, f"no table below {heading}"
    return [
        [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        for line in lines[0].splitlines()[2:]
    ]


def words(cell: str) -> list[str]:
    """The code words of a cell."""
    return re.findall(r"`([^`]+)`", cell)


def commands(page: Path) -> Iterator[list[str]]:
    """The command lines that go through make or `python -m local`, in blocks and in sentences."""
    text = page.read_text()
    lines = [
        line.strip().removeprefix("$ ")
        for language, block in blocks(text)
        if language in SHELLS
        for line in block.replace("\\\n", " ").splitlines()
    ]
    for line in lines + re.findall(r"`((?:make|[^`\s]*python -m local) [^`]+)`", text):
        if _COMMAND.match(line):
            yield shlex.split(line, comments=True)


def invocations(command: list[str]) -> list[list[str]]:
    """What a command has `python -m local` do: its arguments. Make itself is asked for them."""
    if command[0] != "make":
        return [command[command.index("local") + 1 :]]
    return [list(found) for found in _made(tuple(command))]


@cache
def _made(command: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    run = subprocess.run(
        [*command, "--dry-run"], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    found = re.findall(r"^\S*python -m local ([^|>\n]*)", run.stdout, re.MULTILINE)
    return tuple(tuple(shlex.split(arguments)) for arguments in found)
