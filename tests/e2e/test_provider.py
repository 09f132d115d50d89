"""The deployed provider keeps the same rules as the others: its own conformance suite says so."""

from __future__ import annotations

import os
import subprocess

import pytest

from local.paths import PROJECT
from local.stack import Stack

pytestmark = pytest.mark.xdist_group("failures")


def test_the_lambda_on_the_local_stack_passes_the_conformance_suite(stack: Stack) -> None:
    secret = stack.client("secretsmanager").get_secret_value(
        SecretId=stack.outputs["ProviderSecretArn"]
    )["SecretString"]

    result = subprocess.run(
        ["make", "provider-conformance", f"URL={stack.provider_url}", f"KEY={secret}"],
        cwd=PROJECT,
        env={name: value for name, value in os.environ.items() if name != "PYTEST_XDIST_WORKER"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]
    assert "passed" in result.stdout
    assert "deselected" not in result.stdout  # the local stack is in test mode
