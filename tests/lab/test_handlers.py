"""The parts that the handlers are made of: keys, conditional writes, faults, settings."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pytest

from local.lab.events import object_created
from local.lab.function.handlers.app import Context, Function, SettingInvalid, Settings
from local.lab.function.handlers.faults import ForcedFailure
from local.lab.function.handlers.modes import HANDLERS
from local.lab.function.handlers.recipes import (
    S3Object,
    key_by_content,
    key_by_version,
    object_of,
)
from local.lab.function.handlers.table import Ledger, Provider, Table

ARRIVED = S3Object(
    bucket="lab", key="naive/a.json", version_id="v1", etag="e1", sequencer="0055AED6DCD90281E5"
)
ENVIRONMENT = {"LAB_TABLE": "Lab", "HANDLER_MODE": "robust", "FAIL_ONCE": "never"}


class Unhurried:
    def get_remaining_time_in_millis(self) -> int:
        return 3000


CONTEXT: Context = Unhurried()


def event_of(s3_object: S3Object) -> dict[str, Any]:
    return object_created(
        bucket=s3_object.bucket,
        key=s3_object.key,
        version_id=s3_object.version_id,
        etag=f'"{s3_object.etag}"',
        sequencer=s3_object.sequencer,
    )


# ---------------------------------------------------------------- events and keys


@pytest.mark.parametrize("key", ["naive/a.json", "naive/a b+c/ü.json", "naive/100%.json"])
def test_a_notification_is_read_back_to_the_object_that_it_was_built_for(key: str) -> None:
    arrived = replace(ARRIVED, key=key)

    assert object_of(event_of(arrived)["Records"][0]) == arrived


def test_a_notification_encodes_the_key_as_s3_does() -> None:
    event = event_of(replace(ARRIVED, key="a b+c/ü.json"))

    assert event["Records"][0]["s3"]["object"]["key"] == "a+b%2Bc/%C3%BC.json"


def test_an_unversioned_bucket_sends_no_version() -> None:
    event = object_created(bucket="lab", key="a", version_id=None, etag="e", sequencer="1")

    assert "versionId" not in event["Records"][0]["s3"]["object"]
    assert object_of(event["Records"][0]).version_id == "null"


@pytest.mark.parametrize("key_of", [key_by_version, key_by_content])
def test_a_key_is_the_same_for_every_delivery_and_scoped_to_the_charge(key_of: Any) -> None:
    first, second = (object_of(event_of(ARRIVED)["Records"][0]) for _ in range(2))

    assert key_of(first) == key_of(second)
    assert key_of(first).startswith("charge#")


def test_without_versions_the_version_recipe_takes_a_new_upload_for_a_duplicate() -> None:
    first = replace(ARRIVED, version_id="null")
    second = replace(first, etag="e2", sequencer="0055AED6DCD90281E6")

    assert key_by_version(first) == key_by_version(second)
    assert key_by_content(first) != key_by_content(second)


def test_the_content_recipe_tells_two_uploads_of_the_same_bytes_apart() -> None:
    again = replace(ARRIVED, version_id="v2", sequencer="0055AED6DCD90281E6")

    assert key_by_content(ARRIVED) != key_by_content(again)


# ---------------------------------------------------------------- the table


def test_exactly_one_caller_gets_a_claim(table: Table) -> None:
    ledger = Ledger(table, "lab/a")

    claims = [ledger.claim("charge#1", "claimed") for _ in range(3)]

    assert claims == [True, False, False]
    assert ledger.status("charge#1") == "claimed"


def test_a_record_names_its_object_whatever_its_key(table: Table) -> None:
    Ledger(table, "lab/a").claim("charge#1", "claimed")

    item = table.get("charge#1")

    assert item is not None
    assert item["object"] == {"S": "lab/a"}


def test_the_provider_charges_as_often_as_it_is_asked_without_a_key(table: Table) -> None:
    for _ in range(3):
        Provider(table).charge("lab/a")

    assert charges(table) == 3


def test_the_provider_charges_once_for_one_key(table: Table) -> None:
    for key in ("k1", "k1", "k2"):
        Provider(table).charge("lab/a", key)

    assert charges(table) == 2


def charges(table: Table) -> int:
    item = table.get("provider#lab/a")
    return int(item["charges"]["N"]) if item else 0


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize("environments", [1, 2])
def test_every_object_fails_once_whether_the_environment_is_warm_or_new(
    dynamodb: Any, environments: int
) -> None:
    settings = Settings("Lab", "naive", fail_once="after_charge")
    functions = [Function(settings, dynamodb) for _ in range(environments)]

    for name in ("naive/a.json", "naive/b.json"):
        event = event_of(replace(ARRIVED, key=name))
        with pytest.raises(ForcedFailure):
            functions[0].run(event, CONTEXT)
        functions[-1].run(event, CONTEXT)

    table = Table(dynamodb, "Lab")
    for name in ("lab/naive/a.json", "lab/naive/b.json"):
        item = table.get(f"provider#{name}")
        assert item is not None
        assert item["charges"] == {"N": "2"}


def test_attempts_are_counted_by_how_they_ended(dynamodb: Any) -> None:
    def cut_off(_: Context) -> None:
        raise KeyboardInterrupt  # as little catchable as the end of an invocation

    event = event_of(ARRIVED)
    once = Function(Settings("Lab", "naive", "timeout_after_charge"), dynamodb, hang=cut_off)

    with pytest.raises(KeyboardInterrupt):
        once.run(event, CONTEXT)
    once.run(event, CONTEXT)

    item = Table(dynamodb, "Lab").get("attempts#lab/naive/a.json")
    assert item == {
        "pk": {"S": "attempts#lab/naive/a.json"},
        "started": {"N": "2"},
        "ended": {"N": "1"},
    }


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize("mode", HANDLERS)
def test_every_handler_can_be_chosen(mode: str) -> None:
    settings = Settings.from_environment(ENVIRONMENT | {"HANDLER_MODE": mode})

    assert settings == Settings("Lab", mode, None)


def test_fail_once_is_off_unless_it_is_set() -> None:
    without = {name: value for name, value in ENVIRONMENT.items() if name != "FAIL_ONCE"}

    assert Settings.from_environment(without).fail_once is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("HANDLER_MODE", "clever"), ("HANDLER_MODE", ""), ("FAIL_ONCE", "true"), ("LAB_TABLE", "")],
)
def test_a_wrong_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingInvalid, match=name):
        Settings.from_environment(ENVIRONMENT | {name: value})


def test_the_function_reads_its_settings_when_it_first_runs(
    dynamodb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from local.lab.function.handlers import app

    for name, value in (ENVIRONMENT | {"AWS_DEFAULT_REGION": "us-east-1"}).items():
        monkeypatch.setenv(name, value)
    app._function.cache_clear()

    app.handle(event_of(replace(ARRIVED, key=f"robust/{uuid.uuid4().hex}.json")), CONTEXT)

    items = dynamodb.scan(TableName="Lab")["Items"]
    assert [item["status"]["S"] for item in items if "status" in item] == ["done"]
    app._function.cache_clear()
