"""Runs the command line as a user does, and reads its one JSON document."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from local.paths import PROJECT


def run(*arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """`python -m local ARGUMENTS`, with whatever exit status it has."""
    return subprocess.run(
        [sys.executable, "-m", "local", *arguments],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def document(*arguments: str) -> Any:
    """The JSON document of a command that must succeed."""
    result = run(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
