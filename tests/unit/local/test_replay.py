"""What a replay starts."""

from __future__ import annotations

import pytest

from local.replay import replay_input

ORDER = {"bucket": "b", "key": "orders/a.json", "version_id": "v1", "etag": "e"}


@pytest.mark.parametrize(
    ("owner", "marker"), [(None, {}), ("arn:old-owner", {"owner": "arn:old-owner"})]
)
def test_every_replay_says_that_it_is_one_so_that_the_books_are_asked_first(
    owner: str | None, marker: dict[str, str]
) -> None:
    assert replay_input(ORDER, owner)["replay"] == marker
