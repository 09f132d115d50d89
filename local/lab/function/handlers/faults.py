"""Failures on demand, at an exact point and for one object only."""

from __future__ import annotations

from collections.abc import Callable

from .table import Table

#: Where a failure can be asked for. The provider's own is refused before any money moves.
BEFORE_CHARGE = "before_charge"
PROVIDER_DEAD = "provider_dead"
AFTER_CHARGE = "after_charge"
TIMEOUT_AFTER_CHARGE = "timeout_after_charge"
POINTS = (BEFORE_CHARGE, PROVIDER_DEAD, AFTER_CHARGE, TIMEOUT_AFTER_CHARGE)


class ForcedFailure(Exception):
    """The handler was asked to fail here."""


class ProviderDown(Exception):
    """The provider refused the request; no money moved."""


class Faults:
    """The faults of one object. `fail_once` names a point at which every object fails once.

    What is left to fail is kept in the table and taken with a conditional decrement. A flag in
    memory would still be set when the retry meets the same warm environment, and gone when a
    time-out has ended it.
    """

    def __init__(
        self, table: Table, work: str, fail_once: str | None, hang: Callable[[], None]
    ) -> None:
        self._table = table
        self._work = work
        self._fail_once = fail_once
        self._hang = hang

    def strike(self, point: str) -> None:
        """Fail if a fault is left for this point. Raises ForcedFailure or ProviderDown."""
        pk = fault_key(self._work, point)
        if self._fail_once == point:
            self._table.create(pk, remaining={"N": "1"})
        if not self._table.take(pk):
            return
        if point == TIMEOUT_AFTER_CHARGE:
            self._hang()
        if point == PROVIDER_DEAD:
            raise ProviderDown("the provider does not answer")
        raise ForcedFailure(point)


def fault_key(work: str, point: str) -> str:
    """The `pk` under which faults of `work` (bucket/key) at `point` are kept."""
    return f"fault#{work}#{point}"
