"""The charge function's client and decisions against the rules of the real mock provider."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from charge.charging import Settled
from charge.errors import (
    ChargeError,
    KeyReuseMismatch,
    PaymentDeclined,
    ProviderCredentialsRefused,
    ProviderMisbehaved,
    ProviderUnavailable,
)
from charge.provider_client import ProviderClient
from provider.api import Request

from local.inprocess.provider import API_KEY, URL, InProcessProvider, ProviderPool
from tests.malformed_orders import valid_text
from tests.unit.charge.fakes import REFERENCE, Bench

KEY = REFERENCE.idempotency_key


class Pair:
    """Our side and theirs, with clocks that move together."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.provider = InProcessProvider()
        self.api_key = API_KEY
        client = ProviderClient(
            base_url=URL,
            api_key=lambda **_: self.api_key,
            pool=ProviderPool(self.provider),
            timeout_seconds=10,
            seconds_left=lambda: 40,
        )
        self._charging = replace(self.bench.charging, provider=client)

    def settle(self) -> Settled:
        return self._charging.settle(REFERENCE)

    def pass_(self, hours: int) -> None:
        self.bench.clock.pass_(hours)
        self.provider.advance_clock(hours * 3600)

    def arm(self, fault: str) -> None:
        self.provider.arm_fault({"fault": fault, "reference": KEY})

    def charge_by_hand(self, amount: int, key: str) -> None:
        """Somebody charges under our reference without us."""
        body = {"amount": amount, "currency": "EUR", "source": "tok_visa", "reference": KEY}
        headers = {
            "authorization": f"Bearer {API_KEY}",
            "content-type": "application/json",
            "idempotency-key": key,
        }
        content = json.dumps(body).encode()
        answer, _ = self.provider.respond(Request("POST", "/v1/charges", "", headers, content))
        assert answer.status == 201

    @property
    def succeeded(self) -> list[str]:
        return [item["id"] for item in self.provider.charges(KEY) if item["status"] == "succeeded"]


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.provider.close()


def test_an_order_is_charged_once_and_then_replayed(pair: Pair) -> None:
    first = pair.settle()
    second = pair.settle()

    assert (first.amount_minor, first.currency, first.replayed) == (1999, "EUR", False)
    assert second == replace(first, replayed=True)
    assert pair.succeeded == [first.charge_id]


@pytest.mark.parametrize("hours", [25, 30], ids=["a replay at 25 h", "a redrive at 30 h"])
@pytest.mark.parametrize("fault", [None, "timeout_after_charge", "error_after_charge"])
def test_an_order_is_charged_once_when_its_key_has_been_forgotten(
    pair: Pair, hours: int, fault: str | None
) -> None:
    if fault:
        pair.arm(fault)
    try:
        pair.settle()
    except ProviderUnavailable:
        assert fault == "timeout_after_charge"
    pair.pass_(hours)

    settled = pair.settle()

    assert settled.replayed
    assert pair.succeeded == [settled.charge_id]


def test_a_charge_that_was_lost_on_the_way_is_found_at_once(pair: Pair) -> None:
    pair.arm("error_after_charge")

    settled = pair.settle()

    assert settled.replayed
    assert pair.succeeded == [settled.charge_id]


@pytest.mark.parametrize("fault", ["unavailable", "timeout_before", "timeout_after_charge"])
def test_an_order_gets_through_at_the_second_attempt(pair: Pair, fault: str) -> None:
    pair.arm(fault)
    with pytest.raises(ProviderUnavailable):
        pair.settle()

    settled = pair.settle()

    assert settled.replayed == (fault == "timeout_after_charge")
    assert pair.succeeded == [settled.charge_id]


def test_a_rate_limit_is_waited_for(pair: Pair) -> None:
    pair.arm("rate_limit")

    settled = pair.settle()

    assert not settled.replayed
    assert pair.bench.clock.slept == [1.0]


@pytest.mark.parametrize("hours", [0, 25], ids=["by the key", "by the books"])
def test_a_decline_stays_one_in_the_same_words(pair: Pair, hours: int) -> None:
    pair.bench.put(valid_text(payment_method='"tok_insufficient_funds"'))
    with pytest.raises(PaymentDeclined, match=r"^insufficient_funds$"):
        pair.settle()
    pair.pass_(hours)

    with pytest.raises(PaymentDeclined, match=r"^insufficient_funds$"):
        pair.settle()

    assert pair.succeeded == []
    assert len(pair.provider.charges(KEY)) == 1


@pytest.mark.parametrize(
    ("amount", "error"), [(1999, None), (2000, KeyReuseMismatch)], ids=["equal", "different"]
)
def test_a_charge_by_hand_with_our_key_settles_the_order_if_it_is_equal(
    pair: Pair, amount: int, error: type[ChargeError] | None
) -> None:
    pair.charge_by_hand(amount, KEY)

    if error:
        with pytest.raises(error, match="the order says 1999 EUR"):
            pair.settle()
    else:
        assert pair.settle().replayed

    assert len(pair.succeeded) == 1


def test_two_charges_by_hand_alert(pair: Pair) -> None:
    pair.charge_by_hand(1999, "by-hand-1")
    pair.charge_by_hand(1999, "by-hand-2")
    pair.pass_(hours=25)

    with pytest.raises(ProviderMisbehaved, match="charged more than once"):
        pair.settle()


def test_a_wrong_api_key_alerts(pair: Pair) -> None:
    pair.api_key = "sk_wrong"

    with pytest.raises(ProviderCredentialsRefused, match="401"):
        pair.settle()

    assert pair.succeeded == []
