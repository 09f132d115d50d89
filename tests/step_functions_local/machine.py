"""A stack on Step Functions Local, from outside: started, broken, looked at."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from local.paths import PROJECT, STATE_VARIABLE
from local.ports import free_port
from local.stack import Stack
from local.step_functions_local.program import JAR_VARIABLE, answers
from local.waiting import wait_for
from tests.step_functions_local import stand_in

#: A tenth of the local run's, as in the other tests.
WAIT_SCALE = 0.002


@dataclass(frozen=True)
class Machine:
    """The processes of one stack. `environment` is that of the shell that starts it.

    `port` is where Step Functions Local listens: the real program knows one only, the stand-in
    takes any, so that two test runs on one machine do not meet.
    """

    environment: dict[str, str]
    port: int

    @property
    def state(self) -> Path:
        return Path(self.environment[STATE_VARIABLE])

    def up(self) -> Stack:
        """Start the stack, or what has ended of it."""
        code = (
            "from local import lifecycle; from local.step_functions_local import program; "
            f"program.PORT = {self.port}; "
            f"lifecycle.up({WAIT_SCALE}, engine='step-functions-local')"
        )
        self._run(sys.executable, "-c", code)
        return Stack(**json.loads((self.state / "stack.json").read_text()))

    def command(self, *arguments: str) -> Any:
        """The JSON document of `python -m local ARGUMENTS`."""
        return json.loads(self._run(sys.executable, "-m", "local", *arguments, "--json"))

    def engine(self) -> psutil.Process | None:
        """The process of Step Functions Local."""
        jar = str(Path(self.environment[JAR_VARIABLE]).expanduser().resolve())
        for process in self.processes():
            command = process.cmdline()
            if "-jar" in command and jar in command:
                return process
        return None

    def kill_engine(self) -> None:
        """End it as a crash would: what it was running is gone."""
        engine = self.engine()
        assert engine is not None
        engine.kill()
        wait_for(lambda: not answers(f"http://127.0.0.1:{self.port}"), 10)

    def processes(self) -> list[psutil.Process]:
        """Everything that this stack has started and not ended."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(STATE_VARIABLE) == str(self.state):
                    found.append(process)
            except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
        return found

    def _run(self, *command: str) -> str:
        result = subprocess.run(
            command,
            cwd=PROJECT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout


def with_the_stand_in(folder: Path, **settings: str) -> Machine:
    """A machine whose `java` is the stand-in."""
    programs = folder / "bin"
    programs.mkdir()
    write_program(programs / "java", "-m", "tests.step_functions_local.stand_in")
    jar = folder / "StepFunctionsLocal.jar"
    jar.write_bytes(b"a stand-in")
    port = free_port()
    environment = os.environ | {
        STATE_VARIABLE: str(folder / "state"),
        JAR_VARIABLE: str(jar),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        stand_in.PORT_VARIABLE: str(port),
        # As the stack's other waits are.
        stand_in.RETRY_SCALE_VARIABLE: str(WAIT_SCALE),
    }
    return Machine(dict(environment) | settings, port)


def with_the_real_program(folder: Path) -> Machine:
    """A machine with the program that the shell names."""
    return Machine(dict(os.environ) | {STATE_VARIABLE: str(folder / "state")}, 8083)


def write_program(path: Path, *arguments: str) -> None:
    """A program on the PATH that is Python with these arguments."""
    words = " ".join(f"'{word}'" for word in (sys.executable, *arguments))
    path.write_text(f'#!/bin/sh\ncd "{PROJECT}"\nexec {words} "$@"\n')
    path.chmod(0o755)
