"""`sim` and `limits`: what each handler does to one order, played in this process."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from local.lab.offline import Offline, offline
from local.lab.rows import Row
from local.lab.scenarios import (
    AFTER_ALWAYS,
    AFTER_ONCE,
    CHARGE_ONCE,
    EVERY_ATTEMPT,
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
    """Where a scenario fails, in words for a table."""
    times = "every attempt" if scenario.times >= EVERY_ATTEMPT else "once"
    where = (
        "at the provider, before money moves"
        if scenario.point == PROVIDER_DEAD.point
        else ("after the charge")
    )
    return f"{where}, {times}"


def sim() -> list[Row]:
    """The article's two tallies with its fault points, then every handler in every scenario."""
    with offline() as lab:
        article = [
            replace(lab.run(handler, scenario), scenario=name)
            for name, faults in ARTICLE.items()
            for handler, scenario in faults.items()
        ]
        return article + _all(lab, HANDLERS, SCENARIOS)


def limits() -> list[Row]:
    """The window between charge and commit, which only a key at the provider closes."""
    with offline() as lab:
        return limits_of(lab)


def limits_of(lab: Offline) -> list[Row]:
    """The same in a lab that is open already."""
    return _all(lab, LIMITS_HANDLERS, (AFTER_ONCE,))


def _all(lab: Offline, handlers: Iterable[str], scenarios: Iterable[Scenario]) -> list[Row]:
    scenarios = tuple(scenarios)
    return [lab.run(handler, scenario) for handler in handlers for scenario in scenarios]
