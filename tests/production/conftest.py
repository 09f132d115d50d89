"""What sam build makes, once for all tests here."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import deploy


@pytest.fixture(scope="session")
def built() -> Iterator[Path]:
    """The folder of built functions and template. Copy it before you change or deploy it."""
    folder = deploy.build(deploy.local_parameters())
    yield folder
    shutil.rmtree(folder)
