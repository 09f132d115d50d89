"""What each handler is put through: the columns of the lab's table, each with its fault point."""

from __future__ import annotations

from dataclasses import dataclass

from local.faults import Fault
from local.lab.function.handlers import faults

#: More often than anybody retries.
EVERY_ATTEMPT = 99

CHARGE_ONCE = "charge-once"


@dataclass(frozen=True)
class Scenario:
    """One column.

    `point` and `times`: where the lab's handlers fail, and how often. `charge_once`: the same
    fault in the words of the `order` command. `deliveries` of the one event, one after the other
    or `together`. `note` says more than the name can.
    """

    name: str
    note: str
    point: str | None = None
    times: int = 0
    charge_once: str | None = None
    deliveries: int = 1
    together: bool = False

    @property
    def time_outs(self) -> int:
        """How many attempts Lambda shall end by time-out."""
        return self.times if self.point == faults.TIMEOUT_AFTER_CHARGE else 0

    @property
    def fault_of_charge_once(self) -> list[Fault]:
        """What to arm for charge-once."""
        return [Fault(self.charge_once, self.times)] if self.charge_once else []


CLEAN = Scenario("clean", "Nothing goes wrong.")

BEFORE_ONCE = Scenario(
    "fails before the charge, once",
    "The first attempt ends before it has asked the provider for anything.",
    faults.BEFORE_CHARGE,
    1,
    "function.exit_before_charge",
)

AFTER_ONCE = Scenario(
    "fails after the charge, once",
    "The money has moved; then the first attempt ends before it could write that down.",
    faults.AFTER_CHARGE,
    1,
    "function.exit_after_charge",
)

PROVIDER_DEAD = Scenario(
    "provider dead, every attempt",
    "The provider refuses every request; no money moves.",
    faults.PROVIDER_DEAD,
    EVERY_ATTEMPT,
    "provider.unavailable",
)

AFTER_ALWAYS = Scenario(
    "fails after the charge, every attempt",
    "The provider takes the money, and each attempt ends right afterwards.",
    faults.AFTER_CHARGE,
    EVERY_ATTEMPT,
    "function.exit_after_charge",
)

DUPLICATE = Scenario(
    "duplicate after success",
    "The same event arrives once more, after the first delivery has ended well.",
    deliveries=2,
)

EIGHT_AT_ONCE = Scenario(
    "8 at once",
    "The same event arrives eight times at the same moment.",
    deliveries=8,
    together=True,
)

TIMEOUT = Scenario(
    "time-out right after the charge",
    "The money has moved; then the first attempt hangs until Lambda ends it.",
    faults.TIMEOUT_AFTER_CHARGE,
    1,
    "function.timeout_after_charge",
)

SCENARIOS = (
    CLEAN,
    BEFORE_ONCE,
    AFTER_ONCE,
    PROVIDER_DEAD,
    AFTER_ALWAYS,
    DUPLICATE,
    EIGHT_AT_ONCE,
    TIMEOUT,
)

#: The rows that are measured in the lab's own functions; charge-once follows them.
LAB_HANDLERS = ("naive", "claim-first-by-version", "claim-first-by-content", "robust")
