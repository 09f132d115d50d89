"""Reading the books: plain values of any record, and a queue that others read as well."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
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
