"""What an order file says about its amount, as far as an audit needs it.

Not the charge function's parser, on purpose: the two are deployed apart, and a second opinion
that shares the first one's code has its mistakes too. It is asked only where the provider holds a
charge that no record settles, and has no opinion on a file that is not plainly an order.
"""

from __future__ import annotations

import json
from decimal import Decimal

from iso4217 import Currency

from reconciler.books import Money

MAX_FILE_BYTES = 64 * 1024
"""The largest order file that is ever charged."""

LEAST_ABSURD_AMOUNT_MINOR = 10**12
"""More than any provider takes; and 1e999999999 must not be written out in digits."""


def ordered_amount(body: bytes) -> Money | None:
    """Amount in minor units and currency, from a file's bytes; None when it is not clear."""
    if len(body) > MAX_FILE_BYTES:
        return None
    try:
        document = json.loads(body.decode("utf-8-sig"), parse_float=Decimal, parse_int=Decimal)
        currency = Currency(document["currency"])
        if currency.exponent is None:
            return None  # gold, or "no currency"
        minor = Decimal(document["amount"]).scaleb(currency.exponent)
        if not 0 < minor < LEAST_ABSURD_AMOUNT_MINOR:
            return None
        amount_minor = int(minor)
    except (ArithmeticError, KeyError, RecursionError, TypeError, ValueError):
        return None
    return Money(amount_minor, currency.value) if amount_minor == minor else None
