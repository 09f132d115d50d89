"""The stack is asked while somebody looks, and left alone otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from local.page import watch as watching
from local.page.index import Index
from local.page.reader import Reader
from local.page.watch import Watch
from tests.unit.page.fakes import FakeStack

PATIENCE_SECONDS = 5.0


@contextlib.asynccontextmanager
async def running(watch: Watch) -> AsyncIterator[None]:
    task = asyncio.create_task(watch.run())
    try:
        yield
    finally:
        task.cancel()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await asyncio.sleep(0.001)


def a_watch() -> Watch:
    return Watch(Reader(FakeStack(), Index()))


def test_nobody_looks_and_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "GLANCE_SECONDS", 0.05)
    monkeypatch.setattr(watching, "SHORTEST_SECONDS", 0.001)
    monkeypatch.setattr(watching, "LONGEST_SECONDS", 0.01)

    async def story() -> tuple[int, int]:
        watch = a_watch()
        async with running(watch):
            watch.glance()
            await until(lambda: watch.rounds > 3 and not watch.is_watched)
            # One round may have begun while the glance ended.
            await asyncio.sleep(0.02)
            before = watch.rounds
            await asyncio.sleep(0.1)
            return before, watch.rounds

    before, after = asyncio.run(story())

    assert before == after


def test_an_open_page_keeps_it_reading_until_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "SHORTEST_SECONDS", 0.001)
    monkeypatch.setattr(watching, "LONGEST_SECONDS", 0.005)

    async def story() -> bool:
        watch = a_watch()
        async with running(watch):
            changes = watch.changes()
            await anext(changes)
            await until(lambda: watch.rounds > 5)
            await changes.aclose()
            return watch.is_watched

    assert asyncio.run(story()) is False


def test_quiet_rounds_come_ever_less_often() -> None:
    pause, pauses = watching.SHORTEST_SECONDS, []
    while pause < watching.LONGEST_SECONDS:
        pause = min(pause * watching.BACK_OFF, watching.LONGEST_SECONDS)
        pauses.append(pause)

    rounds_in_the_first_minute = len(pauses) + (60 - sum(pauses)) / watching.LONGEST_SECONDS
    assert rounds_in_the_first_minute < 20


def test_open_pages_hear_of_a_change() -> None:
    async def story() -> tuple[int, int]:
        watch = a_watch()
        async with contextlib.aclosing(watch.changes()) as changes:
            first = await anext(changes)
            waiting = asyncio.ensure_future(anext(changes))
            await asyncio.sleep(0)
            watch.tell()
            return first, await asyncio.wait_for(waiting, PATIENCE_SECONDS)

    first, second = asyncio.run(story())

    assert second != first


def test_a_poke_does_not_wait_for_the_pause_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "SHORTEST_SECONDS", 3600.0)
    monkeypatch.setattr(watching, "LONGEST_SECONDS", 3600.0)

    async def story() -> int:
        watch = a_watch()
        async with running(watch):
            watch.glance()
            await until(lambda: watch.rounds == 1)
            watch.poke()
            await until(lambda: watch.rounds == 2)
            return watch.rounds

    assert asyncio.run(story()) == 2


@pytest.mark.parametrize(
    ("age_seconds", "rounds"),
    [
        # No answer waits for a round while the rounds come as they should,
        (watching.LONGEST_SECONDS, 1),
        # and none is older than a glance lasts.
        (watching.GLANCE_SECONDS, 2),
    ],
)
def test_an_answer_waits_for_a_round_when_what_is_known_is_old(
    monkeypatch: pytest.MonkeyPatch, age_seconds: float, rounds: int
) -> None:
    now = 1000.0
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: now))

    async def story() -> int:
        nonlocal now
        watch = a_watch()
        async with running(watch):
            await watch.fresh(PATIENCE_SECONDS)
            now += age_seconds
            await watch.fresh(PATIENCE_SECONDS)
            return watch.rounds

    assert asyncio.run(story()) == rounds


@pytest.mark.parametrize("turns", range(8))
def test_the_end_is_not_missed_when_a_change_comes_with_it(turns: int) -> None:
    """At any turn of the loop after a round: `wait_for` of Python 3.11 swallows such an end."""

    async def story() -> bool:
        watch = a_watch()
        task = asyncio.create_task(watch.run())
        await watch.fresh(PATIENCE_SECONDS)
        for _ in range(turns):
            await asyncio.sleep(0)
        watch.poke()
        task.cancel()
        await asyncio.wait([task], timeout=PATIENCE_SECONDS)
        return task.cancelled()

    assert asyncio.run(story())


def test_a_round_that_began_long_ago_does_not_count_as_fresh(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: now))
    stack, index, goes_on = FakeStack(), Index(), threading.Event()
    charges = stack.charges

    def slow_charges(after: str | None = None) -> Iterator[dict[str, Any]]:
        found = charges(after)
        goes_on.wait(PATIENCE_SECONDS)
        return found

    stack.charges = slow_charges  # type: ignore[method-assign]

    async def story() -> int:
        nonlocal now
        watch = Watch(Reader(stack, index))
        async with running(watch):
            watch.glance()
            await until(lambda: stack.asked["charges"] == 1)
            stack.settle(1)
            now += 10 * watching.OLD_SECONDS
            asking = asyncio.create_task(watch.fresh(PATIENCE_SECONDS))
            await asyncio.sleep(0)
            goes_on.set()
            await asking
            return index.page().total

    assert asyncio.run(story()) == 1
