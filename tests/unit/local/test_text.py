"""How money and text from outside are written, on the terminal and on the page."""

from __future__ import annotations

import json

import pytest

from local import text


@pytest.mark.parametrize(
    ("amount", "currency", "written"),
    [
        (1999, "EUR", "19.99 EUR"),
        (5, "EUR", "0.05 EUR"),
        (-5, "EUR", "-0.05 EUR"),
        (1999, "JPY", "1,999 JPY"),
        (1999, "KWD", "1.999 KWD"),
        (123456789, "USD", "1,234,567.89 USD"),
        (1999, "???", "1999 ???"),
        ("many", "EUR", "many EUR"),
    ],
)
def test_money_has_the_currency_s_own_digits(amount: object, currency: str, written: str) -> None:
    assert text.money(amount, currency) == written


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("orders/ü \N{MONEY BAG}.json", "orders/ü \N{MONEY BAG}.json"),
        ("a\ud800b", "a\N{REPLACEMENT CHARACTER}b"),
        ("\udfff\udbff", "\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_lone_surrogates_are_replaced(given: str, written: str) -> None:
    assert text.well_formed(given) == written
    assert text.well_formed(given).encode()


def test_what_json_cannot_hold_becomes_text() -> None:
    odd = {"a\ud800": [float("nan"), {1}, (2, 2.5, True, None)], 3: {"deep": "\udfff"}}

    value = text.json_value(odd)

    assert value == {
        "a\N{REPLACEMENT CHARACTER}": ["nan", "{1}", [2, 2.5, True, None]],
        "3": {"deep": "\N{REPLACEMENT CHARACTER}"},
    }
    assert json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.parametrize("opening", ["[", '{"a": ['])
def test_what_nests_too_deep_to_be_written_becomes_text(opening: str) -> None:
    closing = "]" if opening == "[" else "]}"
    deep = json.loads(opening * 400 + '"\\ud800"' + closing * 400)

    value = text.json_value(deep)

    written = json.dumps(value, ensure_ascii=False)
    assert written.encode()
    assert written.startswith(opening * 40)
    assert json.loads(written) == value


def test_what_nests_too_deep_for_any_text_is_still_a_value() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]

    assert json.dumps(text.json_value(deep)).count("[") == text.DEEPEST
