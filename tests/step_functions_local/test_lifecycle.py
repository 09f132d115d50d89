"""What the local run says when its engine does not fit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local import lifecycle
from local.errors import CommandError
from local.ports import free_port
from local.stack import Stack

pytestmark = pytest.mark.xdist_group("sfn-local")

OUTPUTS = {"StateMachineArn": "arn:aws:states:us-east-1:000000000000:stateMachine:ChargeOrder"}
STANDING = Stack("charge-once", "us-east-1", "http://127.0.0.1:1", OUTPUTS)


class Refusing(Stack):
    """A stack whose engine does not take the definition."""

    def client(self, service: str) -> Any:
        def refuse(**_: str) -> None:
            error: Any = {"Code": "InvalidDefinition", "Message": "SCHEMA_VALIDATION_FAILED"}
            raise ClientError({"Error": error}, "ListExecutions")

        return SimpleNamespace(list_executions=refuse)


def test_a_stack_keeps_the_engine_that_it_was_started_with() -> None:
    with pytest.raises(CommandError, match=r"up with the engine ministack: .* `make down`"):
        lifecycle._carry_on(STANDING, 1.0, "step-functions-local")


@pytest.mark.parametrize("engine", [None, "ministack"])
def test_a_stack_that_is_up_is_left_as_it_is(engine: lifecycle.EngineName | None) -> None:
    assert lifecycle._carry_on(STANDING, 1.0, engine) is STANDING


def test_a_definition_that_the_engine_refuses_shows_when_the_stack_starts() -> None:
    with pytest.raises(CommandError, match=r"refuses the state machine: .*SCHEMA_VALIDATION"):
        lifecycle._introduce(Refusing("charge-once", "us-east-1", "http://127.0.0.1:1", OUTPUTS))


def test_an_engine_that_does_not_answer_is_seen() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    without = Stack("charge-once", "us-east-1", "http://127.0.0.1:1", OUTPUTS, engine_url=url)

    assert not lifecycle._has_its_engine(without)
    assert lifecycle._has_its_engine(STANDING)
