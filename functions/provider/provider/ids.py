"""Identifiers that sort by time: a prefix, 56 bits of microseconds, 72 random bits.

A ULID's milliseconds would leave the order of two charges in the same one to chance. Listing is
in the order of ids, so that a page boundary is one string and never moves.
"""

import re
import secrets

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32, in ASCII order
_LENGTH = 26  # characters, 5 bits each, hold 128 bits
_RANDOM_BITS = 72
_MAX_MICROSECONDS = 2**56 - 1  # in the year 4253


def new_id(prefix: str, seconds: float) -> str:
    """A fresh id for a moment in epoch seconds, such as `ch_01JDX…`."""
    return _render(prefix, seconds, secrets.randbits(_RANDOM_BITS))


def first_id(prefix: str, seconds: float) -> str:
    """The lowest id that a moment can have: where a list that starts there begins."""
    return _render(prefix, seconds, 0)


def is_id(prefix: str, text: str) -> bool:
    """Whether this could be an id: nothing else may reach a data base as a key."""
    return re.fullmatch(f"{prefix}_[{_ALPHABET}]{{{_LENGTH}}}", text) is not None


def after(identifier: str) -> str:
    """The lowest string above an id, and below every other id."""
    return identifier + "0"


def _render(prefix: str, seconds: float, randomness: int) -> str:
    number = min(int(seconds * 1_000_000), _MAX_MICROSECONDS) << _RANDOM_BITS | randomness
    digits = (_ALPHABET[number >> shift & 31] for shift in range(5 * (_LENGTH - 1), -1, -5))
    return f"{prefix}_{''.join(digits)}"
