"""Mends of AWS Lambda."""

import contextvars
import io
import os
import select
import shlex
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from local.emulator import environment, upstream

# What AWS's Python runtimes bring along; anything else must be in the function's own package.
_RUNTIME_DISTRIBUTIONS = (
    "awslambdaric",
    "boto3",
    "botocore",
    "jmespath",
    "python-dateutil",
    "s3transfer",
    "simplejson",
    "six",
    "snapshot-restore-py",
    "urllib3",
)

# One function's invocations at a time; more wait for a place. AWS has room for a burst of cold
# starts, two cores do not: a hundred processes starting at once miss their start-up limit.
_INVOCATIONS_AT_ONCE = 12

_INHERITED = ("PATH", "TMPDIR", "NO_PROXY", "no_proxy")

_PATIENCE_SECONDS = 60.0

_START_RUNTIME = """\
import os, sys, threading, time
packages = os.path.join(sys.path[0], "packages")
sys.path[:1] = [os.environ["LAMBDA_TASK_ROOT"], packages]
parent = os.getppid()
def leave_with_the_emulator():
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
threading.Thread(target=leave_with_the_emulator, daemon=True).start()
from awslambdaric.__main__ import main
main(["awslambdaric", os.environ["_HANDLER"]])
"""


@cache
def _runtime() -> Path:
    """A folder with the `bootstrap` that runs AWS's runtime client, and the runtime's packages.

    The packages stand in `packages/` as links, so that a function which forgot to list one of its
    requirements fails here as it would on AWS, although this environment has it.
    """
    folder = Path(tempfile.mkdtemp(prefix="lambda-runtime-"))
    packages = folder / "packages"
    packages.mkdir()
    for name in _RUNTIME_DISTRIBUTIONS:
        distribution = metadata.distribution(name)
        tops = {Path(file).parts[0] for file in distribution.files or () if ".." not in str(file)}
        for top in tops - {"__pycache__"}:
            (packages / top).symlink_to(Path(str(distribution.locate_file(top))))
    start = folder / "start.py"
    start.write_text(_START_RUNTIME)
    bootstrap = folder / "bootstrap"
    # -S: no site-packages of the environment that the emulator itself runs in.
    command = shlex.join([sys.executable, "-S", str(start)])
    bootstrap.write_text(f"#!/bin/sh\nexec {command}\n")
    bootstrap.chmod(0o755)
    return folder


def _is_python(config: dict[str, Any]) -> bool:
    return str(config.get("Runtime", "")).startswith("python")


def run_python_under_awslambdaric() -> None:
    """A `python3.x` function runs under AWS's own runtime client and the real Runtime API.

    Rule: a failed invocation reports the exception's class as `errorType`, a process that ends
    `Runtime.ExitError`, a time-out `Sandbox.Timedout`.
    https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html and
    https://docs.aws.amazon.com/lambda/latest/dg/python-exceptions.html

    The interpreter is the emulator's own, whatever version the function asks for. Durable
    functions stay with MiniStack's built-in runtime, since their context changes per call.
    """
    lambda_svc = upstream.module("services.lambda_svc")
    lambda_runtime = upstream.module("core.lambda_runtime")

    worker_of_runtime_api = lambda_runtime.ProvidedWorker
    gates: dict[str, threading.Semaphore] = defaultdict(
        lambda: threading.Semaphore(_INVOCATIONS_AT_ONCE)
    )
    gates_lock = threading.Lock()

    def spawn(original: Any, worker: Any, init_timeout: float | None = None) -> None:
        if _is_python(worker.config):
            code = Path(lambda_svc._provided_runtime_code_dir(worker.code_zip))
            # A link is never open for writing, so no racing exec finds its text file busy.
            with lambda_svc._provided_code_lock:
                if not (code / "bootstrap").is_symlink():
                    (code / "bootstrap").unlink(missing_ok=True)
                    (code / "bootstrap").symlink_to(_runtime() / "bootstrap")
        original(worker, init_timeout)

    def worker_class(original: Any, config: dict[str, Any]) -> Any:
        return worker_of_runtime_api if _is_python(config) else original(config)

    def execute_warm(original: Any, func: dict[str, Any], event: Any, request_id: str) -> Any:
        config = func.get("config") or func
        if lambda_svc._durable_ctx.get() or not _is_python(config):
            return original(func, event, request_id)
        with gates_lock:
            gate = gates[config["FunctionName"]]
        with gate:
            return lambda_svc._execute_function_provided_warm(func, event, request_id)

    def variables(original: Any, config: dict[str, Any], code: str, port: int) -> dict[str, str]:
        complete: dict[str, str] = original(config, code, port)
        if not _is_python(config):
            return complete
        # What MiniStack added for Lambda, and what AWS's SDK needs: a function must not come to
        # depend on the shell from which the emulator was started.
        added = complete.keys() - os.environ.keys()
        kept = {
            key: value
            for key, value in complete.items()
            if key in added or key in _INHERITED or key.startswith("AWS_")
        }
        log_group = (config.get("LoggingConfig") or {}).get("LogGroup")
        return {
            **kept,
            "AWS_EXECUTION_ENV": f"AWS_Lambda_{config['Runtime']}",
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "AWS_LAMBDA_LOG_GROUP_NAME": log_group or f"/aws/lambda/{config['FunctionName']}",
            "AWS_XRAY_CONTEXT_MISSING": "LOG_ERROR",
            "LANG": "en_US.UTF-8",
            "TZ": ":UTC",
            **lambda_svc._runtime_env_vars(config),
            # Last: nothing that a function sets may lead it to the real AWS.
            "AWS_ENDPOINT_URL": os.environ.get(
                environment.FUNCTION_ENDPOINT, os.environ["AWS_ENDPOINT_URL"]
            ),
        }

    upstream.wrap(worker_of_runtime_api, "_spawn", spawn)
    upstream.wrap(lambda_runtime, "_worker_class_for", worker_class)
    upstream.wrap(lambda_svc, "_execute_function_warm", execute_warm)
    upstream.wrap(lambda_svc, "_provided_worker_env", variables)


