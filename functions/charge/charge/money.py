"""Amounts of money are whole numbers of a currency's smallest unit. No float exists here."""

from __future__ import annotations

from decimal import Decimal

from iso4217 import Currency

MAX_AMOUNT_MINOR = 10**12 - 1
"""Twelve digits: all that the amount field of a card message (ISO 8583, element 4) can carry.
It is also below 2**53, so that no JSON reader on the way can round it."""


def minor_unit_digits(currency: str) -> int | None:
    """Fraction digits of an ISO 4217 currency code: EUR 2, JPY 0, KWD 3.

    None when the code is unknown, not in capitals, or stands for something without a smallest
    unit (gold is XAU, "no currency" is XXX).
    """
    try:
        digits: int | None = Currency(currency).exponent
    except ValueError:
        return None
    return digits


def to_minor_units(amount: Decimal, digits: int) -> int:
    """19.99 with 2 fraction digits is 1999.

    Never rounds: raises ValueError, whose text says what was expected of the amount.
    """
    if not amount.is_finite() or amount <= 0:
        raise ValueError("an amount above zero")
    # As written: 19.990 says more than a cent can, and 100.00 is no amount of yen.
    if -int(amount.as_tuple().exponent) > digits:
        raise ValueError(f"at most {digits} fraction digits")
    largest = Decimal(MAX_AMOUNT_MINOR).scaleb(-digits)
    if amount > largest:
        raise ValueError(f"at most {largest}")
    return int(amount.scaleb(digits))
