"""After orders that went well and orders that failed in every way, no trace of a secret.

Looked through: every log group of the stack, the emulator's own log, every execution with its
history, the failure queue, the ledger.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from local import books, faults, orders
from local.paths import state_folder
from local.stack import Stack
from tests.production.logs import groups, streams, written_by

pytestmark = pytest.mark.xdist_group("upgrade")

CARD = "4000056655665556"
SECURITY_CODE = "cvc-93187"
TOKENS = ("tok_visa", "tok_declined", "tok_insufficient_funds", "tok_nobody_knows")

#: What the order file says besides the sample order, and the faults that it meets.
ORDERS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "settled": ({}, []),
    "with fields of a card": ({"card": {"number": CARD, "cvc": SECURITY_CODE}}, []),
    "declined": ({"payment_method": "tok_declined"}, []),
    "unknown token": ({"payment_method": "tok_nobody_knows"}, []),
    "a card for a token": ({"payment_method": int(CARD)}, []),
    "no such amount": ({"amount": "much"}, []),
    "crashes": ({}, ["function.exit_before_charge", "function.exit_after_charge"]),
    "answers nonsense": ({}, ["provider.error_after_charge"]),
    "gives up": ({}, ["provider.unavailable:99"]),
}


def follow(stack: Stack, order: dict[str, Any], names: list[str]) -> Any:
    body = json.loads(orders.order_body(None, {})) | order
    return orders.follow(
        stack,
        orders.fresh_object_key(),
        json.dumps(body).encode(),
        armed=[faults.Fault.parse(name) for name in names],
    )


@pytest.fixture(scope="module")
def results(stack: Stack) -> Iterator[dict[str, Any]]:
    yield {name: follow(stack, *how) for name, how in ORDERS.items()}
    faults.clear(stack)


@pytest.fixture(scope="module")
def places(stack: Stack, results: dict[str, Any]) -> dict[str, str]:
    """All that was written anywhere, by place."""
    found = {
        group: "\n".join(line for lines in streams(stack, group) for line in lines)
        for group in groups(stack)
    }
    executions = [
        books.execution(stack, one["arn"])
        for result in results.values()
        for one in result["executions"]
    ]
    return found | {
        "emulator.log": (state_folder() / "logs" / "emulator.log").read_text(),
        "executions": json.dumps([[one.input, one.events] for one in executions], default=str),
        "failure queue": json.dumps([one.summary() for one in books.messages(stack)]),
        "ledger": json.dumps(list(books.records(stack))),
    }


def test_every_kind_of_ending_was_played(results: dict[str, Any]) -> None:
    """Else the tests below would look through too little."""
    statuses = {name: result["record"]["status"] for name, result in results.items()}

    assert statuses == {
        "settled": "done",
        "with fields of a card": "done",
        "declined": "declined",
        "unknown token": "in_progress",  # for a person: the provider answered 400
        "a card for a token": "rejected",
        "no such amount": "rejected",
        "crashes": "done",
        "answers nonsense": "done",
        "gives up": "in_progress",
    }


def test_what_was_looked_through_is_not_empty(places: dict[str, str], stack: Stack) -> None:
    for name in (
        f"/aws/lambda/{stack.name}-charge",
        f"/aws/lambda/{stack.name}-provider",
        "emulator.log",
        "executions",
        "failure queue",
        "ledger",
    ):
        assert len(places[name]) > 100, name


@pytest.mark.parametrize("secret", [CARD, SECURITY_CODE, *TOKENS])
def test_no_field_of_a_card_and_no_token_is_told(places: dict[str, str], secret: str) -> None:
    assert [name for name, text in places.items() if secret in text] == []


def test_the_key_of_the_provider_is_told_nowhere(places: dict[str, str], stack: Stack) -> None:
    secrets = stack.client("secretsmanager")
    arn = stack.outputs["ProviderSecretArn"]
    key = secrets.get_secret_value(SecretId=arn)["SecretString"]

    assert [name for name, text in places.items() if key in text or "Bearer" in text] == []


def test_one_key_leads_from_the_object_to_the_execution_to_the_provider(
    results: dict[str, Any], places: dict[str, str], stack: Stack
) -> None:
    settled = results["settled"]
    (execution,) = settled["executions"]

    ((_, line),) = written_by(stack, execution["arn"])

    assert line["object_key"] == settled["object"]["key"]
    assert line["version_id"] == settled["object"]["version_id"]
    assert line["idempotency_key"] == settled["idempotency_key"]
    assert line["charge_id"] == settled["charges"][0]["id"]
    requests = places[f"/aws/lambda/{stack.name}-provider"].splitlines()
    assert any(
        "POST '/v1/charges' 201" in request and settled["idempotency_key"] in request
        for request in requests
    )
