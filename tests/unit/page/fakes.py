"""A stack in memory for the page: its books, and a bench that only writes down what was pressed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from local.books import Execution
from local.errors import CommandError
from local.page.index import Row
from local.page.jobs import Job
from local.page.source import Described, Listed, order_in
from local.s3_event import object_created

Json = dict[str, Any]

BUCKET = "orders-bucket"
MACHINE = "arn:aws:states:us-east-1:000000000000:execution:ChargeOrder"
START = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


class FakeStack:
    """Implements `Source`. `asked` counts questions by name; `broken` makes all of them fail."""

    def __init__(self) -> None:
        self.ledger: dict[str, Json] = {}
        self.books: list[Json] = []
        self.runs: dict[str, Execution] = {}
        self.started: dict[str, datetime] = {}
        self.queue: list[Json] = []
        self.held = 0
        self.armed: list[Json] = []
        self.seen: dict[str, list[Json]] = {}
        self.asked: Counter[str] = Counter()
        self.broken = False

    def _ask(self, name: str) -> None:
        self.asked[name] += 1
        if self.broken:
            raise CommandError("nobody is at home")

    def records(self) -> Iterator[Json]:
        self._ask("records")
        return iter(list(self.ledger.values()))

    def records_of(self, keys: Collection[str]) -> dict[str, Json]:
        self._ask("records_of")
        return {key: self.ledger[key] for key in keys if key in self.ledger}

    def charges(self, after: str | None = None) -> Iterator[Json]:
        self._ask("charges")
        ids = [charge["id"] for charge in self.books]
        return iter(self.books[ids.index(after) + 1 if after else 0 :])

    def charges_of(self, key: str) -> list[Json]:
        self._ask("charges_of")
        return [charge for charge in self.books if charge["reference"] == key]

    def requests_of(self, key: str) -> list[Json]:
        self._ask("requests_of")
        return self.seen.get(key, [])

    def executions(self) -> Iterator[Listed]:
        self._ask("executions")
        newest_first = sorted(self.runs, key=lambda arn: self.started[arn], reverse=True)
        return iter([Listed(arn, self.runs[arn].status, self.started[arn]) for arn in newest_first])

    def describe(self, arn: str) -> Described:
        self._ask("describe")
        return Described(self.runs[arn].status, order_in(self.runs[arn].input))

    def execution(self, arn: str) -> Execution:
        self._ask("execution")
        if arn not in self.runs:
            raise CommandError(f"There is no execution {arn}.")
        return self.runs[arn]

    def queue_depth(self) -> int:
        self._ask("queue_depth")
        return len(self.queue) + self.held

    def messages(self) -> tuple[list[Json], int]:
        self._ask("messages")
        return list(self.queue), self.held

    def faults(self) -> list[Json]:
        self._ask("faults")
        return self.armed

    # ---- putting things into the books

    def settle(self, number: int, *, object_key: str | None = None) -> str:
        """An order that was charged once: a run, a record and a charge. Gives its key."""
        at = START + timedelta(seconds=number)
        event = object_created(
            bucket=BUCKET,
            key=object_key if object_key is not None else f"orders/{number}.json",
            version_id=f"version-{number}",
            etag=f"etag-{number}",
        )
        order = order_in(event)
        assert order is not None
        key = str(order["idempotency_key"])
        arn = f"{MACHINE}:run-{number}"
        charge_id = f"ch_{number:08}"
        self.started[arn] = at
        self.runs[arn] = Execution(
            arn=arn,
            status="SUCCEEDED",
            input=event,
            error=None,
            path=["IsVersioned?", "IdentifyByVersion", "Claim", "Charge", "MarkDone"],
            events=happy_events(at),
        )
        self.ledger[key] = {
            "pk": key,
            "status": "done",
            "owner": arn,
            "claimed_at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "bucket": BUCKET,
            "object_key": order["key"],
            "version_id": order["version_id"],
            "etag": order["etag"],
            "order_id": f"A-{number}",
            "charge_id": charge_id,
            "amount_minor": 1999,
            "currency": "EUR",
            "settled_at": "2026-11-29T12:00:01.000Z",
        }
        self.books.append(charge(charge_id, key, at))
        return key

    def run_of(self, key: str) -> str:
        """The ARN of the run that owns the record."""
        return str(self.ledger[key]["owner"])


def charge(charge_id: str, reference: str, at: datetime = START) -> Json:
    """A succeeded charge as the provider shows it."""
    return {
        "id": charge_id,
        "status": "succeeded",
        "amount": 1999,
        "currency": "EUR",
        "source": "tok_visa",
        "reference": reference,
        "metadata": {},
        "failure_code": None,
        "created": at.timestamp(),
    }


def message(key: str, error: str = "ProviderUnavailable") -> Json:
    """A message of the failure queue as the source gives it."""
    return {
        "message_id": f"message-{key}",
        "idempotency_key": key,
        "error": error,
        "execution": f"{MACHINE}:run-1",
        "order": None,
        "cause": {"Error": error, "Cause": json.dumps({"errorMessage": "no answer"})},
        "sent_at": START.timestamp() * 1000,
    }


class Events:
    """Builds an execution's history, one millisecond after the other."""

    def __init__(self, start: datetime = START) -> None:
        self.list: list[Json] = []
        self._at = start

    def add(self, kind: str, **details: Json) -> Events:
        self._at += timedelta(milliseconds=1)
        self.list.append({"type": kind, "timestamp": self._at, **details})
        return self

    def enter(self, kind: str, state: str) -> Events:
        return self.add(f"{kind}StateEntered", stateEnteredEventDetails={"name": state})

    def leave(self, kind: str, state: str) -> Events:
        return self.add(f"{kind}StateExited", stateExitedEventDetails={"name": state})

    def visit(self, kind: str, state: str) -> Events:
        return self.enter(kind, state).leave(kind, state)

    def attempt(self, error: str | None = None, cause: str = "") -> Events:
        self.add("TaskScheduled")
        if error is None:
            return self.add("TaskSucceeded", taskSucceededEventDetails={"output": "{}"})
        return self.add("TaskFailed", taskFailedEventDetails={"error": error, "cause": cause})

    def task(self, state: str, *errors: str | None) -> Events:
        """A task with one attempt for each of `errors`; None is a success."""
        self.enter("Task", state)
        for error in errors or (None,):
            self.attempt(error)
        return self.leave("Task", state)


