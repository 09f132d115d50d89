"""The picture of the state machine says what the definition says, and the checked-in one is it."""

from __future__ import annotations

import itertools
import json
import xml.etree.ElementTree as ET

import pytest

from local import picture
from local.paths import DEFINITION

DEFINED = json.loads(DEFINITION.read_text())


def test_the_checked_in_picture_is_current() -> None:
    assert picture.PICTURE.read_text() == picture.document(picture.charge_order()), (
        "write it again with: .venv/bin/python -m local picture"
    )


def test_drawing_twice_gives_the_same_picture() -> None:
    first, second = (picture.document(picture.draw(DEFINED)) for _ in range(2))

    assert first == second


def test_every_state_has_a_place_of_its_own() -> None:
    drawing = picture.charge_order()

    assert {box.name for box in drawing.boxes} == set(DEFINED["States"])
    assert set(picture.PLACES) == set(DEFINED["States"]), "place new states, forget old ones"
    assert len({(box.x, box.y) for box in drawing.boxes}) == len(drawing.boxes)


def test_every_transition_is_drawn() -> None:
    drawn = {(line.source, line.target) for line in picture.charge_order().lines}

    def targets(node: object) -> list[str]:
        if isinstance(node, dict):
            own = [node[name] for name in ("Next", "Default") if name in node]
            return own + [target for value in node.values() for target in targets(value)]
        if isinstance(node, list):
            return [target for value in node for target in targets(value)]
        return []

    assert drawn == {
        (name, target) for name, state in DEFINED["States"].items() for target in targets(state)
    }


def test_no_line_runs_through_a_box() -> None:
    drawing = picture.charge_order()
    width, height = picture.BOX

    for line, box in itertools.product(drawing.lines, drawing.boxes):
        for (x1, y1), (x2, y2) in itertools.pairwise(line.points):
            apart = (
                max(x1, x2) <= box.x - width / 2
                or min(x1, x2) >= box.x + width / 2
                or max(y1, y2) <= box.y - height / 2
                or min(y1, y2) >= box.y + height / 2
            )
            assert apart, f"{line.source} -> {line.target} runs through {box.name}"


def test_a_state_without_a_place_is_drawn_below_the_others() -> None:
    definition = {
        "StartAt": "Claim",
        "States": {
            "Claim": {**DEFINED["States"]["Claim"], "Next": "SendReceipt", "Catch": []},
            "SendReceipt": {"Type": "Pass", "End": True},
        },
    }

    claim, receipt = picture.draw(definition).boxes

    assert receipt.y > claim.y


def test_names_from_the_definition_are_escaped() -> None:
    definition = {
        "StartAt": "<script>&",
        "States": {"<script>&": {"Type": "Pass", "End": True}},
    }

    root = ET.fromstring(picture.document(picture.draw(definition)))  # noqa: S314 - our own text

    assert "<script>&" in {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_what_is_behind_them(scheme: str) -> None:
    light, dark = picture.STYLE.split("@media", 1)
    source = light if scheme == "light" else dark
    colours = dict(
        pair.split(":") for pair in source.split("{", 1 if scheme == "light" else 2)[-1]
        .split("}")[0].replace("\n", "").split(";")
    )  # fmt: skip

    for ground in ("--paper", "--box", "--pass", "--good-box", "--red-box"):
        for words in ("--ink", "--soft"):
            assert contrast(colours[words], colours[ground]) >= 4.5, (words, ground)


def contrast(one: str, other: str) -> float:
    """WCAG 2.2's contrast ratio of two colours like #abc or #aabbcc."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    digits = colour.removeprefix("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in (int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4))
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
