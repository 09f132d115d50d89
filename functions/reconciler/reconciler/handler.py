"""Entry point: one run of the scheduled reconciler."""

from __future__ import annotations

import functools
import os
import time
import uuid
from contextlib import suppress
from typing import Any, Protocol

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import Metrics, MetricUnit

from reconciler.auditing import Progress, counts
from reconciler.aws import CLIENT_CONFIG
from reconciler.reports import Overtaken, Reports
from reconciler.settings import Settings
from reconciler.wiring import audit_of

SECONDS_TO_SAVE = 60.0
"""Kept back from the Lambda time-out: enough for the request that is under way when the time is
up, with most of its retries, and for saving some megabytes."""

SECONDS_BETWEEN_SAVES = 120.0
"""A run that dies without a word (out of memory) loses no more than this."""

METRIC_NAMESPACE = "ChargeOnce"

logger = Logger()


class Context(Protocol):
    """The part of Lambda's context that is used."""

    def get_remaining_time_in_millis(self) -> int: ...


def handle(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """Carry the current pass on, or begin one. What is in the event does not matter.

    Out: `{"pass", "complete", "overtaken", "findings", "repaired"}`, the last two as numbers of
    this run. Raises SettingInvalid, ProviderUnreachable, and what AWS raises; the place of the
    pass is saved before, so that the next run does not begin anew.
    """
    settings = Settings.from_environment(os.environ)
    reports = Reports(_client("s3"), settings.reports_bucket)
    audit = audit_of(settings, _client)
    progress = reports.position() or audit.begin(uuid.uuid4().hex, settings.horizon)
    audit.is_over = lambda: context.get_remaining_time_in_millis() < SECONDS_TO_SAVE * 1000
    audit.on_page = _Keeper(reports)
    before = Before(progress)
    overtaken = False
    try:
        audit.carry_on(progress)
        if progress.is_complete:
            logger.info("pass complete", report=reports.publish(progress))
        else:
            reports.save(progress)
    except Overtaken:
        # What this run found is logged and counted below; its repairs are safe twice.
        logger.warning("another run carries this pass on")
        overtaken = True
    except Exception:
        with suppress(Overtaken):
            reports.save(progress)
        raise
    finally:
        before.tell(progress, overtaken=overtaken)
    return {
        "pass": progress.name,
        "complete": progress.is_complete and not overtaken,
        "overtaken": overtaken,
        "findings": len(before.findings(progress)),
        "repaired": len(before.repaired(progress)),
    }


class _Keeper:
    """Saves the position every now and then."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self._saved_at = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        if time.monotonic() - self._saved_at > SECONDS_BETWEEN_SAVES and not progress.is_complete:
            self._reports.save(progress)
            self._saved_at = time.monotonic()


class Before:
    """How far the pass had come when this run took it up; tells what the run has added."""

    def __init__(self, progress: Progress) -> None:
        self._findings = len(progress.findings)
        self._repaired = len(progress.repaired)
        self._unreadable = len(progress.unreadable)

    def findings(self, progress: Progress) -> list[dict[str, Any]]:
        return progress.findings[self._findings :]

    def repaired(self, progress: Progress) -> list[dict[str, Any]]:
        return progress.repaired[self._repaired :]

    def tell(self, progress: Progress, *, overtaken: bool) -> None:
        """A log line for each finding, repair and unreadable entry; one EMF document of metrics.

        Each run counts what it has found itself, so that an alarm need not wait for the end of a
        long pass. What concerns a pass as a whole is counted when it is complete.
        """
        fresh, repaired = self.findings(progress), self.repaired(progress)
        unreadable = progress.unreadable[self._unreadable :]
        for finding in fresh:
            logger.warning("finding", extra=finding | {"pass": progress.name})
        for repair in repaired:
            logger.info("repair started", extra=repair | {"pass": progress.name})
        for entry in unreadable:
            logger.error("entry not readable", extra=entry | {"pass": progress.name})
        values = {_metric_name(kind): count for kind, count in counts(fresh).items()} | {
            "Findings": len(fresh) + len(unreadable),
            "Unreadable": len(unreadable),
            "Repaired": len(repaired),
        }
        if progress.is_complete and not overtaken:
            values |= {
                "PassCompleted": 1,
                "OrdersIn": progress.orders_in,
                "RecordsOut": progress.records_out,
                "OrdersWithoutRecord": progress.orders_in - progress.records_out,
                "BeyondHorizon": progress.beyond_horizon,
                "ChargesCompared": progress.scanned["charges"],
            }
        metrics = Metrics(namespace=METRIC_NAMESPACE)
        for name, value in values.items():
            metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)
        metrics.flush_metrics()


def _metric_name(kind: str) -> str:
    """`charged_twice` as CloudWatch shows it: `ChargedTwice`."""
    return kind.title().replace("_", "")


@functools.cache
def _client(service: str) -> Any:
    return boto3.client(service, config=CLIENT_CONFIG)  # type: ignore[call-overload]
