"""The readable side of the answers: tables and summaries on a terminal."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from local import text
from local.progress import line, output, visible

if TYPE_CHECKING:
    from local.stack import Stack

Json = dict[str, Any]

#: Blanks between the columns of a table.
GAP = 2
#: An id that is cut keeps so much of it, in columns of the terminal.
LEAST_WIDTH = 13

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
    """Text from outside, which may have several lines; otherwise as `visible`."""
    return "\n".join(map(visible, str(text).splitlines()))


def coloured(word: object) -> Text:
    """A status in its colour."""
    return Text(visible(word), COLOURS.get(str(word), ""))


def words(value: object) -> str:
    """A value of a document as a person reads it."""
    if isinstance(value, Mapping):
        return ", ".join(f"{visible(name)} {words(one)}" for name, one in value.items())
    return "-" if value is None else visible(value)


def _pairs(rows: Sequence[tuple[str, object]]) -> None:
    """Names on the left, values on the right: whole lines, since they are copied."""
    width = max(len(name) for name, _ in rows) + 1
    for name, value in rows:
        output.print(line(Text(f"{visible(name):<{width}}", "dim"), value), soft_wrap=True)


def table(
    rows: Sequence[Json], *, empty: str = "", sideways: bool = False, elastic: Collection[str] = ()
) -> None:
    """Rows of equal shape as a table, without the columns that are empty in every row.

    Where the width is too small for all, ids in the columns `elastic` are cut in the middle, and
    sentences wrap. `sideways` puts one row's fields below each other.
    """
    if not rows:
        output.print(empty)
        return
    if sideways:
        _pairs([(name, words(value)) for name, value in rows[0].items()])
        return
    columns = {
        name: [words(row[name]) for row in rows]
        for name in rows[0]
        if any(row[name] is not None for row in rows)
    }
    widths = {name: max(map(cell_len, [name, *cells])) for name, cells in columns.items()}
    flexible = [name for name in columns if name in elastic]

    def needed() -> int:
        return sum(widths.values()) + GAP * (len(widths) - 1)

    while _must_fit() and needed() > output.width:
        widest = max(flexible, key=lambda name: widths[name], default=None)
        if widest is None or widths[widest] <= LEAST_WIDTH:
            break
        widths[widest] -= 1
    width = None if _must_fit() else needed()
    drawn = Table(box=None, header_style="dim", pad_edge=False, width=width)
    for name in columns:
        drawn.add_column(name, overflow="fold")
    for row in zip(*columns.values(), strict=True):
        drawn.add_row(
            *(
                coloured(_cut(cell, widths[name]) if name in flexible else cell)
                for name, cell in zip(columns, row, strict=True)
            )
        )
    output.print(drawn, crop=False)


def _must_fit() -> bool:
    """On a terminal, or as the environment says; elsewhere whole lines, for grep and files."""
    return output.is_terminal or "COLUMNS" in os.environ


def _cut(cell: str, width: int) -> str:
    """An id in at most `width` columns: its beginning and its end, which tell it from others."""
    if cell_len(cell) <= width or " " in cell:
        return cell
    head, tail = width // 2, width - width // 2 - 1
    return set_cell_size(cell, head) + "…" + set_cell_size(cell[::-1], tail)[::-1]


def order(result: Json, failed_attempts: Mapping[str, Sequence[str]] | None = None) -> None:
    """What became of one order: paths, our ledger, the provider's charges, the queue.

    `failed_attempts` holds an execution's errors by its ARN, the repeated ones included.
    """
    place = result["object"]
    rows: list[tuple[str, object]] = [
        ("order", f"s3://{place['bucket']}/{place['key']}"),
        ("version", place["version_id"]),
        ("key", result["idempotency_key"]),
    ]
    for item in result["executions"]:
        rows.append(("execution", line(*_execution(item))))
        if errors := (failed_attempts or {}).get(item["arn"]):
            counted = (
                f"{visible(name)} ({times} times)" if times > 1 else visible(name)
                for name, times in Counter(errors).items()
            )
            rows.append(("", Text(f"attempts that failed: {', '.join(counted)}", OPEN)))
    if not result["executions"]:
        rows.append(("execution", "none: not an order, or the rule is disabled"))
    rows.append(("our ledger", _record(result["record"]) if result["record"] else "no record"))
    for charge in result["charges"]:
        paid = text.money(charge["amount_minor"], charge["currency"])
        rows.append(("provider", line(coloured(charge["status"]), charge["id"], paid)))
    if not result["charges"]:
        rows.append(("provider", "no charge"))
    if result["queued"]:
        rows.append(("failure queue", Text(f"{result['queued']} waiting for a person", OPEN)))
    if unseen := result.get("unseen"):
        rows.append(("failure queue", f"another reader holds {unseen} messages: not looked into"))
    _pairs(rows)


def _execution(item: Json) -> tuple[Text, str]:
    """Its status with the error, and its path."""
    status = coloured(item["status"])
    if item["error"]:
        status = line(status, Text(visible(item["error"]), BAD))
    return status, " → ".join(map(visible, item["path"]))


def _record(record: Json) -> Text:
    told = (record.get("charge_id"), _amount(record), record.get("reason"))
    return line(coloured(words(record.get("status"))), *(one for one in told if one is not None))


def _amount(record: Json) -> str | None:
    if "amount_minor" not in record:
        return None
    return text.money(record["amount_minor"], words(record.get("currency")))


def executions(found: list[Json]) -> None:
    """Executions, newest first: status, error and name, and below them the path."""
    if not found:
        output.print("No executions yet.")
    for item in found:
        status, path = _execution(item)
        name = Text(visible(item["arn"].rpartition(":")[2]), "dim")
        output.print(line(status, name), soft_wrap=True)
        if _must_fit():
            output.print(Padding(path, (0, 0, 0, 2), expand=False))
        else:
            output.print(f"  {path}", soft_wrap=True)


def ledger(records: list[Json]) -> None:
    """The ledger's records, newest first, one a line."""
    table(
        [
            {
                "status": record.get("status"),
                "object": record.get("object_key"),
                "order": record.get("order_id"),
                "amount": _amount(record),
                "charge or reason": record.get("charge_id") or record.get("reason"),
            }
            for record in sorted(records, key=lambda one: str(one.get("claimed_at")), reverse=True)
        ],
        empty="The ledger is empty.",
        elastic={"object", "charge or reason"},
    )


