"""How the terminal and the page write what the books hold: money, and text from outside."""

from __future__ import annotations

import json
import math
from typing import Any

#: Levels of lists and objects that are kept as such. Nothing of ours has more than ten; whoever
#: writes or draws a value goes down one call or more for each.
DEEPEST = 100


def money(amount_minor: object, currency: object) -> str:
    """`19.99 EUR` from minor units; an unknown currency keeps its minor units in sight.

    Source: ISO 4217, whose exponent says how many digits the minor unit has.
    """
    from iso4217 import Currency  # noqa: PLC0415 - reads its tables at once, and few need them

    try:
        exponent = Currency(str(currency)).exponent or 0
        amount = int(str(amount_minor))
    except ValueError:
        return f"{amount_minor} {currency}"
    sign, digits = ("-" if amount < 0 else ""), str(abs(amount)).rjust(exponent + 1, "0")
    whole, fraction = (digits[:-exponent], digits[-exponent:]) if exponent else (digits, "")
    return f"{sign}{int(whole):,}{'.' if fraction else ''}{fraction} {currency}"


def well_formed(text: str) -> str:
    """`text` with a replacement character for each lone surrogate, which no encoding can hold.

    JSON can bring one, as an escape: `"\\ud800"`.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_json(text: str) -> Any:
    """What the JSON document `text` says. Raises ValueError, also for one that nests so deep that
    Python does not read it.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("a JSON document that nests too deep") from None


def json_value(value: Any, levels: int = DEEPEST) -> Any:
    """`value` in what every reader of JSON takes: what JSON cannot hold becomes text, and so does
    what lies deeper than `levels`.
    """
    match value:
        case str():
            return well_formed(value)
        case None | bool() | int():
            return value
        case float() if math.isfinite(value):
            return value
        case dict() if levels:
            return {
                well_formed(str(name)): json_value(one, levels - 1) for name, one in value.items()
            }
        case list() | tuple() if levels:
            return [json_value(one, levels - 1) for one in value]
    return _told(value)


def _told(value: object) -> str:
    try:
        return well_formed(str(value))
    except RecursionError:
        return "…"
