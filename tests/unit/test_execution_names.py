"""Names and inputs of the executions that we start."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.execution_names import MAX_INPUT_BYTES, execution_input, execution_name

PREFIX = "replay"
WORK = ("charge#0f", "arn:aws:states:us-east-1:000000000000:execution:ChargeOrder:a")

# Source: StartExecution, Name: what AWS refuses, and non-ASCII, which its logs refuse.
REFUSED_BY_AWS = re.compile(r"[\s<>{}\[\]?*\"#%\\^|~`$&,;:/\x00-\x1f]|[^\x00-\x7e]")


@given(st.lists(st.text(), min_size=1).map(tuple))
def test_any_work_gives_a_name_that_aws_takes(work: tuple[str, ...]) -> None:
    name = execution_name(PREFIX, *work)

    assert len(name) <= 80
    assert REFUSED_BY_AWS.search(name) is None


def test_the_longest_prefix_still_gives_a_name_that_aws_takes() -> None:
    assert len(execution_name("r" * 39, *WORK)) == 80


def test_the_same_work_has_the_same_name_in_every_process() -> None:
    assert execution_name(PREFIX, *WORK) == "replay-d05a451d9bea7aa9c2fc58f07e89b98d012f1ca6"


def test_the_name_says_why_the_execution_was_started() -> None:
    assert execution_name(PREFIX, *WORK).startswith("replay-")


@pytest.mark.parametrize(
    "other",
    [WORK[::-1], (*WORK, ""), WORK[:1], (WORK[0] + WORK[1],), (WORK[0] + "a", WORK[1][1:])],
)
def test_other_work_has_another_name(other: tuple[str, ...]) -> None:
    assert execution_name(PREFIX, *other) != execution_name(PREFIX, *WORK)


@pytest.mark.parametrize("prefix", ["", "re play", "replay#1", "ü", "r" * 40, "replay\n"])
def test_a_prefix_that_aws_would_refuse_is_refused_here(prefix: str) -> None:
    with pytest.raises(ValueError, match="prefix of an execution's name"):
        execution_name(prefix, *WORK)


def test_a_name_without_work_is_refused() -> None:
    with pytest.raises(ValueError, match="needs the work"):
        execution_name(PREFIX)


def test_an_input_keeps_its_characters() -> None:
    document = {"key": "orders/ü 😀.json"}

    text = execution_input(document)

    assert json.loads(text) == document
    assert len(text.encode()) < 40  # not escaped to three times its size


def test_an_input_may_be_as_large_as_aws_takes_and_no_larger() -> None:
    room = MAX_INPUT_BYTES - len('{"x":""}')

    assert len(execution_input({"x": "ü" * (room // 2)}).encode()) == MAX_INPUT_BYTES
    with pytest.raises(ValueError, match="262144 bytes; this one has 262145"):
        execution_input({"x": "a" + "ü" * (room // 2)})
