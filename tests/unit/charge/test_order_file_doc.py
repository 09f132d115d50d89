"""docs/order-file.md says what the function does."""

import re
from pathlib import Path

import pytest
from charge.errors import OrderRejected
from charge.money import MAX_AMOUNT_MINOR
from charge.order_file import FIELDS, MAX_FILE_BYTES, MAX_TEXT_CHARACTERS, parse_order

from tests.malformed_orders import valid_text

DOC = (Path(__file__).parents[3] / "docs" / "order-file.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^\| `(\w+)` \| `(.*)` \| (.*) \|$", DOC, flags=re.MULTILINE)


def test_the_sample_order_is_valid() -> None:
    (sample,) = re.findall(r"```json\n(.*)\n```", DOC)

    assert parse_order(sample.encode()) == parse_order(valid_text().encode())


def test_every_field_has_an_example() -> None:
    assert {field for field, _, _ in EXAMPLES} == set(FIELDS)


@pytest.mark.parametrize(("field", "literal", "outcome"), EXAMPLES)
def test_an_example_has_the_outcome_in_its_line(field: str, literal: str, outcome: str) -> None:
    try:
        found = str(parse_order(valid_text(**{field: literal}).encode()).amount_minor)
    except OrderRejected as error:
        found = str(error)

    assert found == outcome


@pytest.mark.parametrize("limit", [MAX_FILE_BYTES, MAX_TEXT_CHARACTERS, MAX_AMOUNT_MINOR])
def test_every_limit_is_in_the_rules(limit: int) -> None:
    assert re.search(rf"\b{limit}\b", DOC)
