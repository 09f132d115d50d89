"""Step Functions Local as a program of this machine: found, started, waited for, stopped.

What is known of it, and from where, is in docs/step-functions-local.md.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from local import processes, stack
from local.emulator.environment import ACCOUNT_ID
from local.errors import CommandError
from local.paths import state_folder
from local.ports import free_port

NAME = "step-functions-local"
JAR_VARIABLE = "STEP_FUNCTIONS_LOCAL_JAR"
#: The program's own variable for mocked integrations.
MOCKS_VARIABLE = "SFN_MOCK_CONFIG"

#: Where it listens. No option of the official program changes that.
PORT = 8083
#: Version 2.0.0 is compiled for it.
JAVA_VERSION = 17
IMAGE = "amazon/aws-stepfunctions-local"
_CONTAINER_MOCKS = "/home/StepFunctionsLocal/MockConfigFile.json"
_CONTAINER_FILE = "step-functions-local.container"
#: Asking Java or Docker for its version takes well under a second.
QUESTION_SECONDS = 20

GUIDE = "https://docs.aws.amazon.com/step-functions/latest/dg/sfn-local.html"
HOW_TO_GET_IT = (
    f"Step Functions Local was not found. Get StepFunctionsLocal.jar from {GUIDE} and name it: "
    f"{JAR_VARIABLE}=/path/to/StepFunctionsLocal.jar (it needs Java {JAVA_VERSION}). Or start a "
    f"Docker engine, and the image {IMAGE} is used. Without either, leave ENGINE away."
)


@dataclass(frozen=True)
class Jar:
    """The JAR under Java. `port` is the one on this machine's loopback."""

    java: str
    path: Path
    port: int = PORT

    def seen_by_it(self, url: str) -> str:
        """An address of this machine's loopback as Step Functions Local reaches it."""
        return url

    def command(self, emulator_url: str, wait_scale: float) -> list[str]:
        """The command line that runs it in the foreground."""
        return [
            *(self.java, "-jar", str(self.path)),
            *("--aws-account", ACCOUNT_ID),
            *("--aws-region", stack.LOCAL_REGION),
            *("--lambda-endpoint", emulator_url),
            *("--dynamodb-endpoint", emulator_url),
            *("--sqs-endpoint", emulator_url),
            *("--step-functions-endpoint", emulator_url),
            *("--wait-time-scale", str(wait_scale)),
        ]

    def prepare(self) -> None:
        """Raises CommandError when its port is taken."""
        _require_free(self.port)


@dataclass(frozen=True)
class Container:
    """The image under Docker.

    On Linux it shares the machine's network: the emulator listens on loopback, which a container
    of its own network cannot reach. Docker Desktop leads `host.docker.internal` there.
    """

    docker: str
    is_desktop: bool
    port: int
    mocks: Path | None = None

    def seen_by_it(self, url: str) -> str:
        """An address of this machine's loopback as Step Functions Local reaches it."""
        return url.replace("127.0.0.1", "host.docker.internal") if self.is_desktop else url

    @property
    def name(self) -> str:
        """Of this stack alone."""
        digest = hashlib.sha256(str(state_folder()).encode()).hexdigest()
        return f"charge-once-{NAME}-{digest[:12]}"

    def command(self, emulator_url: str, wait_scale: float) -> list[str]:
        """The command line that runs it in the foreground."""
        seen = self.seen_by_it(emulator_url)
        network = (
            ["--publish", f"127.0.0.1:{self.port}:{PORT}"]
            if self.is_desktop
            else ["--network", "host"]
        )
        settings = {
            "AWS_ACCOUNT_ID": ACCOUNT_ID,
            "AWS_DEFAULT_REGION": stack.LOCAL_REGION,
            "AWS_ACCESS_KEY_ID": stack.LOCAL_CREDENTIALS["aws_access_key_id"],
            "AWS_SECRET_ACCESS_KEY": stack.LOCAL_CREDENTIALS["aws_secret_access_key"],
            "LAMBDA_ENDPOINT": seen,
            "DYNAMODB_ENDPOINT": seen,
            "SQS_ENDPOINT": seen,
            "STEP_FUNCTIONS_ENDPOINT": seen,
            "WAIT_TIME_SCALE": str(wait_scale),
        }
        mount: list[str] = []
        if self.mocks is not None:
            mount = [
                "--mount",
                f"type=bind,readonly,source={self.mocks},destination={_CONTAINER_MOCKS}",
            ]
            settings[MOCKS_VARIABLE] = _CONTAINER_MOCKS
        return [
            *(self.docker, "run", "--rm", "--name", self.name),
            *network,
            *mount,
            *(word for name, value in settings.items() for word in ("--env", f"{name}={value}")),
            IMAGE,
        ]

    def prepare(self) -> None:
        """Fetch the image, which can take longer than any start, and note the container's name."""
        if not self.is_desktop:
            _require_free(self.port)
        there = [self.docker, "image", "inspect", IMAGE]
        if subprocess.run(there, capture_output=True, check=False).returncode != 0:
            pulled = subprocess.run(
                [self.docker, "pull", "--quiet", IMAGE], capture_output=True, text=True, check=False
            )
            if pulled.returncode != 0:
                raise CommandError(f"docker pull {IMAGE} failed: {pulled.stderr.strip()}")
        state_folder().mkdir(parents=True, exist_ok=True)
        (state_folder() / _CONTAINER_FILE).write_text(self.name)


