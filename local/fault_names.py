"""The faults there are, by name: the charge function's own, and the provider's."""

from __future__ import annotations

FUNCTION_FAULTS = ("exit_before_charge", "exit_after_charge", "timeout_after_charge")
PROVIDER_FAULTS = (
    "decline",
    "unavailable",
    "error_after_charge",
    "timeout_before",
    "timeout_after_charge",
    "rate_limit",
    "slow",
)
NAMES = tuple(
    [f"function.{name}" for name in FUNCTION_FAULTS]
    + [f"provider.{name}" for name in PROVIDER_FAULTS]
)
