"""Everything about one order: both books, every execution, what the provider saw, as one story."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from local.page import history, words
from local.page.index import Index, Row, Run
from local.page.reader import UNREACHABLE
from local.page.source import Source

Json = dict[str, Any]

#: Executions of one order whose histories one page reads at most; others are only counted.
MAX_RUNS = 25


@dataclass(frozen=True)
class Moment:
    """One line of an order's story. `side` is ours, theirs (the provider's) or queue."""

    at: datetime
    side: str
    words: str
    tone: str  # good, warn, bad or plain
    detail: str | None = None
    execution: str | None = None  # the ARN of who did it


@dataclass(frozen=True)
class Detail:
    """An order's page. `problems` says what could not be read."""

    row: Row
    runs: tuple[Run, ...]  # with their steps, oldest first
    requests: tuple[Json, ...] | None  # None where the provider does not tell
    story: tuple[Moment, ...]
    problems: tuple[str, ...]

    def document(self) -> Json:
        """All of it in plain JSON."""
        return self.row.document() | {
            "executions": [_run_document(run) for run in self.runs],
            "provider_requests": None if self.requests is None else list(self.requests),
            "messages": list(self.row.messages),
            "findings": list(self.row.findings),
            "story": [
                {
                    "at": moment.at.isoformat(),
                    "side": moment.side,
                    "what": moment.words,
                    "detail": moment.detail,
                    "execution": moment.execution,
                }
                for moment in self.story
            ],
            "problems": list(self.problems),
        }


def read(source: Source, index: Index, key: str) -> Detail | None:
    """One order, read afresh from every book at the same time; None when no book knows it."""
    row = index.row(key)
    problems: list[str] = []
    known = list(row.runs[-MAX_RUNS:]) if row else []
    if row and row.owner and row.owner not in {run.arn for run in known}:
        known.insert(0, _unread(index, row.owner, row))
    with ThreadPoolExecutor() as pool:
        record = pool.submit(source.records_of, {key})
        charges = pool.submit(source.charges_of, key)
        requests = pool.submit(source.requests_of, key)
        runs = [pool.submit(_with_steps, source, run) for run in known]
        found_runs = [run for future in runs if (run := _result(future, problems)) is not None]
        found_record = _result(record, problems)
        found_charges = _result(charges, problems) or []
        found_requests = _result(requests, [])
    with index.in_one_piece():
        for run in found_runs:
            index.put_run(run)
        if found_record is not None:
            index.put_record(key, found_record.get(key))
        for charge in found_charges:
            index.put_charge(charge)
        if found_requests is not None:
            index.put_requests(key, found_requests)
        row = index.row(key)
    if row is None:
        return None
    return Detail(
        row=row,
        runs=tuple(found_runs),
        requests=None if found_requests is None else tuple(found_requests),
        story=tuple(story(row, found_runs, found_requests or [])),
        problems=tuple(dict.fromkeys(problems)),
    )


def _unread(index: Index, owner: str, row: Row) -> Run:
    """The owner of a record, whose order has not been looked up yet."""
    listed = index.run(owner)
    started = listed.started if listed else words.moment(row.seen_at)
    return Run(owner, "unknown", started or datetime.now(UTC), key=row.key)


def _result(future: Future[Any], problems: list[str]) -> Any:
    try:
        return future.result()
    except UNREACHABLE as error:
        problems.append(str(error))
        return None


def _with_steps(source: Source, run: Run) -> Run:
    if run.steps is not None and not run.running:
        complete = not run.steps or run.steps[-1].outcome != "running"
        if complete:
            return run
    read = source.execution(run.arn)
    return replace(
        run, status=read.status, error=read.error, steps=tuple(history.steps(read.events))
    )


def _run_document(run: Run) -> Json:
    return {
        "arn": run.arn,
        "status": run.status,
        "error": run.error,
        "started": run.started.isoformat(),
        "steps": [
            {
                "state": step.state,
                "outcome": step.outcome,
                "entered": step.entered.isoformat(),
                "attempts": [
                    {
                        "started": attempt.started.isoformat(),
                        "seconds": attempt.seconds,
                        "error": attempt.error,
                        "cause": attempt.cause,
                    }
                    for attempt in step.attempts
                ],
            }
            for step in run.steps or ()
        ],
    }


# ---------------------------------------------------------------- the story

REQUESTS = {
    "made": ("The provider makes the charge", "good"),
    "replayed": ("The provider knows the key: it answers as before, no money moves", "good"),
    "refused": ("The provider refuses the request", "bad"),
}
ENDED = {
    "SUCCEEDED": "good",
    "FAILED": "bad",
    "TIMED_OUT": "bad",
    "ABORTED": "bad",
}


def story(row: Row, runs: list[Run], requests: list[Json]) -> list[Moment]:
    """What happened to an order, in order."""
    moments: list[Moment] = []
    for run in runs:
        moments += _run_moments(run)
    for request in requests:
        words, tone = REQUESTS.get(request["outcome"], (str(request["outcome"]), "plain"))
        moments.append(
            Moment(
                datetime.fromtimestamp(request["at"], UTC),
                "theirs",
                words,
                tone,
                f"answered {request['status']}" if request.get("status") else None,
            )
        )
    for message in row.messages:
        moments.append(
            Moment(
                datetime.fromtimestamp(message["sent_at"] / 1000, UTC),
                "queue",
                "The failure queue keeps it for a person",
                "warn",
                str(message["error"]),
                str(message["execution"]) if message.get("execution") else None,
            )
        )
    return sorted(moments, key=lambda moment: moment.at)


def _run_moments(run: Run) -> list[Moment]:
    moments = [Moment(run.started, "ours", "An execution starts", "plain", None, run.arn)]
    for step in run.steps or ():
        for number, attempt in enumerate(step.attempts, start=1):
            if attempt.error in {None, history.CONFLICT} or attempt.ended is None:
                continue
            moments.append(
                Moment(
                    attempt.ended,
                    "ours",
                    f"{step.state}, attempt {number}: {attempt.error}",
                    "warn",
                    attempt.cause,
                    run.arn,
                )
            )
    for write in history.writes(run.arn, run.steps or ()):
        moments.append(
            Moment(
                write.at,
                "ours",
                f"{write.state}: {write.words}",
                "warn" if write.refused else "good",
                None,
                run.arn,
            )
        )
    last = run.steps[-1] if run.steps else None
    if not run.running and last is not None:
        ended = last.left or (last.attempts[-1].ended if last.attempts else None) or last.entered
        words = f"The execution ends in {last.state}"
        if run.status in {"ABORTED", "TIMED_OUT"}:
            words = f"The execution is {run.status.lower().replace('_', ' ')} in {last.state}"
        moments.append(Moment(ended, "ours", words, ENDED.get(run.status, "plain"), None, run.arn))
    return moments