def charges(found: list[Json]) -> None:
    """The provider's charges, one a line."""
    table(
        [
            {
                "charge": charge["id"],
                "status": charge["status"],
                "amount": text.money(charge["amount_minor"], charge["currency"]),
                "key": charge["reference"],
            }
            for charge in found
        ],
        empty="The provider has no charges.",
        elastic={"key"},
    )


def queue(messages: list[Json]) -> None:
    """The failure queue: each message's error and object, and below them the key, to be copied."""
    if not messages:
        output.print("The failure queue is empty.")
    for message in messages:
        order = message["order"] if isinstance(message["order"], Mapping) else {}
        place = order.get("key") or "names no object"
        key = message["idempotency_key"] or "names no order: not a message of this stack"
        output.print(line(Text(visible(message["error"]), BAD), place), soft_wrap=True)
        output.print(f"  {visible(key)}", soft_wrap=True)


def faults(armed: list[Json]) -> None:
    """The faults that are armed, and for whom."""
    table(
        [
            {"fault": one["name"], "for": _victim(one["for"]), "times left": one["remaining"]}
            for one in armed
        ],
        empty="No fault is armed.",
        elastic={"for"},
    )


def _victim(meant: object) -> str:
    """Whom a fault is for: an object key, or what else was named."""
    match meant:
        case None:
            return "whoever comes first"
        case {"object_key": object_key, **others} if not others:
            return str(object_key)
        case Mapping():
            return words({str(name).replace("_", " "): value for name, value in meant.items()})
    # The function's own faults name the bucket, which is the stack's only one, before the key.
    bucket, _, object_key = str(meant).partition("/")
    return object_key or bucket


def replay(report: Json) -> None:
    """What a replay started, what it deleted, and what it left and why."""
    for item in report["replayed"]:
        output.print(line(coloured(item["status"]), item["idempotency_key"]), soft_wrap=True)
    for item in report["left"]:
        why = f"{item['idempotency_key']}: {item['why']}"
        output.print(line(Text("left", OPEN), why), soft_wrap=True)
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
    _pairs([(name, value) for name, value in places if value])
