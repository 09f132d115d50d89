"""The in-process campaign: thousands of simulated schedules, on every core."""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

from local.chaos.invariants import Verdict
from local.chaos.report import Report
from local.chaos.simulation import Outcome, Plan, Simulation

#: Schedules that one simulation plays: long enough to make its second of start-up count little.
CHUNK = 50
#: Far apart, so that no two campaigns share a schedule.
_SEEDS_PER_CAMPAIGN = 1_000_000

#: Where a fault struck, in the words of docs/proof.md.
_BOUNDARIES = {
    "charge:get_object": "S3 read",
    "charge:provider charge": "provider charge",
    "charge:provider look-up": "provider look-up",
}


def plan_of(seed: int) -> Plan:
    """The plan of the schedule with this seed."""
    return Plan.random(random.Random(f"{seed} plan"))  # noqa: S311 - chaos, no secret


def seeds(campaign: int, orders: int) -> Iterator[int]:
    """The schedules of a campaign: as many as make up that number of orders."""
    seed = campaign * _SEEDS_PER_CAMPAIGN
    while orders > 0:
        yield seed
        orders -= len(plan_of(seed).deliveries)
        seed += 1


def run(
    orders: int, campaign: int, announce: Callable[[int, int], None] = lambda done, total: None
) -> Report:
    """Play a campaign. `announce` is called with how many schedules are done, and of how many."""
    began = time.monotonic()
    todo = list(seeds(campaign, orders))
    chunks = [todo[start : start + CHUNK] for start in range(0, len(todo), CHUNK)]
    # Fresh interpreters: a fork of this one would share its greenlets and patches.
    spawn = multiprocessing.get_context("spawn")
    workers = min(len(chunks), os.cpu_count() or 1)
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(workers, mp_context=spawn) as pool:
        for played in pool.map(play, chunks):
            outcomes += played
            announce(len(outcomes), len(todo))
    return report_of(campaign, outcomes, time.monotonic() - began)


def play(chunk: list[int]) -> list[Outcome]:
    """Play schedules one after the other in a simulation of their own."""
    with Simulation() as simulation:
        return [simulation.run(seed, plan_of(seed)) for seed in chunk]


def report_of(campaign: int, outcomes: list[Outcome], seconds: float) -> Report:
    """What a campaign's schedules come to, put together."""
    verdict = Verdict()
    injected: Counter[tuple[str, str]] = Counter()
    for outcome in outcomes:
        part = outcome.verdict
        verdict.orders += part.orders
        verdict.settled += part.settled
        verdict.open_and_reported += part.open_and_reported
        verdict.double_charges += part.double_charges
        verdict.lost += part.lost
        verdict.violations += [f"seed {outcome.seed}: {what}" for what in part.violations]
        for (place, kind), count in outcome.injected.items():
            injected[_boundary(place), kind] += count
    return Report(
        seed=campaign,
        deliveries=sum(outcome.deliveries for outcome in outcomes),
        injected=injected,
        verdict=verdict,
        seconds=seconds,
        more={"schedules": len(outcomes)},
    )


def _boundary(place: str) -> str:
    """A place as it is told: every call of a helper is one boundary."""
    who, _, _ = place.partition(":")
    return _BOUNDARIES.get(place, f"{who}'s calls" if ":" in place else place)