def answer_the_runtime_at_once() -> None:
    """An invocation costs what the handler costs, not 50 ms more, and logs all that it said.

    The Runtime API of MiniStack answers in two small packets (Nagle's algorithm holds the second
    one back), and a handler that logs nothing is waited for another 50 ms in case it still does:
    too long for most, and on a busy machine too short for some, whose last lines then stand in
    the log of the next invocation. AWS's client writes without a buffer, so everything is in the
    pipe by the time that it posts the result: what stands there is taken, and nothing waited for.
    """
    worker_class = upstream.module("core.lambda_runtime").ProvidedWorker

    def handler_class(original: Any, *args: Any) -> Any:
        handler = original(*args)
        handler.disable_nagle_algorithm = True
        return handler

    def pump(original: Any, worker: Any, stream: Any, lines: Any) -> None:
        def hand_over(text: bytes) -> None:
            original(worker, io.BytesIO(text), lines)

        worker.output = _Output(stream, hand_over)
        worker.output.pump()

    def drain(_original: Any, worker: Any, **_waits: float) -> str:
        if output := getattr(worker, "output", None):
            output.take(last_words=True)
        return str(worker._drain_stderr())

    upstream.wrap(worker_class, "_build_handler_class", handler_class)
    upstream.wrap(worker_class, "_pump_output", pump)
    upstream.wrap(worker_class, "_drain_stderr_bounded", drain)


class _Output:
    """What a process writes, handed over in whole lines: as it comes, and at once when asked."""

    # More than a pipe holds, so that one read empties it.
    _ALL_BYTES = 2**20

    def __init__(self, stream: Any, hand_over: Callable[[bytes], None]) -> None:
        self._pipe: io.FileIO = stream.raw
        self._hand_over = hand_over
        self._begun = b""
        self._lock = threading.Lock()
        os.set_blocking(self._pipe.fileno(), False)

    def pump(self) -> None:
        """Hand over until the process, and all that it started, have closed their end."""
        poll = select.poll()
        poll.register(self._pipe.fileno(), select.POLLIN)
        while self.take():
            poll.poll()
        with self._lock:
            self._pipe.close()

    def take(self, *, last_words: bool = False) -> bool:
        """Hand over what stands in the pipe; a line that has no end yet only as `last_words`.

        Returns:
            Whether more can come.
        """
        with self._lock:
            if self._pipe.closed:
                return False
            read = self._pipe.read(self._ALL_BYTES)  # None: nothing there
            whole, end, begun = (self._begun + (read or b"")).rpartition(b"\n")
            text, self._begun = whole + end, begun
            if last_words or read == b"":
                text, self._begun = text + begun, b""
            if text:
                self._hand_over(text)
            return read != b""


def give_function_urls_a_reachable_name() -> None:
    """A Function URL can be called by whoever is given it, inside and outside of a function.

    Rule: `!GetAtt X.FunctionUrl` is an address that works.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-lambda-url.html
    MiniStack names `https://<id>.lambda-url.<region>.on.aws/`, which resolves nowhere, and serves
    `/_aws/lambda-url/<id>/`.
    """
    lambda_svc = upstream.module("services.lambda_svc")
    prefix = f"{os.environ['AWS_ENDPOINT_URL']}/_aws/lambda-url/"

    def create(original: Any, name: str, data: dict[str, Any], qualifier: str | None) -> Any:
        status, headers, body = original(name, data, qualifier)
        if status != 201:
            return status, headers, body
        config = lambda_svc._function_urls[lambda_svc._url_config_key(name, qualifier)]
        config["FunctionUrl"] = f"{prefix}{url_id(None, config['FunctionUrl'])}/"
        return lambda_svc.json_response(config, status=201)

    def url_id(_original: Any, url: str) -> str:
        if url.startswith(prefix):
            return url.removeprefix(prefix).rstrip("/")
        return url.split("://", 1)[-1].split(".", 1)[0]

    upstream.wrap(lambda_svc, "_create_function_url_config", create)
    upstream.wrap(lambda_svc, "_function_url_id", url_id)


