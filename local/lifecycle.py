"""The local stack's life: up, and down again without a trace."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Literal

from botocore.exceptions import ClientError

from local import deploy, processes, scratch, stack
from local.errors import CommandError
from local.locks import exclusive
from local.paths import state_folder
from local.ports import free_port
from local.progress import errors, step
from local.step_functions_local import program as step_functions_local

#: The usual port of AWS emulators, StackPort's own, and the next for our page. Taken when free,
#: else the system picks.
EMULATOR_PORT = 4566
CONSOLE_PORT = 8080
PAGE_PORT = 8081

#: Retry waits of the state machine, scaled: minutes on AWS, seconds here.
WAIT_SCALE = 0.02
#: Lambda's first asynchronous retry; 60 s on AWS. Above the charge function's time-out, as there.
ASYNC_RETRY_SECONDS = 15

#: What can run the executions: the emulator itself, or the official program beside it.
EngineName = Literal["ministack", "step-functions-local"]

SHOWN_VERSIONS = ("ministack", "stackport", "aws-sam-cli", "awslambdaric", "boto3")


def up(
    wait_scale: float = WAIT_SCALE,
    *,
    engine: EngineName | None = None,
    emulator_flags: Sequence[str] = (),
    shown: bool = True,
) -> stack.Stack:
    """Start the local stack, or give the one that is up already.

    `engine` is by default that of the stack that is up, else the emulator itself. When only Step
    Functions Local has ended, it is started again, and the stack keeps what it holds.
    `emulator_flags` are further ones of `python -m local.emulator`. Not `shown`: without console
    and page, for runs that nobody looks at.

    What an earlier run left behind half-dead is stopped first. Raises CommandError with what to
    do when something is missing; then, and on Ctrl-C, nothing stays behind.
    """
    with _alone():
        if standing := _standing():
            return _carry_on(standing, wait_scale, engine)
        if processes.stop_all():
            errors.print("Stopped what was left of an earlier run.")
        try:
            return _start(wait_scale, engine or "ministack", emulator_flags, shown=shown)
        except BaseException:
            _stop()
            raise


def down() -> int:
    """Stop the local stack. Gives the number of processes that were stopped."""
    with _alone():
        return _stop()


def is_ours(running: stack.Stack) -> bool:
    """Whether this very process started `running`, and nobody has replaced it since."""
    try:
        return stack.load_local() == running and running.started_by == os.getpid()
    except CommandError:
        return False


def healthy() -> stack.Stack | None:
    """The local stack, if its emulator, its engine, its console and its page answer."""
    found = _standing()
    return found if found and _has_its_engine(found) else None


def _standing() -> stack.Stack | None:
    """The local stack, if all of it answers but perhaps its engine."""
    try:
        found = stack.load_local()
    except CommandError:
        return None
    addresses = [f"{found.endpoint}/_ministack/health", found.console_url, found.page_url]
    is_up = all(processes.answers(url, processes.BUSY_SECONDS) for url in addresses if url)
    return found if is_up else None


def _has_its_engine(found: stack.Stack) -> bool:
    return found.engine_url is None or step_functions_local.answers(found.engine_url)


def _carry_on(standing: stack.Stack, wait_scale: float, engine: str | None) -> stack.Stack:
    """The stack that is up, with its engine running."""
    if engine not in {None, standing.engine}:
        raise CommandError(
            f"The local stack is up with the engine {standing.engine}: stop it with `make down`."
        )
    if _has_its_engine(standing):
        errors.print("The local stack is up already.")
        return standing
    program = _look_for_step_functions_local()
    if step_functions_local.url(program) != standing.engine_url:
        raise CommandError(
            f"Step Functions Local was at {standing.engine_url} and would now be at "
            f"{step_functions_local.url(program)}: stop the stack with `make down`."
        )
    with step("Start Step Functions Local again"):
        step_functions_local.start(program, str(standing.endpoint), wait_scale)
    return standing


def _start(
    wait_scale: float, engine: str, emulator_flags: Sequence[str], *, shown: bool
) -> stack.Stack:
    program = _look_for_step_functions_local() if engine == step_functions_local.NAME else None
    parameters = deploy.local_parameters()
    with ThreadPoolExecutor() as pool:
        building = pool.submit(deploy.build, parameters)
        with step("Start the emulator"):
            endpoint = _start_emulator(wait_scale, emulator_flags, program)
        if program:
            with step("Start Step Functions Local"):
                step_functions_local.start(program, endpoint, wait_scale)
        with step("Build the functions (sam build)"):
            built = building.result()
    with step("Deploy the template (sam deploy)"):
        deployed = deploy.deploy(built, endpoint, parameters)
    if program:
        deployed = replace(deployed, engine_url=step_functions_local.url(program))
        with step("Give it the state machine"):
            _introduce(deployed)
    complete = replace(
        deployed,
        engine=engine,
        started_by=os.getpid(),
        versions={name: importlib.metadata.version(name) for name in SHOWN_VERSIONS}
        | {"python": platform.python_version()},
    )
    if not shown:
        stack.save(complete)
        return complete
    console_port = free_port(CONSOLE_PORT)
    page_port = free_port(PAGE_PORT)
    complete = replace(
        complete,
        console_url=f"http://127.0.0.1:{console_port}",
        page_url=f"http://127.0.0.1:{page_port}",
    )
    stack.save(complete)  # the page reads it
    with step("Start the console (StackPort) and the page"), ThreadPoolExecutor() as pool:
        for starting in (
            pool.submit(_start_console, endpoint, console_port),
            pool.submit(_start_page, page_port),
        ):
            starting.result()
    return complete


def _look_for_step_functions_local() -> step_functions_local.Program:
    with step("Look for Step Functions Local"):
        program = step_functions_local.find()
        program.prepare()
    return program


def _introduce(deployed: stack.Stack) -> None:
    """Let Step Functions Local meet the state machine now, and not with the first order."""
    client = deployed.client("stepfunctions")
    try:
        client.list_executions(stateMachineArn=deployed.state_machine_arn)
    except ClientError as error:
        raise CommandError(f"Step Functions Local refuses the state machine: {error}") from error


def _start_emulator(
    wait_scale: float, flags: Sequence[str], program: step_functions_local.Program | None
) -> str:
    port = free_port(EMULATOR_PORT)
    endpoint = f"http://127.0.0.1:{port}"
    if program:
        flags = [
            *flags,
            *("--step-functions-endpoint", step_functions_local.url(program)),
            *("--seen-by-step-functions", program.seen_by_it(endpoint)),
        ]
    arguments = [
        *(sys.executable, "-m", "local.emulator"),
        *("--port", str(port)),
        *("--region", stack.LOCAL_REGION),
        *("--wait-scale", str(wait_scale)),
        *("--async-retry-base-seconds", str(ASYNC_RETRY_SECONDS)),
        *flags,
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
    # StackPort prefers the endpoint that it remembers, which was an earlier run's.
    remembered = state_folder() / "charge-once-console"
    shutil.rmtree(remembered, ignore_errors=True)
    environment = processes.clean_environment() | {
        "HOME": str(state_folder()),
        "STACKPORT_DATA_DIR": str(remembered),
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
    step_functions_local.stop_container()
    stopped = processes.stop_all()
    scratch.sweep()
    (state_folder() / stack.STACK_FILE).unlink(missing_ok=True)
    return stopped


def _alone() -> contextlib.AbstractContextManager[int]:
    """The state folder's lock, so that two shells cannot start or stop at once."""
    return exclusive(state_folder() / "lock", "another shell that starts or stops this stack")
