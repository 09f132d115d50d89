"""The judge of every campaign: one clean set of books, one change, one sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from local.chaos.invariants import (
    Books,
    Settlements,
    Version,
    Writer,
    judge,
    judge_write,
)

ORDER = {
    "order_id": "A-1",
    "customer": "cus_42",
    "amount": "19.99",
    "currency": "EUR",
    "payment_method": "tok_visa",
}
VERSION = Version("bucket", "orders/1.json", "v1", json.dumps(ORDER).encode())
ME, OTHER = "arn:execution:me", "arn:execution:other"
RECORD: dict[str, Any] = {
    "pk": VERSION.reference,
    "status": "done",
    "owner": ME,
    "order_id": "A-1",
    "charge_id": "ch_1",
    "amount_minor": 1999,
    "currency": "EUR",
}
CHARGE: dict[str, Any] = {
    "id": "ch_1",
    "reference": VERSION.reference,
    "status": "succeeded",
    "amount": 1999,
    "currency": "EUR",
}
CLEAN = Books([VERSION], [RECORD], [CHARGE], reported=set())
OPEN = {"pk": VERSION.reference, "status": "in_progress", "owner": ME}


def broken(**changes: Any) -> Version:
    return VERSION._replace(body=json.dumps(ORDER | changes).encode())


def test_clean_books_keep_every_promise() -> None:
    verdict = judge(CLEAN)

    assert verdict.violations == []
    assert (verdict.orders, verdict.settled, verdict.lost) == (1, 1, 0)


@pytest.mark.parametrize(
    ("books", "what"),
    [
        (replace(CLEAN, charges=[CHARGE, CHARGE | {"id": "ch_2"}]), "charged 2 times"),
        (replace(CLEAN, records=[]), "lost: no record"),
        (replace(CLEAN, records=[OPEN]), "lost: in_progress"),
        (replace(CLEAN, charges=[]), "done with ch_1"),
        (replace(CLEAN, charges=[CHARGE | {"id": "ch_2"}]), "done with ch_1"),
        (replace(CLEAN, charges=[CHARGE | {"amount": 1998}]), "the charge says (1998, 'EUR')"),
        (replace(CLEAN, records=[RECORD | {"currency": "USD"}]), "the record says (1999, 'USD')"),
        (replace(CLEAN, records=[RECORD | {"order_id": "B"}]), "another order id"),
        (replace(CLEAN, records=[RECORD | {"open_since": "now"}]), "among the open records"),
        (replace(CLEAN, records=[RECORD | {"status": "declined"}]), "can only end done"),
        (replace(CLEAN, versions=[broken(payment_method="tok_declined")]), "can only end declined"),
        (replace(CLEAN, versions=[VERSION._replace(body=b"{")]), "can only end rejected"),
        (replace(CLEAN, versions=[]), "belongs to no order"),
        (
            replace(CLEAN, charges=[CHARGE, CHARGE | {"reference": "charge#0"}]),
            "charge ch_1 belongs to no order",
        ),
        (
            Books(
                [broken(payment_method="tok_declined")],
                [RECORD | {"status": "declined"}],
                [CHARGE],
                set(),
            ),
            "declined, and yet charged",
        ),
        (
            Books(
                [broken(payment_method="tok_declined")],
                [RECORD | {"status": "declined"}],
                [],
                set(),
            ),
            "the provider knows nothing",
        ),
    ],
)
def test_each_broken_promise_is_told(books: Books, what: str) -> None:
    violations = judge(books).violations

    assert any(what in violation for violation in violations)


def test_an_open_order_that_a_person_was_told_of_is_not_lost() -> None:
    verdict = judge(replace(CLEAN, records=[OPEN], reported={VERSION.reference}))

    assert (verdict.lost, verdict.open_and_reported, verdict.violations) == (0, 1, [])


def test_a_currency_without_cents_and_one_with_three_digits_are_priced_right() -> None:
    assert broken(amount="500", currency="JPY").price == (500, "JPY")
    assert broken(amount="1.005", currency="KWD").price == (1005, "KWD")


def test_a_settled_record_may_not_change() -> None:
    settlements = Settlements()

    first = settlements.watch([RECORD])
    second = settlements.watch([RECORD | {"settled_at": "later"}])

    assert first == []
    assert len(second) == 1


# ---------------------------------------------------------------- every write

DELIVERY = Writer(ME, succeeds=None)
SUCCESSOR = Writer(ME, succeeds=OTHER)
THEIRS = OPEN | {"owner": OTHER}
DONE = OPEN | {"status": "done"}


@pytest.mark.parametrize(
    ("writer", "before", "after"),
    [
        (DELIVERY, None, OPEN),
        (SUCCESSOR, THEIRS, OPEN),
        (DELIVERY, OPEN, DONE),
        (DELIVERY, DONE, DONE),
    ],
)
def test_claim_takeover_and_settlement_are_allowed(writer: Writer, before: Any, after: Any) -> None:
    assert judge_write(writer, before, after, lambda _: False) is None


@pytest.mark.parametrize(
    ("writer", "before", "after"),
    [
        (DELIVERY, None, THEIRS),
        (DELIVERY, None, DONE),
        (DELIVERY, THEIRS, OPEN),
        (Writer(ME, succeeds="arn:execution:third"), THEIRS, OPEN),
        (DELIVERY, THEIRS, THEIRS | {"status": "done"}),
        (DELIVERY, DONE, OPEN),
        (DELIVERY, DONE, DONE | {"settled_at": "later"}),
        (DELIVERY, OPEN, None),
    ],
)
def test_any_other_write_is_told(writer: Writer, before: Any, after: Any) -> None:
    assert judge_write(writer, before, after, lambda _: False) is not None


def test_a_living_owner_may_not_be_deposed() -> None:
    assert judge_write(SUCCESSOR, THEIRS, OPEN, lambda arn: arn == OTHER) is not None
