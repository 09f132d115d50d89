"""Reading the lab's table: what it says about each object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One object in both books: how often it was charged, and our record's status if any."""

    charges: int = 0
    record: str | None = None


def items(dynamodb: Any, table: str) -> list[Json]:
    """Everything in the table in DynamoDB's typed form, in order of the keys."""
    pages = dynamodb.get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    found = [item for page in pages for item in page["Items"]]
    return sorted(found, key=lambda item: str(item["pk"]["S"]))


def entries(found: list[Json]) -> dict[str, Entry]:
    """The books by object (bucket/key), out of the table's items."""
    charges = {
        item["pk"]["S"].removeprefix("provider#"): int(item["charges"]["N"])
        for item in found
        if "charges" in item
    }
    records = {item["object"]["S"]: item["status"]["S"] for item in found if "status" in item}
    return {
        name: Entry(charges.get(name, 0), records.get(name))
        for name in charges.keys() | records.keys()
    }
