"""A stand-in for `docker`, as far as Step Functions Local needs one.

Checks the command line, and runs the other stand-in where an engine would run the container.
STAND_IN_DOCKER_SYSTEM is what the engine runs on; without it there is a client but no engine.
What was asked is noted in STAND_IN_DOCKER_LOG, a line each.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from tests.step_functions_local import stand_in

IMAGE = "amazon/aws-stepfunctions-local"
SYSTEM_VARIABLE = "STAND_IN_DOCKER_SYSTEM"
LOG_VARIABLE = "STAND_IN_DOCKER_LOG"

#: Variables that the documentation of the program names, and those of every AWS SDK.
FLAGS = {
    "AWS_ACCOUNT_ID": "--aws-account",
    "AWS_DEFAULT_REGION": "--aws-region",
    "WAIT_TIME_SCALE": "--wait-time-scale",
    "LAMBDA_ENDPOINT": "--lambda-endpoint",
    "DYNAMODB_ENDPOINT": "--dynamodb-endpoint",
    "SQS_ENDPOINT": "--sqs-endpoint",
    "STEP_FUNCTIONS_ENDPOINT": "--step-functions-endpoint",
}
OTHERS = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "SFN_MOCK_CONFIG"}


def main(arguments: list[str]) -> None:
    """What `docker ARGUMENTS` does; exit status 1 where it fails."""
    log = Path(os.environ[LOG_VARIABLE])
    with log.open("a") as lines:
        lines.write(json.dumps(arguments) + "\n")
    system = os.environ.get(SYSTEM_VARIABLE)
    if not system:
        sys.exit("Cannot connect to the Docker daemon")
    match arguments:
        case ["info", "--format", "{{.OperatingSystem}}"]:
            print(system)
        case ["image", "inspect", image]:
            sys.exit(image != IMAGE)
        case ["run", *rest]:
            run(parse(rest), log.parent)
        case ["stop", name]:
            os.kill(int((log.parent / f"{name}.pid").read_text()), signal.SIGTERM)
        case _:
            sys.exit(f"unknown: {arguments}")


def parse(arguments: list[str]) -> argparse.Namespace:
    """The flags of `docker run` that we use; exit status 2 for others."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--rm", action="store_true", required=True)
    parser.add_argument("--name", required=True)
    network = parser.add_mutually_exclusive_group(required=True)
    network.add_argument("--network", choices=["host"])
    network.add_argument("--publish")
    parser.add_argument("--mount")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("image", choices=[IMAGE])
    return parser.parse_args(arguments)


def run(options: argparse.Namespace, folder: Path) -> None:
    """Run the program in the foreground, as a container on the machine's network would."""
    settings = dict(setting.split("=", 1) for setting in options.env)
    if unknown := settings.keys() - FLAGS.keys() - OTHERS:
        sys.exit(f"unknown: {unknown}")
    (folder / f"{options.name}.pid").write_text(str(os.getpid()))
    flags = [word for name, flag in FLAGS.items() for word in (flag, settings[name])]
    stand_in.main(["-jar", os.devnull, *flags])


if __name__ == "__main__":
    main(sys.argv[1:])
