"""Requests made up from the OpenAPI document (schemathesis), good and bad ones."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract.provider.harness import API_KEY, stand_alone

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
]  # all but one: to JSON Schema 1.0 is an integer, and valid, while here types matter

# Faults are meant to break requests, so whoever looks for server errors must not arm any: they
# are made up in a run of their own, which charges nothing.
CHARGING = ["--exclude-operation-id", "arm_fault"]
ARMING = ["--include-path-regex", "^/v1/test/"]


def run(scratch: Path, *options: str) -> subprocess.CompletedProcess[str]:
    with stand_alone() as server:
        return subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json"),
                *("--header", f"Authorization: Bearer {API_KEY}"),
                *("--checks", ",".join(CHECKS), "--generation-database", "none", "--no-color"),
                *options,
            ],
            cwd=scratch,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.mark.parametrize("operations", [CHARGING, ARMING], ids=["charging", "arming"])
def test_no_request_breaks_the_provider_or_the_contract(
    tmp_path: Path, operations: list[str]
) -> None:
    outcome = run(tmp_path, *operations, "--seed", "1", "--max-examples", "10")

    assert outcome.returncode == 0, outcome.stdout


@pytest.mark.campaign
@pytest.mark.parametrize("operations", [CHARGING, ARMING], ids=["charging", "arming"])
def test_no_request_of_very_many_breaks_them_either(tmp_path: Path, operations: list[str]) -> None:
    outcome = run(tmp_path, *operations, "--max-examples", "500")

    assert outcome.returncode == 0, outcome.stdout
