"""The stage: one seed, one story; every story possible; time passes only when all wait."""

from __future__ import annotations

import random

import pytest

from local.chaos.stage import Gone, Stage


def a_stage(seed: int = 0) -> tuple[Stage, list[float]]:
    clock = [0.0]

    def advance(seconds: float) -> None:
        clock[0] += seconds

    return Stage(random.Random(seed), lambda: clock[0], advance), clock


def two_in_three_steps(seed: int) -> str:
    stage, _ = a_stage(seed)
    story = []
    for name in "ab":

        def act(name: str = name) -> None:
            for _ in range(3):
                stage.pause("step")
                story.append(name)

        stage.enter(name, act)
    stage.play()
    return "".join(story)


def test_the_same_seed_tells_the_same_story() -> None:
    assert two_in_three_steps(7) == two_in_three_steps(7)


def test_every_interleaving_can_happen() -> None:
    stories = {two_in_three_steps(seed) for seed in range(400)}

    assert len(stories) == 20  # six steps, of which three are a's


def test_time_passes_only_when_everybody_waits() -> None:
    stage, clock = a_stage()
    seen = []

    def sleeper() -> None:
        stage.sleep(100)
        seen.append(("slept", clock[0]))

    def worker() -> None:
        for _ in range(5):
            stage.pause("work")
        seen.append(("worked", clock[0]))

    stage.enter("sleeper", sleeper)
    stage.enter("worker", worker)
    stage.play()

    assert seen == [("worked", 0.0), ("slept", 100.0)]


def test_a_wait_ends_with_its_condition_or_its_time() -> None:
    stage, clock = a_stage()
    flag: list[bool] = []
    seen = []

    def first() -> None:
        stage.wait(lambda: bool(flag))
        seen.append(("told", clock[0]))
        stage.wait(lambda: False, 30)
        seen.append(("gave up", clock[0]))

    stage.enter("first", first)
    stage.enter("second", lambda: flag.append(True))
    stage.play()

    assert seen == [("told", 0.0), ("gave up", 30.0)]


def test_a_held_actor_lets_others_go_first_as_long_as_there_are_any() -> None:
    stage, _ = a_stage()
    seen = []

    def act(name: str) -> None:
        for _ in range(5):
            stage.pause("work")
        seen.append(name)

    stage.enter("held", lambda: act("held"))
    stage.enter("free", lambda: act("free"))
    stage.hold("held", 1_000)
    stage.play()

    assert seen == ["free", "held"]


def test_everybody_waiting_for_ever_is_a_bug() -> None:
    stage, _ = a_stage()
    stage.enter("lonely", lambda: stage.wait(lambda: False))

    with pytest.raises(RuntimeError, match="lonely"):
        stage.play()
    stage.dismiss()


def test_what_an_actor_raises_ends_the_play() -> None:
    stage, _ = a_stage()

    def fail() -> None:
        raise KeyError("mine")

    stage.enter("failing", fail)

    with pytest.raises(KeyError, match="mine"):
        stage.play()


def test_a_dismissed_actor_cannot_go_on() -> None:
    stage, _ = a_stage()
    seen = []

    def stubborn() -> None:
        try:
            stage.wait(lambda: False)
        except Exception:
            seen.append("survived")
        except Gone:
            seen.append("gone")
            raise

    def fail() -> None:
        stage.sleep(1)  # until the other one waits
        raise KeyError

    stage.enter("stubborn", stubborn)
    stage.enter("failing", fail)
    with pytest.raises(KeyError):
        stage.play()
    stage.dismiss()

    assert seen == ["gone"]
