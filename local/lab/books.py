"""Reading the lab's table: what it says about each object."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One object: how often it was charged, our record's status if any, the attempts so far."""

    charges: int = 0
    record: str | None = None
    started: int = 0
    ended: int = 0
    failed: int = 0

    @property
    def cut_off(self) -> int:
        """Attempts that Lambda ended by time-out, so that they could not count their end.

        While an attempt runs, it is among them.
        """
        return self.started - self.ended - self.failed


def items(dynamodb: Any, table: str) -> list[Json]:
    """Everything in the table in DynamoDB's typed form, in order of the keys."""
    pages = dynamodb.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    found = [item for page in pages for item in page["Items"]]
    return sorted(found, key=lambda item: str(item["pk"]["S"]))


def entries(found: list[Json]) -> dict[str, Entry]:
    """The books by object (bucket/key), out of the table's items."""
    found_of: defaultdict[str, Json] = defaultdict(dict)
    for item in found:
        kind, _, name = item["pk"]["S"].partition("#")
        if "status" in item:
            found_of[item["object"]["S"]]["record"] = item["status"]["S"]
        elif kind in ("provider", "attempts"):
            counted = {what: int(value["N"]) for what, value in item.items() if "N" in value}
            found_of[name].update(counted)
    return {name: Entry(**values) for name, values in found_of.items()}
