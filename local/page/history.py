"""What an execution's history tells: its steps with every attempt, and each write to the ledger.

Everything here is a function of the events of GetExecutionHistory.

Source: https://docs.aws.amazon.com/step-functions/latest/apireference/API_HistoryEvent.html
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Json = dict[str, Any]

CONFLICT = "DynamoDB.ConditionalCheckFailedException"
#: Events that end an attempt badly, with the member that says why.
_FAILURES = {
    "TaskFailed": "taskFailedEventDetails",
    "TaskTimedOut": "taskTimedOutEventDetails",
    "TaskStartFailed": "taskStartFailedEventDetails",
    "TaskSubmitFailed": "taskSubmitFailedEventDetails",
}
#: Events that end an execution before its own last state.
_CUT_SHORT = {"ExecutionAborted", "ExecutionTimedOut"}

#: What a successful write of these states means for the record.
WRITES = {
    "Claim": "claimed: in progress",
    "TakeOver": "taken over by a successor",
    "MarkDone": "done",
    "MarkDeclined": "declined",
    "MarkRejected": "rejected",
}


@dataclass
class Attempt:
    """One try of a task. `error` is None while it runs and when it succeeded."""

    started: datetime
    ended: datetime | None = None
    error: str | None = None
    cause: str | None = None
    output: Json | None = None

    @property
    def seconds(self) -> float | None:
        return None if self.ended is None else (self.ended - self.started).total_seconds()


@dataclass
class Step:
    """A state that an execution entered, with the attempts of its task."""

    state: str
    kind: str  # choice, pass, task, succeed, fail, wait, ...
    entered: datetime
    left: datetime | None = None
    attempts: list[Attempt] = field(default_factory=list)
    cut_short: bool = False

    @property
    def outcome(self) -> str:
        """running, done, retried (then done), conflict or caught (left by a Catch), failed."""
        if self.kind == "fail" or self.cut_short:
            return "failed"
        last = self.attempts[-1] if self.attempts else None
        if last is not None and last.error is not None and self.left is not None:
            return "conflict" if last.error == CONFLICT else "caught"
        if self.left is None and self.kind != "succeed":
            return "running"
        return "retried" if len(self.attempts) > 1 else "done"


@dataclass(frozen=True)
class Write:
    """What an execution did, or tried to do, to the ledger's record."""

    at: datetime
    execution: str
    state: str
    words: str
    refused: bool


def steps(events: Iterable[Json]) -> list[Step]:
    """The states in the order in which they were entered."""
    found: list[Step] = []
    for event in events:
        kind, at = event["type"], event["timestamp"]
        if kind.endswith("StateEntered"):
            name = event["stateEnteredEventDetails"]["name"]
            found.append(Step(name, kind.removesuffix("StateEntered").lower(), at))
            continue
        if not found:
            continue
        step = found[-1]
        if kind.endswith("StateExited"):
            step.left = at
        elif kind == "TaskScheduled":
            step.attempts.append(Attempt(at))
        elif kind == "TaskSucceeded":
            _open_attempt(step, at).output = _json(event["taskSucceededEventDetails"].get("output"))
        elif kind in _FAILURES:
            details = event.get(_FAILURES[kind], {})
            attempt = _open_attempt(step, at)
            attempt.error = details.get("error") or "States.TaskFailed"
            attempt.cause = readable_cause(details.get("cause"))
        elif kind in _CUT_SHORT or (kind == "ExecutionFailed" and step.left is None):
            step.cut_short = True
    return found


def _open_attempt(step: Step, at: datetime) -> Attempt:
    """The attempt that ends `at`; its own one when nothing announced it."""
    if not step.attempts or step.attempts[-1].ended is not None:
        step.attempts.append(Attempt(step.entered))
    step.attempts[-1].ended = at
    return step.attempts[-1]


def _json(text: str | None) -> Json | None:
    try:
        value = json.loads(text or "")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def readable_cause(cause: str | None) -> str | None:
    """The message in a Cause, which is JSON in a string when a function raised it."""
    document = _json(cause)
    if document is None:
        return cause or None
    message = document.get("errorMessage") or document.get("Cause") or document.get("Message")
    return str(message) if message else cause


def writes(execution: str, found: Iterable[Step]) -> list[Write]:
    """Every write to the record that these steps made, or were refused by its condition."""
    return [
        Write(
            at=attempt.ended,
            execution=execution,
            state=step.state,
            words=WRITES[step.state]
            if attempt.error is None
            else "refused: the record is in other hands",
            refused=attempt.error is not None,
        )
        for step in found
        if step.state in WRITES
        for attempt in step.attempts
        if attempt.ended is not None and attempt.error in {None, CONFLICT}
    ]
