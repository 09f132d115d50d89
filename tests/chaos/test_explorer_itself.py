"""The explorer itself: it sees what is broken, and takes the paths that the pipeline takes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from local.chaos.explorer import BEGINNINGS, DEAD, Explorer, explore_all
from local.chaos.mutations import MUTATIONS, Mutation
from local.chaos.scripts import BODY, Scripts
from local.inprocess import InProcess

pytestmark = pytest.mark.xdist_group("chaos-explorer")

FRESH, _, CLAIMED, _ = BEGINNINGS


def test_an_exploration_says_what_it_has_seen_from_each_beginning() -> None:
    explorations = explore_all(deliveries=1, replays=0, reconciles=0, misfortunes=0)

    assert [found["beginning"] for found in explorations] == [each.name for each in BEGINNINGS]
    assert all(found["violations"] == [] for found in explorations)
    assert all(found["steps"] >= found["states"] - 1 > 0 for found in explorations)
    assert all(found["endings"] > 0 for found in explorations)


@pytest.mark.campaign
def test_an_order_older_than_the_providers_keys_is_charged_once() -> None:
    with Scripts(age=timedelta(hours=30)) as scripts:
        result = Explorer(scripts).explore(FRESH, replays=0, misfortunes=1)

    assert result.violations == []


@pytest.mark.parametrize(
    "mutation",
    [found for found in MUTATIONS if not found.needs_a_night],
    ids=lambda mutation: mutation.name,
)
def test_a_broken_product_is_caught(mutation: Mutation) -> None:
    with mutation.code(), Scripts(definition=mutation.definition()) as scripts:
        explorer = Explorer(scripts)
        caught = any(
            explorer.explore(beginning, until_violation=True, **actors).violations
            for beginning, actors in (
                (FRESH, {"replays": 0, "reconciles": 0, "misfortunes": 1}),
                (CLAIMED, {"deliveries": 0, "misfortunes": 0}),
                (FRESH, {"deliveries": 1, "replays": 0, "misfortunes": 1}),
            )
        )

    assert caught


# ---------------------------------------------------------------- agreement with the engine


def test_a_script_takes_the_path_that_the_pipeline_takes() -> None:
    with InProcess() as pipeline:
        event = pipeline.drop("orders/1.json", BODY)
        first, second = pipeline.deliver(event), pipeline.deliver(event)
    with Scripts() as scripts:
        explorer = Explorer(scripts)
        world, one = explorer.run_alone(explorer.begin(FRESH), "first", scripts.event)
        _, two = explorer.run_alone(world, "second", scripts.event)

    assert one.path == tuple(first.path)
    assert two.path == tuple(second.path)


def test_a_scripted_takeover_takes_the_path_that_the_pipeline_takes() -> None:
    with InProcess() as pipeline:
        event = pipeline.drop("orders/1.json", BODY)
        pipeline.provider.arm_fault({"fault": "unavailable", "times": 99})
        dead = pipeline.deliver(event)
        pipeline.provider.clear_faults()
        successor = pipeline.deliver(event | {"replay": {"owner": dead.arn}})
    with Scripts() as scripts:
        explorer = Explorer(scripts)
        given = scripts.event | {"replay": {"owner": scripts.arn(DEAD)}}
        _, end = explorer.run_alone(explorer.begin(CLAIMED), "successor", given)

    assert "TakeOver" in successor.path
    assert end.path == tuple(successor.path)
