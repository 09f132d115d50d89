"""The whole pipeline on an emulator that checks signatures and the functions' roles.

What the other tests say a role may do is enough for the work, and is asked for: a function whose
role lacks an action cannot do its part.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from local import books, lifecycle, orders
from local.faults import Fault
from local.paths import STATE_VARIABLE
from local.stack import Stack
from local.waiting import wait_for

pytestmark = pytest.mark.xdist_group("authorization")

Json = dict[str, Any]

#: The event, the function's start and the message take a second.
MESSAGE_SECONDS = 20


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack of its own, with `--auth`."""
    state: Path = tmp_path_factory.mktemp("guarded")
    with patch.dict(os.environ, {STATE_VARIABLE: str(state)}):
        guarded = lifecycle.up(0.0, emulator_flags=("--auth",), shown=False)
    try:
        yield guarded
    finally:
        with patch.dict(os.environ, {STATE_VARIABLE: str(state)}):
            lifecycle.down()


def follow(stack: Stack, *faults: str, **changes: str) -> Json:
    return orders.follow(
        stack,
        orders.fresh_object_key(),
        orders.order_body(None, dict(changes)),
        armed=[Fault.parse(fault) for fault in faults],
    )


def reconcile(stack: Stack) -> tuple[str | None, Json]:
    """A pass of the reconciler: the kind of its failure, if any, and what it returned."""
    physical = stack.client("cloudformation").describe_stack_resource(
        StackName=stack.name, LogicalResourceId="ReconcilerFunction"
    )["StackResourceDetail"]["PhysicalResourceId"]
    answer = stack.client("lambda").invoke(FunctionName=physical, Payload=b"{}")
    return answer.get("FunctionError"), json.loads(answer["Payload"].read())


@contextlib.contextmanager
def without(stack: Stack, function: str, action: str) -> Iterator[None]:
    """Take one action out of a function's role for a while."""
    iam = stack.client("iam")
    physical = stack.client("cloudformation").describe_stack_resource(
        StackName=stack.name, LogicalResourceId=f"{function}Role"
    )["StackResourceDetail"]["PhysicalResourceId"]
    before = {}
    for name in iam.list_role_policies(RoleName=physical)["PolicyNames"]:
        document = iam.get_role_policy(RoleName=physical, PolicyName=name)["PolicyDocument"]
        text = document if isinstance(document, str) else json.dumps(document)
        before[name] = text
        iam.put_role_policy(
            RoleName=physical,
            PolicyName=name,
            PolicyDocument=text.replace(f'"{action}"', '"none:None"'),
        )
    assert any(f'"{action}"' in text for text in before.values())
    try:
        yield
    finally:
        for name, text in before.items():
            iam.put_role_policy(RoleName=physical, PolicyName=name, PolicyDocument=text)


@pytest.mark.parametrize(
    ("faults", "changes", "status", "charges"),
    [
        ((), {}, "done", 1),
        (("function.exit_after_charge",), {}, "done", 1),
        (("provider.error_after_charge",), {}, "done", 1),
        ((), {"payment_method": "tok_declined"}, "declined", 1),
        ((), {"amount": "-1"}, "rejected", 0),
    ],
)
def test_the_roles_are_enough_for_every_kind_of_order(
    guarded: Stack, faults: tuple[str, ...], changes: dict[str, str], status: str, charges: int
) -> None:
    outcome = follow(guarded, *faults, **changes)

    assert outcome["record"]["status"] == status
    assert len(outcome["charges"]) == charges


@pytest.mark.parametrize(
    ("action", "error"),
    [
        ("s3:GetObjectVersion", "OrderUnreadable"),
        ("dynamodb:UpdateItem", "ClientError"),
    ],
)
def test_a_charge_function_without_an_action_leaves_the_order_open(
    guarded: Stack, action: str, error: str
) -> None:
    with without(guarded, "ChargeFunction", action):
        outcome = follow(guarded)

    assert outcome["executions"][0]["error"] == error
    assert outcome["record"]["status"] == "in_progress"
    assert outcome["charges"] == []
    assert outcome["queued"] == 1


def test_the_roles_are_enough_for_a_pass_of_the_reconciler(guarded: Stack) -> None:
    follow(guarded)

    error, report = reconcile(guarded)

    assert error is None
    assert report["complete"] is True


@pytest.mark.parametrize(
    "action",
    [
        "s3:ListBucketVersions",
        "dynamodb:BatchGetItem",
        "dynamodb:Scan",
        "secretsmanager:GetSecretValue",
        "s3:PutObject",
    ],
)
def test_a_reconciler_without_an_action_fails_by_its_name(guarded: Stack, action: str) -> None:
    with without(guarded, "ReconcilerFunction", action):
        error, report = reconcile(guarded)

    assert error == "Unhandled"
    assert "AccessDenied" in report["errorMessage"]


def test_the_roles_are_enough_for_the_backstop(guarded: Stack) -> None:
    arn = orders.start_execution(guarded, {"no": "event"})

    message = wait_for(
        lambda: next(
            (one for one in books.messages(guarded) if one.body.get("execution") == arn), None
        ),
        MESSAGE_SECONDS,
    )

    assert message.error == "States.Runtime"
