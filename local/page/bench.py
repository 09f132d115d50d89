"""What the bench's buttons do to the stack. Each says what it did, line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from local import books, faults, orders, reconcile, replay
from local.errors import CommandError
from local.page.index import Row
from local.page.jobs import Job
from local.provider_api import ProviderApi
from local.s3_event import object_created
from local.stack import Stack

Json = dict[str, Any]

MOST_DELIVERIES = 20
#: A pass from the bench judges an order this long after it was put.
LOCAL_GRACE_SECONDS = 2.0
PAYMENT_METHODS = ("tok_visa", "tok_declined", "tok_insufficient_funds")


class Bench(Protocol):
    """Everything that changes the stack. Methods may raise CommandError or a botocore error."""

    def drop(self, job: Job, fields: Mapping[str, str]) -> None:
        """Put an order and follow it to its end."""

    def deliver(self, job: Job, row: Row, times: int) -> None:
        """Deliver the event of a known order again, all at once."""

    def arm(self, job: Job, fields: Mapping[str, str]) -> None:
        """Arm a fault."""

    def clear(self, job: Job) -> None:
        """Disarm every fault."""

    def stop(self, job: Job, arn: str) -> None:
        """Stop an execution."""

    def replay(self, job: Job, key: str | None, *, discard: bool) -> None:
        """Replay what the failure queue holds: everything, or one order."""

    def reconcile(self, job: Job, *, repair: bool) -> list[Json]:
        """Compare all books; gives the findings, each with whether it was `repaired`."""

    def reset(self, job: Job) -> None:
        """Empty the stack."""


class StackBench:
    """The buttons on a deployed stack."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    def drop(self, job: Job, fields: Mapping[str, str]) -> None:
        given = {
            name: fields.get(name, "").strip() or None
            for name in ("amount", "currency", "payment_method")
        }
        armed = [fault] if (fault := _fault_in(fields)) else []
        key = fields.get("object_key", "").strip() or orders.fresh_object_key()
        job.object_key = key
        result = orders.follow(
            self._stack,
            key,
            orders.order_body(None, given),
            times=_number(fields, "deliver", 1, MOST_DELIVERIES),
            concurrently="concurrently" in fields,
            armed=armed,
            announce=lambda _: job.say(f"{key} is in the bucket"),
        )
        job.keys.append(result["idempotency_key"])
        for line in outcome_lines(result):
            job.say(line)

    def deliver(self, job: Job, row: Row, times: int) -> None:
        event = delivery_of(row)
        job.keys.append(row.key)
        with ThreadPoolExecutor(times) as pool:
            arns = list(
                pool.map(lambda _: orders.start_execution(self._stack, event()), range(times))
            )
        job.say(f"{times} more {_many('delivery', times)} of the same event")
        for arn in arns:
            orders.wait_for_end(self._stack, arn)
        ends = [books.execution(self._stack, arn).path[-1] for arn in arns]
        for state in sorted(set(ends)):
            job.say(f"{ends.count(state)} ended in {state}")
        charges = list(books.charges(self._stack, row.key))
        taken = sum(charge["status"] == "succeeded" for charge in charges)
        job.say(f"The provider has {taken} {_many('charge', taken)} for this order")

    def arm(self, job: Job, fields: Mapping[str, str]) -> None:
        fault = _fault_in(fields)
        if fault is None:
            raise ValueError("Choose a fault.")
        key = fields.get("object_key", "").strip()
        side, _, name = fault.name.partition(".")
        if key:
            faults.arm(self._stack, [fault], key)
        elif side == "provider":
            with ProviderApi.of(self._stack) as provider:
                provider.arm_fault({"fault": name, "times": fault.times})
        else:
            raise ValueError(f"{fault.name} is armed for one order: name its object key.")
        job.say(f"{fault.name} will happen {fault.times} times to {key or 'whoever comes first'}")

    def clear(self, job: Job) -> None:
        faults.clear(self._stack)
        job.say("No fault is armed any more")

    def stop(self, job: Job, arn: str) -> None:
        books.execution(self._stack, arn)  # says clearly when there is none
        self._stack.client("stepfunctions").stop_execution(executionArn=arn)
        orders.wait_for_end(self._stack, arn)
        job.say(f"{arn.rpartition(':')[2]} ended {books.execution(self._stack, arn).status}")

    def replay(self, job: Job, key: str | None, *, discard: bool) -> None:
        report = replay.replay(self._stack, idempotency_key=key, discard=discard)
        for item in report.replayed:
            job.keys.append(item["idempotency_key"])
            job.say(f"Replayed: {item['status']}")
        for item in report.left:
            job.say(f"Left in the queue: {item['why']}")
        job.say(f"{report.deleted} {_many('message', report.deleted)} deleted from the queue")

    def reconcile(self, job: Job, *, repair: bool) -> list[Json]:
        # Here every order is young; on AWS the stack's own grace time stands.
        grace = LOCAL_GRACE_SECONDS if self._stack.endpoint is not None else None
        report = reconcile.reconcile(self._stack, repair=repair, grace_seconds=grace)
        scanned = ", ".join(f"{count:,} {book}" for book, count in report["scanned"].items())
        job.say(f"Compared {scanned}")
        for finding in report["findings"]:
            place = (finding.get("object") or {}).get("key") or finding["idempotency_key"]
            job.say(f"Found {finding['kind'].replace('_', ' ')}: {place}")
        job.say(reconcile.verdict(report).removesuffix("."))
        if repair:
            count = len(report["repaired"])
            job.say(f"{count} {_many('order', count)} repaired")
        repaired = {(item["kind"], item["idempotency_key"]) for item in report["repaired"]}
        job.keys += [key for _, key in sorted(repaired)]
        return [
            finding | {"repaired": (finding["kind"], finding["idempotency_key"]) in repaired}
            for finding in report["findings"]
        ]

    def reset(self, job: Job) -> None:
        if self._stack.endpoint is None:
            raise CommandError("Only a local stack can be emptied from here.")
        empty(self._stack, job.say)


