"""The pages tell the truth: their links lead somewhere, their commands exist, their lists are
those of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer.main

from local.cli import app
from local.paths import DEFINITION, PROJECT
from tests.docs.pages import PAGES, commands, invocations, name

MAKEFILE = (PROJECT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z][a-z-]*):.*## ", MAKEFILE, re.MULTILINE))

#: The command-line contract: other programs call these.
CONTRACT_TARGETS = {
    *("help", "local", "up", "down", "test", "lint", "deploy", "delete", "order", "ledger"),
    *("executions", "replay", "reconcile", "sim", "limits", "lab", "deploy-lab", "chaos"),
    *("bench", "page", "provider-conformance"),
}
CONTRACT_COMMANDS = {
    *("local", "up", "down", "order", "faults", "status", "ledger", "charges", "queue"),
    *("executions", "stop", "replay", "reconcile", "sim", "limits", "lab", "chaos", "bench"),
    "page",
}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    local = [link for link in links if not re.match(r"[a-z]+:", link)]

    missing = [link for link in local if not (page.parent / link).exists()]

    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_anchor_leads_to_a_heading(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", page.read_text())

    missing = [
        f"{link}#{anchor}"
        for link, anchor in links
        if anchor not in anchors((page.parent / link) if link else page)
    ]

    assert missing == []


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower(), flags=re.UNICODE).replace(" ", "-")
        for heading in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_of_a_page_exists_with_its_options(page: Path) -> None:
    wrong = [problem for command in commands(page) for problem in problems(command)]

    assert wrong == []


def problems(command: list[str]) -> list[str]:
    """What make or the command line would refuse, or take for something else."""
    if command[0] == "make":
        targets = {word for word in command[1:] if "=" not in word and not word.startswith("-")}
        if not targets <= TARGETS:
            return [f"make does not know {targets - TARGETS}"]
    return [problem for words in invocations(command) if (problem := what_is_wrong(words))]


def what_is_wrong(words: list[str]) -> str | None:
    rest = words
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        if rest[0] not in command.commands:
            return f"no command {rest[0]}"
        command, rest = command.commands[rest[0]], rest[1:]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    unknown = [word for word in rest if word.startswith("--") and word.split("=")[0] not in known]
    return f"{words} does not know {unknown}" if unknown else None


def test_every_target_of_the_contract_exists() -> None:
    missing = CONTRACT_TARGETS - TARGETS

    assert not missing


def test_every_command_of_the_contract_exists_and_prints_json() -> None:
    group: Any = typer.main.get_command(app)

    missing = CONTRACT_COMMANDS - set(group.commands)

    assert not missing
    without_json = [
        name
        for name in CONTRACT_COMMANDS - {"local", "page", "bench"}
        if "--json" not in {o for p in group.commands[name].params for o in p.opts}
    ]
    assert without_json == []


def test_the_readme_leads_to_every_page() -> None:
    links = set(re.findall(r"\]\((docs/[^)#\s]+\.md)", (PROJECT / "README.md").read_text()))

    assert {name(page) for page in PROJECT.glob("docs/*.md")} <= links


@pytest.mark.parametrize("page", sorted(PROJECT.glob("docs/decisions/*.md")), ids=name)
def test_every_decision_is_dated_and_says_how_it_stands(page: Path) -> None:
    title, _, status, *_ = page.read_text().splitlines()

    assert title.startswith("# ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d, (accepted|proposed; not built)", status)
    assert page.name.startswith(status[:10])


def test_the_readme_describes_every_way_an_execution_ends() -> None:
    states = json.loads(DEFINITION.read_text())["States"]
    ends = {name for name, state in states.items() if state.get("End") or state["Type"] in ENDS}

    assert set(table_names("README.md", "terminal-states")) == ends


ENDS = {"Succeed", "Fail"}


def test_every_variable_of_the_command_line_is_on_a_page() -> None:
    source = "".join(path.read_text() for path in PROJECT.glob("local/**/*.py"))
    # One that begins with an underscore is between our own processes.
    variables = set(re.findall(r'^\w*_VARIABLE = "([A-Z]\w+)"', source, re.MULTILINE))
    text = "".join(page.read_text() for page in PAGES)

    assert variables
    assert [variable for variable in variables if variable not in text] == []


def test_every_parameter_of_the_labs_template_is_on_its_page() -> None:
    template = (PROJECT / "local" / "lab" / "template.yaml").read_text()
    section = template.partition("\nParameters:\n")[2].partition("\n\n")[0]
    parameters = re.findall(r"^  (\w+):$", section, re.MULTILINE)
    page = (PROJECT / "docs" / "lab.md").read_text()

    assert len(parameters) == 4
    assert [name for name in parameters if f"`{name}`" not in page] == []


def table_names(page: str, block: str) -> list[str]:
    """The code words that begin the rows of a marked block of a page."""
    text = (PROJECT / page).read_text()
    body = text.split(f"<!-- {block}:start -->")[1].split(f"<!-- {block}:end -->")[0]
    return re.findall(r"^\| `([^`]+)`", body, re.MULTILINE)


def test_a_lock_file_names_packages_and_no_place_to_get_them() -> None:
    places = re.compile(r"://|--(extra-)?index-url|--find-links")
    locks = [*PROJECT.glob("requirements/*.txt"), *PROJECT.glob("functions/*/requirements.txt")]

    assert [name(path) for path in locks if places.search(path.read_text())] == []


def test_whoever_takes_this_as_a_template_is_led_to_every_file_that_knows_the_prefix() -> None:
    page = (PROJECT / "docs" / "choosing-a-pattern.md").read_text()
    knowing = {
        path.relative_to(PROJECT).as_posix()
        for folder in ("functions", "statemachine", "local/chaos")
        for path in (PROJECT / folder).rglob("*.*")
        if path.suffix in {".py", ".json"} and "charge#" in path.read_text()
    }

    (row,) = [line for line in page.splitlines() if line.startswith("| the prefix `charge#`")]
    assert knowing == set(re.findall(r"\]\(\.\./([^)]+)\)", row))
