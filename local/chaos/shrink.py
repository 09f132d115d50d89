"""From a schedule that broke a promise to a smaller one that still does, told as a story."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from local.chaos.schedules import plan_of
from local.chaos.simulation import Outcome, Plan, Simulation


def shrink(simulation: Simulation, outcome: Outcome) -> Outcome:
    """Leave out whatever can be left out of a broken schedule. Gives the smallest one found.

    The faults are kept as a list from here on: leaving one out does not move the others' dice.
    """
    fixed = replace(outcome.plan, faults=outcome.faults)
    smallest = simulation.run(outcome.seed, fixed)
    if not smallest.violations:
        return outcome
    found = True
    while found:
        found = False
        for plan in _smaller(smallest.plan):
            tried = simulation.run(outcome.seed, plan)
            if tried.violations:
                smallest, found = tried, True
                break
    return smallest


def story_of(seed: int) -> str:
    """Play one schedule again. Gives its story, shrunk if it breaks a promise."""
    with Simulation() as simulation:
        outcome = simulation.run(seed, plan_of(seed))
        return tell(shrink(simulation, outcome) if outcome.violations else outcome)


def tell(outcome: Outcome) -> str:
    """What happened, for a person: the plan, the faults, and what they led to."""
    return "\n".join(
        [
            f"seed {outcome.seed}, {outcome.plan}",
            *(f"  {line}" for line in outcome.story),
            *(f"=> {line}" for line in outcome.violations),
        ]
    )


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Plans with one thing less, the largest things first."""
    for number in range(len(plan.deliveries)):
        if len(plan.deliveries) > 1:
            yield replace(plan, deliveries=_without(plan.deliveries, number))
    if plan.days > 1:
        yield replace(plan, days=plan.days - 1)
    if plan.stops:
        yield replace(plan, stops=plan.stops - 1)
    if plan.replays:
        yield replace(plan, replays=plan.replays - 1)
    if plan.reconciles:
        yield replace(plan, reconciles=plan.reconciles - 1)
    if plan.outage:
        yield replace(plan, outage=False)
    if plan.overwritten:
        yield replace(plan, overwritten=False)
    for number, times in enumerate(plan.deliveries):
        if times > 1:
            fewer = (*plan.deliveries[:number], times - 1, *plan.deliveries[number + 1 :])
            yield replace(plan, deliveries=fewer)
    for number in plan.faults or ():
        faults = {key: kind for key, kind in (plan.faults or {}).items() if key != number}
        yield replace(plan, faults=faults)


def _without(deliveries: tuple[int, ...], number: int) -> tuple[int, ...]:
    return (*deliveries[:number], *deliveries[number + 1 :])