def outcome_lines(result: Json) -> list[str]:
    """What became of an order, in a few words; `result` is the document of the order command."""
    runs = result["executions"]
    lines = []
    if not runs:
        lines.append("It started no execution: the rule does not match this object key")
    ends = Counter(
        f"{run['status'].lower()} in {run['path'][-1] if run['path'] else 'no state'}"
        + (f" with {run['error']}" if run["error"] else "")
        for run in runs
    )
    lines += [f"{count} {_many('execution', count)} {end}" for end, count in ends.items()]
    record = result["record"]
    lines.append(f"Our ledger: {record['status'].replace('_', ' ') if record else 'no record'}")
    taken = sum(charge["status"] == "succeeded" for charge in result["charges"])
    lines.append(f"The provider: {taken} {_many('charge', taken)}")
    if result["queued"]:
        lines.append("The failure queue keeps it for a person")
    return lines


def delivery_of(row: Row) -> Callable[[], Json]:
    """A maker of further deliveries of the event that started this order.

    Raises ValueError when the object's version is unknown.
    """
    known = next((run.order for run in row.runs if run.order), None) or {
        "bucket": row.bucket,
        "key": row.object_key,
        "version_id": row.version_id,
        "etag": (row.record or {}).get("etag"),
    }
    version = known["version_id"]
    if not all(known.get(name) for name in ("bucket", "key", "version_id", "etag")) or (
        version == "null" and not known.get("sequencer")
    ):
        raise ValueError("Its event cannot be told again: no book knows the object's version.")
    return lambda: object_created(
        bucket=known["bucket"],
        key=known["key"],
        version_id=None if version == "null" else version,
        etag=known["etag"],
        sequencer=known.get("sequencer"),
    )


def empty(stack: Stack, say: Callable[[str], None]) -> None:
    """Delete every order, record, charge, message and fault of a local stack."""
    machine = stack.client("stepfunctions")
    arns = []
    pages = machine.get_paginator("list_executions").paginate(
        stateMachineArn=stack.state_machine_arn, statusFilter="RUNNING"
    )
    for page in pages:
        arns += [item["executionArn"] for item in page["executions"]]
    for arn in arns:
        machine.stop_execution(executionArn=arn)
    for arn in arns:
        orders.wait_for_end(stack, arn)
    names: dict[str, list[str]] = {}
    for page in (
        stack.client("cloudformation")
        .get_paginator("list_stack_resources")
        .paginate(StackName=stack.name)
    ):
        for resource in page["StackResourceSummaries"]:
            names.setdefault(resource["ResourceType"], []).append(resource["PhysicalResourceId"])
    for bucket in names.get("AWS::S3::Bucket", []):
        say(f"{_empty_bucket(stack, bucket)} object versions deleted from {bucket}")
    for table in names.get("AWS::DynamoDB::Table", []):
        say(f"{_empty_table(stack, table)} items deleted from {table}")
    for url in names.get("AWS::SQS::Queue", []):
        stack.client("sqs").purge_queue(QueueUrl=url)
    say("Every queue purged")


def _empty_bucket(stack: Stack, bucket: str) -> int:
    client = stack.client("s3")
    deleted = 0
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
        for item in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]:
            client.delete_object(Bucket=bucket, Key=item["Key"], VersionId=item["VersionId"])
            deleted += 1
    return deleted


def _empty_table(stack: Stack, table: str) -> int:
    client = stack.client("dynamodb")
    schema = client.describe_table(TableName=table)["Table"]["KeySchema"]
    names = [part["AttributeName"] for part in schema]
    deleted = 0
    for page in client.get_paginator("scan").paginate(TableName=table):
        for item in page["Items"]:
            client.delete_item(TableName=table, Key={name: item[name] for name in names})
            deleted += 1
    return deleted


def _fault_in(fields: Mapping[str, str]) -> faults.Fault | None:
    name = fields.get("fault", "").strip()
    if not name:
        return None
    return faults.Fault.parse(f"{name}:{fields.get('times', '').strip() or 1}")


def _number(fields: Mapping[str, str], name: str, least: int, most: int) -> int:
    text = fields.get(name, "").strip() or str(least)
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        raise ValueError(f"{name}: a whole number from {least} to {most}, not {text!r}.")
    return int(text)


def _many(word: str, count: int) -> str:
    """The word in the singular or plural."""
    if count == 1:
        return word
    return word.removesuffix("y") + "ies" if word.endswith("y") else word + "s"
