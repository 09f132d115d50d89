"""How the page writes money, moments and text from outside."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from local.page import words


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
    assert words.money(amount, currency) == written


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("orders/ü b+c.json", "orders/ü b+c.json"),
        ("orders/\x1b[31m.json", "orders/\N{REPLACEMENT CHARACTER}[31m.json"),
        ("orders/\N{RIGHT-TO-LEFT OVERRIDE}gnp", "orders/\N{REPLACEMENT CHARACTER}gnp"),
        ("a\nb", "a\N{REPLACEMENT CHARACTER}b"),
    ],
)
def test_nothing_invisible_is_shown(text: str, seen: str) -> None:
    assert words.shown(text) == seen


def test_moments_come_from_whatever_the_books_have() -> None:
    moment = datetime(2026, 11, 29, 12, tzinfo=UTC)

    for value in (moment, moment.timestamp(), "2026-11-29T12:00:00Z"):
        assert words.moment(value) == moment
    for nothing in (None, "", "yesterday"):
        assert words.moment(nothing) is None
        assert words.clock(nothing) == "unknown"


def test_a_clock_names_the_day_unless_it_is_today() -> None:
    now = datetime.now(UTC)

    assert words.clock(now) == now.strftime("%H:%M:%S")
    assert words.clock("2020-01-02T03:04:05Z") == "2020-01-02 03:04:05"


def test_long_ids_are_cut_and_short_ones_are_not() -> None:
    assert words.short("0123456789ab", 4) == "0123…"
    assert words.short("01234", 4) == "01234"
