"""The commands of the pages do what the pages promise: each page's are run, in their order."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from local import books, lifecycle
from local.cli import app
from local.paths import PROJECT
from local.stack import Stack
from tests.docs.pages import PAGES, blocks, commands, invocations, name

pytestmark = pytest.mark.xdist_group("docs")

#: Run here, on the local stack. `local` and `up` find it up already.
RUN_HERE = {
    *("local", "up", "status", "order", "faults"),
    *("ledger", "charges", "queue", "executions", "replay", "reconcile"),
}
#: Run by other tests, or by what they call: they take minutes, need AWS, or serve for ever.
RUN_ELSEWHERE = {
    "bench": "tests/production/test_bench.py",
    "chaos": "tests/chaos/test_campaign.py",
    "delete": "tests/production/test_deploy_and_delete.py",
    "deploy": "tests/production/test_deploy_and_delete.py",
    "down": "tests/conftest.py",
    "lab": "tests/lab/test_measure.py",
    "limits": "tests/lab/test_sim.py",
    "page": "tests/e2e/test_page.py",
    "picture": "tests/unit/test_picture.py",
    "sim": "tests/lab/test_sim.py",
}
ELSEWHERE_OPTIONS = {"--stack", "--engine"}

FOUND = {page: [words for line in commands(page) for words in invocations(line)] for page in PAGES}


def runs_here(words: list[str]) -> bool:
    return words[0] in RUN_HERE and not ELSEWHERE_OPTIONS.intersection(words)


def run(*words: str) -> Result:
    """Run the command line in this process; it must succeed."""
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, (words, result.output, result.exception)
    return result


def test_every_command_of_a_page_is_run_here_or_elsewhere() -> None:
    named = {words[0] for found in FOUND.values() for words in found}

    assert named <= RUN_HERE | RUN_ELSEWHERE.keys()
    assert [test for test in RUN_ELSEWHERE.values() if not (PROJECT / test).is_file()] == []


@pytest.fixture(autouse=True)
def nobody_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    """`local` serves the stack that its own process started: here that is the test's."""
    monkeypatch.setattr(lifecycle, "is_ours", lambda _: False)


@pytest.mark.parametrize(
    "page", [page for page, found in FOUND.items() if any(map(runs_here, found))], ids=name
)
def test_the_commands_of_a_page_run_and_charge_nobody_twice(page: Path, stack: Stack) -> None:
    dropped = []
    for words in filter(runs_here, FOUND[page]):
        result = run(*words, *(["--json"] if words[0] == "order" else []))
        if words[0] == "order":
            dropped.append(json.loads(result.stdout))

    for order in dropped:
        assert_charged_once_or_open(order)
        # A page that leaves an order open shows how to settle it.
        record = books.record(stack, order["idempotency_key"])
        assert record is not None
        assert record["status"] in {"done", "declined"}
    assert not {order["idempotency_key"] for order in dropped} & keys_of_findings()


def assert_charged_once_or_open(order: Any) -> None:
    """What the README claims, of one finished `order` document."""
    succeeded = [charge for charge in order["charges"] if charge["status"] == "succeeded"]
    if order["record"]["status"] == "done":
        assert [charge["id"] for charge in succeeded] == [order["record"]["charge_id"]]
    elif order["record"]["status"] == "declined":
        assert not succeeded
    else:
        assert len(succeeded) <= 1
        assert order["queued"]


def keys_of_findings() -> set[str]:
    report = json.loads(run("reconcile", "--grace-seconds", "0", "--json").stdout)
    return {finding["idempotency_key"] for finding in report["findings"]}


@pytest.mark.usefixtures("stack")
def test_the_terminal_of_the_readme_is_what_is_printed() -> None:
    (shown,) = [
        block
        for _, block in blocks((PROJECT / "README.md").read_text(), "text")
        if block.startswith("$ make local\n")
    ]

    printed = run("local").stdout

    assert labels(shown) == labels(printed)
    source = "".join((PROJECT / "local" / file).read_text() for file in ("cli.py", "lifecycle.py"))
    steps = re.findall(r"^✓ (.*) [\d.]+ s$", shown, re.MULTILINE)
    assert steps
    assert [step for step in steps if f'step("{step}")' not in source] == []


def labels(text: str) -> list[str]:
    """What stands on the left of two columns."""
    return re.findall(r"^(\w+(?: \w+)*) {2,}\S", text, re.MULTILINE)
