"""Faults on demand, for tests: they kill the function around the charge.

The handler makes one only when the stack was deployed with a fault table. Faults are kept there
and not in memory, since a fault that kills the process must be used up all the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Protocol

from botocore.exceptions import ClientError

from charge.charging import OrderReference


class DynamoDBClient(Protocol):
    """The part of botocore's client that is used."""

    def update_item(self, **request: Any) -> Any: ...


class OrderFaults:
    """The faults armed for one order: items with `pk` = bucket/key#moment and `remaining` (N)."""

    def __init__(
        self,
        dynamodb: DynamoDBClient,
        table: str,
        order: OrderReference,
        seconds_left: Callable[[], float],
    ) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._order = order
        self._seconds_left = seconds_left

    def strike(self, moment: str) -> None:
        """Does not return if a fault was armed for this moment (`exit_…` or `timeout_…`)."""
        if not self._take(moment):
            return
        if moment.startswith("timeout_"):
            time.sleep(self._seconds_left() + 5)  # Lambda ends it before; 5 s are for its clock
        os._exit(1)

    def _take(self, moment: str) -> bool:
        is_armed = "remaining > :none"
        try:
            self._dynamodb.update_item(
                TableName=self._table,
                Key={"pk": {"S": f"{self._order.bucket}/{self._order.key}#{moment}"}},
                UpdateExpression="ADD remaining :minus_one",
                ConditionExpression=is_armed,
                ExpressionAttributeValues={":none": {"N": "0"}, ":minus_one": {"N": "-1"}},
            )
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") == "ConditionalCheckFailedException":
                return False
            raise
        return True
