"""docs/provider.md does what it says."""

import doctest
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from provider import contract
from provider.settings import Settings

from tests.contract.provider.harness import PATIENCE_SECONDS, ROOT

PAGE = (ROOT / "docs/provider.md").read_text(encoding="utf-8")
DOCUMENT = json.loads(contract.DOCUMENT)


class Block(NamedTuple):
    """A fenced block: its language, what the page says it is for, and its text."""

    language: str
    role: str
    text: str


BLOCKS = [Block(*found) for found in re.findall(r"```(\w+) ?(\w*)\n(.*?)```", PAGE, re.DOTALL)]


def block(role: str) -> str:
    """The text of the one block that is for this."""
    [text] = [block.text for block in BLOCKS if block.role == role]
    return text


def table(heading: str) -> list[list[str]]:
    """The rows of the table whose first column is headed like this."""
    lines = PAGE[PAGE.index(f"\n| {heading} |") + 1 :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]


@pytest.fixture
def port() -> Iterator[str]:
    """The port of a server that was started as on the page, on a free one."""
    python = shlex.quote(sys.executable)
    command = block("server").replace("python", python, 1).replace("9090", "0")
    process = subprocess.Popen(
        ["bash", "-c", f"exec env {command}"],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "PROVIDER_API_KEY"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    yield process.stdout.readline().strip().rpartition(":")[2]
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE_SECONDS)
    process.stdout.close()


def run(script: str, port: str) -> subprocess.CompletedProcess[str]:
    """A script of the page against the server."""
    return subprocess.run(
        ["bash", "-euc", script.replace(":9090", f":{port}")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS * 2,
        check=False,
    )


def test_the_curl_examples_print_what_the_page_shows(port: str) -> None:
    examples = [block for block in BLOCKS if block.language == "bash" and not block.role]
    shown = "".join(block.text for block in BLOCKS if block.language in ("json", "text"))

    outcome = run("\n".join(example.text for example in examples), port)

    printed = re.sub(" +$", "", outcome.stdout, flags=re.MULTILINE)
    assert outcome.stderr == ""
    assert doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS), printed


def test_the_conformance_suite_is_pointed_at_a_url_as_the_page_says(port: str) -> None:
    command = block("conformance").rstrip()

    outcome = run(f"{command} ARGS='-k test_2_7 -p no:cacheprovider'", port)

    assert outcome.returncode == 0, outcome.stdout
    assert re.search("[0-9]+ passed", outcome.stdout)


def test_every_option_is_on_the_page() -> None:
    outcome = subprocess.run(
        [sys.executable, "-m", "provider", "--help"],
        cwd=ROOT / "functions/provider",
        capture_output=True,
        text=True,
        check=True,
    )

    offered = set(re.findall("--[a-z-]+", outcome.stdout)) - {"--help"}
    assert {row[0] for row in table("option")} == offered


def test_every_variable_of_the_lambda_is_on_the_page() -> None:
    class Recorder(dict[str, str]):
        def get(self, name: str, default: str = "") -> str:  # type: ignore[override]
            read.append(name)
            return default or "something"

    read: list[str] = []

    Settings.read(Recorder())

    assert [row[0] for row in table("variable")] == read


def test_every_fault_is_on_the_page_and_where_it_can_be_used() -> None:
    wish = DOCUMENT["components"]["schemas"]["FaultRequest"]
    everywhere = wish["then"]["properties"]["fault"]["enum"]

    documented = {row[0]: row[-1] for row in table("fault")}

    assert documented == {
        fault: "yes" if fault in everywhere else "no"
        for fault in wish["properties"]["fault"]["enum"]
    }