def happy_events(start: datetime = START) -> list[Json]:
    """The history of an order that settles at once."""
    events = Events(start).add("ExecutionStarted")
    events.visit("Choice", "IsVersioned?").visit("Pass", "IdentifyByVersion")
    events.task("Claim").task("Charge").task("MarkDone")
    return events.add("ExecutionSucceeded").list


class FakeBench:
    """Implements `Bench`; `pressed` lists what was asked for."""

    def __init__(self) -> None:
        self.pressed: list[tuple[Any, ...]] = []
        self.findings: list[Json] = []
        self.failure: Exception | None = None

    def _note(self, job: Job, *what: Any) -> None:
        self.pressed.append(what)
        job.say(f"did {what[0]}")
        if self.failure is not None:
            raise self.failure

    def drop(self, job: Job, fields: Mapping[str, str]) -> None:
        self._note(job, "drop", dict(fields))

    def deliver(self, job: Job, row: Row, times: int) -> None:
        self._note(job, "deliver", row.key, times)

    def arm(self, job: Job, fields: Mapping[str, str]) -> None:
        self._note(job, "arm", dict(fields))

    def clear(self, job: Job) -> None:
        self._note(job, "clear")

    def stop(self, job: Job, arn: str) -> None:
        self._note(job, "stop", arn)

    def replay(self, job: Job, key: str | None, *, discard: bool) -> None:
        self._note(job, "replay", key, discard)

    def reconcile(self, job: Job, *, repair: bool) -> list[Json]:
        self._note(job, "reconcile", repair)
        return self.findings

    def reset(self, job: Job) -> None:
        self._note(job, "reset")