Program = Jar | Container


def find(shell: Mapping[str, str] = os.environ) -> Program:
    """The JAR that the shell names, else the image where a Docker engine answers.

    Raises CommandError that says what is missing and how to get it.
    """
    if named := shell.get(JAR_VARIABLE):
        return _jar(named)
    mocks = shell.get(MOCKS_VARIABLE)
    docker = shutil.which("docker")
    system = _output([docker, "info", "--format", "{{.OperatingSystem}}"]) if docker else ""
    if docker is None or not system:
        raise CommandError(HOW_TO_GET_IT)
    is_desktop = "Docker Desktop" in system
    return Container(
        docker=docker,
        is_desktop=is_desktop,
        port=free_port(PORT) if is_desktop else PORT,
        mocks=Path(mocks).resolve() if mocks else None,
    )


def _jar(named: str) -> Jar:
    path = Path(named).expanduser().resolve()
    if not path.is_file() or not os.access(path, os.R_OK):
        raise CommandError(f"{JAR_VARIABLE} names {path}, which is no readable file.")
    java = shutil.which("java")
    if java is None:
        raise CommandError(
            f"Step Functions Local needs Java {JAVA_VERSION}, and there is no `java` on the PATH."
        )
    found = _output([java, "-version"])
    version = java_version(found)
    if version is None or version < JAVA_VERSION:
        said = found.splitlines()[0] if found else "nothing"
        raise CommandError(
            f"Step Functions Local needs Java {JAVA_VERSION} or newer; {java} says {said!r}."
        )
    return Jar(java, path, PORT)


def java_version(text: str) -> int | None:
    """The feature release in what `java -version` says: 17 of "17.0.15", 8 of "1.8.0_201"."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


def _output(command: list[str]) -> str:
    """What a command says on stdout or, as Java does, on stderr; nothing when it fails."""
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=QUESTION_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (result.stdout or result.stderr).strip() if result.returncode == 0 else ""


def _require_free(port: int) -> None:
    with socket.socket() as caller:
        if caller.connect_ex(("127.0.0.1", port)) == 0:
            raise CommandError(
                f"Step Functions Local listens on port {port} and on no other, and something "
                f"does already: stop that first."
            )


def url(program: Program) -> str:
    """Where it answers."""
    return f"http://127.0.0.1:{program.port}"


def start(program: Program, emulator_url: str, wait_scale: float) -> None:
    """Start it, prepared, in the background and wait until it answers.

    Raises CommandError when it ends first, or does not answer in time.
    """
    process = processes.start(
        NAME, program.command(emulator_url, wait_scale), processes.clean_environment()
    )
    processes.wait_until(lambda: answers(url(program)), NAME, process)


def answers(engine_url: str) -> bool:
    """Whether Step Functions answers there."""
    client = stack.client("stepfunctions", stack.LOCAL_REGION, engine_url, attempts=1)
    try:
        client.list_state_machines(maxResults=1)
    except (BotoCoreError, ClientError):
        return False
    return True


def stop_container() -> None:
    """Stop the container of this stack, if one was started; a JAR ends with its process."""
    note = state_folder() / _CONTAINER_FILE
    if not note.exists():
        return
    if docker := shutil.which("docker"):
        # Not there (any more) is as good as stopped.
        subprocess.run([docker, "stop", note.read_text()], capture_output=True, check=False)
    note.unlink()
