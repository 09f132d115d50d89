"""`python -m local.emulator --port N`: MiniStack with the mends, on 127.0.0.1."""

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from local import scratch
from local.emulator import environment, faults, mends, upstream
from local.emulator.mends import functions


def main(arguments: list[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT; one line on stderr when a setting is refused."""
    options = _parse(sys.argv[1:] if arguments is None else arguments)
    with scratch.folder() as data_dir:
        settings = environment.build(
            os.environ,
            port=options.port,
            region=options.region,
            data_dir=data_dir,
            auth=options.auth,
            wait_scale=options.wait_scale,
            async_retry_base_seconds=options.async_retry_base_seconds,
            account_concurrency=options.account_concurrency,
            mock_config=options.mock_config,
            function_endpoint=options.function_endpoint,
        )
        os.environ.clear()
        os.environ.update(settings)
        tempfile.tempdir = None  # look at TMPDIR again
        if options.leave_with:
            threading.Thread(target=_leave_with, args=(options.leave_with,), daemon=True).start()
        _serve(options)


def _leave_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)


def _serve(options: argparse.Namespace) -> None:
    if options.step_functions_endpoint:
        from local.step_functions_local import forwarding  # noqa: PLC0415 - for this run alone

        forwarding.install(
            options.step_functions_endpoint,
            region=options.region,
            own_url=os.environ["AWS_ENDPOINT_URL"],
            seen_as=options.seen_by_step_functions,
        )
    without = {mend.name for mend in mends.MENDS} if options.no_mends else set(options.without)
    mends.apply({mend.name for mend in mends.MENDS} - without)
    if options.environments and not options.no_mends:
        functions.bound_environments(options.environments)
    if options.fault_points:
        faults.install()
    sys.argv = ["ministack"]
    upstream.module("app").main()


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.emulator", description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="port on 127.0.0.1")
    parser.add_argument(
        "--leave-with", type=int, metavar="PID", help="stop when this parent process has ended"
    )
    parser.add_argument("--region", default=environment.DEFAULT_REGION)
    parser.add_argument("--auth", action="store_true", help="check signatures and function roles")
    parser.add_argument(
        "--wait-scale",
        type=float,
        default=1.0,
        help="factor on Step Functions' retry and Wait sleeps; 0 leaves them out",
    )
    parser.add_argument(
        "--async-retry-base-seconds",
        type=float,
        default=1.0,
        help="wait before the first asynchronous Lambda retry (AWS: 60)",
    )
    parser.add_argument(
        "--account-concurrency", type=int, default=0, help="Lambda invocations at once; 0: no limit"
    )
    parser.add_argument(
        "--environments",
        type=int,
        default=16,
        help="processes of one function at most, invocations beyond them wait; 0: no limit",
    )
    parser.add_argument("--mock-config", type=Path, help="Step Functions mocked integrations")
    parser.add_argument(
        "--function-endpoint",
        type=_loopback,
        metavar="URL",
        help="AWS endpoint for the functions, when a proxy stands before the emulator",
    )
    parser.add_argument(
        "--step-functions-endpoint",
        type=_loopback,
        metavar="URL",
        help="let Step Functions Local run the executions; see local.step_functions_local",
    )
    parser.add_argument(
        "--seen-by-step-functions",
        metavar="URL",
        help="this emulator's address for Step Functions Local, when it runs in a container",
    )
    parser.add_argument(
        "--fault-points",
        action="store_true",
        help=f"let POST {faults.PATH} break the state machine's calls; see local.emulator.faults",
    )
    parser.add_argument(
        "--without", action="append", default=[], metavar="MEND", help="leave one mend out"
    )
    parser.add_argument("--no-mends", action="store_true", help="MiniStack as it is")
    return parser.parse_args(arguments)


def _loopback(url: str) -> str:
    if urlsplit(url).hostname != "127.0.0.1":
        raise argparse.ArgumentTypeError(f"{url} is not on 127.0.0.1")
    return url


if __name__ == "__main__":
    main()
