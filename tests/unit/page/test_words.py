"""How the page writes moments and text from outside."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from local.page import words


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
    nothings: tuple[object, ...] = (
        None,
        "",
        "yesterday",
        {},
        ["x"],
        1e300,
        "0001-01-01T00:00+05:00",
    )
    for nothing in nothings:
        assert words.moment(nothing) is None
        assert words.clock(nothing) == "unknown"


def test_a_clock_names_the_day_unless_it_is_today() -> None:
    now = datetime.now(UTC)

    assert words.clock(now) == now.strftime("%H:%M:%S")
    assert words.clock("2020-01-02T03:04:05Z") == "2020-01-02 03:04:05"


def test_long_ids_are_cut_and_short_ones_are_not() -> None:
    assert words.short("0123456789ab", 4) == "0123…"
    assert words.short("01234", 4) == "01234"
