"""A deployed stack, on this machine or on AWS, and the clients that reach it."""

from __future__ import annotations

import functools
import ipaddress
import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlsplit

from local.errors import CommandError
from local.paths import state_folder
from local.waiting import POLL_SECONDS

#: The local stack's own name, region and throw-away credentials, whatever the shell holds.
LOCAL_STACK = "charge-once"
LOCAL_REGION = "us-east-1"
LOCAL_CREDENTIALS = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}

STACK_FILE = "stack.json"

#: (name in the file, environment variable, default, conversion): no variable, an empty file.
#: Otherwise AWS_PROFILE and ~/.aws decide about local clients, if only by being broken.
_NOTHING_OF_THE_SHELL = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}


def require_loopback(url: str) -> str:
    """Return `url` when its host is this machine.

    Raises CommandError otherwise: a local run must never reach a real AWS account.
    """
    host = urlsplit(url).hostname or ""
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    if not is_loopback:
        raise CommandError(f"{url} is not a loopback address: a local run talks to nothing else.")
    return url


@dataclass(frozen=True)
class Stack:
    """What the other commands need to know of a stack.

    `endpoint` is the emulator's address, and None on AWS. `outputs` are the template's outputs.
    `started_by` is the process that started a local one.
    `engine_url` is where executions run, when that is not in the emulator itself.
    """

    name: str
    region: str
    endpoint: str | None
    outputs: dict[str, str]
    engine: str = "ministack"
    engine_url: str | None = None
    console_url: str | None = None
    page_url: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    started_by: int | None = None

    def client(self, service: str) -> Any:
        """A boto3 client for `service`, made once. Local ones can only reach loopback."""
        return client(service, self.region, self.endpoint)

    @property
    def poll_seconds(self) -> float:
        """How often to ask while waiting: AWS limits such questions to a few a second."""
        return 1.0 if self.endpoint is None else POLL_SECONDS

    def output(self, name: str) -> str:
        """An output of the template. Raises CommandError where the stack has no such output."""
        try:
            return self.outputs[name]
        except KeyError:
            raise CommandError(
                f"{self.name} has no output {name}: it was not deployed with this template."
            ) from None

    @property
    def bucket(self) -> str:
        return self.output("OrderBucket")

    @property
    def table(self) -> str:
        return self.output("LedgerTable")

    @property
    def failure_queue_url(self) -> str:
        return self.output("FailureQueueUrl")

    @property
    def state_machine_arn(self) -> str:
        return self.output("StateMachineArn")

    def execution_arn(self, name: str) -> str:
        """The ARN of the execution `name`; an ARN stays as it is."""
        if name.startswith("arn:"):
            return name
        return f"{self.state_machine_arn.replace(':stateMachine:', ':execution:', 1)}:{name}"

    @property
    def provider_url(self) -> str:
        return self.output("ProviderUrl").rstrip("/")

    @property
    def fault_table(self) -> str:
        """Raises CommandError where the stack was deployed without fault injection."""
        try:
            return self.outputs["FaultTable"]
        except KeyError:
            raise CommandError(
                "This stack was deployed with FaultInjection=off: it takes no faults."
            ) from None

    def status(self) -> dict[str, Any]:
        """The document that `status --json` prints."""
        return {
            "endpoint": self.endpoint,
            "region": self.region,
            "bucket": self.bucket,
            "table": self.table,
            "failure_queue_url": self.failure_queue_url,
            "state_machine_arn": self.state_machine_arn,
            "provider_url": self.provider_url,
            "page_url": self.page_url,
            "console_url": self.console_url,
            "engine": self.engine,
            "versions": self.versions,
        }


@functools.cache
def client(service: str, region: str, endpoint: str | None, attempts: int = 5) -> Any:
    """A boto3 client, made once. With an `endpoint`, it holds throw-away credentials only."""
    import boto3  # noqa: PLC0415 - slow to import, and not every command asks AWS
    import botocore.session  # noqa: PLC0415
    from botocore.config import Config  # noqa: PLC0415

    retries: Any = {"mode": "standard", "total_max_attempts": attempts}
    config = Config(retries=retries, max_pool_connections=64)
    if endpoint is None:
        return boto3.Session(region_name=region).client(service, config=config)  # type: ignore[call-overload]
    core = botocore.session.Session(session_vars=_NOTHING_OF_THE_SHELL)
    session = boto3.Session(botocore_session=core, region_name=region, **LOCAL_CREDENTIALS)
    # No proxy of the shell either: it would be handed what belongs on this machine.
    config = config.merge(Config(s3={"addressing_style": "path"}, proxies={}))
    return session.client(  # type: ignore[call-overload]
        service, endpoint_url=require_loopback(endpoint), config=config
    )


def save(stack: Stack) -> None:
    """Write down the local stack for the other commands, which see all of it or nothing."""
    path = state_folder() / STACK_FILE
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(asdict(stack), indent=2) + "\n")
    unfinished.replace(path)


def load_local() -> Stack:
    """The local stack. Raises CommandError when none is up, or what describes it is broken."""
    path = state_folder() / STACK_FILE
    try:
        return _local(json.loads(path.read_text()))
    except FileNotFoundError:
        raise CommandError("No local stack is up: start one with `make up`.") from None
    except (CommandError, TypeError, ValueError) as error:
        raise CommandError(
            f"{path} does not describe a local stack: {error}\n"
            "`make up` stops what is left of that stack and starts another."
        ) from error


def _local(described: Any) -> Stack:
    """Raises CommandError, TypeError or ValueError for anything but a stack on this machine."""
    stack = Stack(**described)
    for names in (stack.outputs, stack.versions):
        if not isinstance(names, dict):
            raise TypeError(f"{names!r} is no object")
    texts = [stack.name, stack.region, stack.endpoint, stack.engine]
    texts += [*stack.outputs.values(), *stack.versions.values()]
    texts += [url for url in (stack.engine_url, stack.console_url, stack.page_url) if url]
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{text!r} is no text")
    # Without one, or with another, the shell's own credentials would be used, on the real AWS.
    require_loopback(str(stack.endpoint))
    return stack


def load_aws(name: str, region: str | None = None) -> Stack:
    """The stack `name` on AWS, with the shell's own credentials.

    Raises CommandError when it cannot be described.
    """
    import boto3  # noqa: PLC0415 - see client
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    session = boto3.Session(region_name=region)
    try:
        client = session.client("cloudformation")
        description = client.describe_stacks(StackName=name)["Stacks"][0]
    except (BotoCoreError, ClientError) as error:
        raise CommandError(
            f"Stack {name} cannot be described in {session.region_name or 'no region'}: {error}"
            + (
                ""
                if region
                else " Another region is named by AWS_DEFAULT_REGION, or by AWS_PROFILE."
            )
        ) from error
    outputs = {item["OutputKey"]: item["OutputValue"] for item in description.get("Outputs", [])}
    return Stack(
        name=name,
        region=session.region_name,
        endpoint=None,
        outputs=outputs,
        engine="aws",
        console_url=outputs.get("ConsoleUrl"),
    )
