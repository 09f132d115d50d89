"""Replay: a new execution, under the same idempotency key, for what the failure queue holds.

The key comes from the message; the owner from a consistent read of the ledger, never from the
message, which may be older than the last takeover. A message is deleted only when its order is
settled or when the new execution has queued a message of its own: whatever a person must still
see stays in the queue, and is back there a minute after a replay was killed.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from backstop.message import order_of
from botocore.exceptions import ClientError

from local import books, orders
from local.books import Message
from local.execution_names import execution_name
from local.stack import Stack

Json = dict[str, Any]

#: How long a killed replay keeps its messages from others; a living one renews this. Longer than
#: three hiccups of the network, shorter than a person's patience.
HOLD_SECONDS = 60
#: Executions that are waited for at the same time.
AT_ONCE = 8

SETTLED = ("done", "declined")


@dataclass
class Report:
    """What a replay did; `summary` is the document of the command."""

    replayed: list[Json] = field(default_factory=list)
    left: list[Json] = field(default_factory=list)
    deleted: int = 0

    def summary(self) -> Json:
        return {"replayed": self.replayed, "left": self.left, "deleted": self.deleted}


@dataclass(frozen=True)
class _Verdict:
    """What became of the messages of one order."""

    delete: bool
    why: str | None = None
    replayed: Json | None = None


def replay(
    stack: Stack,
    *,
    idempotency_key: str | None = None,
    discard: bool = False,
    announce: Callable[[int, int], None] = lambda done, total: None,
) -> Report:
    """Replay every order in the failure queue, or the one with `idempotency_key`.

    `discard` deletes the messages of rejected orders, which no replay can help. `announce` is
    called with how many orders are done and how many there are.
    """
    taken, held = books.take_available(stack, HOLD_SECONDS)
    chosen: dict[str, list[Message]] = defaultdict(list)
    unnamed: list[Message] = []
    others: list[Message] = []
    for message in taken:
        key = message.idempotency_key
        if idempotency_key is not None and key != idempotency_key:
            others.append(message)
        elif key is None:
            unnamed.append(message)
        else:
            chosen[key].append(message)
    books.give_back(stack, [*others, *unnamed])

    report = Report()
    over = threading.Event()
    announce(0, len(chosen))
    held_by_us = [message for messages in chosen.values() for message in messages]
    with books.Hold(stack, held_by_us, HOLD_SECONDS) as hold, ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            verdicts = pool.map(
                lambda item: _settle(stack, *item, discard=discard, over=over), chosen.items()
            )
            for number, ((key, messages), verdict) in enumerate(
                zip(chosen.items(), verdicts, strict=True), start=1
            ):
                _close(hold, report, key, messages, verdict)
                announce(number, len(chosen))
        finally:
            # On Ctrl-C nothing more is started, and nobody waits for what was.
            over.set()
            pool.shutdown(wait=False, cancel_futures=True)
    if idempotency_key is not None and not chosen:
        seen = "that could be seen " if held else ""
        report.left.append(
            {
                "idempotency_key": idempotency_key,
                "why": f"no message {seen}in the failure queue names this key",
            }
        )
    report.left += [
        {"idempotency_key": None, "why": f"message {message.message_id} names no order"}
        for message in unnamed
    ]
    if held:
        report.left.append(
            {"idempotency_key": None, "why": f"{held} messages are held by another reader"}
        )
    return report


def _close(
    hold: books.Hold, report: Report, key: str, messages: list[Message], verdict: _Verdict
) -> None:
    if verdict.replayed:
        report.replayed.append(verdict.replayed)
    why = verdict.why
    if verdict.delete:
        deleted = hold.delete(messages)
        report.deleted += deleted
        if deleted == len(messages):
            return
        why = "another reader has taken its message meanwhile"
    else:
        hold.give_back(messages)
    report.left.append({"idempotency_key": key, "why": why})


def _settle(
    stack: Stack, key: str, messages: list[Message], *, discard: bool, over: threading.Event
) -> _Verdict:
    """Do what can be done for one order, and say what shall become of its messages."""
    try:
        return _settle_one(stack, key, messages, discard=discard, over=over)
    except Exception as error:
        # Whatever a message or a record may hold, it must not keep the other orders from it.
        return _Verdict(delete=False, why=f"not replayed: {type(error).__name__}: {error}")


def _settle_one(  # noqa: PLR0911 - one verdict each
    stack: Stack, key: str, messages: list[Message], *, discard: bool, over: threading.Event
) -> _Verdict:
    newest = max(messages, key=lambda message: message.sent_at)
    order = newest.body["order"]
    if order_of(replay_input(order, None))["idempotency_key"] != key:
        return _Verdict(delete=False, why="the message's key is not that of its order")
    if any(message.error == "ConflictingCharge" for message in messages) and not discard:
        return _Verdict(
            delete=False, why="ConflictingCharge: a person decides, then delete it with --discard"
        )
    record = books.record(stack, key) or {}
    if record.get("status") in SETTLED:
        return _Verdict(delete=True)
    if record.get("status") == "rejected":
        return _Verdict(
            delete=discard, why=f"rejected, delete it with --discard: {record.get('reason')}"
        )
    owner = record.get("owner")
    if owner and is_running(stack, owner):
        return _Verdict(delete=False, why=f"its owner {owner} is still running")
    if superseded := why_superseded(stack, order):
        return _Verdict(delete=False, why=superseded)

    arn = _start(stack, key, order, owner, newest.message_id)
    orders.wait_for_end(stack, arn, over.is_set)
    return _verdict_of(stack, key, arn)


def _verdict_of(stack: Stack, key: str, arn: str) -> _Verdict:
    run = books.execution(stack, arn)
    replayed = {"idempotency_key": key, "execution": arn, "status": run.status}
    record = books.record(stack, key)
    settled = record is not None and record.get("status") in SETTLED
    queued_its_own = run.path[-2:] == ["QueueFailure", "ChargeFailed"]
    if settled or queued_its_own:
        return _Verdict(delete=True, replayed=replayed)
    why = f"{arn} ended {run.status} {run.error or ''} without settling it".replace("  ", " ")
    return _Verdict(delete=False, why=why, replayed=replayed)


def is_running(stack: Stack, execution_arn: str) -> bool:
    """Whether an owner lives. An execution that does not exist (any more) is dead."""
    try:
        description = stack.client("stepfunctions").describe_execution(executionArn=execution_arn)
    except ClientError as error:
        if error.response["Error"]["Code"] in {"ExecutionDoesNotExist", "InvalidArn"}:
            return False
        raise
    return bool(description["status"] == "RUNNING")


def why_superseded(stack: Stack, order: Json) -> str | None:
    """Why charging this version may no longer be wanted, or None when it is the latest."""
    if order["version_id"] == "null":
        return None
    try:
        head = stack.client("s3").head_object(Bucket=order["bucket"], Key=order["key"])
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
            return f"superseded: {order['key']} has been deleted since"
        raise
    if head.get("VersionId") == order["version_id"]:
        return None
    return f"superseded: version {head.get('VersionId')} of {order['key']} is newer"


def replay_input(order: Json, owner: str | None) -> Json:
    """The input of an execution that works on `order` again, the same for the same arguments."""
    s3_object = {"key": order["key"], "etag": order["etag"]}
    if order["version_id"] == "null":
        s3_object["sequencer"] = order["sequencer"]
    else:
        s3_object["version-id"] = order["version_id"]
    event: Json = {"detail": {"bucket": {"name": order["bucket"]}, "object": s3_object}}
    # Also without an owner: `replay` has the provider's books asked first.
    return event | {"replay": {"owner": owner} if owner else {}}


def _start(stack: Stack, key: str, order: Json, owner: str | None, message_id: str) -> str:
    """Start the successor. The name follows from the work, the message and the attempts that have
    ended before, so that two shells that replay one message at once start one execution, and a
    later replay starts another. (An attempt that ended before it claimed left the owner as it was.)
    """
    work = [key, owner or "", message_id]
    while True:
        name = execution_name("replay", *work)
        try:
            return orders.start_execution(stack, replay_input(order, owner), name)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ExecutionAlreadyExists":
                raise
        arn = stack.execution_arn(name)
        if is_running(stack, arn):
            return arn
        work.append(arn)
