"""Two hundred order files that nobody may charge, each with the field that is wrong with it.

For the unit tests of the order file, and for end-to-end runs that put them into the bucket.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

VALID: Final = {
    "order_id": "A-1001",
    "customer": "cus_42",
    "amount": "19.99",
    "currency": "EUR",
    "payment_method": "tok_visa",
}


@dataclass(frozen=True, slots=True)
class MalformedOrder:
    """`name` is unique and fit for an object key; `field` is "file" when no single one is wrong."""

    name: str
    body: bytes
    field: str


# Each table: what the value is -> the value as JSON text.

_NOT_A_STRING: Final = {
    "null": "null",
    "true": "true",
    "false": "false",
    "a list": "[]",
    "an object": "{}",
    "a list of one": '["x"]',
    "NaN": "NaN",
}

_BAD_TEXT: Final = _NOT_A_STRING | {
    "zero": "0",
    "a number": "1001",
    "a fraction": "1.5",
    "a negative number": "-1",
    "empty": '""',
    "a space": '" "',
    "a tab": r'"\t"',
    "space before": '" x"',
    "space after": '"x "',
    "two lines": r'"a\nb"',
    "a NUL": r'"\u0000"',
    "a bell": r'"x\u0007"',
    "a delete": r'"x\u007f"',
    "turned around": r'"x\u202ey"',
    "of zero width": r'"\u200b"',
    "half a surrogate": r'"\ud800"',
    "too long by one": json.dumps("x" * 129),
    "far too long": json.dumps("x" * 10_000),
}

_CARD_NUMBER: Final = {
    "a card number": '"4111111111111111"',
    "a spaced card number": '"4111 1111 1111 1111"',
    "a dashed card number": '"4111-1111-1111-1111"',
}

_BAD_CURRENCY: Final = _NOT_A_STRING | {
    "a number": "978",
    "its number": '"978"',
    "empty": '""',
    "a space": '" "',
    "in lower case": '"eur"',
    "in mixed case": '"Eur"',
    "too short": '"EU"',
    "too long": '"EURO"',
    "unknown": '"ZZZ"',
    "no currency": '"XXX"',
    "gold": '"XAU"',
    "silver": '"XAG"',
    "for tests": '"XTS"',
    "drawing rights": '"XDR"',
    "a coin": '"BTC"',
    "withdrawn": '"DEM"',
    "a sign": r'"\u20ac"',
    "of full width": r'"\uff25\uff35\uff32"',
    "space after": '"EUR "',
    "space before": '" EUR"',
    "a NUL after": r'"EUR\u0000"',
    "two of them": r'"EUR\nUSD"',
}

_BAD_AMOUNT: Final = {
    "null": "null",
    "true": "true",
    "false": "false",
    "a list": "[19.99]",
    "an object": '{"value": "19.99", "currency": "EUR"}',
    "empty": '""',
    "a space": '" "',
    "a word": '"abc"',
    "NaN": "NaN",
    "NaN as text": '"NaN"',
    "Infinity": "Infinity",
    "Infinity as text": '"Infinity"',
    "minus Infinity": "-Infinity",
    "1e999": "1e999",
    "1e999 as text": '"1e999"',
    "minus 1e999": "-1e999",
    "1e-999": "1e-999",
    "an exponent of 20 digits": "1e99999999999999999999",
    "zero": "0",
    "zero cents": '"0.00"',
    "minus zero": "-0",
    "a negative cent": '"-0.01"',
    "a negative number": "-19.99",
    "a tenth of a cent": '"19.999"',
    "a tenth of a cent as number": "19.999",
    "three digits": '"19.990"',
    "1e-3": "1e-3",
    "float dust": "19.990000000000002",
    "thousands with commas": '"1,000.00"',
    "a decimal comma": '"19,99"',
    "with underscores": '"1_000"',
    "with a sign": '"$19.99"',
    "with its currency": '"19.99 EUR"',
    "with a plus": '"+19.99"',
    "without a whole part": '".99"',
    "without its fraction": '"19."',
    "hexadecimal": '"0x13"',
    "with a leading zero": '"019.99"',
    "space before": '" 19.99"',
    "space after": '"19.99 "',
    "two lines": r'"19.99\n"',
    "of full width": r'"\uff11\uff19.99"',
    "in Arabic digits": r'"\u0661\u0669"',
    "two points": '"1.2.3"',
    "too large by a cent": '"10000000000.00"',
    "too large": "10000000000",
    "1e12": "1e12",
    "5000 digits": "9" * 5_000,
    "5000 digits as text": json.dumps("9" * 5_000),
    "5000 fraction digits": "0." + "1" * 5_000,
}

_BAD_FOR_CURRENCY: Final = {
    ("JPY", "half a yen"): '"100.5"',
    ("JPY", "a yen with cents"): '"100.00"',
    ("KWD", "a tenth of a fils"): '"1.2345"',
    ("JPY", "too many yen"): '"1000000000000"',
}

_TEXT: Final = json.dumps(VALID)

_BAD_FILE: Final = {
    "empty": b"",
    "white space": b" \r\n\t",
    "a byte order mark alone": b"\xef\xbb\xbf",
    "null": b"null",
    "a list": f"[{_TEXT}]".encode(),
    "a string": json.dumps(_TEXT).encode(),
    "a number": b"19.99",
    "text": b"hello",
    "truncated": _TEXT[:-1].encode(),
    "a trailing comma": (_TEXT[:-1] + ",}").encode(),
    "in single quotes": _TEXT.replace('"', "'").encode(),
    "with a comment": f"{_TEXT} // paid".encode(),
    "two orders": f"{_TEXT}\n{_TEXT}".encode(),
    "a raw line break in a string": _TEXT.replace("A-1001", "A-\n1001").encode(),
    "UTF-16 with mark": _TEXT.encode("utf-16"),
    "UTF-16 without mark": _TEXT.encode("utf-16-le"),
    "UTF-32": _TEXT.encode("utf-32"),
    "Latin-1": _TEXT.replace("cus_42", "Müller").encode("latin-1"),
    "gzip": gzip.compress(_TEXT.encode(), mtime=0),
    "two byte order marks": b"\xef\xbb\xbf" * 2 + _TEXT.encode(),
    "too large by a byte": _TEXT.encode().ljust(64 * 1024 + 1),
    "nested too deep in lists": b"[" * 60_000,
    "nested too deep in an unknown field": b'{"x":' * 12_000,
    "NULs": bytes(100),
    "a name without quotes": _TEXT.replace('"amount"', "amount").encode(),
    "XML": b"<order id='A-1001'/>",
    "YAML": b"order_id: A-1001\namount: 19.99\n",
    "a form": b"order_id=A-1001&amount=19.99",
    "CSV": b"order_id,amount\nA-1001,19.99\n",
}


def malformed_orders() -> list[MalformedOrder]:
    """The same 200 in the same order, every time."""
    return list(_all())


def valid_text(**literals: str | None) -> str:
    """The valid order as JSON text with some values replaced by JSON text, or left out (None)."""
    members = {name: json.dumps(value) for name, value in VALID.items()} | literals
    return (
        "{"
        + ", ".join(f'"{name}": {value}' for name, value in members.items() if value is not None)
        + "}"
    )


def _all() -> Iterator[MalformedOrder]:
    tables = {
        "order_id": _BAD_TEXT,
        "customer": _BAD_TEXT,
        "payment_method": _BAD_TEXT | _CARD_NUMBER,
        "currency": _BAD_CURRENCY,
        "amount": _BAD_AMOUNT,
    }
    for field, table in tables.items():
        for what, literal in table.items():
            yield _malformed(field, what, valid_text(**{field: literal}))
        yield _malformed(field, "missing", valid_text(**{field: None}))
        twice = f'{valid_text()[:-1]}, "{field}": {json.dumps(VALID[field])}}}'
        yield _malformed(field, "given twice", twice)
    for (currency, what), literal in _BAD_FOR_CURRENCY.items():
        body = valid_text(amount=literal, currency=json.dumps(currency))
        yield _malformed("amount", what, body)
    for what, content in _BAD_FILE.items():
        yield MalformedOrder(f"file {what}", content, "file")


def _malformed(field: str, what: str, text: str) -> MalformedOrder:
    return MalformedOrder(f"{field} {what}", text.encode(), field)
