"""`sam build` and `sam deploy` of the real template, onto the emulator."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from local import scratch
from local.errors import CommandError
from local.locks import exclusive
from local.paths import PROJECT, TEMPLATE, state_folder
from local.processes import clean_environment, sam
from local.stack import LOCAL_REGION, LOCAL_STACK, Stack, client

BUILDS = PROJECT / ".local" / "builds"
ARTIFACTS_BUCKET = "charge-once-artifacts"
_CONFIGURATION = ("--config-file", str(PROJECT / "samconfig.toml"), "--config-env", "local")
#: What sam says when pip does not get the functions' requirements.
_NO_REQUIREMENTS = "PythonPipBuilder:ResolveDependencies"
SUPPORTED_PYTHONS = ((3, 11), (3, 12), (3, 13), (3, 14))


def local_parameters() -> dict[str, str]:
    """The template parameters of a local run: everything in which it differs from AWS."""
    version = sys.version_info[:2]
    if version not in SUPPORTED_PYTHONS:
        supported = ", ".join(f"{major}.{minor}" for major, minor in SUPPORTED_PYTHONS)
        raise CommandError(
            f"Python {version[0]}.{version[1]} is no Lambda runtime of the template: "
            f"use one of {supported}, for example `make local PYTHON=python3.13`."
        )
    machine = platform.machine().lower()
    return {
        # The functions run on this machine's Python and processor.
        "PythonVersion": f"python{version[0]}.{version[1]}",
        "Architecture": "arm64" if machine in {"arm64", "aarch64"} else "x86_64",
        # Rehearsals are what a local run is for.
        "FaultInjection": "on",
        # A local ledger is thrown away with the emulator.
        "Protection": "off",
        # Shorter, so that a time-out is seen in seconds; in the same order as on AWS.
        "ProviderTimeoutSeconds": "3",
        "ChargeTimeoutSeconds": "12",
        "GraceMinutes": "1",
    }


def build(parameters: dict[str, str]) -> Path:
    """Build the functions; gives the folder for `deploy`."""
    return _build(LOCAL_STACK, TEMPLATE, parameters)


def deploy(
    built: Path, endpoint: str, parameters: dict[str, str], name: str = LOCAL_STACK
) -> Stack:
    """Deploy what `build` made to the emulator at `endpoint`, as the stack `name`."""
    return _deploy(name, built, endpoint, parameters)


def deploy_beside(running: Stack, template: Path, name: str, parameters: dict[str, str]) -> Stack:
    """Build a second template and deploy it as the stack `name`, to the emulator of `running`.

    Harmless when it is there already: only what has changed is deployed.
    """
    if running.endpoint is None:
        raise CommandError(f"{running.name} is on AWS: nothing is deployed beside it from here.")
    return _deploy(name, _build(name, template, parameters), running.endpoint, parameters)


def _build(name: str, template: Path, parameters: dict[str, str]) -> Path:
    """Build once for all local runs of this project, then copy.

    Unchanged functions are not built again, whichever run built them: their requirements come
    from the network, which may be slow, or gone.
    """
    shared = BUILDS / name
    # As deep as the original, since the built template names the definition by a relative path.
    copy = shared / f"of-{os.getpid()}"
    with exclusive(shared / "lock", "another build") as lock:
        _remove_left_copies(shared)
        _sam(
            "build",
            *("--template-file", str(template)),
            *("--build-dir", str(shared / "build")),
            *("--cache-dir", str(shared / "cache")),
            *("--base-dir", str(template.parent)),
            "--cached",
            "--parallel",
            *_overrides(parameters),
            # When this process is killed, sam still writes there.
            holding=[lock],
        )
        shutil.copytree(shared / "build", copy)
    return copy


def _remove_left_copies(shared: Path) -> None:
    """Remove this process's last copy, and those of processes that were killed."""
    for copy in shared.glob("of-*"):
        owner = copy.name.removeprefix("of-")
        if owner.isdecimal() and (int(owner) == os.getpid() or not psutil.pid_exists(int(owner))):
            shutil.rmtree(copy, ignore_errors=True)


def _deploy(name: str, built: Path, endpoint: str, parameters: dict[str, str]) -> Stack:
    try:
        client("s3", LOCAL_REGION, endpoint).create_bucket(Bucket=ARTIFACTS_BUCKET)
        _sam(
            "deploy",
            *("--template-file", str(built / "template.yaml")),
            *("--stack-name", name),
            "--no-fail-on-empty-changeset",
            *_overrides(parameters),
            endpoint=endpoint,
        )
    finally:
        shutil.rmtree(built)
    cloudformation = client("cloudformation", LOCAL_REGION, endpoint)
    description = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    return Stack(
        name=name,
        region=LOCAL_REGION,
        endpoint=endpoint,
        outputs={item["OutputKey"]: item["OutputValue"] for item in description["Outputs"]},
    )


def _overrides(parameters: dict[str, str]) -> list[str]:
    return ["--parameter-overrides", *(f"{name}={value}" for name, value in parameters.items())]


def _sam(
    command: str, *arguments: str, endpoint: str | None = None, holding: Sequence[int] = ()
) -> None:
    """Run a sam command quietly; on failure raise CommandError with the end of what it said."""
    environment = clean_environment() | {
        "SAM_CLI_TELEMETRY": "0",
        # Its own folder, so that a read-only home does not matter.
        "__SAM_CLI_APP_DIR": str(state_folder() / "sam"),
        # The emulator is done at once; AWS is polled every 5 s.
        "SAM_CLI_POLL_DELAY": "0.2",
    }
    if endpoint is not None:
        environment["AWS_ENDPOINT_URL"] = endpoint
    # sam leaves an empty folder for each package that it uploads.
    with scratch.folder() as folder:
        result = subprocess.run(
            [*sam(), command, *arguments, *_CONFIGURATION],
            cwd=PROJECT,
            env=environment | {"TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            pass_fds=holding,
        )
    log = state_folder() / "logs" / f"sam-{command}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(result.stdout + result.stderr)
    if result.returncode != 0:
        raise CommandError(_failure(command, (result.stdout + result.stderr).strip(), log))


def _failure(command: str, said: str, log: Path) -> str:
    tail = "\n".join(said.splitlines()[-20:])
    message = f"sam {command} failed (all of it in {log}):\n{tail}"
    if _NO_REQUIREMENTS not in said:
        return message
    return (
        f"{message}\n\npip did not get what functions/*/requirements.txt pins. It is asked for it "
        "once, and after each change of these files: then the package index must be reachable. Try "
        "again with a network, or name an index or a folder that has the packages, with "
        "PIP_INDEX_URL=https://… or PIP_FIND_LINKS=/folder PIP_NO_INDEX=1."
    )
