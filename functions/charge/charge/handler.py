"""The Lambda function behind the state `Charge`."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any, Protocol

import botocore.session
import urllib3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import MetricUnit, single_metric
from botocore.config import Config

from charge.charging import Charging, OrderReference, Settled
from charge.errors import Alert, ChargeError
from charge.faults import OrderFaults
from charge.order_store import S3OrderStore
from charge.provider_client import ProviderClient, connection_pool
from charge.secret import ApiKey
from charge.settings import Settings

SECONDS_TO_REPORT = 1.0
"""Kept back from the Lambda time-out, so that a slow provider ends in a named error."""

METRIC_NAMESPACE = "ChargeOnce"

# S3 and Secrets Manager answer in milliseconds; 2 attempts of 1 + 3 s leave the provider its time.
# Further attempts are the state machine's, which waits between them.
_AWS = Config(
    connect_timeout=1, read_timeout=3, retries={"mode": "standard", "total_max_attempts": 2}
)


_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")  # what fits in the provider's header


class BugInDefinition(Exception):
    """The state machine sent something else than its contract with this function says."""


class Context(Protocol):
    """The part of Lambda's context that is used."""

    def get_remaining_time_in_millis(self) -> int: ...


def handle(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """Charge the order of a `Charge` state, once.

    In: `{"execution": ARN, "order": {"bucket", "key", "version_id", "etag", "idempotency_key"},
    "input": the execution's input, where `replay` marks a replay or a repair}`.
    Out: `{"charge_id", "amount_minor", "currency", "order_id", "replayed", "charged_at" (ISO 8601,
    UTC), "expires_at" (epoch seconds)}`. Raises a `ChargeError`, BugInDefinition or SettingInvalid.
    """
    return _function().run(event, context)


@cache
def _function() -> Function:
    """Clients and connections are made for the first order and kept for the following ones."""
    return Function(Settings.from_environment(os.environ))


class Function:
    """All that lives as long as the Lambda environment. Nothing in it remembers an order."""

    def __init__(
        self,
        settings: Settings,
        *,
        pool: urllib3.PoolManager | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        session = botocore.session.get_session()
        client: Callable[[str], Any] = partial(session.create_client, config=_AWS)
        self._settings = settings
        self._store = S3OrderStore(client("s3"))
        self._api_key = ApiKey(
            client("secretsmanager"), settings.provider_secret_arn, time.monotonic
        )
        self._dynamodb = client("dynamodb") if settings.fault_table else None
        self._pool = connection_pool() if pool is None else pool
        self._sleep = sleep
        self._logger = Logger()

    def run(self, event: dict[str, Any], context: Context) -> dict[str, Any]:
        """See `handle`."""
        execution, order = parse(event)
        with self._logger.append_context_keys(
            execution=execution,
            idempotency_key=order.idempotency_key,
            bucket=order.bucket,
            object_key=order.key,
            version_id=order.version_id,
        ):
            try:
                charging = self._charging(order, context, is_restart=is_restart(event))
                settled = charging.settle(order)
            except ChargeError as error:
                outcome = type(error).__name__
                log = self._logger.error if isinstance(error, Alert) else self._logger.warning
                log("order not charged", extra={"outcome": outcome, "reason": str(error)})
                self._count(outcome)
                raise
            outcome = "AlreadyCharged" if settled.replayed else "Charged"
            self._logger.info(
                "order charged",
                extra={
                    "outcome": outcome,
                    "order_id": settled.order_id,
                    "charge_id": settled.charge_id,
                },
            )
            self._count(outcome)
            return self._result(settled)

    def _charging(self, order: OrderReference, context: Context, *, is_restart: bool) -> Charging:
        def seconds_left() -> float:
            return context.get_remaining_time_in_millis() / 1000 - SECONDS_TO_REPORT

        settings = self._settings
        return Charging(
            store=self._store,
            provider=ProviderClient(
                base_url=settings.provider_url,
                api_key=self._api_key,
                pool=self._pool,
                timeout_seconds=settings.provider_timeout_seconds,
                seconds_left=seconds_left,
            ),
            provider_key_retention=timedelta(seconds=settings.provider_key_retention_seconds),
            provider_timeout_seconds=settings.provider_timeout_seconds,
            now=lambda: datetime.now(UTC),
            sleep=self._sleep,
            seconds_left=seconds_left,
            faults=self._faults(order, seconds_left),
            is_restart=is_restart,
        )

    def _faults(
        self, order: OrderReference, seconds_left: Callable[[], float]
    ) -> OrderFaults | None:
        if self._dynamodb is None or self._settings.fault_table is None:
            return None
        return OrderFaults(self._dynamodb, self._settings.fault_table, order, seconds_left)

    def _result(self, settled: Settled) -> dict[str, Any]:
        return {
            "charge_id": settled.charge_id,
            "amount_minor": settled.amount_minor,
            "currency": settled.currency,
            "order_id": settled.order_id,
            "replayed": settled.replayed,
            "charged_at": settled.charged_at.isoformat().replace("+00:00", "Z"),
            "expires_at": int(time.time()) + self._settings.record_ttl_seconds,
        }

    @staticmethod
    def _count(outcome: str) -> None:
        """One metric for each outcome, with the service as its only dimension (EMF, stdout)."""
        with single_metric(
            name=outcome, unit=MetricUnit.Count, value=1, namespace=METRIC_NAMESPACE
        ) as metric:
            metric.add_dimension("service", os.environ.get("POWERTOOLS_SERVICE_NAME", "charge"))


def is_restart(event: dict[str, Any]) -> bool:
    """Whether the execution's input says that it is a replay or a repair."""
    match event:
        case {"input": {"replay": dict()}}:
            return True
    return False


def parse(event: dict[str, Any]) -> tuple[str, OrderReference]:
    """The execution's ARN and the order. Raises BugInDefinition."""
    match event:
        case {
            "execution": str(execution),
            "order": {
                "bucket": str(bucket),
                "key": str(key),
                "version_id": str(version_id),
                "etag": str(etag),
                "idempotency_key": str(idempotency_key),
            },
        } if all((execution, bucket, key, version_id, etag)) and _IDEMPOTENCY_KEY.fullmatch(
            idempotency_key
        ):
            return execution, OrderReference(
                bucket=bucket,
                key=key,
                version_id=version_id,
                etag=etag,
                idempotency_key=idempotency_key,
            )
    raise BugInDefinition(
        "bug: the state machine did not send execution and order.bucket, key, version_id, etag "
        "and idempotency_key, all of them strings that are not empty"
    )
