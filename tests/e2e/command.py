"""Runs the command line as a user does, and reads its one JSON document."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from local.paths import PROJECT


def run(
    *arguments: str, timeout: float = 120, shell: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`python -m local ARGUMENTS`, with whatever exit status it has. `shell`: other variables."""
    return subprocess.run(
        [sys.executable, "-m", "local", *arguments],
        cwd=PROJECT,
        env=shell,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def document(*arguments: str, shell: Mapping[str, str] | None = None) -> Any:
    """The JSON document of a command that must succeed."""
    result = run(*arguments, "--json", shell=shell)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
