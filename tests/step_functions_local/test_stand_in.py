"""The stack on the stand-in for Step Functions Local."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from local import books, faults, orders
from local.replay import replay
from local.stack import Stack
from local.waiting import wait_for
from tests.step_functions_local.contract import (
    PATIENCE_SECONDS,
    TheStack,
    charge_count,
    drop,
    messages_of,
    status_of,
)
from tests.step_functions_local.machine import Machine, with_the_stand_in

pytestmark = pytest.mark.xdist_group("sfn-local")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    on_stand_in = with_the_stand_in(tmp_path_factory.mktemp("stand-in"))
    yield on_stand_in
    on_stand_in.command("down")
    # Here, so that no second stack must be started to see it.
    assert on_stand_in.processes() == []


@pytest.fixture(scope="module")
def stack(machine: Machine) -> Stack:
    return machine.up()


class TestTheStandIn(TheStack):
    def test_a_dead_provider_leaves_the_order_queued_and_a_replay_settles_it(
        self, stack: Stack
    ) -> None:
        result = drop(stack, "provider.unavailable:99")
        key = result["idempotency_key"]
        assert result["executions"][0]["path"][-2:] == ["QueueFailure", "ChargeFailed"]
        assert result["executions"][0]["error"] == "ProviderUnavailable"
        assert result["queued"] == 1
        faults.clear(stack)

        report = replay(stack, idempotency_key=key)

        assert [item["status"] for item in report.replayed] == ["SUCCEEDED"]
        assert status_of(stack, key) == "done"
        assert charge_count(stack, key) == 1
        assert messages_of(stack, key) == []

    def test_an_input_that_no_catch_can_see_is_queued_by_the_backstop(self, stack: Stack) -> None:
        arn = orders.start_execution(stack, {"nonsense": True})

        def named() -> list[books.Message]:
            return [item for item in books.messages(stack) if item.body.get("execution") == arn]

        (message,) = wait_for(named, PATIENCE_SECONDS)
        assert message.error == "States.Runtime"
        assert message.body["error"]["Cause"]

    def test_a_changed_definition_is_followed(self, stack: Stack) -> None:
        client = stack.client("stepfunctions")
        machine_arn = stack.state_machine_arn
        before = client.describe_state_machine(stateMachineArn=machine_arn)["definition"]
        changed = json.dumps(json.loads(before) | {"Comment": "changed"})
        client.update_state_machine(stateMachineArn=machine_arn, definition=changed)

        arn = drop(stack)["executions"][0]["arn"]
        client.update_state_machine(stateMachineArn=machine_arn, definition=before)

        ran = client.describe_state_machine_for_execution(executionArn=arn)
        assert json.loads(ran["definition"])["Comment"] == "changed"

    def test_a_start_is_answered_with_the_engines_own_words(self, stack: Stack) -> None:
        client = stack.client("stepfunctions")
        arn = drop(stack)["executions"][0]["arn"]
        name = arn.rpartition(":")[2]

        with pytest.raises(client.exceptions.ExecutionAlreadyExists):
            orders.start_execution(stack, {"other": "input"}, name)
