"""Faults for one order, by name: the charge function's own, and the provider's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from local.errors import CommandError
from local.fault_names import NAMES
from local.provider_api import ProviderApi
from local.stack import Stack

#: The provider's own limit; one number for all is easier to remember.
MOST_TIMES = 10_000


@dataclass(frozen=True)
class Fault:
    """A fault by its full name, and how many requests or invocations shall suffer it."""

    name: str
    times: int

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Read `NAME[:TIMES]`. Raises ValueError with the names there are."""
        name, _, times = text.partition(":")
        if name not in NAMES:
            raise ValueError(f"{name!r} is no fault: {', '.join(NAMES)}")
        # No more digits than that: Python refuses to read a number of thousands of them.
        if not re.fullmatch(r"[0-9]{0,5}", times) or not 0 < int(times or 1) <= MOST_TIMES:
            raise ValueError(
                f"{text!r}: the number of times is a whole number from 1 to {MOST_TIMES}"
            )
        return cls(name, int(times or 1))


def arm(stack: Stack, faults: list[Fault], object_key: str) -> None:
    """Arm `faults` for the order that will be put at `object_key`, and for no other."""
    for fault in faults:
        side, _, name = fault.name.partition(".")
        if side == "function":
            stack.client("dynamodb").put_item(
                TableName=stack.fault_table,
                Item={
                    "pk": {"S": f"{stack.bucket}/{object_key}#{name}"},
                    "remaining": {"N": str(fault.times)},
                },
            )
        else:
            with ProviderApi.of(stack) as provider:
                provider.arm_fault(
                    {"fault": name, "times": fault.times, "metadata": {"object_key": object_key}}
                )


def armed(stack: Stack) -> list[dict[str, Any]]:
    """The faults that are still to happen: `{"name", "for", "remaining"}` each."""
    pages = stack.client("dynamodb").get_paginator("scan").paginate(TableName=stack.fault_table)
    found = []
    for page in pages:
        for item in page["Items"]:
            work, _, name = item["pk"]["S"].rpartition("#")
            remaining = int(item["remaining"]["N"])
            if remaining > 0:
                found.append({"name": f"function.{name}", "for": work, "remaining": remaining})
    with ProviderApi.of(stack) as provider:
        found += [
            {
                "name": f"provider.{fault['fault']}",
                "for": fault.get("reference") or fault.get("metadata"),
                "remaining": fault["remaining"],
            }
            for fault in provider.faults()
        ]
    return found


def clear(stack: Stack) -> None:
    """Disarm every fault. Raises CommandError where the stack takes none."""
    client = stack.client("dynamodb")
    for page in client.get_paginator("scan").paginate(TableName=stack.fault_table):
        for item in page["Items"]:
            client.delete_item(TableName=stack.fault_table, Key={"pk": item["pk"]})
    with ProviderApi.of(stack) as provider:
        provider.clear_faults()


def require_known(text: str) -> Fault:
    """Like `Fault.parse`, for the command line. Raises CommandError."""
    try:
        return Fault.parse(text)
    except ValueError as error:
        raise CommandError(str(error)) from error
