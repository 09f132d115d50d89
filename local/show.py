"""The readable side of the answers: tables and summaries on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from local.progress import output

if TYPE_CHECKING:
    from local.stack import Stack

Json = dict[str, Any]

GOOD, OPEN, BAD = "green", "yellow", "red"
COLOURS = {
    "SUCCEEDED": GOOD,
    "RUNNING": OPEN,
    "FAILED": BAD,
    "TIMED_OUT": BAD,
    "ABORTED": BAD,
    "done": GOOD,
    "in_progress": OPEN,
    "declined": BAD,
    "rejected": BAD,
    "succeeded": GOOD,
    "failed": BAD,
}


def plain(text: object) -> str:
    """Text from outside, so that neither markup nor control characters reach the terminal."""
    return escape(
        "".join(
            c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in str(text)
        )
    )


def coloured(word: object) -> str:
    """A status in its colour."""
    colour = COLOURS.get(str(word))
    return f"[{colour}]{plain(word)}[/]" if colour else plain(word)


def money(amount_minor: object, currency: object) -> str:
    """Minor units with their currency, unambiguous: `1999 EUR minor units`."""
    return f"{plain(amount_minor)} {plain(currency)} minor units"


def _pairs(rows: list[tuple[str, str]]) -> None:
    """Names on the left, values on the right: whole lines, since they are copied."""
    width = max(len(name) for name, _ in rows) + 2
    for name, value in rows:
        output.print(f"[dim]{plain(name):<{width}}[/]{value}", soft_wrap=True)


def table(rows: list[Json], *, empty: str = "", sideways: bool = False) -> None:
    """Rows of equal shape as a table; `sideways` puts one row's fields below each other."""
    if not rows:
        output.print(empty)
        return
    if sideways:
        _pairs([(name, plain("-" if value is None else value)) for name, value in rows[0].items()])
        return
    drawn = Table(box=None, header_style="dim", pad_edge=False)
    for name in rows[0]:
        drawn.add_column(name, overflow="fold")
    for row in rows:
        drawn.add_row(*(coloured("-" if value is None else value) for value in row.values()))
    output.print(drawn)


def order(result: Json, failed_attempts: Mapping[str, Sequence[str]] | None = None) -> None:
    """What became of one order: paths, our ledger, the provider's charges, the queue.

    `failed_attempts` holds an execution's errors by its ARN, the repeated ones included.
    """
    place = result["object"]
    rows = [
        ("order", plain(f"s3://{place['bucket']}/{place['key']}")),
        ("version", plain(place["version_id"])),
        ("key", plain(result["idempotency_key"])),
    ]
    for item in result["executions"]:
        rows.append(("execution", _execution(item)))
        if errors := (failed_attempts or {}).get(item["arn"]):
            counted = (
                f"{plain(name)} ({times} times)" if times > 1 else plain(name)
                for name, times in Counter(errors).items()
            )
            rows.append(("", f"[{OPEN}]attempts that failed: {', '.join(counted)}[/]"))
    if not result["executions"]:
        rows.append(("execution", "none: not an order, or the rule is disabled"))
    rows.append(("our ledger", _record(result["record"]) if result["record"] else "no record"))
    rows += [
        (
            "provider",
            f"{coloured(charge['status'])} {plain(charge['id'])} "
            f"{money(charge['amount_minor'], charge['currency'])}",
        )
        for charge in result["charges"]
    ]
    if not result["charges"]:
        rows.append(("provider", "no charge"))
    if result["queued"]:
        rows.append(("failure queue", f"[{OPEN}]{result['queued']} waiting for a person[/]"))
    if unseen := result.get("unseen"):
        rows.append(("failure queue", f"another reader holds {unseen} messages: not looked into"))
    _pairs(rows)


def _execution(item: Json) -> str:
    path = " → ".join(plain(name) for name in item["path"])
    error = f" [{BAD}]{plain(item['error'])}[/]" if item["error"] else ""
    return f"{coloured(item['status'])}{error} {path}"


def _record(record: Json) -> str:
    parts = [coloured(record["status"])]
    if "charge_id" in record:
        parts += [plain(record["charge_id"]), money(record["amount_minor"], record["currency"])]
    if "reason" in record:
        parts.append(plain(record["reason"]))
    return " ".join(parts)


def executions(found: list[Json]) -> None:
    """Executions, one a line: status, error, path."""
    if not found:
        output.print("No executions yet.")
    for item in found:
        output.print(f"[dim]{plain(item['arn'].rpartition(':')[2])}[/] {_execution(item)}")


def ledger(records: list[Json]) -> None:
    """The ledger's records, one a line."""
    table(
        [
            {
                "object": f"{record.get('bucket')}/{record.get('object_key')}",
                "status": record.get("status"),
                "order": record.get("order_id"),
                "charge": record.get("charge_id"),
                "minor units": record.get("amount_minor"),
                "currency": record.get("currency"),
                "reason": record.get("reason"),
            }
            for record in records
        ],
        empty="The ledger is empty.",
    )


def queue(messages: list[Json]) -> None:
    """The failure queue, one message a line."""
    table(
        [
            {
                "error": message["error"],
                "object": _object_key(message["order"]),
                "key": message["idempotency_key"],
            }
            for message in messages
        ],
        empty="The failure queue is empty.",
    )


def _object_key(order: object) -> object:
    """The object's key in a message's order; whatever else somebody has put there, as it is."""
    return order.get("key") if isinstance(order, dict) else order


def replay(report: Json) -> None:
    """What a replay started, what it deleted, and what it left and why."""
    for item in report["replayed"]:
        output.print(f"{coloured(item['status'])} {plain(item['idempotency_key'])}")
    for item in report["left"]:
        output.print(f"[{OPEN}]left[/] {plain(item['idempotency_key'])}: {plain(item['why'])}")
    output.print(f"Replayed: {len(report['replayed'])}. Messages deleted: {report['deleted']}.")


def addresses(stack: Stack) -> None:
    """Where to look next."""
    places = (
        ("page", stack.page_url),
        ("console", stack.console_url),
        ("provider", stack.provider_url),
        ("AWS endpoint", stack.endpoint),
        ("order bucket", f"s3://{stack.bucket}/orders/"),
    )
    _pairs([(name, plain(value)) for name, value in places if value])
