"""`make deploy` and `make delete`, as on AWS but for the endpoint: the emulator's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from local import aws, books, delete, deploy, orders
from local.cli import app
from local.errors import CommandError
from local.paths import PROJECT
from local.stack import Stack, client, load_aws

pytestmark = pytest.mark.xdist_group("upgrade")

Json = dict[str, Any]

DEV = "charge-once-dev"
PARAMETERS = [
    f"{name}={value}"
    for name, value in deploy.local_parameters().items()
    if name in {"PythonVersion", "Architecture"}
]


@pytest.fixture(scope="module")
def shell(stack: Stack) -> Iterator[dict[str, str]]:
    """The shell of somebody with an account: the emulator's."""
    assert stack.endpoint is not None
    account = {
        "AWS_ENDPOINT_URL": stack.endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": stack.region,
        "SAM_CLI_POLL_DELAY": "0.2",  # the emulator is done at once
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in account.items():
            patch.setenv(name, value)
        yield {**os.environ}
    client.cache_clear()  # some were made for this shell


@pytest.fixture(scope="module")
def deployment(shell: dict[str, str]) -> str:
    """What `make deploy` prints."""
    result = subprocess.run(
        [sys.executable, "-m", "local", "deploy", "--environment", "dev", "--yes", *PARAMETERS],
        cwd=PROJECT,
        env=shell,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def versions(stack: Stack, bucket: str) -> list[Json]:
    answer = stack.client("s3").list_object_versions(Bucket=bucket)
    return [*answer.get("Versions", []), *answer.get("DeleteMarkers", [])]


def test_a_deployment_shows_the_change_set_and_the_links(deployment: str) -> None:
    assert "CloudFormation stack changeset" in deployment
    links = deployment.rpartition("Successfully created/updated stack")[2]
    assert f"stateMachine:{DEV}-ChargeOrder" in links
    assert "#dashboards:name=" in links
    assert "#item-explorer?table=" in links


@pytest.mark.usefixtures("deployment")
def test_a_stack_that_exists_is_not_asked_about_again() -> None:
    assert aws.is_deployed(aws.environment("dev"))


@pytest.mark.usefixtures("shell")
def test_a_stack_that_does_not_exist_is_asked_about() -> None:
    assert not aws.is_deployed(aws.Environment("new", "charge-once-new", None, {}))


def test_an_unknown_environment_is_a_clear_error() -> None:
    with pytest.raises(CommandError, match="has no environment staging: it has dev, prod"):
        aws.environment("staging")


def test_a_python_that_is_not_here_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(CommandError, match="PythonVersion=python3"):
        aws.deploy("dev", {}, confirm=False)


@pytest.mark.usefixtures("deployment")
def test_a_wrong_name_deletes_nothing() -> None:
    result = CliRunner().invoke(app, ["delete", "--environment", "dev"], input="yes\n")

    assert isinstance(result.exception, CommandError)
    assert "nothing was deleted" in str(result.exception)
    assert aws.is_deployed(aws.environment("dev"))


@pytest.mark.usefixtures("deployment")
def test_deleting_says_what_it_keeps_and_empties_buckets_when_told_to() -> None:
    stack = load_aws(DEV)
    key = orders.fresh_object_key()
    settled = orders.follow(stack, key, orders.order_body(None, {}))
    stack.client("s3").delete_object(Bucket=stack.bucket, Key=key)  # leaves a delete marker
    assert len(versions(stack, stack.bucket)) == 2

    result = CliRunner().invoke(
        app, ["delete", "--environment", "dev", "--empty-buckets", "--yes", "--json"]
    )

    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["deleted"] == DEV
    assert {one["name"] for one in document["kept"]} == {"LedgerTable", "FailureQueue"}
    assert document["emptied"][stack.bucket] == 2
    assert stack.bucket in result.stderr and "Deleted for good" in result.stderr
    assert not aws.is_deployed(aws.environment("dev"))
    assert books.record(stack, settled["idempotency_key"]) == settled["record"]
    names = [one["Name"] for one in stack.client("s3").list_buckets()["Buckets"]]
    assert stack.bucket not in names


def test_a_bucket_of_many_versions_is_emptied_page_by_page(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delete, "KEYS_AT_ONCE", 3)
    s3 = stack.client("s3")
    s3.create_bucket(Bucket="many-versions")
    s3.put_bucket_versioning(Bucket="many-versions", VersioningConfiguration={"Status": "Enabled"})
    for number in range(4):
        s3.put_object(Bucket="many-versions", Key=f"orders/{number % 2}.json", Body=b"{}")
    for number in range(2):
        s3.delete_object(Bucket="many-versions", Key=f"orders/{number}.json")

    assert delete.remove_bucket(stack, "many-versions") == 6
