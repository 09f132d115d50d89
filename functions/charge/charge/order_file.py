"""The order file: bytes in, a valid `Order` or `OrderRejected` out, and nothing else.

The rules are a table in docs/order-file.md. Numbers are kept as the text they were written in
until they are known to be sane: `json` would otherwise make a float of 19.99, infinity of 1e999,
and fail on an integer of 5,000 digits.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NoReturn

from charge.errors import OrderRejected
from charge.money import minor_unit_digits, to_minor_units

MAX_FILE_BYTES = 64 * 1024
"""A hundred times a real order, and small beside the function's memory."""

MAX_TEXT_CHARACTERS = 128
"""Fits, as UTF-8, in the 500 characters that payment providers allow a metadata value and in the
2,048 bytes of a DynamoDB key (`order_id` is one of an index)."""

FIELDS = ("order_id", "customer", "amount", "currency", "payment_method")

FILE = "file"
"""The `field` of a refusal that concerns the file as a whole."""

_SHOWN_CHARACTERS = 40
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")  # as JSON has it
_CARD_LIKE = re.compile(r"[0-9]([ -]?[0-9]){11,}")  # the shortest card numbers have 12 digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One valid order. `amount_minor` is in the smallest unit of `currency`."""

    order_id: str
    customer: str
    amount_minor: int
    currency: str
    payment_method: str = field(repr=False)  # never in a log line or an error


class _Number(str):
    """A JSON number as it was written, NaN and Infinity included."""

    __slots__ = ()


class _Object(list[tuple[str, object]]):
    """The members of a JSON object in the order of the file, duplicates included."""


class _Missing:
    """What a field holds that is not there."""


def parse_order(body: bytes) -> Order:
    """Read an order file (at most 64 KiB of UTF-8 JSON, with or without byte order mark).

    Raises OrderRejected, and only that, naming the first field that is wrong. Unknown fields
    are ignored.
    """
    members = _members(body)
    fields = {name: _only(members, name) for name in FIELDS}
    order_id = _text("order_id", fields["order_id"])
    customer = _text("customer", fields["customer"])
    currency, digits = _currency(fields["currency"])
    amount_minor = _amount_minor(fields["amount"], digits)
    return Order(
        order_id=order_id,
        customer=customer,
        amount_minor=amount_minor,
        currency=currency,
        payment_method=_payment_method(fields["payment_method"]),
    )


def _members(body: bytes) -> _Object:
    if len(body) > MAX_FILE_BYTES:
        raise OrderRejected(FILE, "a larger one", f"at most {MAX_FILE_BYTES} bytes")
    if not body.strip():
        raise OrderRejected(FILE, "an empty one", "a JSON object")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = "UTF-16" if body.startswith((b"\xff\xfe", b"\xfe\xff")) else "other bytes"
        raise OrderRejected(FILE, f"{found} at byte {error.start}", "UTF-8 text") from error
    try:
        document = json.loads(
            text,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_Number,
            object_pairs_hook=_Object,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise OrderRejected(FILE, f"{error.msg} at {where}", "a JSON object") from error
    except RecursionError as error:
        raise OrderRejected(FILE, "too many levels", "a flat JSON object") from error
    if not isinstance(document, _Object):
        raise OrderRejected(FILE, _shown(document), "a JSON object")
    return document


def _only(members: _Object, name: str) -> object:
    values = [value for member, value in members if member == name]
    if len(values) > 1:
        # Readers differ in which of two they take, so there is no right one to charge.
        raise OrderRejected(name, f"{len(values)} of them", "the field once")
    return values[0] if values else _Missing()


def _text(name: str, value: object) -> str:
    expected = f"1 to {MAX_TEXT_CHARACTERS} printable characters in a string"
    if type(value) is not str or not 1 <= len(value) <= MAX_TEXT_CHARACTERS:
        _refuse(name, value, expected)
    # isprintable is false for controls, surrogates and the marks that turn text around.
    if not value.isprintable() or value != value.strip():
        _refuse(name, value, f"{expected}, none a control character, no space at its ends")
    return value


def _payment_method(value: object) -> str:
    try:
        token = _text("payment_method", value)
    except OrderRejected as refusal:
        hidden = "a value that is not shown" if isinstance(value, str) else refusal.value
        raise OrderRejected(refusal.field, hidden, refusal.expected) from None
    if _CARD_LIKE.fullmatch(token):
        raise OrderRejected("payment_method", "what looks like a card number", "a token")
    return token


def _currency(value: object) -> tuple[str, int]:
    digits = minor_unit_digits(value) if type(value) is str else None
    if type(value) is not str or digits is None:
        expected = "an ISO 4217 code in capitals of a currency that has a smallest unit"
        _refuse("currency", value, expected)
    return value, digits


def _amount_minor(value: object, digits: int) -> int:
    if not isinstance(value, str) or not _DECIMAL.fullmatch(value):
        _refuse("amount", value, "a decimal number such as 19.99, as a string or a JSON number")
    try:
        return to_minor_units(Decimal(value), digits)
    except ValueError as error:
        _refuse("amount", value, str(error))


def _refuse(name: str, value: object, expected: str) -> NoReturn:
    raise OrderRejected(name, _shown(value), expected)


def _shown(value: object) -> str:
    """A value for an error message: short, on one line, without card numbers or nested data."""
    match value:
        case _Missing():
            return "nothing"
        case _Object():
            return "an object"
        case list():
            return "a list"
        case str():
            text = _CARD_LIKE.sub("(digits hidden)", value)
            if len(text) > _SHOWN_CHARACTERS:
                text = text[:_SHOWN_CHARACTERS] + "..."
            return text if isinstance(value, _Number) else json.dumps(text)
        case _:
            return json.dumps(value)  # true, false, null
