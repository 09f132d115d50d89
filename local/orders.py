"""Dropping an order and following it to its end."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from backstop.message import order_of

from local import books, faults
from local.errors import CommandError
from local.paths import SAMPLE_ORDER
from local.s3_event import object_created
from local.stack import Stack
from local.text import read_json
from local.waiting import wait_for

Json = dict[str, Any]

#: EventBridge usually delivers within a second or two; on AWS it may take longer.
DELIVERY_SECONDS = 60
#: How long an object that the rule must not match is watched for an execution all the same.
SILENCE_SECONDS = 1.0
#: The state machine's own time-out is an hour; nobody waits longer than that.
END_SECONDS = 3700
#: Clocks of two machines may differ by this much.
CLOCK_SKEW_SECONDS = 120


@dataclass(frozen=True)
class Placed:
    """An object version that was put into the order bucket."""

    bucket: str
    key: str
    version_id: str | None
    etag: str
    size: int
    put_at: float

    def event(self) -> Json:
        """Another delivery of S3's event for it."""
        return object_created(
            bucket=self.bucket,
            key=self.key,
            version_id=self.version_id,
            etag=self.etag,
            size=self.size,
        )

    @property
    def idempotency_key(self) -> str:
        return order_of(self.event())["idempotency_key"]


def order_body(file: bytes | None, overrides: dict[str, str | None]) -> bytes:
    """The order file to drop: `file` as it is, or the sample order with `overrides`.

    Raises CommandError when overrides are given for a file.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    if file is not None:
        if given:
            raise CommandError(f"A FILE is sent as it is: leave out {', '.join(sorted(given))}.")
        return file
    order = json.loads(SAMPLE_ORDER.read_text())
    order["order_id"] = f"A-{uuid.uuid4().hex[:8]}"
    return json.dumps(order | given, indent=2).encode()


def fresh_object_key() -> str:
    """A key that no earlier order used."""
    return f"orders/{uuid.uuid4().hex}.json"


def require_object_key(key: str) -> None:
    """Raises CommandError for a key that S3 would refuse.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
    """
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        raise CommandError(f"An object key is text in UTF-8; {key!a} is none.") from None
    if not 1 <= size <= 1024:
        raise CommandError(f"An object key has 1 to 1,024 bytes in UTF-8; this one has {size}.")


def put(stack: Stack, key: str, body: bytes) -> Placed:
    """Put an object. Raises CommandError for a key that S3 would refuse."""
    require_object_key(key)
    put_at = time.time()
    answer = stack.client("s3").put_object(Bucket=stack.bucket, Key=key, Body=body)
    return Placed(
        bucket=stack.bucket,
        key=key,
        version_id=answer.get("VersionId"),
        etag=answer["ETag"].strip('"'),
        size=len(body),
        put_at=put_at,
    )


def starts_an_execution(stack: Stack, event: Json) -> bool:
    """Whether the deployed rule matches `event`, by EventBridge's own word."""
    events = stack.client("events")
    rule = events.describe_rule(Name=stack.outputs["OrderRule"])
    if rule["State"] != "ENABLED":
        return False
    answer = events.test_event_pattern(EventPattern=rule["EventPattern"], Event=json.dumps(event))
    return bool(answer["Result"])


def start_execution(stack: Stack, execution_input: Json, name: str | None = None) -> str:
    """Start the state machine with `execution_input`; gives the execution's ARN."""
    arguments = {"stateMachineArn": stack.state_machine_arn, "input": json.dumps(execution_input)}
    if name is not None:
        arguments["name"] = name
    return str(stack.client("stepfunctions").start_execution(**arguments)["executionArn"])


@dataclass
class Watch:
    """Finds the executions of one object version, asking about each execution once."""

    stack: Stack
    placed: Placed

    def __post_init__(self) -> None:
        self._is_ours: dict[str, bool] = {}

    def found(self) -> list[str]:
        """ARNs of the executions seen so far, newest first."""
        since = self.placed.put_at - CLOCK_SKEW_SECONDS
        arns = list(books.execution_arns(self.stack, since))
        for arn in arns:
            if arn not in self._is_ours:
                self._is_ours[arn] = self._concerns_us(arn)
        return [arn for arn in arns if self._is_ours[arn]]

    def _concerns_us(self, arn: str) -> bool:
        description = self.stack.client("stepfunctions").describe_execution(executionArn=arn)
        try:
            key = order_of(read_json(description["input"]))["idempotency_key"]
        except (KeyError, TypeError, ValueError):
            return False
        return key == self.placed.idempotency_key


