"""One cell of the lab's table: what was seen, and what that means to the business."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

#: What counting can find, in the words of the reconciler where it has them.
CHARGED_TWICE = "charged_twice"
NOT_CHARGED = "arrived_not_charged"
STUCK = "stuck"

_WHAT_ONE_CHARGE_LEAVES = {
    None: "; no record says so, so nothing could prove it.",
    "claimed": "; the record would look the same had nobody been charged.",
    "in_progress": ", and the record still says that the work is under way.",
    "done": ", and the record says so.",
}


@dataclass(frozen=True)
class Row:
    """One handler in one scenario.

    `charges`: how often money moved for one object. `record`: the status in our ledger, None
    without a record. `queued`: messages of the failure queue that name the object. `findings`:
    kinds, by a reconciliation of the books. `disturbed`: whether the scenario held a failure;
    `repaired`: the record after the reconciler's repair, None where there was nothing to repair.
    """

    handler: str
    scenario: str
    charges: int
    record: str | None
    queued: int
    findings: list[str] = field(default_factory=list)
    disturbed: bool = False
    repaired: str | None = None

    def document(self) -> dict[str, Any]:
        """The row of the command-line contract, with its meaning."""
        document = asdict(self)
        del document["disturbed"], document["repaired"]
        return document | {"meaning": self.meaning}

    @property
    def verdict(self) -> str:
        """The cell in a word or two: `2`, or `0, silently lost`."""
        return ", ".join([str(self.charges), *self._remarks()])

    def _remarks(self) -> list[str]:
        remarks = ["queued"] if self.queued else []
        if self._is_lost:
            remarks.append("silently lost")
        if self._is_mismatch:
            remarks.append("reported as failed: silent mismatch")
        if self.repaired == "done":
            remarks.append("settled by the reconciler")
        elif self.record == "in_progress" and self.queued:
            remarks.append("open")
        return remarks

    @property
    def is_silent(self) -> bool:
        """Whether something is wrong and no queue, no error that repeats, says so."""
        return self._is_lost or self._is_mismatch

    @property
    def _is_lost(self) -> bool:
        return self.charges == 0 and not self.queued

    @property
    def _is_mismatch(self) -> bool:
        """The only attempt that knew of the charge failed; the later ones did nothing."""
        return self.disturbed and self.charges == 1 and self.record == "claimed"

    @property
    def meaning(self) -> str:
        """One sentence: what this would mean to the business."""
        if self.charges > 1:
            return self._meaning_of_too_many()
        if self.charges == 0:
            return self._meaning_of_none()
        if self._is_mismatch:
            return (
                "The customer has paid, the one attempt that knew it reported a failure, and "
                "nobody is told that the two disagree."
            )
        if self.repaired == "done":
            return (
                "The customer has paid once; the order waited in the failure queue and the "
                "reconciler found the charge and settled the record."
            )
        return f"The customer has paid once{_WHAT_ONE_CHARGE_LEAVES[self.record]}"

    def _meaning_of_too_many(self) -> str:
        paid = f"The customer has paid {self.charges} times for one file"
        if self.queued:
            return f"{paid}, and the queue reports it as work that was never done."
        if self.record == "done":
            return f"{paid}, while the record says that all went well."
        return f"{paid}, and no record says why."

    def _meaning_of_none(self) -> str:
        if not self.queued:
            return (
                "Nobody was charged, nothing will try again, and nobody is told: revenue is lost."
            )
        if self.record == "in_progress":
            return (
                "Nobody was charged; the order is open and waits in the failure queue for a person."
            )
        return "Nobody was charged; the event waits in the queue, and no record knows of it."


def count_findings(*, charges: int, record: str | None) -> list[str]:
    """The plain reconciliation of one object that arrived: count in, count out, look for open.

    It reads the provider's books, which few do who have no reconciler; without them even fewer
    of these would be seen.
    """
    findings = []
    if charges > 1:
        findings.append(CHARGED_TWICE)
    if charges == 0:
        findings.append(NOT_CHARGED)
    if record == "in_progress":
        findings.append(STUCK)
    return findings
