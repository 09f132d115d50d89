"""Reading the books: plain values of any record, and a queue that others read as well."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from local import books, orders, show
from local.errors import CommandError
from local.inprocess import InProcess
from local.stack import Stack
from local.waiting import wait_for

pytestmark = pytest.mark.xdist_group("workflow-moto")

Json = dict[str, Any]


@pytest.fixture
def pipeline() -> Iterator[InProcess]:
    with InProcess() as pipeline:
        yield pipeline


@dataclass(frozen=True)
class Meddled(Stack):
    """A stack whose queue others use too: `receive` and `hide` are called before it is."""

    stack: Stack = field(kw_only=True)
    receive: Any = field(kw_only=True, default=lambda **_: None)
    hide: Any = field(kw_only=True, default=lambda **_: None)

    def client(self, service: str) -> Any:
        client = self.stack.client(service)
        return _Meddled(client, self) if service == "sqs" else client


@dataclass
class _Meddled:
    sqs: Any
    by: Meddled

    def receive_message(self, **request: Any) -> Any:
        self.by.receive(**request)
        return self.sqs.receive_message(**request)

    def change_message_visibility_batch(self, **request: Any) -> Any:
        self.by.hide(**request)
        return self.sqs.change_message_visibility_batch(**request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sqs, name)


def meddled(stack: Stack, **how: Any) -> Meddled:
    return Meddled(stack.name, stack.region, stack.endpoint, stack.outputs, stack=stack, **how)


def send(stack: Stack, *bodies: Any) -> None:
    for body in bodies:
        text = body if isinstance(body, str) else json.dumps(body)
        stack.client("sqs").send_message(QueueUrl=stack.failure_queue_url, MessageBody=text)


# ---------------------------------------------------------------- the ledger


@pytest.mark.parametrize(
    ("typed", "plain"),
    [
        ({"N": "1999"}, 1999),
        ({"N": "1E+30"}, 10**30),
        ({"N": "0.1"}, "0.1"),
        ({"B": b"\xff"}, "/w=="),
        ({"SS": ["b", "a"]}, ["a", "b"]),
        ({"NS": ["10", "9", "9.5"]}, [9, "9.5", 10]),
        ({"BS": [b"b", b"a"]}, ["YQ==", "Yg=="]),
        ({"L": [{"N": "1"}, {"SS": ["a"]}]}, [1, ["a"]]),
        ({"M": {"x": {"B": b""}}}, {"x": ""}),
        ({"NULL": True}, None),
        ({"BOOL": True}, True),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_record_of_any_types_can_be_printed(typed: Json, plain: Any) -> None:
    record = books.plain_record({"pk": {"S": "charge#1"}, "odd": typed})

    assert json.loads(json.dumps(record)) == {"pk": "charge#1", "odd": plain}


# ---------------------------------------------------------------- executions


class OneExecution(Stack):
    """A stack with one execution that somebody started by hand, and without its history."""

    def client(self, service: str) -> Any:
        assert service == "stepfunctions"
        pages = SimpleNamespace(paginate=lambda **_: iter([{"events": []}]))
        return SimpleNamespace(
            describe_execution=lambda **_: {"status": "FAILED", "input": self.outputs["input"]},
            get_paginator=lambda _: pages,
        )


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ('{"a": 1}', {"a": 1}),
        ('{"a": ' + "[" * 5000 + "]" * 5000 + "}", {}),
        ("7", {}),
    ],
    ids=["an event", "too deep", "no object"],
)
def test_an_execution_of_any_input_is_read(given: str, read: Json) -> None:
    found = books.execution(OneExecution("s", "us-east-1", None, {"input": given}), "arn")

    assert (found.status, found.input) == ("FAILED", read)


# ---------------------------------------------------------------- the failure queue


@pytest.mark.parametrize("order", ["text", ["a", "list"], 7, None, {"no": "key"}])
def test_a_message_whose_order_is_none_is_shown(pipeline: InProcess, order: Any) -> None:
    send(pipeline.stack, {"order": order, "error": {"Error": "Odd"}})

    found = [message.summary() for message in books.messages(pipeline.stack)]
    show.queue(found)

    assert [item["order"] for item in found] == [order]


def test_reading_ends_although_messages_come_again_and_again(pipeline: InProcess) -> None:
    send(pipeline.stack, *range(25))
    rounds: list[Json] = []

    def count(**request: Any) -> None:
        rounds.append(request)
        assert len(rounds) < 10, "it goes on for ever"

    taken, unseen = books.take_available(meddled(pipeline.stack, receive=count), 0)

    assert len(taken) + unseen == 25


def test_a_message_that_nests_too_deep_to_be_read_is_shown_as_its_text(pipeline: InProcess) -> None:
    deep = "[" * 5000 + "]" * 5000
    send(pipeline.stack, deep)

    (message,) = books.messages(pipeline.stack)

    assert message.body == {"error": deep}


@pytest.mark.parametrize("ending", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_look_gives_back_what_it_has_taken(
    pipeline: InProcess, ending: type[BaseException]
) -> None:
    send(pipeline.stack, *range(12))
    rounds: list[Json] = []

    def fail_later(**request: Any) -> None:
        rounds.append(request)
        if len(rounds) == 2:
            raise ending

    with pytest.raises(ending):
        books.take_available(meddled(pipeline.stack, receive=fail_later), 60)

    assert len(books.take_available(pipeline.stack, 60)[0]) == 12


def test_what_another_reader_keeps_is_counted_and_the_rest_is_read(
    pipeline: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books, "PEEK_PATIENCE_SECONDS", 0)
    send(pipeline.stack, "theirs")
    books.take_available(pipeline.stack, 60)
    send(pipeline.stack, "ours")

    seen, unseen = books.peek(pipeline.stack)

    assert [message.body["error"] for message in seen] == ["ours"]
    assert unseen == 1
    with pytest.raises(CommandError, match="holds 1 messages"):
        books.messages(pipeline.stack)


def test_a_message_that_is_gone_at_the_last_look_is_not_shown_in_place_of_another(
    pipeline: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(pipeline.stack, "theirs")
    books.take_available(pipeline.stack, 60)
    send(pipeline.stack, "gone soon")

    def two_looks(look: Callable[[], bool], *how: object) -> None:
        look()
        taken, _ = books.take_available(pipeline.stack, 60)
        assert [books.delete_message(pipeline.stack, message) for message in taken] == [True]
        look()

    monkeypatch.setattr(books, "wait_for", two_looks)

    assert books.peek(pipeline.stack) == ([], 1)


# ---------------------------------------------------------------- messages that are worked on


def test_a_held_message_is_hidden_again_before_its_time_is_up(pipeline: InProcess) -> None:
    send(pipeline.stack, *range(12))
    hidden: list[Json] = []
    stack = meddled(pipeline.stack, hide=lambda **request: hidden.extend(request["Entries"]))
    taken, _ = books.take_available(stack, 2)

    with books.Hold(stack, taken, 2):
        wait_for(lambda: len(hidden) >= 24, 5)

        assert {entry["VisibilityTimeout"] for entry in hidden} == {2}
        assert {entry["ReceiptHandle"] for entry in hidden} == {one.receipt for one in taken}
        assert books.take_available(pipeline.stack, 0) == ([], 12)
    assert len(books.take_available(pipeline.stack, 0)[0]) > 0


@pytest.mark.parametrize("ending", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_hold_gives_all_back_and_renews_nothing_more(
    pipeline: InProcess, ending: type[BaseException]
) -> None:
    send(pipeline.stack, "a", "b")
    taken, _ = books.take_available(pipeline.stack, 60)
    hold = books.Hold(pipeline.stack, taken, 60)

    with pytest.raises(ending), hold:
        raise ending

    assert not hold._renewal.is_alive()
    assert len(books.take_available(pipeline.stack, 60)[0]) == 2


def test_a_renewal_that_fails_is_tried_again(pipeline: InProcess) -> None:
    send(pipeline.stack, "a")
    calls: list[Json] = []

    def fail_at_first(**request: Any) -> None:
        calls.append(request)
        if len(calls) == 1:
            pipeline.stack.client("sqs").delete_message(QueueUrl="no such queue", ReceiptHandle="")

    stack = meddled(pipeline.stack, hide=fail_at_first)
    taken, _ = books.take_available(stack, 1)

    with books.Hold(stack, taken, 1):
        wait_for(lambda: len(calls) >= 2, 5)

    assert len(books.take_available(pipeline.stack, 60)[0]) == 1


@dataclass
class OneWait:
    """An event that passes once, and then is set; `seconds` are those that were waited."""

    seconds: list[float] = field(default_factory=list)

    def wait(self, seconds: float) -> bool:
        self.seconds.append(seconds)
        return len(self.seconds) > 1

    def set(self) -> None:
        """It will be, after one wait."""


def test_one_renewal_may_fail_before_a_message_is_lost(
    pipeline: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold, over = books.Hold(pipeline.stack, [], 60), OneWait()
    monkeypatch.setattr(hold, "_over", over)

    hold._renew()

    assert 2 * over.seconds[0] < 60


def test_what_was_let_go_during_a_renewal_is_not_hidden_again(
    pipeline: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(pipeline.stack, *range(12))
    hidden: list[str] = []

    def let_the_last_go(**request: Any) -> None:
        hidden.extend(entry["ReceiptHandle"] for entry in request["Entries"])
        hold._let_go(taken[-1:])

    stack = meddled(pipeline.stack, hide=let_the_last_go)
    taken, _ = books.take_available(stack, 60)
    hold = books.Hold(stack, taken, 60)
    monkeypatch.setattr(hold, "_over", OneWait())

    hold._renew()

    assert hidden == [message.receipt for message in taken[:-1]]


def test_nothing_is_given_back_while_a_renewal_may_hide_it(pipeline: InProcess) -> None:
    send(pipeline.stack, "a")
    locked: list[bool] = []

    def note(**_: Any) -> None:
        locked.append(hold._lock.locked())

    stack = meddled(pipeline.stack, hide=note)
    taken, _ = books.take_available(stack, 60)
    hold = books.Hold(stack, taken, 60)

    hold.give_back(taken)

    assert locked == [True]


def test_what_another_reader_has_meanwhile_is_not_counted_as_deleted(pipeline: InProcess) -> None:
    send(pipeline.stack, "a", "b")
    taken, _ = books.take_available(pipeline.stack, 60)
    taken[0] = replace(taken[0], receipt="of an earlier time")

    with books.Hold(pipeline.stack, taken, 60) as hold:
        assert hold.delete(taken) == 1


# ---------------------------------------------------------------- what became of an order


def test_the_outcome_of_an_order_is_told_although_a_replay_holds_messages(
    pipeline: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books, "PEEK_PATIENCE_SECONDS", 0)
    monkeypatch.setattr(books, "charges", lambda *_: iter(()))
    send(pipeline.stack, {"idempotency_key": "charge#held"})
    books.take_available(pipeline.stack, 60)
    placed = orders.put(pipeline.stack, orders.fresh_object_key(), b"{}")
    send(pipeline.stack, {"idempotency_key": placed.idempotency_key})

    found = orders.outcome(pipeline.stack, placed, [])

    assert (found["queued"], found["unseen"]) == (1, 1)
    show.order(found)
