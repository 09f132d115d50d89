"""Faults on the state machine's calls happen as planned, and never without the flag."""

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from local.emulator import faults
from tests.emulator.bench import Bench, Run, unique
from tests.emulator.differences import passing

# One worker starts the emulators, not each of them.
pytestmark = pytest.mark.xdist_group("emulator")


def call(bench: Bench, method: str, plan: Any = None) -> Any:
    request = urllib.request.Request(  # noqa: S310 - loopback
        f"{bench.server.url}{faults.PATH}", json.dumps(plan).encode(), method=method
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - loopback
        return json.loads(answer.read())


def table(bench: Bench) -> str:
    name = unique("table")
    bench.client("dynamodb").create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return name


def put_once(bench: Bench, name: str) -> Run:
    """Put an item that must not exist yet, in a state called Claim."""
    claim = {
        "Type": "Task",
        "Resource": "arn:aws:states:::dynamodb:putItem",
        "Parameters": {
            "TableName": name,
            "Item": {"pk": {"S": "order"}},
            "ConditionExpression": "attribute_not_exists(pk)",
        },
        "End": True,
    }
    return bench.run({"Claim": claim})


def items(bench: Bench, name: str) -> int:
    return int(bench.client("dynamodb").scan(TableName=name)["Count"])


@pytest.mark.parametrize(
    ("kind", "error", "items_left"),
    [
        ("error", "DynamoDB.InternalServerErrorException", 0),
        ("throttle", "DynamoDB.ProvisionedThroughputExceededException", 0),
        ("lost", "DynamoDB.SdkClientException", 1),
        ("repeat", "DynamoDB.ConditionalCheckFailedException", 1),
        ("delay", None, 1),
    ],
)
def test_a_fault_hits_before_or_after_the_effect(
    faulty: Bench, kind: str, error: str | None, items_left: int
) -> None:
    name = table(faulty)
    call(faulty, "POST", {"faults": [{"at": "Claim", "kind": kind, "seconds": 0.01}]})

    run = put_once(faulty, name)

    assert (run.error, items(faulty, name)) == (error, items_left)
    assert call(faulty, "GET")["injected"] == {"Claim": {kind: 1}}


def test_a_fault_runs_out(faulty: Bench) -> None:
    name = table(faulty)
    call(faulty, "POST", {"faults": [{"at": "*", "kind": "error", "times": 1}]})

    runs = [put_once(faulty, name), put_once(faulty, name)]

    assert [run.status for run in runs] == ["FAILED", "SUCCEEDED"]


def test_a_cleared_plan_breaks_nothing(faulty: Bench) -> None:
    name = table(faulty)
    call(faulty, "POST", {"faults": [{"at": "*", "kind": "error"}]})

    cleared = call(faulty, "DELETE")

    assert cleared == {"seed": 0, "faults": [], "injected": {}}
    assert put_once(faulty, name).status == "SUCCEEDED"


def test_reading_an_order_can_fail(faulty: Bench) -> None:
    bucket = faulty.bucket()
    faulty.client("s3").put_object(Bucket=bucket, Key="orders/1.json", Body=b"{}")
    call(faulty, "POST", {"faults": [{"at": "s3:GetObject", "kind": "error", "times": 1}]})

    faulty.client("s3").get_object(Bucket=bucket, Key="orders/1.json")  # the SDK tries again

    assert call(faulty, "GET")["injected"] == {"s3:GetObject": {"error": 1}}


def test_a_plan_that_makes_no_sense_is_refused(faulty: Bench) -> None:
    with pytest.raises(urllib.error.HTTPError, match="400"):
        call(faulty, "POST", {"faults": [{"at": "Claim", "kind": "explode"}]})


def test_a_seed_decides_who_is_hit_whatever_the_order_of_calls() -> None:
    fault = {"at": "Claim", "kind": "error", "probability": 0.5}
    document = json.dumps({"seed": 7, "faults": [fault]}).encode()
    orders = [f"orders/{n}.json" for n in range(20)]

    plan = faults.Plan.parse(document)
    forwards = {order for order in orders if plan.take("Claim", order)}
    plan = faults.Plan.parse(document)
    backwards = {order for order in reversed(orders) if plan.take("Claim", order)}

    assert forwards == backwards
    assert 0 < len(forwards) < len(orders)


def test_without_the_flag_there_are_no_fault_points(mended: Bench) -> None:
    with pytest.raises(urllib.error.HTTPError):
        call(mended, "POST", {"faults": [{"at": "*", "kind": "error"}]})

    assert mended.run({"Pass": passing()}).status == "SUCCEEDED"
    assert put_once(mended, table(mended)).status == "SUCCEEDED"
