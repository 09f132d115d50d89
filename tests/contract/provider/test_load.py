"""Exactly once under load: many threads, random faults, on each real data base.

MiniStack stands for DynamoDB here, since its conditional writes hold under threads.
"""

import random
from collections import defaultdict
from collections.abc import Iterator

import httpx
import pytest

from tests.contract.provider.harness import arm, at_once, charge, charges, fresh_key, order, seen

REQUESTS, KEYS, THREADS = 1_000, 100, 16
FAULTS = {  # how many of each are armed, for any request; together they strike two in five
    "unavailable": 90,
    "rate_limit": 60,
    "timeout_before": 30,
    "slow": 40,
    "error_after_charge": 120,
    "timeout_after_charge": 60,
}
FAULT_SECONDS = 0.02


@pytest.fixture(params=["stand-alone", "function"])
def api(request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    """A provider without a fault, before and after."""
    reached = (
        request.getfixturevalue("server").api
        if request.param == "stand-alone"
        else request.getfixturevalue("function")
    )
    yield reached
    reached.delete("/v1/test/faults")


def test_a_thousand_requests_over_a_hundred_keys_make_a_hundred_charges(
    api: httpx.Client,
) -> None:
    chance = random.Random(1)
    orders = [(fresh_key(), order(amount=1 + number)) for number in range(KEYS)]
    script = [orders[number % KEYS] for number in range(REQUESTS)]
    chance.shuffle(script)
    for fault, times in FAULTS.items():
        arm(api, fault, times=times, seconds=FAULT_SECONDS)

    answers = at_once(REQUESTS, THREADS, lambda number: charge(api, *script[number]))

    statuses = {answer.status_code for answer in answers}
    assert statuses == {201, 409, 429, 500, 503, 504}
    bodies = defaultdict(set)
    for (key, _), answer in zip(script, answers, strict=True):
        if answer.status_code == 201:
            bodies[key].add(answer.content)
    api.delete("/v1/test/faults")
    for key, body in orders:
        [kept] = charges(api, reference=body["reference"])
        replay = charge(api, key, body)
        assert replay.headers["Idempotent-Replayed"] == "true"
        assert replay.json() == kept
        assert bodies[key] <= {replay.content}
        assert [outcome for outcome, _ in seen(api, key)].count("made") == 1
