"""The Lambda function's entry point, its settings, and the order of events around a charge."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import boto3

from .faults import (
    AFTER_CHARGE,
    BEFORE_CHARGE,
    POINTS,
    PROVIDER_DEAD,
    TIMEOUT_AFTER_CHARGE,
    Faults,
)
from .modes import HANDLERS
from .recipes import S3Object, object_of
from .table import DynamoDBClient, Ledger, Provider, Table


class Context(Protocol):
    """The part of Lambda's context that is used."""

    def get_remaining_time_in_millis(self) -> int: ...


class SettingInvalid(Exception):
    """An environment variable is missing or wrong; the message names it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """`handler_mode` is a name of HANDLERS; `fail_once` one of POINTS, or None."""

    table: str
    handler_mode: str
    fail_once: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Raises SettingInvalid."""
        mode = environment.get("HANDLER_MODE", "")
        if mode not in HANDLERS:
            raise SettingInvalid(f"HANDLER_MODE must be one of {', '.join(HANDLERS)}: {mode!r}")
        fail_once = environment.get("FAIL_ONCE") or "never"
        if fail_once not in ("never", *POINTS):
            raise SettingInvalid(f"FAIL_ONCE must be never or one of {', '.join(POINTS)}")
        table = environment.get("LAB_TABLE", "")
        if not table:
            raise SettingInvalid("LAB_TABLE is not set")
        return cls(table, mode, None if fail_once == "never" else fail_once)


def handle(event: dict[str, Any], context: Context) -> None:
    """Handle an S3 notification. Raises whatever the handler did not catch."""
    _function().run(event, context)


@cache
def _function() -> Function:
    settings = Settings.from_environment(os.environ)
    return Function(settings, boto3.client("dynamodb"))


def sleep_past_the_end(context: Context) -> None:
    """Have Lambda end this invocation by its time-out; 5 s are for its clock."""
    time.sleep(context.get_remaining_time_in_millis() / 1000 + 5)


class Function:
    """All that lives as long as the Lambda environment. Nothing in it remembers an object."""

    def __init__(
        self,
        settings: Settings,
        dynamodb: DynamoDBClient,
        hang: Callable[[Context], None] = sleep_past_the_end,
    ) -> None:
        self._settings = settings
        self._table = Table(dynamodb, settings.table)
        self._hang = hang
        self.provider = Provider(self._table)

    def run(self, event: dict[str, Any], context: Context) -> None:
        """See `handle`. Counts each attempt's start, and its end unless Lambda ended it."""
        for record in event["Records"]:
            s3_object = object_of(record)
            attempts = f"attempts#{s3_object.name}"
            self._table.count(attempts, "started")
            try:
                self._handle(s3_object, context)
            except Exception:
                self._table.count(attempts, "failed")
                raise
            self._table.count(attempts, "ended")

    def _handle(self, s3_object: S3Object, context: Context) -> None:
        faults = Faults(
            self._table,
            s3_object.name,
            self._settings.fail_once,
            lambda: self._hang(context),
        )

        def charge(idempotency_key: str | None = None) -> None:
            faults.strike(BEFORE_CHARGE)
            faults.strike(PROVIDER_DEAD)
            self.provider.charge(s3_object.name, idempotency_key)
            faults.strike(AFTER_CHARGE)
            faults.strike(TIMEOUT_AFTER_CHARGE)

        ledger = Ledger(self._table, s3_object.name)
        HANDLERS[self._settings.handler_mode](s3_object, ledger, charge)
