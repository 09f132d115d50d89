"""What the page takes from an execution's input, which anybody may have written."""

from __future__ import annotations

import pytest

from local.page.source import order_in


@pytest.mark.parametrize(
    "given",
    ["", "7", "[]", "{}", '{"detail": 7}', '{"detail": ' + "[" * 5000 + "]" * 5000 + "}"],
    ids=lambda given: given[:20],
)
def test_an_input_that_names_no_order_names_none(given: str) -> None:
    assert order_in(given) is None
