"""The real stack from outside: an order lands, and the books say what became of it."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from local import books, orders
from local.paths import SAMPLE_ORDER
from local.stack import Stack
from tests.e2e.command import document, run

pytestmark = pytest.mark.xdist_group("pipeline")

HAPPY_PATH = ["IsVersioned?", "IdentifyByVersion", "Claim", "Charge", "MarkDone"]
DUPLICATE_PATH = [
    "IsVersioned?",
    "IdentifyByVersion",
    "Claim",
    "ReadRecord",
    "WhoHoldsTheClaim?",
    "AlreadySettled",
]


def drop(stack: Stack, key: str | None = None, **how: Any) -> Any:
    """Drop the sample order, or another body, and follow it."""
    body = how.pop("body", None) or orders.order_body(None, {})
    return orders.follow(stack, key or orders.fresh_object_key(), body, **how)


def succeeded(result: Any) -> list[Any]:
    return [charge for charge in result["charges"] if charge["status"] == "succeeded"]


@pytest.mark.usefixtures("stack")
def test_an_order_is_charged_once_and_the_document_keeps_to_the_contract() -> None:
    result = document("order")

    assert list(result) == [
        "object",
        "idempotency_key",
        "executions",
        "record",
        "charges",
        "queued",
    ]
    assert list(result["object"]) == ["bucket", "key", "version_id"]
    (execution,) = result["executions"]
    assert list(execution) == ["arn", "status", "path", "error"]
    assert execution["status"] == "SUCCEEDED"
    assert execution["path"] == HAPPY_PATH
    assert execution["error"] is None
    (charge,) = result["charges"]
    assert list(charge) == ["id", "amount_minor", "currency", "reference", "status"]
    assert charge["amount_minor"] == 1999
    assert charge["reference"] == result["idempotency_key"]
    record = result["record"]
    assert record["status"] == "done"
    assert record["owner"] == execution["arn"]
    assert (record["charge_id"], record["amount_minor"]) == (charge["id"], 1999)
    assert "open_since" not in record
    assert record["expires_at"] > 0
    assert result["queued"] == 0


def test_late_duplicates_stand_down_and_leave_the_settled_record_alone(stack: Stack) -> None:
    result = drop(stack, times=3)

    assert [item["path"] for item in result["executions"]] == [
        HAPPY_PATH,
        DUPLICATE_PATH,
        DUPLICATE_PATH,
    ]
    assert result["record"]["owner"] == result["executions"][0]["arn"]
    assert len(succeeded(result)) == 1


def test_eight_deliveries_at_once_make_one_charge(stack: Stack) -> None:
    result = drop(stack, times=8, concurrently=True)

    assert len(result["executions"]) == 8
    assert {item["status"] for item in result["executions"]} == {"SUCCEEDED"}
    assert [item["path"] for item in result["executions"]].count(HAPPY_PATH) == 1
    assert len(result["charges"]) == 1
    assert result["record"]["status"] == "done"


def test_a_declined_payment_is_recorded_and_never_retried(stack: Stack) -> None:
    body = orders.order_body(None, {"payment_method": "tok_declined"})

    result = drop(stack, body=body)

    (execution,) = result["executions"]
    assert execution["status"] == "SUCCEEDED"
    assert execution["path"][-2:] == ["MarkDeclined", "Declined"]
    assert result["record"]["status"] == "declined"
    assert "declined" in result["record"]["reason"]
    assert succeeded(result) == []
    assert result["queued"] == 0
    assert attempts(stack, execution["arn"]) == 1


def attempts(stack: Stack, arn: str) -> int:
    """How often the charge function was called in one execution."""
    events = books.execution(stack, arn).events
    scheduled = [event for event in events if event["type"] == "TaskScheduled"]
    return sum(
        event["taskScheduledEventDetails"]["resourceType"] == "lambda" for event in scheduled
    )


@pytest.mark.parametrize(
    "key",
    [
        "orders/a b+c/ü.json",
        "orders/percent%20encoded%2F.json",
        "orders/{}braces{0}.json",
        "orders/quotes'\"\\.json",
        "orders/emoji \N{MONEY BAG}.json",
        "orders/" + "x" * (1024 - len("orders/.json")) + ".json",
    ],
    ids=["space-plus-umlaut", "percent", "braces", "quotes", "emoji", "1024-bytes"],
)
def test_any_object_key_that_s3_allows_is_charged_once(stack: Stack, key: str) -> None:
    result = drop(stack, key)

    assert result["executions"][0]["path"] == HAPPY_PATH
    assert result["record"]["object_key"] == key
    assert len(succeeded(result)) == 1


@pytest.mark.parametrize(
    "key", ["orders/photo.png", "other/x.json", "orders/", "orders.json", "my/orders/x.json"]
)
def test_what_is_not_an_order_starts_nothing(stack: Stack, key: str) -> None:
    result = drop(stack, key)

    assert result["executions"] == []
    assert result["record"] is None
    assert result["charges"] == []


def test_two_versions_of_one_key_are_two_orders_each_charged_its_own_amount(stack: Stack) -> None:
    key = orders.fresh_object_key()
    first = drop(stack, key, body=orders.order_body(None, {"amount": "1.00"}), wait=False)
    second = drop(stack, key, body=orders.order_body(None, {"amount": "2.00"}))

    orders.wait_for_end(stack, first["executions"][0]["arn"])

    records = [books.record(stack, result["idempotency_key"]) for result in (first, second)]
    assert [record and record["amount_minor"] for record in records] == [100, 200]


def test_an_order_file_with_a_byte_order_mark_and_windows_line_ends_is_accepted(
    stack: Stack,
) -> None:
    text = SAMPLE_ORDER.read_text().replace("\n", "\r\n").replace("A-1001", "A-bom")

    result = drop(stack, body=b"\xef\xbb\xbf" + text.encode())

    assert result["record"]["status"] == "done"
    assert result["record"]["order_id"] == "A-bom"


def test_an_event_without_a_version_is_charged_under_the_content_recipe(stack: Stack) -> None:
    placed = orders.put(stack, f"parked/{orders.fresh_object_key()}", orders.order_body(None, {}))
    event = placed.event()
    event["detail"]["object"]["key"] = key = orders.fresh_object_key()
    stack.client("s3").copy_object(
        Bucket=stack.bucket, Key=key, CopySource={"Bucket": stack.bucket, "Key": placed.key}
    )
    del event["detail"]["object"]["version-id"]
    event["detail"]["object"]["sequencer"] = "0055AED6DCD90281E5"

    arn = orders.start_execution(stack, event)
    orders.wait_for_end(stack, arn)

    assert books.execution(stack, arn).path == [
        "IsVersioned?",
        "IdentifyByContent",
        "Claim",
        "Charge",
        "MarkDone",
    ]


@pytest.mark.usefixtures("stack")
@pytest.mark.parametrize("command", ["ledger", "charges", "queue", "executions", "faults"])
def test_every_book_is_one_json_document(command: str) -> None:
    found = document(command)

    (rows,) = found.values()
    assert isinstance(rows, list)


def test_status_names_every_address(stack: Stack) -> None:
    found = document("status")

    assert list(found) == [
        "endpoint",
        "region",
        "bucket",
        "table",
        "failure_queue_url",
        "state_machine_arn",
        "provider_url",
        "page_url",
        "console_url",
        "engine",
        "versions",
    ]
    assert found["bucket"] == stack.bucket


@pytest.mark.usefixtures("stack")
@pytest.mark.parametrize(
    "arguments",
    [
        ("order", "--fault", "function.nonsense"),
        ("order", "--deliver", "0"),
        ("replay",),
        ("nonsense",),
    ],
)
def test_wrong_usage_is_exit_status_2(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).returncode == 2


@pytest.mark.usefixtures("stack")
def test_a_key_that_s3_would_refuse_is_a_clear_error() -> None:
    result = run("order", "--object-key", "orders/" + "x" * 1100 + ".json")

    assert result.returncode == 1
    assert "1,024 bytes" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.usefixtures("stack")
def test_up_twice_is_harmless() -> None:
    again = document("up")

    assert again == document("status")


def test_the_console_looks_at_this_stack_and_no_earlier_one(stack: Stack) -> None:
    known = httpx.get(f"{stack.console_url}/api/endpoints", trust_env=False)

    assert str(stack.endpoint) in known.text


def test_the_summary_tells_which_attempts_failed(stack: Stack) -> None:
    key = orders.fresh_object_key()

    result = run("order", "--object-key", key, "--fault", "function.exit_after_charge")

    assert "attempts that failed: Runtime.ExitError" in result.stdout
    assert len(list(books.charges(stack, order_key(stack, key)))) == 1


def order_key(stack: Stack, object_key: str) -> str:
    """The idempotency key of the only order at an object key."""
    (found,) = [one["pk"] for one in books.records(stack) if one["object_key"] == object_key]
    return str(found)


def test_the_sample_order_is_the_order_of_the_documentation() -> None:
    assert json.loads(SAMPLE_ORDER.read_text()) == {
        "order_id": "A-1001",
        "customer": "cus_42",
        "amount": "19.99",
        "currency": "EUR",
        "payment_method": "tok_visa",
    }
