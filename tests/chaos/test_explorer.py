"""Every interleaving of a few actors on one order; the long form is marked as a campaign."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local.chaos.explorer import BEGINNINGS, Beginning, Explorer
from local.chaos.scripts import Scripts

pytestmark = pytest.mark.xdist_group("chaos-explorer")


@pytest.fixture(scope="module")
def explorer() -> Iterator[Explorer]:
    with Scripts() as scripts:
        yield Explorer(scripts)


def named(beginning: Beginning) -> str:
    return beginning.name


@pytest.mark.parametrize("beginning", BEGINNINGS, ids=named)
def test_no_interleaving_of_two_deliveries_breaks_a_promise(
    explorer: Explorer, beginning: Beginning
) -> None:
    result = explorer.explore(beginning, replays=0, reconciles=0, misfortunes=2)

    assert result.violations == []
    assert result.ends > 20


@pytest.mark.parametrize("beginning", BEGINNINGS, ids=named)
def test_no_interleaving_with_replay_and_repair_breaks_a_promise(
    explorer: Explorer, beginning: Beginning
) -> None:
    result = explorer.explore(beginning, deliveries=1, misfortunes=0)

    assert result.violations == []
    assert result.ends > 10


@pytest.mark.campaign
@pytest.mark.parametrize("beginning", BEGINNINGS, ids=named)
def test_no_interleaving_with_a_misfortune_at_any_step_breaks_a_promise(
    explorer: Explorer, beginning: Beginning
) -> None:
    result = explorer.explore(beginning, misfortunes=1)

    assert result.violations == []
    assert result.states > 50_000
