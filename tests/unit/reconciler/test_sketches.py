"""Summaries of a fixed size: what they may be wrong about, and what never."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from reconciler.sketches import FILTER_BYTES, Repeats, Tally


@given(st.lists(st.text(), max_size=50))
def test_a_repetition_is_never_missed(texts: list[str]) -> None:
    repeats = Repeats()

    answers = [repeats.add(text) for text in texts]

    repeated = [text in texts[:index] for index, text in enumerate(texts)]
    assert all(answer for answer, again in zip(answers, repeated, strict=True) if again)


def test_twenty_thousand_ids_are_hardly_ever_taken_for_repetitions() -> None:
    repeats = Repeats()

    mistaken = sum(repeats.add(f"A-{number}") for number in range(20_000))

    assert mistaken < 3


def test_the_filter_does_not_grow() -> None:
    repeats = Repeats()
    for number in range(10_000):
        repeats.add(f"A-{number}")

    assert len(Repeats.load(repeats.dump())._bits) == FILTER_BYTES


def test_what_was_seen_is_still_known_after_a_night_in_a_file() -> None:
    repeats = Repeats()
    repeats.add("A-1")

    loaded = Repeats.load(repeats.dump())

    assert loaded.add("A-1")
    assert not loaded.add("A-2")


def test_a_tally_of_matched_keys_is_clear() -> None:
    tally = Tally()
    keys = [f"charge#{number}" for number in range(1000)]

    tally.add(keys, 1)
    tally.add(reversed(keys), -1)

    assert tally.is_clear


def test_an_unmatched_key_is_suspect_among_others() -> None:
    tally = Tally()
    tally.add(["charge#lost"], 1)
    for _ in range(10):
        keys = [f"charge#{number}" for number in range(1000)]
        tally.add(keys, 1)
        tally.add(keys, -1)

    assert not tally.is_clear
    assert tally.is_suspect("charge#lost")


def test_a_charge_too_many_makes_nobody_suspect() -> None:
    tally = Tally()

    tally.add(["charge#late"], -1)

    assert tally.is_clear
    assert not tally.is_suspect("charge#late")


def test_a_tally_is_the_same_after_a_night_in_a_file() -> None:
    tally = Tally()
    tally.add(["charge#lost"], 1)

    loaded = Tally.load(tally.dump())

    assert loaded.is_suspect("charge#lost")
    loaded.add(["charge#lost"], -1)
    assert loaded.is_clear
