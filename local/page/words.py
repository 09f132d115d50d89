"""How the page writes things: money, moments, keys, and text from outside."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from typing import Any

from iso4217 import Currency


def money(amount_minor: object, currency: object) -> str:
    """`19.99 EUR` from minor units; an unknown currency keeps its minor units in sight."""
    try:
        exponent = Currency(str(currency)).exponent or 0
        amount = int(str(amount_minor))
    except ValueError:
        return f"{amount_minor} {currency}"
    sign, digits = ("-" if amount < 0 else ""), str(abs(amount)).rjust(exponent + 1, "0")
    whole, fraction = (digits[:-exponent], digits[-exponent:]) if exponent else (digits, "")
    return f"{sign}{int(whole):,}{'.' if fraction else ''}{fraction} {currency}"


def shown(text: object) -> str:
    """Text from outside with everything invisible made visible.

    Escaping for HTML is the template's work; this keeps control characters and direction
    overrides from making one key look like another.
    """
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co"} else c
        for c in str(text)
    )


def typeset(text: str) -> str:
    """Our own prose with the apostrophes of print."""
    return text.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}")


def moment(value: datetime | str | float | None) -> datetime | None:
    """A time in UTC from what the books have: a datetime, ISO 8601, or seconds since the epoch."""
    if value is None or value == "":
        return None
    if isinstance(value, (int, float)):
        return datetime.fromtimestamp(value, UTC)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    return value.astimezone(UTC)


def clock(value: datetime | str | float | None) -> str:
    """`17:19:30`, with the date before it when that is not today's (UTC)."""
    at = moment(value)
    if at is None:
        return "unknown"
    today = at.date() == datetime.now(UTC).date()
    return at.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")


def precise_clock(value: datetime | str | float | None) -> str:
    """`17:19:30.226`, for stories in which milliseconds count."""
    at = moment(value)
    return "unknown" if at is None else f"{at:%H:%M:%S}.{at.microsecond // 1000:03}"


def seconds(value: float | None) -> str:
    """`80 ms` or `1.2 s`."""
    if value is None:
        return ""
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def short(text: Any, characters: int = 10) -> str:
    """The beginning of a long id."""
    whole = shown(text)
    return whole if len(whole) <= characters + 1 else whole[:characters] + "…"


def status(word: object) -> str:
    """A status as a person says it: `in progress`."""
    return shown(word).replace("_", " ").lower()
