"""The environment that the emulator and every Lambda in it run in.

Nothing of the developer's shell that could change the outcome survives: no credentials, no
profile, no proxy, no emulator setting of another project.
"""

import os
from collections.abc import Mapping
from pathlib import Path

ACCOUNT_ID = "000000000000"
"""MiniStack's account when the access key is not itself a 12-digit account number."""

DEFAULT_REGION = "us-east-1"

FUNCTION_ENDPOINT = "CHARGE_ONCE_FUNCTION_ENDPOINT"
"""Variable that tells the Lambda mend which endpoint the functions get."""

# What a program needs from the shell to run at all, and what makes its messages readable.
_KEPT = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOG_LEVEL", "PATH", "TZ")


def credentials(region: str) -> dict[str, str]:
    """Throw-away credentials, and nothing that could lead an SDK to real ones.

    Args:
        region: AWS region name that every client should use.

    Returns:
        Environment variables to lay over (or to start) a process with.
    """
    return {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": region,
        "AWS_REGION": region,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }


def build(
    shell: Mapping[str, str],
    *,
    port: int,
    region: str,
    data_dir: Path,
    auth: bool,
    wait_scale: float,
    async_retry_base_seconds: float,
    account_concurrency: int,
    mock_config: Path | None,
    function_endpoint: str | None,
) -> dict[str, str]:
    """The whole environment of the emulator's process.

    Args:
        shell: the environment to take the few kept variables from.
        port: loopback port to serve on.
        region: AWS region of the stack.
        data_dir: folder for unpacked functions and everything else that it writes.
        auth: check signatures and the functions' execution roles.
        wait_scale: factor on Step Functions' retry and Wait sleeps (time-outs stay real).
        async_retry_base_seconds: wait before the first asynchronous Lambda retry; AWS waits 60 s.
        account_concurrency: Lambda invocations at once in the account; 0 is unbounded.
        mock_config: Step Functions mocked-integrations file, or None.
        function_endpoint: AWS endpoint for the functions, None for the emulator itself.

    Returns:
        Environment variables; nothing else should be inherited.
    """
    environment = {name: shell[name] for name in _KEPT if name in shell}
    environment |= credentials(region)
    environment |= {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "127.0.0.1",
        "MINISTACK_REGION": region,
        "MINISTACK_ACCOUNT_ID": ACCOUNT_ID,
        # Without it boto3 inside a Lambda would call the real AWS.
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        # Both listen on every interface.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "AUTH": "true" if auth else "false",
        # By default below /tmp, one for all emulators of this machine.
        "STATE_DIR": str(data_dir / "state"),
        "S3_DATA_DIR": str(data_dir / "s3"),
        "TMPDIR": str(data_dir),
        "SFN_WAIT_SCALE": str(wait_scale),
        "LAMBDA_EXECUTOR": "local",
        "LAMBDA_ASYNC_RETRY_BASE_SECONDS": str(async_retry_base_seconds),
        "LAMBDA_ACCOUNT_CONCURRENCY": str(account_concurrency),
    }
    if mock_config is not None:
        environment["SFN_MOCK_CONFIG"] = str(mock_config.resolve())
    if function_endpoint is not None:
        environment[FUNCTION_ENDPOINT] = function_endpoint
    return environment
