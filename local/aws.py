"""The stack on AWS: the environments of samconfig.toml, and `make deploy`.

Everything here uses the shell's own AWS credentials; only AWS_ENDPOINT_URL leads elsewhere.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from local import deploy as deployment
from local import scratch
from local.definition import load_template
from local.errors import CommandError
from local.paths import PROJECT
from local.processes import sam
from local.progress import step
from local.stack import Stack, load_aws

SAMCONFIG = PROJECT / "samconfig.toml"


@dataclass(frozen=True)
class Environment:
    """One section of samconfig.toml. `parameters` differ from the template's defaults."""

    name: str
    stack_name: str
    region: str | None
    parameters: dict[str, str]

    @property
    def python(self) -> str:
        """The runtime of the functions, which `sam build` needs on this machine."""
        default = str(load_template()["Parameters"]["PythonVersion"]["Default"])
        return self.parameters.get("PythonVersion", default)


def environment(name: str) -> Environment:
    """The environment `name`. Raises CommandError for one that samconfig.toml does not have."""
    sections = tomllib.loads(SAMCONFIG.read_text())
    try:
        settings = sections[name]["deploy"]["parameters"]
    except (KeyError, TypeError):
        known = ", ".join(one for one in sections if one not in ("version", "local"))
        raise CommandError(f"samconfig.toml has no environment {name}: it has {known}.") from None
    overrides = settings.get("parameter_overrides", "")
    pairs = overrides if isinstance(overrides, list) else shlex.split(overrides)
    return Environment(
        name=name,
        stack_name=settings["stack_name"],
        region=settings.get("region"),
        parameters=dict(pair.split("=", 1) for pair in pairs),
    )


def is_deployed(wanted: Environment) -> bool:
    """Whether its stack exists. Raises CommandError when AWS cannot be asked."""
    try:
        cloudformation = boto3.Session(region_name=wanted.region).client("cloudformation")
        cloudformation.describe_stacks(StackName=wanted.stack_name)
    except ClientError as error:
        if "does not exist" in error.response["Error"].get("Message", ""):
            return False
        raise CommandError(f"AWS cannot be asked for {wanted.stack_name}: {error}") from error
    except BotoCoreError as error:
        raise CommandError(
            f"AWS cannot be asked for {wanted.stack_name}: {error} "
            "(credentials and region come from the shell: try `aws sts get-caller-identity`)"
        ) from error
    return True


def deploy(name: str, changed: dict[str, str], *, confirm: bool = True) -> Stack:
    """Build and deploy the environment `name`; the first time, sam asks for every parameter.

    `changed` are parameters for this deployment alone. With `confirm`, sam shows the change set
    and asks; without, it asks nothing. Raises CommandError.
    """
    wanted = environment(name)
    wanted.parameters.update(changed)
    if shutil.which(wanted.python) is None:
        raise CommandError(
            f"sam build needs {wanted.python} on the PATH, since the functions run on it: install "
            f"it, or choose another: make deploy ENV={name} ARGS=PythonVersion=python3.12"
        )
    asked = [] if confirm else ["--no-confirm-changeset"]
    if confirm and not is_deployed(wanted):
        asked = ["--guided"]
    with step("Build the functions (sam build)"):
        built = deployment.build(wanted.parameters)
    try:
        _sam_deploy(built, wanted, asked)
    finally:
        shutil.rmtree(built)
    # Guided, sam may have been told another name or region.
    settled = environment(name)
    with step("Read the outputs"):
        return load_aws(settled.stack_name, settled.region)


def _sam_deploy(built: Path, wanted: Environment, asked: list[str]) -> None:
    """Run sam deploy on this terminal, so that it can ask and show. Raises CommandError."""
    # In quotes, as sam wants a value with a space in it, such as a schedule.
    overrides = [f'{key}="{value}"' for key, value in wanted.parameters.items()]
    with scratch.folder() as folder:
        result = subprocess.run(
            [
                *(*sam(), "deploy"),
                *("--template-file", str(built / "template.yaml")),
                *("--config-file", str(SAMCONFIG)),
                *("--config-env", wanted.name),
                *(["--parameter-overrides", *overrides] if overrides else []),
                *asked,
            ],
            cwd=PROJECT,
            env=os.environ | {"SAM_CLI_TELEMETRY": "0", "TMPDIR": str(folder)},
            check=False,
        )
    if result.returncode != 0:
        raise CommandError(f"sam deploy ended with exit status {result.returncode}.")


def links(stack: Stack) -> list[dict[str, str]]:
    """Where to look in the AWS console: `[{"what", "where"}]`."""
    console = f"https://{stack.region}.console.aws.amazon.com"
    queue = stack.failure_queue_url.replace(":", "%3A").replace("/", "%2F")
    return [
        {"what": "state machine and executions", "where": stack.outputs["ConsoleUrl"]},
        {"what": "dashboard", "where": stack.outputs["Dashboard"]},
        {
            "what": "failure queue",
            "where": f"{console}/sqs/v3/home?region={stack.region}#/queues/{queue}",
        },
        {
            "what": "ledger",
            "where": f"{console}/dynamodbv2/home?region={stack.region}"
            f"#item-explorer?table={stack.table}",
        },
        {
            "what": "order bucket",
            "where": f"{console}/s3/buckets/{stack.bucket}?region={stack.region}&prefix=orders/",
        },
    ]
