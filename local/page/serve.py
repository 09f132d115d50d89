"""Serving the page of one stack on loopback."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import uvicorn

from local.page.app import About, CountingHouse
from local.page.bench import StackBench
from local.page.source import StackSource
from local.paths import state_folder
from local.stack import Stack

#: Open live connections are cut after this long when the page is stopped.
GOODBYE_SECONDS = 1

RESET_FILE = "page-reset"


def serve(stack: Stack, port: int, *, allow_writes: bool) -> None:
    """Serve until interrupted. On AWS the page only shows, unless writes are allowed."""
    on_aws = stack.endpoint is None
    reset = state_folder() / RESET_FILE
    house = CountingHouse(
        about_of(stack),
        StackSource(stack),
        StackBench(stack) if allow_writes or not on_aws else None,
        ignore_before=None if on_aws else _last_reset(reset),
        remember_reset=lambda at: _write(reset, at),
    )
    uvicorn.run(
        house.app(),
        host="127.0.0.1",
        port=port,
        log_level="warning",
        timeout_graceful_shutdown=GOODBYE_SECONDS,
    )


def about_of(stack: Stack) -> About:
    """What the page says about a stack."""
    on_aws = stack.endpoint is None
    if on_aws or stack.console_url is None:
        machine_url = stack.console_url
    else:
        # StackPort opens a state machine by its ARN; it has no address for one execution.
        arn = quote(stack.state_machine_arn, safe="")
        machine_url = f"{stack.console_url}/resources/stepfunctions?machine={arn}"
    return About(
        name=stack.name,
        region=stack.region,
        on_aws=on_aws,
        machine_url=machine_url,
        console_name="the AWS console" if on_aws else "StackPort",
    )


def _last_reset(path: Path) -> datetime | None:
    try:
        return datetime.fromisoformat(path.read_text().strip())
    except (FileNotFoundError, ValueError):
        return None


def _write(path: Path, at: datetime) -> None:
    path.write_text(at.isoformat() + "\n")