def wait_for_end(stack: Stack, arn: str, is_given_up: Callable[[], bool] = lambda: False) -> None:
    """Wait until an execution has ended or is given up. Raises CommandError after END_SECONDS."""
    client = stack.client("stepfunctions")
    try:
        wait_for(
            lambda: (
                is_given_up() or client.describe_execution(executionArn=arn)["status"] != "RUNNING"
            ),
            END_SECONDS,
            stack.poll_seconds,
        )
    except TimeoutError:
        raise CommandError(f"{arn} is still running after {END_SECONDS} s.") from None


def deliver(
    stack: Stack, placed: Placed, times: int, *, concurrently: bool, wait: bool
) -> list[str]:
    """See to it that `placed` was delivered `times` times in all, S3's own delivery first.

    Concurrently: the repeats are sent while S3's own may still be under way. Otherwise each
    waits for the one before to end, as a late duplicate does (unless `wait` is off). Gives the
    executions' ARNs, S3's own first. Raises CommandError when S3's event does not arrive.
    """
    repeats: list[str] = []

    def repeat() -> str:
        return start_execution(stack, placed.event())

    if concurrently and times > 1:
        with ThreadPoolExecutor(times - 1) as pool:
            repeats = list(pool.map(lambda _: repeat(), range(times - 1)))
    first = _first_delivery(stack, placed, repeats)
    if wait:
        wait_for_end(stack, first)
    while len(repeats) < times - 1:
        repeats.append(repeat())
        if wait:
            wait_for_end(stack, repeats[-1])
    if wait:
        for arn in repeats:
            wait_for_end(stack, arn)
    return [first, *repeats]


def _first_delivery(stack: Stack, placed: Placed, repeats: list[str]) -> str:
    watch = Watch(stack, placed)

    def own() -> str | None:
        return next((arn for arn in watch.found() if arn not in repeats), None)

    try:
        return str(wait_for(own, DELIVERY_SECONDS, stack.poll_seconds))
    except TimeoutError:
        raise CommandError(
            f"S3's event for {placed.key} started no execution in {DELIVERY_SECONDS} s."
        ) from None


def follow(
    stack: Stack,
    key: str,
    body: bytes,
    *,
    times: int = 1,
    concurrently: bool = False,
    armed: list[faults.Fault] | None = None,
    wait: bool = True,
    announce: Callable[[str], None] = lambda _: None,
) -> Json:
    """Drop an order, have it delivered, and give the document of the `order` command.

    Faults are armed before the object exists, so that its first delivery meets them. Raises
    CommandError for a key that S3 would refuse.
    """
    require_object_key(key)  # or faults would be armed for an object that never comes
    faults.arm(stack, armed or [], key)
    # Before the object is there, since repeats shall come while S3's own delivery is under way:
    # the question takes its time, and so does the making of a client.
    is_order = starts_an_execution(
        stack, object_created(bucket=stack.bucket, key=key, version_id="any", etag="any")
    )
    stack.client("stepfunctions")
    placed = put(stack, key, body)
    announce(f"s3://{placed.bucket}/{placed.key} version {placed.version_id}")
    if is_order:
        arns = deliver(stack, placed, times, concurrently=concurrently, wait=wait)
    else:
        arns = _watch_silence(stack, placed)
    return outcome(stack, placed, arns)


def _watch_silence(stack: Stack, placed: Placed) -> list[str]:
    """The executions of an object that should start none: none, unless the rule is broken."""
    watch = Watch(stack, placed)
    try:
        return list(wait_for(watch.found, SILENCE_SECONDS, stack.poll_seconds))
    except TimeoutError:
        return []


def outcome(stack: Stack, placed: Placed, arns: list[str]) -> Json:
    """What became of an order, from all the books.

    `queued` counts what could be seen; `unseen` is there, and says how many messages of any order
    could not, when another reader keeps some.
    """
    key = placed.idempotency_key
    messages, unseen = books.peek(stack)
    found = {
        "object": {"bucket": placed.bucket, "key": placed.key, "version_id": placed.version_id},
        "idempotency_key": key,
        "executions": [books.execution(stack, arn).summary() for arn in arns],
        "record": books.record(stack, key),
        "charges": [contract_charge(charge) for charge in books.charges(stack, key)],
        "queued": sum(message.idempotency_key == key for message in messages),
    }
    return found | ({"unseen": unseen} if unseen else {})


def contract_charge(charge: Json) -> Json:
    """The provider's charge in the command line's words: its `amount` is minor units."""
    return {
        "id": charge["id"],
        "amount_minor": charge["amount"],
        "currency": charge["currency"],
        "reference": charge["reference"],
        "status": charge["status"],
    }
