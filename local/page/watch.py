"""Reads the stack while somebody looks: often while things happen, seldom while they do not."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncGenerator

from starlette.concurrency import run_in_threadpool

from local.page.reader import Reader

#: Between two rounds: right after a change, and after a quiet minute.
SHORTEST_SECONDS = 0.4
LONGEST_SECONDS = 5.0
BACK_OFF = 1.4
#: Who asked for a page counts as looking for this long; open pages with live updates always do.
GLANCE_SECONDS = 15.0
#: What was read longer ago than this is old: while somebody looks, no round is due so late.
OLD_SECONDS = 2 * LONGEST_SECONDS


class Watch:
    """Runs the reader in the background and tells the open pages when to look again.

    All methods belong to the event loop's thread.
    """

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.rounds = 0
        self.told = 0  # how often the open pages were told to look again
        self._listeners = 0
        self._glanced_until = 0.0
        self._read_at = -math.inf
        self._poked = asyncio.Event()
        self._changed = asyncio.Event()
        self._round_over = asyncio.Event()

    @property
    def is_watched(self) -> bool:
        return self._listeners > 0 or time.monotonic() < self._glanced_until

    def glance(self) -> None:
        """Somebody asked for a page: keep it fresh for a while."""
        asleep = not self.is_watched
        self._glanced_until = time.monotonic() + GLANCE_SECONDS
        if asleep:
            self.poke()

    async def fresh(self, patience_seconds: float) -> None:
        """Like `glance`; when what is known is old, or nothing, also wait for a round.

        One that began long ago and is not over yet is no better than what it will replace.
        """
        self.glance()
        asked_at = time.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_seconds):
                while asked_at - self._read_at > OLD_SECONDS:
                    await self._round_over.wait()

    def poke(self) -> None:
        """Something has happened or is wanted: read at once."""
        self._poked.set()

    def tell(self) -> None:
        """Have every open page look again."""
        self.told += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Read until cancelled; asleep while nobody looks."""
        pause = SHORTEST_SECONDS
        while True:
            if not self.is_watched:
                await self._poked.wait()
            self._poked.clear()
            self.rounds += 1
            began_at = time.monotonic()
            changed = await run_in_threadpool(self.reader.refresh)
            self._read_at = began_at
            self._round_over.set()
            self._round_over = asyncio.Event()
            if changed:
                self.tell()
                pause = SHORTEST_SECONDS
            else:
                pause = min(pause * BACK_OFF, LONGEST_SECONDS)
            with contextlib.suppress(TimeoutError):
                # Not `wait_for`: on Python 3.11 it may swallow the end of this task.
                async with asyncio.timeout(pause):
                    await self._poked.wait()
                pause = SHORTEST_SECONDS

    async def changes(self) -> AsyncGenerator[int, None]:
        """`told` now and after every change, and now and then in between, until closed."""
        self._listeners += 1
        self.poke()
        try:
            while True:
                changed = self._changed
                yield self.told
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(GLANCE_SECONDS):
                        await changed.wait()
        finally:
            self._listeners -= 1
