"""What an order file says about its amount, or that it does not say it."""

from __future__ import annotations

import json

import pytest
from reconciler.books import Money
from reconciler.order_file import ordered_amount

ORDER = {"order_id": "A-1", "amount": "19.99", "currency": "EUR", "payment_method": "tok_visa"}


def body(**changes: object) -> bytes:
    return json.dumps(ORDER | changes).encode()


@pytest.mark.parametrize(
    ("amount", "currency", "minor"),
    [("19.99", "EUR", 1999), (19.99, "EUR", 1999), (500, "JPY", 500), ("1.234", "KWD", 1234)],
)
def test_an_amount_is_exact_in_its_currencys_smallest_unit(
    amount: object, currency: str, minor: int
) -> None:
    assert ordered_amount(body(amount=amount, currency=currency)) == Money(minor, currency)


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter() -> None:
    text = json.dumps(ORDER, indent=1).replace("\n", "\r\n")

    assert ordered_amount(text.encode("utf-8-sig")) == Money(1999, "EUR")


@pytest.mark.parametrize(
    "unclear",
    [
        b"",
        b"\xff",
        b"[]",
        b"null",
        b"[" * 100_000,
        b" " * (64 * 1024 + 1),
        body(amount=None),
        body(amount="19.999"),
        body(amount="1e999999999"),
        body(amount="-1"),
        body(amount=float("nan")),
        body(currency="XAU"),
        body(currency="euro"),
        body(currency=None),
        json.dumps({"amount": "1"}).encode(),
    ],
    ids=range(15),
)
def test_there_is_no_opinion_on_what_is_not_plainly_an_order(unclear: bytes) -> None:
    assert ordered_amount(unclear) is None
