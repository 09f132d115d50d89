"""Tests that ask AWS itself: `pytest tests/workflow/aws --aws`, with the shell's credentials.

They need the permission states:TestState, deploy nothing and cost a few cents at most.
"""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--aws", action="store_true", help="ask AWS, with the shell's credentials")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Without the flag, there are no such tests."""
    del collection_path
    return None if config.getoption("--aws", default=False) else True
