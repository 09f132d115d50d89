"""The decisions around the charge: when the books are asked, and what their answer means."""

import json
from dataclasses import replace

import pytest
from charge.charging import UNVERSIONED, ChargeRequest
from charge.errors import (
    Busy,
    ChargeError,
    KeyInUse,
    KeyReuseMismatch,
    OrderRejected,
    PaymentDeclined,
    ProviderMisbehaved,
    ProviderRateLimited,
    ProviderUnavailable,
)
from charge.order_file import parse_order

from tests.malformed_orders import valid_text
from tests.unit.charge.fakes import REFERENCE, Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()


def unknown_outcome() -> ProviderUnavailable:
    return ProviderUnavailable("no answer")


def server_error() -> ProviderUnavailable:
    return ProviderUnavailable("the provider answered 500", status=500)


# The request


def test_the_request_body_is_the_same_bytes_for_ever() -> None:
    order = parse_order(valid_text().encode())

    request = ChargeRequest.of(order, REFERENCE)

    assert request.body == (
        b'{"amount":1999,"currency":"EUR","metadata":{"bucket":"orders-bucket",'
        b'"customer":"cus_42","object_key":"orders/a b+c/\\u00fc.json","order_id":"A-1001",'
        b'"version_id":"3sL4kqtJlcpXroDTDmJ.rmSpXd3dIbrHY"},"reference":"charge#'
        + b"0"
        * 64
        + b'",'
        b'"source":"tok_visa"}'
    )


def test_the_way_the_amount_is_written_does_not_change_the_request() -> None:
    spellings = ('"20.00"', "20.00", "20", "2e1")

    bodies = {
        ChargeRequest.of(parse_order(valid_text(amount=spelling).encode()), REFERENCE).body
        for spelling in spellings
    }

    assert len(bodies) == 1
    assert json.loads(bodies.pop())["amount"] == 2000


def test_a_payment_method_is_in_no_representation() -> None:
    order = parse_order(valid_text().encode())

    assert "tok_visa" not in repr(order)
    assert "tok_visa" not in repr(ChargeRequest.of(order, REFERENCE))


# A young order is charged at once


def test_a_young_order_is_charged_without_a_look_up(bench: Bench) -> None:
    settled = bench.charging.settle(REFERENCE)

    assert (settled.charge_id, settled.amount_minor, settled.currency) == ("ch_1", 1999, "EUR")
    assert (settled.order_id, settled.replayed) == ("A-1001", False)
    assert bench.provider.calls == ["charge"]


def test_a_second_attempt_is_the_replay_of_the_first(bench: Bench) -> None:
    first = bench.charging.settle(REFERENCE)
    bench.clock.pass_(hours=1)

    second = bench.charging.settle(REFERENCE)

    assert second == replace(first, replayed=True)
    assert len(bench.provider.books) == 1


def test_the_key_is_relied_upon_until_an_hour_before_its_end(bench: Bench) -> None:
    bench.clock.pass_(hours=22.99)

    bench.charging.settle(REFERENCE)

    assert bench.provider.calls == ["charge"]


# An old order is looked up first


def test_the_last_hour_of_a_key_is_not_relied_upon(bench: Bench) -> None:
    bench.clock.pass_(hours=23)

    bench.charging.settle(REFERENCE)

    assert bench.provider.calls == ["find", "charge"]


@pytest.mark.parametrize("hours", [25, 30, 24 * 365])
def test_an_old_order_that_was_charged_is_not_charged_again(bench: Bench, hours: float) -> None:
    bench.provider.losses = [unknown_outcome()]
    with pytest.raises(ProviderUnavailable):
        bench.charging.settle(REFERENCE)
    bench.clock.pass_(hours)

    settled = bench.charging.settle(REFERENCE)

    assert (settled.charge_id, settled.replayed) == ("ch_1", True)
    assert len(bench.provider.books) == 1


def test_a_restart_of_a_young_order_finds_what_was_charged_by_hand(bench: Bench) -> None:
    charged_by_hand = bench.provider.enter()

    settled = replace(bench.charging, is_restart=True).settle(REFERENCE)

    assert settled.charge_id == charged_by_hand.id
    assert bench.provider.calls == ["find"]


