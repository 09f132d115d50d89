"""What the two ledgers say together."""

from __future__ import annotations

from typing import Any

import pytest

from local.page.verdict import verdict
from tests.unit.page.fakes import charge

KEY = "charge#1"
CHARGE = charge("ch_1", KEY)
DONE = {"pk": KEY, "status": "done", "charge_id": "ch_1", "amount_minor": 1999, "currency": "EUR"}
OPEN = {"pk": KEY, "status": "in_progress"}


def refused(status: str) -> dict[str, Any]:
    return {"pk": KEY, "status": status, "reason": "no funds"}


@pytest.mark.parametrize(
    ("record", "charges", "facts", "group", "word"),
    [
        (DONE, [CHARGE], {}, "settled", "Charged once"),
        (DONE, [CHARGE], {"queued": True}, "settled", "Charged once"),
        (DONE, [], {"charges_complete": False}, "settled", "Charged once"),
        (DONE, [], {}, "disagree", "Recorded, not charged"),
        (DONE, [charge("ch_2", KEY)], {}, "disagree", "Another charge"),
        (DONE, [CHARGE | {"amount": 1998}], {}, "disagree", "Amounts differ"),
        (DONE, [CHARGE | {"currency": "JPY"}], {}, "disagree", "Amounts differ"),
        (DONE, [CHARGE, charge("ch_2", KEY)], {}, "disagree", "Charged 2 times"),
        (OPEN, [CHARGE, charge("ch_2", KEY)], {"running": True}, "disagree", "Charged 2 times"),
        (refused("declined"), [], {}, "settled", "Declined"),
        (refused("declined"), [CHARGE | {"status": "failed"}], {}, "settled", "Declined"),
        (refused("declined"), [CHARGE], {}, "disagree", "Charged but refused"),
        (refused("rejected"), [], {"queued": True}, "settled", "Rejected"),
        (refused("rejected"), [CHARGE], {}, "disagree", "Charged but refused"),
        (OPEN, [], {"running": True}, "running", "In progress"),
        (OPEN, [], {"queued": True}, "open", "Waiting for a person"),
        (OPEN, [], {}, "open", "Open, nobody works on it"),
        (refused("lost"), [], {}, "disagree", "Unknown status"),
        (None, [], {"running": True}, "running", "Arriving"),
        (None, [CHARGE], {}, "disagree", "Charged, not recorded"),
        (None, [], {"queued": True}, "open", "Waiting for a person"),
        (None, [], {}, "open", "No record"),
    ],
)
def test_every_pair_of_books_has_its_verdict(
    record: dict[str, Any] | None,
    charges: list[dict[str, Any]],
    facts: dict[str, bool],
    group: str,
    word: str,
) -> None:
    found = verdict(record, charges, **({"running": False, "queued": False} | facts))

    assert (found.group, found.word) == (group, word)
    assert found.sentence.endswith(".")


def test_an_open_order_says_whether_the_money_moved() -> None:
    before = verdict(OPEN, [], running=False, queued=True)
    after = verdict(OPEN, [CHARGE], running=False, queued=True)

    assert "No money has moved" in before.sentence
    assert "The money moved" in after.sentence
