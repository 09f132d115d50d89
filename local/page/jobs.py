"""What the bench's buttons have set going, with what each did."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from starlette.concurrency import run_in_threadpool

from local.page.reader import UNREACHABLE

KEPT = 40
AT_ONCE = 6

logger = logging.getLogger(__name__)


@dataclass
class Job:
    """One press of a button. `state` is running, done or failed."""

    number: int
    title: str
    started: datetime
    state: str = "running"
    seconds: float | None = None
    lines: list[str] = field(default_factory=list)
    object_key: str | None = None
    keys: list[str] = field(default_factory=list)  # idempotency keys of the orders it concerns

    def say(self, line: str) -> None:
        """Add a line to what it did."""
        self.lines.append(line)

    def document(self) -> dict[str, Any]:
        """The job in plain JSON."""
        return {
            "number": self.number,
            "title": self.title,
            "started": self.started.isoformat(),
            "state": self.state,
            "seconds": self.seconds,
            "lines": list(self.lines),
            "idempotency_keys": list(self.keys),
        }


class Jobs:
    """Runs jobs in threads and remembers the last ones, newest first."""

    def __init__(self, changed: Callable[[], None]) -> None:
        """`changed` is called in the event loop when a job starts, and when it ends."""
        self.latest: deque[Job] = deque(maxlen=KEPT)
        self._changed = changed
        self._numbers = itertools.count(1)
        self._room = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, title: str, work: Callable[[Job], None]) -> Job:
        """Set `work` going in a thread; it may add lines to its job."""
        job = Job(next(self._numbers), title, datetime.now(UTC))
        self.latest.appendleft(job)
        task = asyncio.create_task(self._run(job, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._changed()
        return job

    async def _run(self, job: Job, work: Callable[[Job], None]) -> None:
        async with self._room:
            started = time.monotonic()
            try:
                await run_in_threadpool(work, job)
                job.state = "done"
            except (*UNREACHABLE, ValueError, TimeoutError) as error:
                job.say(str(error))
                job.state = "failed"
            except Exception as error:
                # A bug of ours: the page says so, the log has the rest.
                logger.exception("a job failed")
                job.say(f"Unexpected {type(error).__name__}: {error}. See the page's log.")
                job.state = "failed"
            job.seconds = time.monotonic() - started
        self._changed()