def test_the_same_order_without_the_look_up_would_be_charged_twice(bench: Bench) -> None:
    # Keeps the fake honest: what the tests above rule out does happen to a forgetful provider.
    order = parse_order(valid_text().encode())
    request = ChargeRequest.of(order, REFERENCE)
    bench.provider.charge(request)
    bench.clock.pass_(hours=25)

    bench.provider.charge(request)

    assert len(bench.provider.books) == 2


def test_an_old_order_that_was_declined_is_not_tried_again(bench: Bench) -> None:
    bench.provider.enter(succeeded=False, decline_reason="card_declined")
    bench.clock.pass_(hours=25)

    with pytest.raises(PaymentDeclined, match=r"^card_declined$"):
        bench.charging.settle(REFERENCE)

    assert bench.provider.calls == ["find"]


def test_a_charge_that_succeeded_outweighs_one_that_failed(bench: Bench) -> None:
    bench.provider.enter(succeeded=False, decline_reason="card_declined")
    bench.provider.enter()
    bench.clock.pass_(hours=25)

    assert bench.charging.settle(REFERENCE).charge_id == "ch_2"


def test_an_object_without_versions_is_always_looked_up(bench: Bench) -> None:
    # The same bytes uploaded again answer to the old event's etag, and look young.
    settled = bench.charging.settle(replace(REFERENCE, version_id=UNVERSIONED))

    assert settled.charge_id == "ch_1"
    assert bench.provider.calls == ["find", "charge"]


def test_two_charges_under_one_reference_are_somebodys_business(bench: Bench) -> None:
    bench.provider.enter()
    bench.provider.enter()
    bench.clock.pass_(hours=25)

    with pytest.raises(ProviderMisbehaved, match="ch_1, ch_2"):
        bench.charging.settle(REFERENCE)


@pytest.mark.parametrize("difference", [{"amount_minor": 2000}, {"currency": "USD"}])
def test_a_charge_that_differs_from_the_order_is_not_taken_for_it(
    bench: Bench, difference: dict[str, object]
) -> None:
    bench.provider.enter(**difference)
    bench.clock.pass_(hours=25)

    with pytest.raises(ProviderMisbehaved, match="the order says 1999 EUR"):
        bench.charging.settle(REFERENCE)

    assert bench.provider.calls == ["find"]


# After an unclear answer


def test_a_charge_behind_a_server_error_is_found_at_once(bench: Bench) -> None:
    bench.provider.losses = [server_error()]

    settled = bench.charging.settle(REFERENCE)

    assert (settled.charge_id, settled.replayed) == ("ch_1", True)
    assert bench.provider.calls == ["charge", "find"]


def test_a_server_error_without_a_charge_stays_one(bench: Bench) -> None:
    bench.provider.refusals = [server_error()]

    with pytest.raises(ProviderUnavailable, match="500"):
        bench.charging.settle(REFERENCE)

    assert bench.provider.calls == ["charge", "find"]


def test_a_decline_behind_a_server_error_is_a_decline(bench: Bench) -> None:
    bench.provider.enter(succeeded=False, decline_reason="card_declined")
    bench.provider.refusals = [server_error()]

    with pytest.raises(PaymentDeclined, match="card_declined"):
        bench.charging.settle(REFERENCE)


def test_after_a_time_out_the_books_are_not_asked(bench: Bench) -> None:
    # The charge may be on its way into them: "none" would prove nothing, and the key still does.
    bench.provider.losses = [unknown_outcome()]

    with pytest.raises(ProviderUnavailable, match="no answer"):
        bench.charging.settle(REFERENCE)

    assert bench.provider.calls == ["charge"]


def test_a_key_with_other_parameters_is_settled_by_an_equal_charge(bench: Bench) -> None:
    bench.provider.enter()
    bench.provider.refusals = [KeyReuseMismatch("other parameters")]

    assert bench.charging.settle(REFERENCE).charge_id == "ch_1"


@pytest.mark.parametrize("books", [[], [{"amount_minor": 2000}]], ids=["empty", "another amount"])
def test_a_key_with_other_parameters_alerts_otherwise(
    bench: Bench, books: list[dict[str, object]]
) -> None:
    for charge in books:
        bench.provider.enter(**charge)
    bench.provider.refusals = [KeyReuseMismatch("other parameters")]

    with pytest.raises(KeyReuseMismatch, match="other parameters"):
        bench.charging.settle(REFERENCE)


