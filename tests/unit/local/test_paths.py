"""The state folder is one and the same, however and from wherever it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.paths import PROJECT, STATE_VARIABLE, state_folder


@pytest.mark.parametrize(
    ("named", "folder"),
    [
        ("", PROJECT / ".local"),
        ("second", PROJECT / "second"),
        ("../a second/stack", PROJECT.parent / "a second" / "stack"),
        ("/absolute/stack", Path("/absolute/stack")),
        ("~/stack", Path("/home/somebody/stack")),
    ],
)
def test_the_state_folder_is_where_the_variable_says(
    named: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv(STATE_VARIABLE, named)
    monkeypatch.chdir(tmp_path)

    assert state_folder() == folder
