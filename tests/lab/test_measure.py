"""A short form of the measurement, for real: functions, notifications, retries, reconciler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.errors import CommandError
from local.lab import run
from local.lab.books import Entry
from local.lab.measure import Cell, Lab, Seen, deploy_lab, measure
from local.lab.rows import Row
from local.lab.scenarios import (
    AFTER_ALWAYS,
    AFTER_ONCE,
    CLEAN,
    DUPLICATE,
    EIGHT_AT_ONCE,
    TIMEOUT,
    Scenario,
)
from local.stack import Stack
from tests.lab import pinned

pytestmark = pytest.mark.xdist_group("lab")

#: One wait of 15 s for a real retry; the others end at once.
SHORT = (CLEAN, AFTER_ONCE, DUPLICATE, EIGHT_AT_ONCE)


@pytest.fixture(scope="module")
def lab_stack(stack: Stack) -> Iterator[Stack]:
    yield deploy_lab(stack)


@pytest.fixture(scope="module")
def measured(stack: Stack, lab_stack: Stack) -> dict[tuple[str, str], Row]:
    rows = measure(stack, lab_stack, lambda *_: None, scenarios=SHORT)
    return {(row.handler, row.scenario): row for row in rows}


@pytest.mark.parametrize(
    ("handler", "scenario", "expected"),
    [
        cell
        for cell in pinned.ALL
        if cell[1] in [scenario.name for scenario in SHORT] and cell[:2] != pinned.RACE
    ],
)
def test_real_functions_do_to_one_order_what_the_table_says(
    measured: dict[tuple[str, str], Row], handler: str, scenario: str, expected: pinned.Cell
) -> None:
    row = measured[handler, scenario]

    assert (row.charges, row.record, row.queued, row.findings) == expected


def test_the_robust_handler_s_race_gives_at_least_one_charge_and_at_most_eight(
    measured: dict[tuple[str, str], Row],
) -> None:
    row = measured[pinned.RACE]

    assert 1 <= row.charges <= 8
    assert row.record == "done"


def test_charge_once_s_charge_without_a_record_is_found_and_settled(
    stack: Stack, lab_stack: Stack
) -> None:
    (row,) = measure(stack, lab_stack, lambda *_: None, handlers=(), scenarios=(AFTER_ALWAYS,))

    assert (row.charges, row.record, row.queued) == (1, "in_progress", 1)
    assert (row.findings, row.repaired) == (["charged_not_recorded"], "done")


def test_a_lab_that_fails_by_itself_is_not_measured(lab_stack: Stack) -> None:
    client = lab_stack.client("lambda")
    name = lab_stack.outputs["NaiveFunction"]
    before = client.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    client.update_function_configuration(
        FunctionName=name, Environment={"Variables": before | {"FAIL_ONCE": "after_charge"}}
    )

    try:
        with pytest.raises(CommandError, match="FailOnce=never"):
            measure(None, lab_stack, lambda *_: None, scenarios=(CLEAN,))
    finally:
        client.update_function_configuration(FunctionName=name, Environment={"Variables": before})


def test_the_lab_is_deleted_with_what_lies_in_its_bucket(
    measured: dict[tuple[str, str], Row], lab_stack: Stack
) -> None:
    assert measured  # the bucket holds objects

    run.delete(lab_stack)

    with pytest.raises(ClientError, match="does not exist"):
        lab_stack.client("cloudformation").describe_stacks(StackName=lab_stack.name)
    with pytest.raises(ClientError, match="NoSuchBucket"):
        lab_stack.client("s3").list_object_versions(Bucket=lab_stack.outputs["LabBucket"])


def test_no_other_stack_is_deleted_in_its_place(stack: Stack) -> None:
    with pytest.raises(CommandError, match="not a stack of the lab"):
        run.delete(stack)


# ---------------------------------------------------------------- cells spoiled by chance


class Scripted(Lab):
    """A lab whose cells end as told, one after the other."""

    def __init__(self, *endings: Entry) -> None:
        self.endings = list(endings)
        self._watch: Any = self

    def _start(self, handler: str, scenario: Scenario) -> Cell:
        return Cell(handler, scenario, "lab", "a.json")

    def finished(self, _name: str, _deliveries: int) -> Seen:
        return Seen(self.endings.pop(0))


UNDISTURBED = Entry(charges=2, started=2, ended=1, failed=1)
CUT_OFF = Entry(charges=3, started=3, ended=1, failed=1)


def test_a_cell_in_which_an_attempt_was_cut_off_by_chance_is_measured_again() -> None:
    lab = Scripted(CUT_OFF, UNDISTURBED)

    (row,) = lab.measure("naive", [AFTER_ONCE])

    assert row.charges == 2


def test_a_time_out_that_was_asked_for_spoils_nothing() -> None:
    lab = Scripted(Entry(charges=2, started=2, ended=1))

    (row,) = lab.measure("naive", [TIMEOUT])

    assert row.charges == 2


def test_a_machine_that_is_too_busy_is_given_up_on() -> None:
    lab = Scripted(*[CUT_OFF] * 3)

    with pytest.raises(CommandError, match="too busy"):
        lab.measure("naive", [AFTER_ONCE])
