"""The reconciler on the real stack: every kind of finding made for real, found, and mended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from local import books, faults, orders
from local.orders import Placed
from local.reconcile import reconcile
from local.stack import Stack
from local.waiting import wait_for
from tests.e2e.command import document

pytestmark = pytest.mark.xdist_group("reconciler")

Json = dict[str, Any]


@pytest.fixture(autouse=True, scope="module")
def undelivered(stack: Stack) -> Iterator[None]:
    """The rule is disabled: what lands starts nothing, unless a test delivers it."""
    events, name = stack.client("events"), stack.outputs["OrderRule"]
    events.disable_rule(Name=name)
    yield
    events.enable_rule(Name=name)


def land(stack: Stack, key: str | None = None, **order: Any) -> Placed:
    """Put an order; its event reaches nobody."""
    body = orders.order_body(None, order)
    return orders.put(stack, key or orders.fresh_object_key(), body)


def settle(stack: Stack, **order: Any) -> str:
    """An order that was delivered and has ended; gives its key."""
    placed = land(stack, **order)
    orders.wait_for_end(stack, orders.start_execution(stack, placed.event()))
    return placed.idempotency_key


def start_with(stack: Stack, fault: str, times: int = 99) -> tuple[Placed, str]:
    """An order that suffers `fault`, and its execution, once it has claimed."""
    key = orders.fresh_object_key()
    faults.arm(stack, [faults.Fault(fault, times)], key)
    placed = land(stack, key)
    arn = orders.start_execution(stack, placed.event())
    wait_for(lambda: books.record(stack, placed.idempotency_key), 30)
    return placed, arn


def stop(stack: Stack, arn: str) -> None:
    stack.client("stepfunctions").stop_execution(executionArn=arn)
    orders.wait_for_end(stack, arn)


def leave_open(stack: Stack) -> Placed:
    """An order whose execution is stopped after the claim and before any money moves.

    It is stopped while its only request hangs at the provider, so that none is under way after.
    """
    placed, arn = start_with(stack, "provider.timeout_before", times=1)
    wait_for(
        lambda: {"object_key": placed.key} not in [item["for"] for item in faults.armed(stack)], 30
    )
    stop(stack, arn)
    return placed


def leave_charged(stack: Stack) -> Placed:
    """An order whose execution is stopped after the charge and before it is recorded."""
    placed, arn = start_with(stack, "function.exit_after_charge")
    wait_for(lambda: succeeded(stack, placed.idempotency_key), 30)
    stop(stack, arn)
    faults.clear(stack)
    return placed


def charge_directly(stack: Stack, reference: str, idempotency_key: str, amount: int = 1999) -> str:
    """A charge that our pipeline did not make; gives its id."""
    secret = stack.client("secretsmanager").get_secret_value(
        SecretId=stack.outputs["ProviderSecretArn"]
    )
    answer = httpx.post(
        f"{stack.provider_url}/v1/charges",
        headers={
            "Authorization": f"Bearer {secret['SecretString']}",
            "Idempotency-Key": idempotency_key,
        },
        json={"amount": amount, "currency": "EUR", "source": "tok_visa", "reference": reference},
        trust_env=False,
    )
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def edit_record(stack: Stack, key: str, **attributes: Json) -> None:
    for name, value in attributes.items():
        stack.client("dynamodb").update_item(
            TableName=stack.table,
            Key={"pk": {"S": key}},
            UpdateExpression="SET #name = :value",
            ExpressionAttributeNames={"#name": name},
            ExpressionAttributeValues={":value": value},
        )


def delete_record(stack: Stack, key: str) -> None:
    stack.client("dynamodb").delete_item(TableName=stack.table, Key={"pk": {"S": key}})


def look(stack: Stack, **how: Any) -> Json:
    """A pass without grace, so that nothing has to be waited for."""
    return reconcile(stack, grace_seconds=0, **how)


def kinds(report: Json, key: str) -> list[str]:
    return [item["kind"] for item in report["findings"] if item["idempotency_key"] == key]


def succeeded(stack: Stack, key: str) -> list[str]:
    return [charge["id"] for charge in books.charges(stack, key) if charge["status"] == "succeeded"]


# ---------------------------------------------------------------- every kind of finding


@dataclass
class Damage:
    """What was broken, by kind: the idempotency keys. And what the passes said."""

    keys: dict[str, list[str]]
    objects: dict[str, list[str]]
    charges_before: dict[str, list[str]] = field(default_factory=dict)
    found: Json = field(default_factory=dict)
    repaired: Json = field(default_factory=dict)
    left: Json = field(default_factory=dict)


REPAIRABLE = ("missing", "stuck", "charged_not_recorded")
FOR_A_PERSON = (
    "recorded_not_charged",
    "charged_but_refused",
    "charged_twice",
    "same_order_id",
    "amount_mismatch",
    "superseded",
)
OF_AN_OBJECT = ("unmatched_object", "unversioned_object")


@pytest.fixture(scope="module")
def damage(stack: Stack) -> Damage:
    """Everything that can be wrong at once; then a pass, a repairing pass, and one more."""
    with ThreadPoolExecutor(4) as pool:
        usual = pool.map(lambda _: settle(stack), range(3))
        same_id = pool.map(lambda _: settle(stack, order_id="A-same"), range(2))
        refusal = pool.submit(settle, stack, payment_method="tok_declined")
        uncharged, twice, mismatch = usual
        refused = refusal.result()
        same = list(same_id)
    edit_record(stack, uncharged, charge_id={"S": "ch_00000000000000000000000000"})
    edit_record(stack, mismatch, amount_minor={"N": "2000"})
    charge_directly(stack, refused, idempotency_key=f"again {refused}")
    charge_directly(stack, twice, idempotency_key=f"again {twice}")

    unrecorded, by_hand, other_amount = (land(stack).idempotency_key for _ in range(3))
    charge_directly(stack, unrecorded, idempotency_key=unrecorded)
    charge_directly(stack, by_hand, idempotency_key=f"by hand {by_hand}")
    charge_directly(stack, other_amount, idempotency_key=other_amount, amount=500)
    crashed = leave_charged(stack).idempotency_key

    overwritten = leave_open(stack)
    uploaded_over = land(stack, overwritten.key)
    deleted = land(stack)
    stack.client("s3").delete_object(Bucket=stack.bucket, Key=deleted.key)

    s3 = stack.client("s3")
    s3.put_object(Bucket=stack.bucket, Key="orders/", Body=b"")
    s3.put_object(Bucket=stack.bucket, Key="orders/photo.png", Body=b"png")
    s3.put_bucket_versioning(Bucket=stack.bucket, VersioningConfiguration={"Status": "Suspended"})
    unversioned = land(stack)
    s3.put_bucket_versioning(Bucket=stack.bucket, VersioningConfiguration={"Status": "Enabled"})

    made = Damage(
        keys={
            "missing": [land(stack).idempotency_key, uploaded_over.idempotency_key],
            "stuck": [leave_open(stack).idempotency_key],
            "charged_not_recorded": [unrecorded, by_hand, crashed],
            "recorded_not_charged": [uncharged],
            "charged_but_refused": [refused],
            "charged_twice": [twice],
            "same_order_id": same,
            "amount_mismatch": [mismatch, other_amount],
            "superseded": [overwritten.idempotency_key, deleted.idempotency_key],
        },
        objects={"unmatched_object": ["orders/photo.png"], "unversioned_object": [unversioned.key]},
    )
    every_key = [key for group in made.keys.values() for key in group]
    made.charges_before = {key: succeeded(stack, key) for key in every_key}
    made.found = look(stack)
    made.repaired = look(stack, repair=True)
    made.left = look(stack)
    return made


@pytest.mark.parametrize("kind", REPAIRABLE + FOR_A_PERSON)
def test_each_kind_is_found_for_what_it_is_and_nothing_else(damage: Damage, kind: str) -> None:
    found = [kinds(damage.found, key) for key in damage.keys[kind]]

    assert found == [[kind] for _ in damage.keys[kind]]


@pytest.mark.parametrize("kind", OF_AN_OBJECT)
def test_an_object_that_is_no_order_is_found_without_a_key(damage: Damage, kind: str) -> None:
    found = [item for item in damage.found["findings"] if item["kind"] == kind]

    assert [item["object"]["key"] for item in found] == damage.objects[kind]
    assert [item["idempotency_key"] for item in found] == [None]


def test_a_folder_marker_is_nobodys_order(damage: Damage) -> None:
    assert "orders/" not in [
        item["object"]["key"] for item in damage.found["findings"] if item["object"]
    ]


def test_a_finding_says_what_the_three_books_say_and_what_to_do(damage: Damage) -> None:
    (key,) = damage.keys["charged_twice"]
    (finding,) = [item for item in damage.found["findings"] if item["idempotency_key"] == key]
    first, second = damage.charges_before[key]

    assert list(finding) == ["kind", "idempotency_key", "object", "detail"]
    assert list(finding["object"]) == ["bucket", "key", "version_id"]
    for words in ("Bucket: s3://", "Ledger: done with charge", "Provider: ", "Since 20"):
        assert words in finding["detail"]
    assert (
        f"Refund {second} (1999 EUR in minor units); {first} is the one to keep."
        in (finding["detail"])
    )


@pytest.mark.parametrize("kind", REPAIRABLE)
def test_a_repair_settles_the_order_with_one_charge(
    stack: Stack, damage: Damage, kind: str
) -> None:
    repaired = {item["idempotency_key"]: item for item in damage.repaired["repaired"]}

    for key in damage.keys[kind]:
        assert list(repaired[key]) == ["kind", "idempotency_key", "execution"]
        assert kinds(damage.left, key) == []
        record = books.record(stack, key)
        assert record is not None
        assert record["status"] == "done"
        assert succeeded(stack, key) == [record["charge_id"]]
        # What had been charged before was found again, not charged once more.
        assert damage.charges_before[key] in ([], [record["charge_id"]])


def test_the_detail_of_a_repaired_finding_says_how_the_repair_ended(damage: Damage) -> None:
    (key,) = damage.keys["stuck"]
    (finding,) = [item for item in damage.repaired["findings"] if item["idempotency_key"] == key]

    assert finding["detail"].endswith("ended as SUCCEEDED.")


def test_a_second_pass_finds_only_what_is_left_to_a_person(damage: Damage) -> None:
    ours = {key for group in damage.keys.values() for key in group}

    left = {item["kind"] for item in damage.left["findings"] if item["idempotency_key"] in ours}

    assert left == set(FOR_A_PERSON)


@pytest.mark.parametrize("kind", FOR_A_PERSON)
def test_nothing_is_charged_for_what_is_left_to_a_person(
    stack: Stack, damage: Damage, kind: str
) -> None:
    for key in damage.keys[kind]:
        assert succeeded(stack, key) == damage.charges_before[key]
        assert kinds(damage.left, key) == [kind]


# ---------------------------------------------------------------- in flight, horizon, volume


def test_an_order_in_flight_is_no_finding(stack: Stack) -> None:
    placed, arn = start_with(stack, "provider.timeout_before")

    report = look(stack, repair=True)
    running = stack.client("stepfunctions").describe_execution(executionArn=arn)["status"]

    faults.clear(stack)
    orders.wait_for_end(stack, arn)
    assert running == "RUNNING"
    assert kinds(report, placed.idempotency_key) == []
    assert len(succeeded(stack, placed.idempotency_key)) == 1


def test_what_is_younger_than_the_grace_time_is_no_finding(stack: Stack) -> None:
    placed = land(stack)

    report = reconcile(stack, grace_seconds=600)

    assert kinds(report, placed.idempotency_key) == []
    assert kinds(look(stack, repair=True), placed.idempotency_key) == ["missing"]


def test_beyond_the_horizon_a_lost_record_is_counted_and_never_charged_again(stack: Stack) -> None:
    key = settle(stack)
    delete_record(stack, key)
    within = look(stack)
    a_moment = 1 / 86400 / 1000  # a millisecond, in days

    report = look(stack, repair=True, horizon_days=a_moment)

    assert kinds(within, key) == ["charged_not_recorded"]
    assert kinds(report, key) == []
    assert report["repaired"] == []
    assert report["beyond_horizon"] > within["beyond_horizon"]
    assert len(succeeded(stack, key)) == 1


def test_within_the_horizon_a_lost_record_comes_back_without_a_second_charge(stack: Stack) -> None:
    key = settle(stack)
    before = succeeded(stack, key)
    delete_record(stack, key)

    report = look(stack, repair=True)

    assert kinds(report, key) == ["charged_not_recorded"]
    record = books.record(stack, key)
    assert record is not None
    assert record["status"] == "done"
    assert succeeded(stack, key) == before == [record["charge_id"]]


def test_two_reconcilers_at_once_charge_once(stack: Stack) -> None:
    lost = land(stack).idempotency_key
    stuck = leave_open(stack).idempotency_key

    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda _: look(stack, repair=True), range(2)))

    for key in (lost, stuck):
        assert any(kinds(report, key) for report in reports)
        record = books.record(stack, key)
        assert record is not None
        assert succeeded(stack, key) == [record["charge_id"]]


def test_every_one_of_many_objects_and_of_many_versions_is_compared(stack: Stack) -> None:
    body = orders.order_body(None, {})
    names = [f"orders/many/{number:04}.json" for number in range(1200)]
    versions = ["orders/versions.json"] * 1100
    with ThreadPoolExecutor(8) as pool:
        placed = list(pool.map(lambda key: orders.put(stack, key, body), names + versions))
    # All are settled, as far as the ledger goes, but for the first and last of both sorts.
    lost = {placed[index].idempotency_key for index in (0, 1199, 1200)} | {
        newest_version(stack, "orders/versions.json", placed)
    }
    table = stack.client("dynamodb")
    settled = [item for item in placed if item.idempotency_key not in lost]
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda start: table.batch_write_item(
                    RequestItems={
                        stack.table: [declined(item) for item in settled[start : start + 25]]
                    }
                ),
                range(0, len(settled), 25),
            )
        )

    report = look(stack)

    ours = {item.idempotency_key for item in placed}
    found = {
        item["idempotency_key"]: item["kind"]
        for item in report["findings"]
        if item["idempotency_key"] in ours
    }
    assert report["scanned"]["objects"] >= 2300
    assert set(found) == lost
    assert set(found.values()) == {"missing", "superseded"}


def newest_version(stack: Stack, key: str, placed: list[Placed]) -> str:
    head = stack.client("s3").head_object(Bucket=stack.bucket, Key=key)
    return next(item.idempotency_key for item in placed if item.version_id == head["VersionId"])


def declined(placed: Placed) -> Json:
    return {
        "PutRequest": {
            "Item": {
                "pk": {"S": placed.idempotency_key},
                "status": {"S": "declined"},
                "bucket": {"S": placed.bucket},
                "object_key": {"S": placed.key},
                "version_id": {"S": str(placed.version_id)},
            }
        }
    }


# ---------------------------------------------------------------- how it is run


def test_the_command_prints_the_contracts_document(stack: Stack) -> None:
    placed = land(stack)

    report = document("reconcile", "--repair", "--grace-seconds", "0")

    assert list(report)[:4] == ["complete", "scanned", "findings", "repaired"]
    assert report["complete"] is True
    assert list(report["scanned"]) == ["objects", "records", "charges"]
    assert {"kind": "missing", "idempotency_key": placed.idempotency_key}.items() <= next(
        item for item in report["repaired"] if item["idempotency_key"] == placed.idempotency_key
    ).items()


def test_the_scheduled_function_writes_a_report_and_metrics(stack: Stack) -> None:
    stack.client("s3").put_object(Bucket=stack.bucket, Key="orders/notes.txt", Body=b"text")

    answer = stack.client("lambda").invoke(
        FunctionName=stack.outputs["ReconcilerFunction"], Payload=b"{}", LogType="Tail"
    )

    outcome = json.loads(answer["Payload"].read())
    assert outcome["complete"] is True
    s3, bucket = stack.client("s3"), stack.outputs["ReportsBucket"]
    (key,) = [
        item["Key"]
        for item in s3.list_objects_v2(Bucket=bucket, Prefix="reports/")["Contents"]
        if outcome["pass"] in item["Key"]
    ]
    report = json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    assert "orders/notes.txt" in [
        item["object"]["key"] for item in report["findings"] if item["kind"] == "unmatched_object"
    ]
    assert report["repaired"] == []
    position = json.loads(s3.get_object(Bucket=bucket, Key="position.json")["Body"].read())
    assert position == {"pass": None}
