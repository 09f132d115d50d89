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
    made = deploy.build(deploy.local_parameters())
    # Under another name, or the next deployment of this process would use it up.
    folder = made.rename(made.with_name(f"{made.name}-kept"))
    yield folder
    shutil.rmtree(folder)
