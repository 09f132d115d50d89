"""What the page's colours must do: words stand out from every ground, by day and by night."""

from __future__ import annotations

import re

import pytest

from local.page.app import HERE as PAGE
from tests.unit.test_picture import contrast

STYLE = (PAGE / "static" / "page.css").read_text()
SCRIPT = (PAGE / "static" / "page.js").read_text()


def colours(scheme: str) -> dict[str, str]:
    """The colour variables of `light` or `dark`, by name."""
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light if scheme == "light" else dark))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_every_ground(scheme: str) -> None:
    colour = colours(scheme)
    pairs = [
        (words, ground)
        for ground in ("paper", "sheet")
        for words in ("ink", "soft", "accent", "accent-deep", "good", "warn", "bad", "busy")
    ]
    pairs += [(words, f"{words}-wash") for words in ("good", "warn", "bad", "busy")]
    pairs += [("ink", f"{wash}-wash") for wash in ("good", "warn", "bad", "busy")]
    pairs += [("on-accent", "accent"), ("on-accent", "accent-deep")]

    weak = {
        pair: round(contrast(colour[pair[0]], colour[pair[1]]), 2)
        for pair in pairs
        if contrast(colour[pair[0]], colour[pair[1]]) < 4.5
    }

    assert weak == {}


def test_both_schemes_set_the_same_colours() -> None:
    assert colours("light").keys() == colours("dark").keys()


def test_whoever_wants_no_motion_gets_none() -> None:
    moving = STYLE.split("@media (prefers-reduced-motion: no-preference)", 1)[0]

    assert "animation" not in moving
    assert "transition" not in STYLE


def test_the_script_never_writes_markup_from_text() -> None:
    assert not re.search(r"\.innerHTML\s*=[^=]|outerHTML|insertAdjacentHTML|eval\(", SCRIPT)
