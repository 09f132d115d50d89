"""Faults are taken from the table, one order at a time, and kill the process."""

from typing import Any

import pytest
from botocore.exceptions import ClientError
from charge import faults
from charge.faults import OrderFaults

from tests.unit.charge.fakes import REFERENCE


class Exited(Exception):
    """Stands for the end of the process."""


class FakeTable:
    def __init__(self, refusal: str | None = None) -> None:
        self.refusal = refusal
        self.requests: list[dict[str, Any]] = []

    def update_item(self, **request: Any) -> Any:
        self.requests.append(request)
        if self.refusal:
            raise ClientError({"Error": {"Code": self.refusal}}, "UpdateItem")
        return {}


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    def exit_process(status: int) -> None:
        raise Exited(status)

    slept: list[float] = []
    monkeypatch.setattr(faults.os, "_exit", exit_process)  # type: ignore[attr-defined]
    monkeypatch.setattr(faults.time, "sleep", slept.append)  # type: ignore[attr-defined]
    return slept


def order_faults(table: FakeTable) -> OrderFaults:
    return OrderFaults(table, "faults", REFERENCE, lambda: 12.0)


def test_an_armed_fault_is_used_up_and_ends_the_process(slept: list[float]) -> None:
    table = FakeTable()

    with pytest.raises(Exited, match="1"):
        order_faults(table).strike("exit_before_charge")

    assert slept == []
    assert table.requests == [
        {
            "TableName": "faults",
            "Key": {"pk": {"S": "orders-bucket/orders/a b+c/ü.json#exit_before_charge"}},
            "UpdateExpression": "ADD remaining :minus_one",
            "ConditionExpression": "remaining > :none",
            "ExpressionAttributeValues": {":none": {"N": "0"}, ":minus_one": {"N": "-1"}},
        }
    ]


def test_a_time_out_sleeps_past_the_end_of_the_invocation(slept: list[float]) -> None:
    with pytest.raises(Exited):
        order_faults(FakeTable()).strike("timeout_after_charge")

    assert slept == [17.0]


def test_nothing_happens_when_no_fault_is_armed(slept: list[float]) -> None:
    order_faults(FakeTable("ConditionalCheckFailedException")).strike("exit_before_charge")

    assert slept == []


def test_a_fault_table_that_cannot_be_used_is_not_a_fault_that_is_off(slept: list[float]) -> None:
    with pytest.raises(ClientError, match="AccessDenied"):
        order_faults(FakeTable("AccessDeniedException")).strike("exit_before_charge")
