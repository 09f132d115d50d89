"""Completion of the command line in bash, zsh and fish.

Shells complete commands by name, and `python -m local` has none of its own: it gets one, as a
function of the shell that works in every folder.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from typing import Literal

import typer.completion

from local.paths import PROJECT

Shell = Literal["bash", "zsh", "fish"]

NAME = "charge-once"
#: In the environment, it has the command line print what may follow instead of running.
VARIABLE = "_CHARGE_ONCE_COMPLETE"


def begin() -> None:
    """Prepare for the shell's question what may follow, if this is one."""
    if VARIABLE in os.environ:
        typer.completion.completion_init()  # type: ignore[attr-defined]


def script(shell: Shell) -> str:
    """What `shell` has to evaluate."""
    program = f"env PYTHONPATH={shlex.quote(str(PROJECT))} {shlex.quote(sys.executable)} -m local"
    arguments = "$argv" if shell == "fish" else '"$@"'
    function = f"{program} {arguments}"
    define = (
        f"function {NAME}; {function}; end" if shell == "fish" else f"{NAME}() {{ {function}; }}"
    )
    typers = typer.completion.get_completion_script(  # type: ignore[attr-defined]
        prog_name=NAME, complete_var=VARIABLE, shell=shell
    )
    # Typer's scripts ask the program by its name, which `env` would look for among files.
    asked = re.sub(
        rf"(=complete_{shell}\b[^\n]*?) (?:\$1|{NAME})(?=[ )\"])",
        lambda found: f"{found[1]} {program}",
        typers,
    )
    return f"{define}\n{asked}\n"
