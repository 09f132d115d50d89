"""The reconciler on a terminal: the scheduled function's own code and settings, run from here.

Nothing is kept between two runs: a pass begins and ends in one command. Repairs are waited for.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from reconciler.auditing import Progress, report
from reconciler.provider_client import ProviderUnreachable
from reconciler.settings import QUEUE_RETENTION, SettingInvalid, Settings
from reconciler.wiring import audit_of
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from local import orders
from local.errors import CommandError
from local.progress import DONE, errors, line, output, visible
from local.show import BAD, GOOD, OPEN, plain
from local.stack import Stack, require_loopback

Json = dict[str, Any]

#: Repairs that are waited for at the same time.
AT_ONCE = 8
DAY = timedelta(days=1)


def deployed_settings(stack: Stack) -> Settings:
    """The settings that the stack's scheduled reconciler has. Raises CommandError."""
    configuration = stack.client("lambda").get_function_configuration(
        FunctionName=stack.outputs["ReconcilerFunction"]
    )
    try:
        settings = Settings.from_environment(configuration["Environment"]["Variables"])
    except SettingInvalid as error:
        raise CommandError(str(error)) from error
    if stack.endpoint is not None:
        require_loopback(settings.provider_url)
    return settings


def reconcile(
    stack: Stack,
    *,
    repair: bool = False,
    grace_seconds: float | None = None,
    horizon_days: float | None = None,
    announce: Callable[[Progress], None] = lambda _: None,
) -> Json:
    """One whole pass over the books of `stack`, as the document of the command: the function's
    report and the `grace_seconds` that it was judged by.

    `grace_seconds` and `horizon_days` stand in for the stack's own settings in this pass alone.
    `announce` is called after each page. Raises CommandError when a book cannot be read, and for
    a horizon that reaches back to records that may have expired.
    """
    settings = deployed_settings(stack)
    overrides: dict[str, Any] = {"repair": repair}
    if grace_seconds is not None:
        overrides["grace"] = timedelta(seconds=grace_seconds)
    if horizon_days is not None:
        overrides["horizon"] = timedelta(days=horizon_days)
        longest = settings.record_ttl - QUEUE_RETENTION
        if overrides["horizon"] >= longest:
            raise CommandError(
                f"--horizon-days must be less than {longest / DAY:g} here, not {horizon_days:g}: "
                f"a record is kept for {settings.record_ttl / DAY:g} days (RecordTtlDays), and "
                f"its order may wait in the failure queue for {QUEUE_RETENTION.days} of them."
            )
    try:
        settings = replace(settings, **overrides)
        audit = audit_of(settings, stack.client)
        audit.on_page = announce
        progress = audit.begin(uuid.uuid4().hex, settings.horizon)
        audit.carry_on(progress)
    except SettingInvalid as error:
        raise CommandError(str(error)) from error
    except (BotoCoreError, ClientError, ProviderUnreachable, TimeoutError) as error:
        raise CommandError(f"The pass could not be finished: {error}") from error
    _wait_for_repairs(stack, progress)
    return report(progress) | {"grace_seconds": settings.grace.total_seconds()}


def _wait_for_repairs(stack: Stack, progress: Progress) -> None:
    """Wait until each repair has ended, and say in its finding's detail how."""

    def ended(repaired: Json) -> str:
        orders.wait_for_end(stack, repaired["execution"])
        answer = stack.client("stepfunctions").describe_execution(
            executionArn=repaired["execution"]
        )
        error = f" with {answer['error']}" if answer.get("error") else ""
        return f"{answer['status']}{error}"

    findings = {(item["kind"], item["idempotency_key"]): item for item in progress.findings}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for repaired, how in zip(
            progress.repaired, pool.map(ended, progress.repaired), strict=True
        ):
            finding = findings[repaired["kind"], repaired["idempotency_key"]]
            name = repaired["execution"].rpartition(":")[2]
            finding["detail"] += f" Repaired: {name} ended as {how}."


@contextmanager
def progress() -> Iterator[Callable[[Progress], None]]:
    """Show on stderr how far the pass has come; call what it gives with each page's progress."""
    started = time.monotonic()

    def announce(progress: Progress) -> None:
        status.update(
            f"Reconcile: {_scanned(progress.scanned)}; {len(progress.findings)} findings …"
        )

    with errors.status("Reconcile …") as status:
        yield announce
    seconds = Text(f"{time.monotonic() - started:.1f} s", "dim")
    errors.print(line(DONE, "Reconcile", seconds))


def _scanned(scanned: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {book}" for book, count in scanned.items())


def verdict(document: Json) -> str:
    """Whether the books agree, claiming no more than what was compared."""
    if _is_wrong(document):
        return "The books disagree."
    uncompared = ("younger_than_grace", "settled_beyond_horizon", "beyond_horizon")
    if any(document[name] for name in uncompared):
        return "The books agree as far as they were compared."
    return "The books agree."


def _is_wrong(document: Json) -> bool:
    return bool(document["findings"] or document["unreadable"])


def show(document: Json) -> None:
    """The report for people: each finding with its words, then the kinds as a table."""
    repaired = {(item["kind"], item["idempotency_key"]) for item in document["repaired"]}
    found: Counter[str] = Counter()
    mended: Counter[str] = Counter()
    for finding in document["findings"]:
        kind, place = finding["kind"], finding["object"]
        found[kind] += 1
        mended[kind] += (kind, finding["idempotency_key"]) in repaired
        output.print(line(Text(visible(kind), BAD), place["key"] if place else "no object"))
        output.print(Padding(plain(finding["detail"]), (0, 0, 1, 2)))
    for entry in document["unreadable"]:
        where = entry["idempotency_key"] or entry["object"]
        output.print(Text("not readable", BAD), f"{visible(where)}: {plain(entry['error'])}")
    if found:
        table = Table("finding", "found", "repaired", box=None, header_style="dim", pad_edge=False)
        for kind, count in sorted(found.items()):
            table.add_row(kind, str(count), str(mended[kind] or "-"))
        output.print(table)
    young, old = document["younger_than_grace"], document["settled_beyond_horizon"]
    colour = OPEN if _is_wrong(document) or young else GOOD
    output.print(line(Text(verdict(document), colour), _compared(document)))
    if young:
        output.print(
            f"Not judged yet: {young:,} younger than the grace time of "
            f"{document['grace_seconds'] / 60:g} minutes (--grace-seconds 0 judges them now)."
        )
    if old:
        output.print(
            f"Not held against the provider: {old:,} settled before the horizon "
            "(--horizon-days reaches further back)."
        )
    if document["omitted"]:
        output.print(f"Not listed: {document['omitted']:,} more findings.")


def _compared(document: Json) -> str:
    """What stood against what, in numbers of orders and charges."""
    counts = {
        "orders": document["orders_in"],
        "with a record": document["records_out"],
        "charges": document["scanned"]["charges"] - document["foreign_charges"],
        "orders beyond the horizon": document["beyond_horizon"],
    }
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items()) + "."
