"""Where the project and the local run keep their files."""

from __future__ import annotations

import os
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
TEMPLATE = PROJECT / "template.yaml"
DEFINITION = PROJECT / "statemachine" / "charge_order.asl.json"
SAMPLE_ORDER = PROJECT / "local" / "sample_order.json"

#: Moves everything that a local run leaves behind, so that several stacks can live side by side.
STATE_VARIABLE = "CHARGE_ONCE_STATE"

#: Names the state folder to what a local run starts, and to nothing else: a shell may export the
#: variable above to any program.
RUN_VARIABLE = "_CHARGE_ONCE_RUN"


def state_folder() -> Path:
    """The folder of this local run: logs, built functions, and the file that describes it.

    A relative name in the variable counts from the project, so that it means one stack wherever
    the shell stands.
    """
    named = Path(os.environ.get(STATE_VARIABLE) or ".local")
    return (PROJECT / named.expanduser()).resolve()


def campaign_folder() -> Path:
    """The state folder of a chaos campaign, which has a stack of its own below this one."""
    return state_folder() / "chaos"


def campaign_lock() -> Path:
    """Held for as long as a campaign lives that uses that folder."""
    return campaign_folder() / "in-use"
