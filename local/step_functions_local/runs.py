"""Keeps every run until it has ended, whatever becomes of Step Functions Local meanwhile.

On AWS an event is delivered at least once, and an execution that was started survives. Step
Functions Local keeps everything in memory, so the emulator's side does it: an event is kept and
offered again until it has started its execution, and an execution that has vanished is started
again under its own name. It then finds its own claim in the ledger and carries on under the same
idempotency key. All of it lives in the emulator's memory, as the bucket and the ledger do.
"""

from __future__ import annotations

import contextvars
import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from local.step_functions_local.engine import Engine, EngineAway, code

Json = dict[str, Any]

logger = logging.getLogger(__name__)

#: Starts that are under way at once.
STARTERS = 4
#: A start that failed is tried again after this, doubled each time up to the ceiling: a restart
#: of Step Functions Local takes a few seconds, and somebody is watching.
FIRST_WAIT_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 2.0
#: How often running executions are looked at: what a status change may come late.
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Run:
    """An execution that was asked for.

    `machine_arn` may end in `#TestCase`, the mocked integrations' way to name a test case. `scope`
    holds the account and region of the request that asked for it.
    """

    machine_arn: str
    name: str
    input: str
    scope: contextvars.Context = field(default_factory=contextvars.copy_context, compare=False)

    @property
    def plain_machine_arn(self) -> str:
        return self.machine_arn.partition("#")[0]

    @property
    def arn(self) -> str:
        return self.plain_machine_arn.replace(":stateMachine:", ":execution:") + f":{self.name}"

    def description(self) -> Json:
        """What DescribeExecution says of it as long as the engine cannot: it will run."""
        return {
            "executionArn": self.arn,
            "stateMachineArn": self.plain_machine_arn,
            "name": self.name,
            "status": "RUNNING",
            "input": self.input,
            "startDate": time.time(),
        }


class Runs:
    """The runs that have not ended. `announce` gets the description at every change of status."""

    def __init__(self, engine: Engine, announce: Callable[[Json], None]) -> None:
        self._engine = engine
        self._announce = announce
        self._held: dict[str, Run] = {}
        self._started: dict[str, Run] = {}
        self._to_start: queue.SimpleQueue[Run] = queue.SimpleQueue()
        for work in [*[self._start_for_ever] * STARTERS, self._look_for_ever]:
            threading.Thread(target=work, daemon=True, name="step-functions-local").start()

    def held(self, execution_arn: str) -> Run | None:
        """The run, if it has not ended yet."""
        return self._held.get(execution_arn)

    def start(self, run: Run) -> Json:
        """Start it for a caller who waits for StartExecution's answer. Raises what `Engine` does.

        Not kept when that fails: the caller knows of the failure.
        """
        answer = self._engine.call_on_machine(
            run.plain_machine_arn,
            "StartExecution",
            {"stateMachineArn": run.machine_arn, "name": run.name, "input": run.input},
        )
        self._held.setdefault(run.arn, run)
        if run.arn not in self._started:
            self._announce(run.description() | {"startDate": answer["startDate"]})
            self._started[run.arn] = run
        return answer

    def deliver(self, run: Run) -> None:
        """Keep it until it has started, and return at once."""
        self._held[run.arn] = run
        self._to_start.put(run)

    def _start_for_ever(self) -> None:
        while True:
            run = self._to_start.get()
            run.scope.copy().run(self._start_until_answered, run)

    def _start_until_answered(self, run: Run) -> None:
        for wait in _waits():
            try:
                self.start(run)
                return
            except LookupError:
                logger.warning("%s is gone, and with it %s", run.plain_machine_arn, run.arn)
                del self._held[run.arn]
                return
            except EngineAway as error:
                reason = str(error)
            except ClientError as error:
                if code(error) == "ExecutionAlreadyExists":
                    self._started[run.arn] = run  # an earlier answer was lost
                    return
                # Kept all the same: a definition that is refused can be deployed anew.
                reason = str(error)
            except Exception as error:
                logger.exception("bug: starting %s", run.arn)
                reason = repr(error)
            logger.warning("%s is kept and tried again in %.1f s: %s", run.arn, wait, reason)
            time.sleep(wait)

    def _look_for_ever(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            for run in list(self._started.values()):
                try:
                    run.scope.copy().run(self._look_at, run)
                except EngineAway:
                    break
                except Exception:
                    logger.exception("%s could not be looked at", run.arn)

    def _look_at(self, run: Run) -> None:
        try:
            description = self._engine.describe(run.arn)
        except ClientError as error:
            if code(error) != "ExecutionDoesNotExist":
                raise
            logger.warning("%s has vanished with its engine: it is started again", run.arn)
            del self._started[run.arn]
            self._to_start.put(run)
            return
        if description["status"] != "RUNNING":
            self._started.pop(run.arn, None)
            self._held.pop(run.arn, None)
            self._announce(description)


def _waits() -> Iterator[float]:
    for attempt in itertools.count():
        yield min(FIRST_WAIT_SECONDS * 2 ** min(attempt, 10), LONGEST_WAIT_SECONDS)
