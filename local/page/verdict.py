"""What the books say together about one order, in words that a person understands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

#: The groups of the page's filter, in the order of their urgency.
GROUPS = {
    "disagree": "The books disagree",
    "open": "Open",
    "running": "Running",
    "settled": "Settled",
}


@dataclass(frozen=True)
class Verdict:
    """`group` is one of GROUPS; `word` fits in a table; `sentence` says what it means."""

    group: str
    word: str
    sentence: str


def verdict(  # noqa: PLR0911 - one line for each thing the books can say
    record: Json | None,
    charges: Sequence[Json],
    *,
    running: bool,
    queued: bool,
    charges_complete: bool = True,
) -> Verdict:
    """Compare our ledger's record with the provider's charges for one order.

    `running`: an execution works on it. `queued`: the failure queue names it.
    `charges_complete`: the provider's books have been read to their end, so that a charge that
    is not among `charges` does not exist.
    """
    taken = [charge for charge in charges if charge["status"] == "succeeded"]
    if len(taken) > 1:
        return Verdict(
            "disagree",
            f"Charged {len(taken)} times",
            "More than one charge: one is to be refunded.",
        )
    charge = taken[0] if taken else None
    if record is None:
        return _without_record(charge, running=running, queued=queued)
    match record.get("status"):
        case "done":
            return _done(record, charge, queued=queued, charges_complete=charges_complete)
        case "declined" | "rejected" as refused if charge is not None:
            return Verdict(
                "disagree",
                "Charged but refused",
                f"Our ledger says {refused}, yet the provider took the money.",
            )
        case "declined":
            return Verdict("settled", "Declined", "The provider declined: nothing was charged.")
        case "rejected":
            sentence = "No valid order: nothing was charged."
            if queued:
                sentence += " The failure queue shows it to a person."
            return Verdict("settled", "Rejected", sentence)
        case "in_progress":
            return _in_progress(charge, running=running, queued=queued)
        case status:
            return Verdict(
                "disagree", "Unknown status", f"The record says {status!r}, a word we never write."
            )


def _without_record(charge: Json | None, *, running: bool, queued: bool) -> Verdict:
    if running:
        return Verdict("running", "Arriving", "An execution has started and not yet claimed it.")
    if charge is not None:
        return Verdict(
            "disagree", "Charged, not recorded", "The provider took money that no record knows of."
        )
    if queued:
        return Verdict("open", "Waiting for a person", "Never claimed; the failure queue has it.")
    return Verdict("open", "No record", "Something was seen of it, but our ledger knows nothing.")


def _done(record: Json, charge: Json | None, *, queued: bool, charges_complete: bool) -> Verdict:
    if charge is None:
        if not charges_complete:
            return Verdict(
                "settled", "Charged once", "Recorded as done; the provider's books follow."
            )
        return Verdict(
            "disagree", "Recorded, not charged", "Our ledger says done, the provider has no charge."
        )
    if charge["id"] != record.get("charge_id"):
        return Verdict(
            "disagree", "Another charge", "The record and the provider name different charges."
        )
    ours = (record.get("amount_minor"), record.get("currency"))
    if ours != (charge["amount"], charge["currency"]):
        return Verdict("disagree", "Amounts differ", "The two books disagree about the amount.")
    sentence = "Both books agree."
    if queued:
        sentence += " A replay takes what is left of it out of the failure queue."
    return Verdict("settled", "Charged once", sentence)


def _in_progress(charge: Json | None, *, running: bool, queued: bool) -> Verdict:
    if running:
        return Verdict("running", "In progress", "An execution owns it and works on it.")
    money = (
        "The money moved: a replay finds that charge and records it."
        if charge is not None
        else "No money has moved."
    )
    if queued:
        return Verdict("open", "Waiting for a person", f"In the failure queue. {money}")
    return Verdict("open", "Open, nobody works on it", f"Its owner has ended. {money}")
