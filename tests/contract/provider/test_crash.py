"""The stand-alone server frozen and killed at bad moments; the books have to be right after."""

import random
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.contract.provider.harness import (
    StandAlone,
    arm,
    at_once,
    charge,
    charges,
    fresh_key,
    is_armed,
    order,
    stand_alone,
    until,
)

# A lease that a test can wait for. The fault holds a charge between its marker and its commit
# for longer than that.
LEASE = ("--in-flight-seconds", "2")
SLOW_SECONDS = 4


def hold_in_flight(api: httpx.Client, reference: str) -> None:
    """Let the next charge with this reference stop between its marker and its commit.

    It is there once the fault is no longer armed: it takes it after it has put its marker.
    """
    arm(api, "slow", reference=reference, seconds=SLOW_SECONDS)


def settled(api: httpx.Client, key: str, body: dict[str, object]) -> httpx.Response:
    """What the key is answered in the end, after the conflicts with a marker left behind."""
    return until(lambda: None if (answer := charge(api, key, body)).status_code == 409 else answer)


def test_a_frozen_process_that_thaws_after_its_marker_was_recovered_cannot_charge(
    tmp_path: Path,
) -> None:
    books = ("--database", str(tmp_path / "books.sqlite"), *LEASE)
    key, body = fresh_key(), order()
    with stand_alone(*books) as first, stand_alone(*books) as second, ThreadPoolExecutor(1) as one:
        hold_in_flight(first.api, body["reference"])
        frozen = one.submit(charge, first.api, key, body)
        until(lambda: not is_armed(second.api, body["reference"]))
        first.send(signal.SIGSTOP)
        meanwhile = charge(second.api, key, body)

        successor = settled(second.api, key, body)

        first.send(signal.SIGCONT)
        thawed = frozen.result()
        [kept] = charges(second.api, reference=body["reference"])
        assert meanwhile.status_code == 409
        assert "Idempotent-Replayed" not in successor.headers
        assert successor.json() == kept
        assert thawed.headers["Idempotent-Replayed"] == "true"
        assert thawed.content == successor.content


def test_a_process_killed_in_flight_leaves_a_key_that_charges_once(tmp_path: Path) -> None:
    books = ("--database", str(tmp_path / "books.sqlite"), *LEASE)
    key, body = fresh_key(), order()
    victim = StandAlone(*books)
    with stand_alone(*books) as survivor, ThreadPoolExecutor(1) as one:
        hold_in_flight(victim.api, body["reference"])
        lost = one.submit(charge, victim.api, key, body)
        until(lambda: not is_armed(survivor.api, body["reference"]))

        victim.end(signal.SIGKILL)

        assert isinstance(lost.exception(), httpx.TransportError)
        assert charges(survivor.api, reference=body["reference"]) == []
        assert settled(survivor.api, key, body).status_code == 201
        assert len(charges(survivor.api, reference=body["reference"])) == 1


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_kill_9_under_load_leaves_zero_or_one_charge_per_key(tmp_path: Path, seed: int) -> None:
    books = ("--database", str(tmp_path / "books.sqlite"), *LEASE)
    orders = [(fresh_key(), order(amount=1 + number)) for number in range(100)]
    script = orders * 5
    chance = random.Random(seed)
    chance.shuffle(script)
    deadly = chance.randrange(100, 400)  # the request at which the server dies
    victim = StandAlone(*books)

    def send(number: int) -> httpx.Response | None:
        if number == deadly:
            victim.send(signal.SIGKILL)
        try:
            return charge(victim.api, *script[number])
        except httpx.TransportError:
            return None

    answers = at_once(len(script), 8, send)

    victim.end(signal.SIGKILL)
    heard = {
        key: answer.content
        for (key, _), answer in zip(script, answers, strict=True)
        if answer is not None and answer.status_code == 201
    }
    assert None in answers
    assert len(heard) > 10
    with stand_alone(*books) as restarted:
        for key, body in orders:
            before = charges(restarted.api, reference=body["reference"])
            assert len(before) <= 1
            assert before or key not in heard
            answer = settled(restarted.api, key, body)
            [kept] = charges(restarted.api, reference=body["reference"])
            assert answer.json() == kept
            assert answer.content == heard.get(key, answer.content)
            assert ("Idempotent-Replayed" in answer.headers) == bool(before)
