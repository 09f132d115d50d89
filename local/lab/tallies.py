"""`sim` and `limits`: what each handler does to one order, played in this process."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from local.lab.offline import Offline, offline
from local.lab.rows import Row
from local.lab.scenarios import (
    AFTER_ALWAYS,
    AFTER_ONCE,
    CHARGE_ONCE,
    LAB_HANDLERS,
    PROVIDER_DEAD,
    SCENARIOS,
    Scenario,
)

HANDLERS = (*LAB_HANDLERS, CHARGE_ONCE)
LIMITS_HANDLERS = ("robust", "robust-with-key", CHARGE_ONCE)

TRANSIENT, POISON = "transient", "poison"

_REFUSED_ONCE = replace(PROVIDER_DEAD, times=1)

#: The best-known comparison of these handlers fails them at different points: the naive and the
#: claim-first ones after the charge, the robust one at the charge, before money moves. Charge-once
#: gets the harder of the two when the failure passes, and a dead provider when it does not.
ARTICLE = {
    TRANSIENT: {
        "naive": AFTER_ONCE,
        "claim-first-by-version": AFTER_ONCE,
        "claim-first-by-content": AFTER_ONCE,
        "robust": _REFUSED_ONCE,
        CHARGE_ONCE: AFTER_ONCE,
    },
    POISON: {
        "naive": AFTER_ALWAYS,
        "claim-first-by-version": AFTER_ALWAYS,
        "claim-first-by-content": AFTER_ALWAYS,
        "robust": PROVIDER_DEAD,
        CHARGE_ONCE: PROVIDER_DEAD,
    },
}


def fault_point(scenario: Scenario) -> str:
    """Where a scenario of ARTICLE fails, in words for a table."""
    if scenario.point == PROVIDER_DEAD.point:
        return "at the charge: no money moves"
    return "after the charge"


def sim() -> list[Row]:
    """The article's two tallies with its fault points, then every handler in every scenario."""
    with offline() as lab:
        run = cache(lab.run)  # most of the article's cells are cells of the other table too
        article = [
            replace(run(handler, scenario), scenario=name)
            for name, faults in ARTICLE.items()
            for handler, scenario in faults.items()
        ]
        return article + [run(handler, scenario) for handler in HANDLERS for scenario in SCENARIOS]


def limits() -> list[Row]:
    """The window between charge and commit, which only a key at the provider closes."""
    with offline() as lab:
        return limits_of(lab)


def limits_of(lab: Offline) -> list[Row]:
    """The same in a lab that is open already."""
    return [lab.run(handler, AFTER_ONCE) for handler in LIMITS_HANDLERS]
