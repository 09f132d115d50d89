"""What the `order` command drops, and the faults that it arms."""

from __future__ import annotations

import json

import pytest

from local.errors import CommandError
from local.fault_names import NAMES
from local.faults import MOST_TIMES, Fault
from local.orders import follow, order_body
from local.paths import PROJECT
from local.stack import Stack


def test_every_sample_order_has_an_id_of_its_own() -> None:
    first, second = (json.loads(order_body(None, {})) for _ in range(2))

    assert first["order_id"] != second["order_id"]
    assert first["amount"] == second["amount"] == "19.99"


def test_options_change_the_sample_order() -> None:
    order = json.loads(order_body(None, {"amount": "5", "currency": "JPY", "payment_method": None}))

    assert (order["amount"], order["currency"]) == ("5", "JPY")
    assert order["payment_method"] == "tok_visa"


def test_a_file_is_sent_as_it_is() -> None:
    assert order_body(b"\xff not even text", {"amount": None}) == b"\xff not even text"


def test_a_file_with_options_is_refused_rather_than_ignored() -> None:
    with pytest.raises(CommandError, match="amount"):
        order_body(b"{}", {"amount": "5"})


@pytest.mark.parametrize(
    "key",
    ["orders/\udcff.json", "", "orders/" + "\N{EURO SIGN}" * 340],
    ids=["not UTF-8", "empty", "1,027 bytes"],
)
def test_a_key_that_s3_would_refuse_is_refused_before_anything_is_armed(key: str) -> None:
    nowhere = Stack("s", "us-east-1", None, {})

    with pytest.raises(CommandError, match="An object key "):
        follow(nowhere, key, b"{}", armed=[Fault("provider.slow", 1)])


@pytest.mark.parametrize("name", NAMES)
def test_every_fault_can_be_asked_for_by_name(name: str) -> None:
    assert Fault.parse(name) == Fault(name, 1)
    assert Fault.parse(f"{name}:7") == Fault(name, 7)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nonsense",
        "exit_after_charge",
        "provider.slow:0",
        "provider.slow:-1",
        "provider.slow:x",
        "provider.slow:10001",
        f"function.exit_before_charge:{'9' * 40}",
        f"provider.slow:{'9' * 5000}",
        "provider.slow:\N{ARABIC-INDIC DIGIT ONE}",
    ],
)
def test_a_fault_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no fault: function\.|whole number from 1 to 10000"):
        Fault.parse(text)


def test_a_fault_can_be_asked_for_as_often_as_the_provider_takes_it() -> None:
    assert Fault.parse(f"provider.slow:{MOST_TIMES}").times == MOST_TIMES
    document = json.loads((PROJECT / "functions/provider/provider/openapi.json").read_text())
    taken = document["components"]["schemas"]["FaultRequest"]["properties"]["times"]
    assert taken["maximum"] == MOST_TIMES
