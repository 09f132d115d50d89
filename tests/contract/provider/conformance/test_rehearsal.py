"""Test mode: failures on order, a log of what was answered, a clock that moves. Own rules."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.contract.provider.harness import (
    arm,
    at_once,
    charge,
    charges,
    fresh_key,
    is_armed,
    order,
    seen,
    until,
)

QUICK = 0.05  # seconds that a hanging fault takes here; what matters is what follows


class TestFaults:
    @pytest.mark.parametrize(
        ("fault", "status"),
        [("unavailable", 503), ("rate_limit", 429), ("timeout_before", 504)],
    )
    def test_a_failure_before_the_money_moves_leaves_no_trace(
        self, test_mode: httpx.Client, fault: str, status: int
    ) -> None:
        key, body = fresh_key(), order()
        arm(test_mode, fault, reference=body["reference"], seconds=QUICK)

        failure = charge(test_mode, key, body)

        assert failure.status_code == status
        assert charges(test_mode, reference=body["reference"]) == []
        after = charge(test_mode, key, body)
        assert after.status_code == 201
        assert "Idempotent-Replayed" not in after.headers

    @pytest.mark.parametrize(
        ("fault", "status"), [("error_after_charge", 500), ("timeout_after_charge", 504)]
    )
    def test_a_failure_after_the_money_moved_is_followed_by_a_replay(
        self, test_mode: httpx.Client, fault: str, status: int
    ) -> None:
        key, body = fresh_key(), order()
        arm(test_mode, fault, reference=body["reference"], seconds=QUICK)

        failure = charge(test_mode, key, body)

        [kept] = charges(test_mode, reference=body["reference"])
        after = charge(test_mode, key, body)
        assert failure.status_code == status
        assert after.headers["Idempotent-Replayed"] == "true"
        assert after.json() == kept

    def test_a_rate_limit_says_when_to_come_back(self, test_mode: httpx.Client) -> None:
        body = order()
        arm(test_mode, "rate_limit", reference=body["reference"])

        assert int(charge(test_mode, fresh_key(), body).headers["Retry-After"]) > 0

    def test_a_decline_on_order_is_a_decline_for_good(self, test_mode: httpx.Client) -> None:
        key, body = fresh_key(), order()
        arm(test_mode, "decline", reference=body["reference"])
        first = charge(test_mode, key, body)

        again = charge(test_mode, key, body)

        assert (first.status_code, again.status_code) == (402, 402)
        assert again.content == first.content
        assert [kept["status"] for kept in charges(test_mode, reference=body["reference"])] == [
            "failed"
        ]

    def test_a_slow_charge_holds_its_key(self, test_mode: httpx.Client) -> None:
        key, body = fresh_key(), order()
        arm(test_mode, "slow", reference=body["reference"], seconds=2)
        with ThreadPoolExecutor(1) as one:
            slow = one.submit(charge, test_mode, key, body)
            until(lambda: not is_armed(test_mode, body["reference"]))

            conflict = charge(test_mode, key, body)

        assert (conflict.status_code, slow.result().status_code) == (409, 201)
        assert int(conflict.headers["Retry-After"]) > 0

    def test_a_fault_strikes_as_often_as_it_was_armed_for(self, test_mode: httpx.Client) -> None:
        key, body = fresh_key(), order()
        arm(test_mode, "unavailable", reference=body["reference"], times=3)

        statuses = [charge(test_mode, key, body).status_code for _ in range(5)]

        assert statuses == [503, 503, 503, 201, 201]

    def test_a_fault_is_never_taken_twice(self, test_mode: httpx.Client) -> None:
        body = order()
        arm(test_mode, "unavailable", reference=body["reference"], times=5)

        answers = at_once(20, 20, lambda _: charge(test_mode, fresh_key(), body))

        assert sum(answer.status_code == 503 for answer in answers) == 5
        assert sum(answer.status_code == 201 for answer in answers) == 15

    def test_faults_of_two_moments_strike_one_request(self, test_mode: httpx.Client) -> None:
        body = order()
        arm(test_mode, "decline", reference=body["reference"])
        arm(test_mode, "error_after_charge", reference=body["reference"])

        failure = charge(test_mode, fresh_key(), body)

        [kept] = charges(test_mode, reference=body["reference"])
        assert (failure.status_code, kept["status"]) == (500, "failed")

    def test_a_fault_spares_other_references(self, test_mode: httpx.Client) -> None:
        arm(test_mode, "unavailable", reference=f"ref-{uuid4()}")

        assert charge(test_mode, fresh_key(), order()).status_code == 201

    def test_a_fault_finds_a_charge_by_a_part_of_its_metadata(
        self, test_mode: httpx.Client
    ) -> None:
        mine = order(metadata={"object_key": f"orders/{uuid4()}.json", "order_id": "A-1001"})
        arm(test_mode, "unavailable", metadata={"object_key": mine["metadata"]["object_key"]})

        other, struck = (
            charge(test_mode, fresh_key(), order()),
            charge(test_mode, fresh_key(), mine),
        )

        assert (other.status_code, struck.status_code) == (201, 503)

    @pytest.mark.parametrize(
        ("fault", "status"), [("unavailable", 503), ("rate_limit", 429), ("timeout_before", 504)]
    )
    def test_a_look_up_can_fail_too_and_a_charge_does_not_use_that_up(
        self, test_mode: httpx.Client, fault: str, status: int
    ) -> None:
        body = order()
        arm(test_mode, fault, operation="lookup", reference=body["reference"], seconds=QUICK)
        made = charge(test_mode, fresh_key(), body)

        listed = [
            test_mode.get("/v1/charges", params={"reference": body["reference"]}).status_code
            for _ in range(2)
        ]

        assert made.status_code == 201
        assert listed == [status, 200]

    def test_a_charge_asked_for_by_id_can_fail_too(self, test_mode: httpx.Client) -> None:
        made = charge(test_mode, fresh_key(), order()).json()
        arm(test_mode, "unavailable", operation="lookup", reference=made["reference"])

        assert test_mode.get(f"/v1/charges/{made['id']}").status_code == 503

    def test_what_is_armed_is_shown_with_what_is_left(self, test_mode: httpx.Client) -> None:
        body = order()
        arm(test_mode, "unavailable", reference=body["reference"], times=2)
        charge(test_mode, fresh_key(), body)

        faults = test_mode.get("/v1/test/faults").json()["data"]

        [mine] = [fault for fault in faults if fault["reference"] == body["reference"]]
        assert (mine["fault"], mine["times"], mine["remaining"]) == ("unavailable", 2, 1)

    def test_clearing_disarms(self, test_mode: httpx.Client) -> None:
        body = order()
        arm(test_mode, "unavailable", reference=body["reference"])

        cleared = test_mode.delete("/v1/test/faults")

        assert cleared.status_code == 204
        assert test_mode.get("/v1/test/faults").json()["data"] == []
        assert charge(test_mode, fresh_key(), body).status_code == 201

    @pytest.mark.parametrize(
        "wish",
        [
            {},
            {"fault": "unknown"},
            {"fault": "slow", "times": 0},
            {"fault": "slow", "times": "3"},
            {"fault": "slow", "times": 10_001},
            {"fault": "slow", "seconds": 61},
            {"fault": "slow", "seconds": -1},
            {"fault": "slow", "operation": "refund"},
            {"fault": "decline", "operation": "lookup"},
            {"fault": "error_after_charge", "operation": "lookup"},
            {"fault": "slow", "operation": "lookup", "metadata": {"a": "b"}},
            {"fault": "slow", "metadata": {"a": 1}},
            {"fault": "slow", "refrence": "x"},
        ],
    )
    def test_a_fault_outside_the_contract_is_not_armed(
        self, test_mode: httpx.Client, wish: dict[str, Any]
    ) -> None:
        assert test_mode.post("/v1/test/faults", json=wish).status_code == 400


class TestLog:
    def test_it_tells_what_became_of_each_request(self, test_mode: httpx.Client) -> None:
        key, body = fresh_key(), order()
        arm(test_mode, "unavailable", reference=body["reference"])
        arm(test_mode, "error_after_charge", reference=body["reference"])
        for parameters in (body | {"amount": 0}, body, body, body, body | {"amount": 1}):
            charge(test_mode, key, parameters)

        assert seen(test_mode, key) == [
            ("refused", 400),
            ("refused", 503),
            ("made", 500),
            ("replayed", 201),
            ("refused", 422),
        ]

    def test_an_unknown_key_was_not_seen(self, test_mode: httpx.Client) -> None:
        assert seen(test_mode, fresh_key()) == []


class TestClock:
    def test_it_moves_ahead_and_back(self, test_mode: httpx.Client) -> None:
        before = test_mode.get("/v1/test/clock").json()
        test_mode.post("/v1/test/clock", json={"advance_seconds": 100})
        moved = test_mode.post("/v1/test/clock", json={"advance_seconds": 50}).json()

        test_mode.delete("/v1/test/clock")

        assert before["offset_seconds"] == 0
        assert moved["offset_seconds"] == 150
        assert moved["now"] == pytest.approx(before["now"] + 150, abs=30)
        assert test_mode.get("/v1/test/clock").json()["offset_seconds"] == 0

    def test_it_cannot_run_out_of_time(self, test_mode: httpx.Client) -> None:
        year = {"advance_seconds": 366 * 86_400}

        statuses = [test_mode.post("/v1/test/clock", json=year).status_code for _ in range(11)]

        assert statuses == [200] * 10 + [400]
