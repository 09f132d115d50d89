"""The real pipeline, simulated: it keeps its promises, and a broken one is caught."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.chaos import schedules
from local.chaos.bodies import KINDS
from local.chaos.mutations import MUTATIONS, Mutation
from local.chaos.shrink import shrink, tell
from local.chaos.simulation import Plan, Simulation

pytestmark = pytest.mark.xdist_group("chaos-simulation")

#: Enough for every kind of boundary to be broken, little enough for every test run.
SHORT_FORM = range(40)
#: Owners die, and several helpers come at once.
RUSH = Plan(deliveries=(2,), stops=2, replays=1, reconciles=3, rate=0.05)
#: Owners die, and nobody comes before the provider has forgotten its keys.
NIGHT = Plan(deliveries=(1, 1), stops=2, replays=0, reconciles=0, days=2, rate=0.1)
#: The most schedules that a broken product may survive.
BOUND = 200


def test_a_short_campaign_keeps_every_promise() -> None:
    outcomes = schedules.play(list(SHORT_FORM))

    report = schedules.report_of(0, outcomes, seconds=0)
    assert report.verdict.violations == []
    assert report.verdict.settled + report.verdict.open_and_reported == report.verdict.orders
    assert len(report.by_boundary) >= 8


def test_a_seed_tells_the_same_story_again() -> None:
    with Simulation() as first:
        first.run(1, schedules.plan_of(1))  # what went before must not matter
        once = first.run(17, schedules.plan_of(17))
    with Simulation() as second:
        again = second.run(17, schedules.plan_of(17))

    assert len(once.trace) > 50
    assert [_without_names(step) for step in once.trace] == [
        _without_names(step) for step in again.trace
    ]


def _without_names(step: str) -> str:
    """Names of executions hold the pass and the event that they were started for."""
    return step.rpartition(": ")[2]


def test_without_faults_every_order_is_settled_without_repair() -> None:
    calm = Plan(deliveries=(1, 2, 3), rate=0.0, stops=0, replays=0, reconciles=0)

    with Simulation() as simulation:
        outcome = simulation.run(3, calm)

    assert outcome.violations == []
    assert outcome.injected == {}
    assert outcome.verdict.settled == 3


def test_an_order_whose_event_never_arrives_is_found_and_settled() -> None:
    with Simulation() as simulation:
        outcome = simulation.run(4, Plan(deliveries=(0,), rate=0.0, stops=0))

    assert outcome.deliveries == 0
    assert outcome.verdict.settled == 1


PLANS = st.builds(
    Plan,
    deliveries=st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple),
    bodies=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3).map(tuple),
    overwritten=st.booleans(),
    days=st.integers(1, 2),
    rate=st.sampled_from((0.0, 0.05, 0.2)),
    stops=st.integers(0, 3),
    replays=st.integers(0, 2),
    reconciles=st.integers(0, 3),
    outage=st.booleans(),
)


def test_whatever_the_plan_every_promise_is_kept() -> None:
    with Simulation() as simulation:

        @settings(max_examples=25, deadline=None)
        @given(plan=PLANS, seed=st.integers(0, 1_000_000))
        def keeps_every_promise(plan: Plan, seed: int) -> None:
            assert simulation.run(seed, plan).violations == []

        keeps_every_promise()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_broken_product_is_caught(mutation: Mutation) -> None:
    plan = NIGHT if mutation.needs_a_night else RUSH

    with mutation.code(), Simulation(definition=mutation.definition()) as simulation:
        caught = next(
            (
                outcome
                for seed in range(BOUND)
                if (outcome := simulation.run(seed, plan)).violations
            ),
            None,
        )

    assert caught is not None, f"survived {BOUND} schedules"


def test_a_broken_schedule_is_shrunk_to_a_short_story() -> None:
    (mutation,) = (found for found in MUTATIONS if "key of its own" in found.name)
    with mutation.code(), Simulation() as simulation:
        broken = simulation.run(2, NIGHT)
        smallest = shrink(simulation, broken)

    assert broken.violations
    assert smallest.violations
    assert smallest.plan.days == 1
    assert len(smallest.faults) <= len(broken.faults)
    assert "charged 2 times" in tell(smallest)


def test_the_faults_of_a_run_can_be_repeated_as_a_list() -> None:
    with Simulation() as simulation:
        by_dice = simulation.run(2, NIGHT)
        by_list = simulation.run(2, replace(NIGHT, faults=by_dice.faults))

    assert by_dice.faults
    assert by_list.faults == by_dice.faults