def name_the_alias_that_was_invoked() -> None:
    """`context.invoked_function_arn` ends in the alias that a caller named.

    Rule: https://docs.aws.amazon.com/lambda/latest/dg/python-context.html: it "indicates if the
    invoker specified a version number or alias". MiniStack names the version behind the alias
    when Step Functions, EventBridge or S3 invoke.
    """
    lambda_svc = upstream.module("services.lambda_svc")

    def look_up(original: Any, reference: str) -> Any:
        record, config, name = original(reference)
        qualifier = reference.rpartition(":")[2]
        base = lambda_svc._functions.get(name) or {}
        if config and qualifier in base.get("aliases", {}):
            config = {**config, "FunctionArn": f"{base['config']['FunctionArn']}:{qualifier}"}
        return record, config, name

    upstream.wrap(lambda_svc, "_get_func_record_for_ref", look_up)


def report_failures_in_lambdas_words() -> None:
    """A crash or a time-out is told in the sentence that Lambda uses, with the request's id.

    Rule: https://docs.aws.amazon.com/lambda/latest/dg/troubleshooting-invocation.html
    """
    worker_class = upstream.module("core.lambda_runtime").ProvidedWorker

    def invoke(original: Any, worker: Any, event: Any, request_id: str, **rest: Any) -> Any:
        result = original(worker, event, request_id, **rest)
        payload = result.get("error_payload")
        if isinstance(payload, dict) and "requestId" not in payload:
            message = payload.get("errorMessage", "")
            if payload.get("errorType") == "Runtime.ExitError":
                message = "Runtime exited without providing a reason"
            payload["errorMessage"] = f"RequestId: {request_id} Error: {message}"
        return result

    upstream.wrap(worker_class, "invoke", invoke)


def let_invocations_finish() -> None:
    """A new deployment does not end the invocations that are under way.

    Rule: https://docs.aws.amazon.com/lambda/latest/dg/configuration-versions.html and
    lambda-runtime-environment: an update brings new environments for new invocations; those that
    work are shut down when they have finished. MiniStack ends every environment of the function.
    """
    lambda_svc = upstream.module("services.lambda_svc")
    lambda_runtime = upstream.module("core.lambda_runtime")
    outdated: contextvars.ContextVar[bool] = contextvars.ContextVar("outdated", default=False)
    retired: set[Any] = set()
    lock = threading.Lock()

    def invalidate(original: Any, *args: Any, **kwargs: Any) -> None:
        token = outdated.set(True)
        try:
            original(*args, **kwargs)
        finally:
            outdated.reset(token)

    def kill(original: Any, workers: Any) -> None:
        doomed = list(workers)
        if outdated.get():
            with lock:
                retired.update(worker for worker in doomed if worker.in_use)
                doomed = [worker for worker in doomed if worker not in retired]
        original(doomed)

    def release(original: Any, worker: Any) -> None:
        with lock:
            original(worker)
            is_retired = worker in retired
            retired.discard(worker)
        if is_retired:
            lambda_runtime.kill_workers([worker])

    upstream.wrap(lambda_svc, "invalidate_worker", invalidate)
    upstream.wrap(lambda_runtime, "kill_workers", kill)
    upstream.wrap(lambda_svc, "release_worker", release)


def bound_environments(limit: int) -> None:
    """Let at most `limit` environments of one function exist; an invocation beyond them waits.

    Not a rule of AWS, which has more machines: a burst of cold starts would take more memory and
    more than the ten seconds that Lambda grants an initialisation. Whoever has waited for
    `_PATIENCE_SECONDS` is throttled, since a function may be waiting for itself.
    """
    lambda_svc = upstream.module("services.lambda_svc")
    lambda_runtime = upstream.module("core.lambda_runtime")
    places: dict[str, threading.Semaphore] = {}
    lock = threading.Lock()
    # An invocation acquires and releases on one thread.
    taken = threading.local()

    def acquire(original: Any, name: str, config: Any, code: bytes, **settings: Any) -> Any:
        key = lambda_runtime._worker_key(name, config, settings.get("qualifier", "$LATEST"))
        with lock:
            place = places.setdefault(key, threading.Semaphore(limit))
        if not place.acquire(timeout=_PATIENCE_SECONDS):
            return None, "func_cap"
        try:
            worker = original(name, config, code, **settings)
        except BaseException:
            place.release()
            raise
        taken.place = place
        return worker

    def release(original: Any, worker: Any) -> None:
        original(worker)
        if place := getattr(taken, "place", None):
            taken.place = None
            place.release()

    upstream.wrap(lambda_svc, "acquire_worker", acquire)
    upstream.wrap(lambda_svc, "release_worker", release)
