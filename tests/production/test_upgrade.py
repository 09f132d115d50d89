"""A stack with data in it is deployed over, with newer code and other parameters."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local import books, deploy, faults, orders
from local.stack import Stack
from local.waiting import wait_for
from tests.production.logs import written_by

pytestmark = pytest.mark.xdist_group("upgrade")

NAME = "upgraded"
#: A hanging attempt is over in 8 s. The nine of a run outlast a slow deployment.
PARAMETERS = deploy.local_parameters() | {
    "ChargeTimeoutSeconds": "8",
    "ProviderTimeoutSeconds": "2",
}
NEWER_WORDS = "order charged by newer code"


@dataclass
class Upgrade:
    """A stack before and after, with an order settled before and one in flight meanwhile."""

    stack: Stack
    settled: Any
    in_flight: str
    first_version: str
    second_version: str


@pytest.fixture(scope="module")
def code(built: Path) -> Iterator[Path]:
    """Built functions to change. A sibling of the others, since paths in it are relative."""
    yield (copy := shutil.copytree(built, built.with_name(f"{built.name}-code")))
    shutil.rmtree(copy)


def deployed(running: Stack, code: Path, parameters: dict[str, str]) -> Stack:
    assert running.endpoint is not None
    # `deploy` uses its folder up.
    copy = shutil.copytree(code, code.with_name(f"{code.name}-once"))
    return deploy.deploy(copy, running.endpoint, parameters, NAME)


def make_newer(code: Path) -> None:
    handler = code / "ChargeFunction" / "charge" / "handler.py"
    handler.write_text(handler.read_text().replace('"order charged"', f'"{NEWER_WORDS}"'))


def charge_version(stack: Stack) -> str:
    """The version of the charge function that new executions call."""
    machine = stack.client("stepfunctions").describe_state_machine(
        stateMachineArn=stack.state_machine_arn
    )
    _, _, rest = machine["definition"].partition("-ChargeFunction-")
    return str(rest.partition('"')[0].rpartition(":")[2])


def drop(stack: Stack, **how: Any) -> Any:
    body = orders.order_body(None, {})
    return orders.follow(stack, orders.fresh_object_key(), body, **how)


@pytest.fixture(scope="module")
def upgrade(stack: Stack, code: Path) -> Iterator[Upgrade]:
    older = deployed(stack, code, PARAMETERS)
    settled = drop(older)
    first_version = charge_version(older)
    hang = faults.Fault.parse("function.timeout_after_charge:99")
    hanging = drop(older, armed=[hang], wait=False)["executions"][0]["arn"]
    wait_for(lambda: "Charge" in books.execution(older, hanging).path, 60)

    make_newer(code)
    newer = deployed(stack, code, PARAMETERS | {"ProviderTimeoutSeconds": "1"})
    faults.clear(newer)
    orders.wait_for_end(newer, hanging)
    yield Upgrade(newer, settled, hanging, first_version, charge_version(newer))

    stack.client("cloudformation").delete_stack(StackName=NAME)


def test_what_was_there_before_is_there_after(upgrade: Upgrade) -> None:
    placed = upgrade.settled["object"]

    assert (
        books.record(upgrade.stack, upgrade.settled["idempotency_key"])
        == (upgrade.settled["record"])
    )
    assert upgrade.stack.bucket == placed["bucket"]
    upgrade.stack.client("s3").head_object(
        Bucket=placed["bucket"], Key=placed["key"], VersionId=placed["version_id"]
    )
    reference = upgrade.settled["idempotency_key"]
    (charge,) = books.charges(upgrade.stack, reference)
    assert charge["id"] == upgrade.settled["record"]["charge_id"]


def test_a_run_in_flight_keeps_its_version_of_the_function(upgrade: Upgrade) -> None:
    execution = books.execution(upgrade.stack, upgrade.in_flight)

    assert execution.status == "SUCCEEDED", execution.path
    written = list(written_by(upgrade.stack, upgrade.in_flight))
    assert {version for version, _ in written} == {upgrade.first_version}
    assert written[-1][1]["message"] == "order charged"


def test_a_new_run_has_the_newer_code_and_the_newer_parameter(upgrade: Upgrade) -> None:
    execution = drop(upgrade.stack)["executions"][0]["arn"]

    ((version, line),) = written_by(upgrade.stack, execution)
    assert version == upgrade.second_version != upgrade.first_version
    assert line["message"] == NEWER_WORDS
    assert setting(upgrade.stack, version, "PROVIDER_TIMEOUT_SECONDS") == "1"
    assert setting(upgrade.stack, upgrade.first_version, "PROVIDER_TIMEOUT_SECONDS") == "2"


def test_a_parameter_alone_reaches_new_runs_too(upgrade: Upgrade, stack: Stack, code: Path) -> None:
    """SAM by itself publishes a version for newer code only."""
    changed = PARAMETERS | {"ProviderTimeoutSeconds": "1", "LogLevel": "DEBUG"}

    again = deployed(stack, code, changed)

    version = charge_version(again)
    assert version not in {upgrade.first_version, upgrade.second_version}
    assert setting(again, version, "POWERTOOLS_LOG_LEVEL") == "DEBUG"


def setting(stack: Stack, version: str, name: str) -> str:
    functions = stack.client("cloudformation").describe_stack_resource(
        StackName=stack.name, LogicalResourceId="ChargeFunction"
    )
    configuration = stack.client("lambda").get_function_configuration(
        FunctionName=functions["StackResourceDetail"]["PhysicalResourceId"], Qualifier=version
    )
    return str(configuration["Environment"]["Variables"][name])
