"""A local run can never reach a real AWS account."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from local.errors import CommandError
from local.lifecycle import is_ours
from local.processes import clean_environment
from local.stack import Stack, load_aws, load_local, require_loopback, save

LOCAL = Stack(name="charge-once", region="us-east-1", endpoint="http://127.0.0.1:4566", outputs={})


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CHARGE_ONCE_STATE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:4566", "http://localhost:4566", "http://[::1]:4566/x"]
)
def test_loopback_addresses_are_accepted(url: str) -> None:
    assert require_loopback(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "https://sts.us-east-1.amazonaws.com",
        "http://127.0.0.1.nip.io:4566",
        "http://localhost.example.com",
        "http://10.0.0.1:4566",
        "http://0.0.0.0:4566",
        "not a url",
    ],
)
def test_any_other_address_is_refused(url: str) -> None:
    with pytest.raises(CommandError, match="loopback"):
        require_loopback(url)


def test_a_local_client_ignores_the_shells_profile_and_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAREALREALREAL")
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://example.com")

    client = LOCAL.client("sqs")

    assert client.meta.endpoint_url == "http://127.0.0.1:4566"
    assert client._request_signer._credentials.access_key == "test"


def test_a_local_client_goes_through_no_proxy_of_the_shell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://192.0.2.1:3128")
    monkeypatch.setenv("http_proxy", "http://192.0.2.1:3128")

    client = Stack(
        name="charge-once", region="us-east-1", endpoint="http://127.0.0.1:4567", outputs={}
    ).client("sns")

    assert client._endpoint.http_session._proxy_config.proxy_url_for("http://127.0.0.1/") is None


def test_a_stack_belongs_to_the_process_that_started_it(
    state: Path,
) -> None:
    ours = replace(LOCAL, started_by=os.getpid())
    save(ours)

    assert is_ours(ours)

    save(replace(LOCAL, started_by=1))

    assert not is_ours(ours)


def test_background_processes_inherit_nothing_that_names_an_account(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "secret")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAREALREALREAL")

    environment = clean_environment()

    assert "AWS_PROFILE" not in environment
    assert "AWS_SESSION_TOKEN" not in environment
    assert environment["AWS_ACCESS_KEY_ID"] == "test"
    assert environment["AWS_SHARED_CREDENTIALS_FILE"] == "/dev/null"


@pytest.mark.parametrize("given", ["run-1", "arn:aws:states:us-east-1:1:execution:Machine:run-1"])
def test_an_execution_is_named_by_its_name_or_its_arn(given: str) -> None:
    machine = "arn:aws:states:us-east-1:1:stateMachine:Machine"

    named = replace(LOCAL, outputs={"StateMachineArn": machine}).execution_arn(given)

    assert named == "arn:aws:states:us-east-1:1:execution:Machine:run-1"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A shell with credentials, on an AWS that has no stack at all."""

    def refuse(self: BaseClient, operation: str, arguments: dict[str, Any]) -> None:
        message = f"Stack with id {arguments['StackName']} does not exist"
        raise ClientError({"Error": {"Code": "ValidationError", "Message": message}}, operation)

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setattr(BaseClient, "_make_api_call", refuse)
    return monkeypatch


def test_a_stack_that_is_not_in_the_region_names_it_and_how_to_choose_another(
    aws: pytest.MonkeyPatch,
) -> None:
    aws.setenv("AWS_DEFAULT_REGION", "eu-west-3")

    with pytest.raises(CommandError, match=r"nope .* in eu-west-3: .* AWS_DEFAULT_REGION"):
        load_aws("nope")


def test_without_any_region_the_error_says_how_to_name_one(aws: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match=r"nope .* in no region: .* AWS_DEFAULT_REGION"):
        load_aws("nope")


def test_where_samconfig_names_the_region_the_shell_is_not_blamed(aws: pytest.MonkeyPatch) -> None:
    aws.setenv("AWS_DEFAULT_REGION", "eu-west-3")

    with pytest.raises(CommandError, match="in us-west-2: ") as caught:
        load_aws("nope", "us-west-2")

    assert "AWS_DEFAULT_REGION" not in str(caught.value)


def test_what_was_saved_is_loaded_and_nothing_else_is_left(state: Path) -> None:
    save(LOCAL)

    assert load_local() == LOCAL
    assert [path.name for path in state.iterdir()] == ["stack.json"]


def test_a_stack_is_saved_whole_or_not_at_all(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(LOCAL)

    def fill_the_disk(path: Path, text: str) -> None:
        with path.open("w") as file:
            file.write(text[:5])
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_text", fill_the_disk)
    with pytest.raises(OSError, match="No space"):
        save(replace(LOCAL, name="another"))

    assert load_local() == LOCAL


@pytest.mark.parametrize(
    "broken",
    ["", "{", "[]", "7", "null", "{}", '"\x00"', "\xff"],
)
def test_a_file_that_describes_no_stack_is_refused_with_what_to_do(
    state: Path, broken: str
) -> None:
    (state / "stack.json").write_bytes(broken.encode("latin-1"))

    with pytest.raises(CommandError, match="`make up` stops what is left"):
        load_local()


@pytest.mark.parametrize(
    "change",
    [
        {"colour": "blue"},
        {"name": None},
        {"region": 7},
        {"outputs": []},
        {"outputs": {"OrderBucket": 7}},
        {"versions": "1"},
        {"page_url": 8081},
        {"endpoint": None},
        {"endpoint": ""},
        {"endpoint": 4566},
        {"endpoint": "http://[::1"},
        {"endpoint": "https://sqs.us-east-1.amazonaws.com"},
    ],
    ids=str,
)
def test_a_field_that_no_local_stack_has_is_refused_with_what_to_do(
    state: Path, change: dict[str, Any]
) -> None:
    (state / "stack.json").write_text(json.dumps(asdict(LOCAL) | change))

    with pytest.raises(CommandError, match="`make up` stops what is left"):
        load_local()


def test_an_output_that_the_stack_does_not_have_is_named() -> None:
    with pytest.raises(CommandError, match="charge-once has no output LedgerTable"):
        _ = LOCAL.table


def test_without_a_stack_the_error_says_how_to_start_one(state: Path) -> None:
    with pytest.raises(CommandError, match="make up"):
        load_local()