@pytest.mark.parametrize("error", [KeyInUse("busy"), PaymentDeclined("card_declined")])
def test_a_clear_answer_is_passed_on(bench: Bench, error: ChargeError) -> None:
    bench.provider.refusals = [error]

    with pytest.raises(type(error)) as caught:
        bench.charging.settle(REFERENCE)

    assert caught.value is error
    assert bench.provider.calls == ["charge"]


# The order cannot be read or is not one


def test_an_order_that_is_gone_was_charged_if_the_books_say_so(bench: Bench) -> None:
    bench.provider.enter(order_id="A-77", amount_minor=5)
    bench.store.stored = None

    settled = bench.charging.settle(REFERENCE)

    assert (settled.order_id, settled.amount_minor, settled.replayed) == ("A-77", 5, True)


def test_a_charge_that_names_no_order_cannot_stand_for_one_that_is_gone(bench: Bench) -> None:
    bench.provider.enter(order_id=None)
    bench.store.stored = None

    with pytest.raises(ProviderMisbehaved, match="ch_1 names no order"):
        bench.charging.settle(REFERENCE)


def test_an_order_that_is_gone_and_was_never_charged_is_rejected(bench: Bench) -> None:
    bench.store.stored = None

    with pytest.raises(OrderRejected) as caught:
        bench.charging.settle(REFERENCE)

    assert caught.value.field == "object"
    assert bench.provider.calls == ["find"]


def test_a_malformed_order_is_rejected_after_a_look_up(bench: Bench) -> None:
    bench.put(valid_text(amount="0"))

    with pytest.raises(OrderRejected) as caught:
        bench.charging.settle(REFERENCE)

    assert caught.value.field == "amount"
    assert bench.provider.calls == ["find"]
    assert bench.faults.moments == []


def test_a_charge_outweighs_the_rules_that_reject_its_order_today(bench: Bench) -> None:
    bench.provider.enter()
    bench.put(valid_text(amount="0"))

    settled = bench.charging.settle(REFERENCE)

    assert (settled.charge_id, settled.amount_minor) == ("ch_1", 1999)


def test_an_order_is_not_rejected_while_the_books_are_closed(bench: Bench) -> None:
    bench.put(valid_text(amount="0"))
    bench.provider.refusals = [server_error()]

    with pytest.raises(ProviderUnavailable):
        bench.charging.settle(REFERENCE)


# Patience


@pytest.mark.parametrize("kind", [KeyInUse, ProviderRateLimited])
def test_a_short_wait_that_the_provider_asks_for_is_kept(bench: Bench, kind: type[Busy]) -> None:
    bench.provider.refusals = [kind("busy", retry_after=1.0)]

    settled = bench.charging.settle(REFERENCE)

    assert settled.charge_id == "ch_1"
    assert bench.clock.slept == [1.0]


def test_a_look_up_is_patient_too(bench: Bench) -> None:
    bench.clock.pass_(hours=25)
    bench.provider.refusals = [ProviderRateLimited("busy", retry_after=0.0)]

    bench.charging.settle(REFERENCE)

    assert bench.provider.calls == ["find", "find", "charge"]


@pytest.mark.parametrize(
    ("retry_after", "seconds_left"),
    [(None, 40.0), (3.1, 40.0), (3.0, 12.9)],
    ids=["not said", "too long", "no time for the answer"],
)
def test_other_waits_are_left_to_the_state_machine(
    bench: Bench, retry_after: float | None, seconds_left: float
) -> None:
    bench.seconds_left = seconds_left
    bench.provider.refusals = [KeyInUse("busy", retry_after=retry_after)]

    with pytest.raises(KeyInUse):
        bench.charging.settle(REFERENCE)

    assert bench.clock.slept == []


def test_patience_ends_after_one_wait(bench: Bench) -> None:
    bench.provider.refusals = [KeyInUse("busy", retry_after=1.0)] * 2

    with pytest.raises(KeyInUse):
        bench.charging.settle(REFERENCE)

    assert bench.provider.calls == ["charge", "charge"]


# Faults


def test_faults_strike_right_before_and_right_after_the_money_moves(bench: Bench) -> None:
    bench.charging.settle(REFERENCE)

    assert bench.faults.moments == [
        ("exit_before_charge", 0),
        ("exit_after_charge", 1),
        ("timeout_after_charge", 1),
    ]


def test_without_faults_the_order_is_charged_the_same(bench: Bench) -> None:
    settled = replace(bench.charging, faults=None).settle(REFERENCE)

    assert settled.charge_id == "ch_1"
