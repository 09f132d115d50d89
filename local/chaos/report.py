"""The document of the `chaos` command, the same for both kinds of campaign."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from local.chaos.invariants import Verdict

Injected = Mapping[tuple[str, str], int]


@dataclass(frozen=True)
class Report:
    """What a campaign did and found. `injected`: (boundary, kind) -> how often."""

    seed: int
    deliveries: int
    injected: Injected
    verdict: Verdict
    seconds: float
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def by_boundary(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for (boundary, kind), count in sorted(self.injected.items()):
            found.setdefault(boundary, {})[kind] = count
        return found

    def document(self) -> dict[str, Any]:
        """Counts first; `injected` says what was broken where, `violations` what did not hold."""
        verdict = self.verdict
        return {
            "orders": verdict.orders,
            "deliveries": self.deliveries,
            "faults_injected": sum(self.injected.values()),
            "boundaries": len(self.by_boundary),
            "double_charges": verdict.double_charges,
            "lost": verdict.lost,
            "open_and_reported": verdict.open_and_reported,
            "settled": verdict.settled,
            "seconds": round(self.seconds, 1),
            "seed": self.seed,
            "violations": verdict.violations,
            "injected": self.by_boundary,
            **self.more,
        }
