"""The local stack's life: up, and down again without a trace."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from local import deploy, processes, stack
from local.errors import CommandError
from local.locks import exclusive
from local.paths import state_folder
from local.progress import errors, step

#: The usual port of AWS emulators, StackPort's own, and the next for our page. Taken when free,
#: else the system picks.
EMULATOR_PORT = 4566
CONSOLE_PORT = 8080
PAGE_PORT = 8081

#: Retry waits of the state machine, scaled: minutes on AWS, seconds here.
WAIT_SCALE = 0.02
#: Lambda's first asynchronous retry; 60 s on AWS. Above the charge function's time-out, as there.
ASYNC_RETRY_SECONDS = 15

SHOWN_VERSIONS = ("ministack", "stackport", "aws-sam-cli", "awslambdaric", "boto3")


def up(wait_scale: float = WAIT_SCALE) -> stack.Stack:
    """Start the local stack, or give the one that is up already.

    What an earlier run left behind half-dead is stopped first. Raises CommandError with what to
    do when something is missing; then, and on Ctrl-C, nothing stays behind.
    """
    with _alone():
        if running := healthy():
            errors.print("The local stack is up already.")
            return running
        if processes.stop_all():
            errors.print("Stopped what was left of an earlier run.")
        try:
            return _start(wait_scale)
        except BaseException:
            _stop()
            raise


def down() -> int:
    """Stop the local stack. Gives the number of processes that were stopped."""
    with _alone():
        return _stop()


def healthy() -> stack.Stack | None:
    """The local stack, if its emulator, its console and its page answer."""
    try:
        found = stack.load_local()
    except CommandError:
        return None
    addresses = [f"{found.endpoint}/_ministack/health", found.console_url, found.page_url]
    return found if all(processes.answers(url) for url in addresses if url) else None


def _start(wait_scale: float) -> stack.Stack:
    parameters = deploy.local_parameters()
    with ThreadPoolExecutor() as pool:
        building = pool.submit(deploy.build, parameters)
        with step("Start the emulator"):
            endpoint = _start_emulator(wait_scale)
        with step("Build the functions (sam build)"):
            built = building.result()
    with step("Deploy the template (sam deploy)"):
        deployed = deploy.deploy(built, endpoint, parameters)
    console_port = processes.free_port(CONSOLE_PORT)
    page_port = processes.free_port(PAGE_PORT)
    complete = replace(
        deployed,
        console_url=f"http://127.0.0.1:{console_port}",
        page_url=f"http://127.0.0.1:{page_port}",
        versions={name: importlib.metadata.version(name) for name in SHOWN_VERSIONS}
        | {"python": platform.python_version()},
    )
    stack.save(complete)  # the page reads it
    with step("Start the console (StackPort) and the page"), ThreadPoolExecutor() as pool:
        for starting in (
            pool.submit(_start_console, endpoint, console_port),
            pool.submit(_start_page, page_port),
        ):
            starting.result()
    return complete


def _start_emulator(wait_scale: float) -> str:
    port = processes.free_port(EMULATOR_PORT)
    endpoint = f"http://127.0.0.1:{port}"
    arguments = [
        *(sys.executable, "-m", "local.emulator"),
        *("--port", str(port)),
        *("--region", stack.LOCAL_REGION),
        *("--wait-scale", str(wait_scale)),
        *("--async-retry-base-seconds", str(ASYNC_RETRY_SECONDS)),
    ]
    process = processes.start("emulator", arguments, processes.clean_environment())
    processes.wait_until(
        lambda: processes.answers(f"{endpoint}/_ministack/health"), "emulator", process
    )
    return endpoint


def _start_console(endpoint: str, port: int) -> None:
    # StackPort's own `serve` listens on every interface; its app does as it is told.
    arguments = [
        *(sys.executable, "-m", "uvicorn", "backend.main:app"),
        *("--host", "127.0.0.1"),
        *("--port", str(port)),
        *("--log-level", "warning"),
    ]
    environment = processes.clean_environment() | {
        "HOME": str(state_folder()),
        "AWS_ENDPOINT_URL": endpoint,
        "STACKPORT_PORT": str(port),
        "STACKPORT_ALLOW_WRITES": "false",
        "STACKPORT_LEARN": "false",
        "STACKPORT_SERVICES": "s3,sqs,dynamodb,lambda,events,logs,secretsmanager,cloudformation,"
        "stepfunctions,monitoring",
    }
    process = processes.start("console", arguments, environment)
    processes.wait_until(lambda: processes.answers(f"http://127.0.0.1:{port}"), "console", process)


def _start_page(port: int) -> None:
    arguments = [sys.executable, "-m", "local.page", "--port", str(port)]
    process = processes.start("page", arguments, processes.clean_environment())
    processes.wait_until(
        lambda: processes.answers(f"http://127.0.0.1:{port}/healthz"), "page", process
    )


def _stop() -> int:
    stopped = processes.stop_all()
    (state_folder() / stack.STACK_FILE).unlink(missing_ok=True)
    return stopped


def _alone() -> contextlib.AbstractContextManager[None]:
    """The state folder's lock, so that two shells cannot start or stop at once."""
    return exclusive(state_folder() / "lock", "another shell that starts or stops this stack")
