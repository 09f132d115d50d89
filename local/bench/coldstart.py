"""What a cold start has to load: import times in fresh interpreters, and the size of the package.

Beside the charge function: a handler that only makes its boto3 clients, and Powertools'
idempotency utility, which is what many would take instead.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from local import deploy
from local.bench.machine import description
from local.progress import output, step

#: Of so many the fastest: what the work takes when nothing else is in the way.
RUNS = 9

BARE = "import boto3; s3 = boto3.client('s3'); dynamodb = boto3.client('dynamodb')"
POWERTOOLS = """
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, idempotent
import boto3
s3 = boto3.client('s3')
layer = DynamoDBPersistenceLayer(table_name='table')
@idempotent(persistence_store=layer)
def handle(event, context): ...
"""
#: As Lambda does it: the module, then the first order, which makes settings, clients and pool.
CHARGE = "from charge import handler; handler._function()"

_ENVIRONMENT = {
    "PATH": os.defpath,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "POWERTOOLS_SERVICE_NAME": "charge",
    "PROVIDER_URL": "https://provider.example",
    "PROVIDER_SECRET_ARN": "arn:aws:secretsmanager:us-east-1:000000000000:secret:key-AbCdEf",
    "PROVIDER_TIMEOUT_SECONDS": "10",
    "PROVIDER_KEY_RETENTION_SECONDS": "86400",
    "RECORD_TTL_DAYS": "90",
}


def package(built: Path) -> Path:
    """The function's zip file, as `sam deploy` uploads it, beside its folder."""
    archive = shutil.make_archive(str(built / "charge-package"), "zip", built / "ChargeFunction")
    return Path(archive)


def load(code: str, folder: Path, runs: int = RUNS) -> dict[str, float]:
    """What running `code` takes in `folder`, less what an empty interpreter takes.

    `ms` of the clock, and `cpu_ms` of the processor, which other work disturbs less; each is the
    least of `runs` fresh interpreters.
    """
    loaded, empty = _fastest(code, folder, runs), _fastest("pass", folder, runs)
    wall, cpu = (round((full - bare) * 1000, 1) for full, bare in zip(loaded, empty, strict=True))
    return {"ms": wall, "cpu_ms": cpu}


def _fastest(code: str, folder: Path, runs: int) -> tuple[float, float]:
    """Seconds of the clock and of the processor."""

    def once() -> tuple[float, float]:
        cpu_before, started = _children_cpu(), time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=folder,
            env=_ENVIRONMENT | {"PYTHONPATH": str(folder)},
            check=True,
        )
        return time.perf_counter() - started, _children_cpu() - cpu_before

    once()  # writes the byte code and fills the file cache
    walls, cpus = zip(*(once() for _ in range(runs)), strict=True)
    return min(walls), min(cpus)


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(runs: int = RUNS) -> dict[str, Any]:
    """The document of `bench coldstart`: milliseconds to load, and bytes to fetch."""
    built = deploy.build(deploy.local_parameters())
    try:
        size = package(built).stat().st_size
        with tempfile.TemporaryDirectory() as nothing:
            loads = {
                "bare handler (boto3 and two clients)": (BARE, Path(nothing)),
                "charge-once": (CHARGE, built / "ChargeFunction"),
                "Powertools idempotency": (POWERTOOLS, Path(nothing)),
            }
            loaded = {name: load(code, folder, runs) for name, (code, folder) in loads.items()}
    finally:
        shutil.rmtree(built)
    machine = description()
    versions = {
        name: importlib.metadata.version(name) for name in ("boto3", "aws-lambda-powertools")
    }
    return {
        "runs": runs,
        "load": loaded,
        "package_bytes": size,
        **machine,
        "versions": machine["versions"] | versions,
    }


def command(
    runs: Annotated[int, typer.Option(min=1, help="The fastest of so many counts.")] = RUNS,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else.")
    ] = False,
) -> None:
    """How long the charge function takes to load, beside others, and how large it is."""
    with step("Load handlers in fresh interpreters"):
        figures = measure(runs)
    if as_json:
        sys.stdout.write(json.dumps(figures, indent=2) + "\n")
        return
    for name, loaded in figures["load"].items():
        output.print(f"{loaded['ms']:8.1f} ms ({loaded['cpu_ms']:.1f} of processor)  {name}")
    output.print(f"{figures['package_bytes'] / 1e6:8.2f} MB  zipped package of the charge function")
