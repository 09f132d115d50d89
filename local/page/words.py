"""How the page writes things: moments, keys, and text from outside."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from typing import Any


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


def moment(value: object) -> datetime | None:
    """A time in UTC from what the books have: a datetime, ISO 8601, or seconds since the epoch.

    None for everything else, and for what lies beyond the calendar.
    """
    try:
        if isinstance(value, (int, float)):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        return value.astimezone(UTC) if isinstance(value, datetime) else None
    except (ValueError, OverflowError, OSError):
        return None


def clock(value: object) -> str:
    """`17:19:30`, with the date before it when that is not today's (UTC)."""
    at = moment(value)
    if at is None:
        return "unknown"
    today = at.date() == datetime.now(UTC).date()
    return at.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")


def precise_clock(value: object) -> str:
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
