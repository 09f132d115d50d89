"""What the stack does on Step Functions Local: the same with the stand-in and the real program."""

from __future__ import annotations

from typing import Any

import httpx

from local import books, faults, orders
from local.replay import replay
from local.stack import Stack
from local.waiting import wait_for
from tests.step_functions_local.machine import Machine

HAPPY_PATH = ["IsVersioned?", "IdentifyByVersion", "Claim", "Charge", "MarkDone"]
#: A machine busy with something else takes its time.
PATIENCE_SECONDS = 60


def drop(stack: Stack, *names: str, wait: bool = True, **changed: str) -> Any:
    """Drop an order that meets the named faults, and follow it."""
    armed = [faults.Fault.parse(name) for name in names]
    body = orders.order_body(None, dict(changed))
    return orders.follow(stack, orders.fresh_object_key(), body, armed=armed, wait=wait)


def messages_of(stack: Stack, key: str) -> list[books.Message]:
    return [message for message in books.messages(stack) if message.idempotency_key == key]


def status_of(stack: Stack, key: str) -> Any:
    return (books.record(stack, key) or {}).get("status")


def charge_count(stack: Stack, key: str) -> int:
    return len(list(books.charges(stack, key)))


class TheStack:
    """Subclasses give the fixtures `machine` and `stack`."""

    def test_an_order_is_settled_by_the_command(self, machine: Machine, stack: Stack) -> None:
        result = machine.command("order")

        (execution,) = result["executions"]
        assert execution["status"] == "SUCCEEDED"
        assert execution["path"] == HAPPY_PATH
        assert result["record"]["status"] == "done"
        assert [charge["status"] for charge in result["charges"]] == ["succeeded"]
        assert result["queued"] == 0
        assert execution in machine.command("executions")["executions"]
        assert stack.status()["engine"] == "step-functions-local"

    def test_deliveries_at_once_charge_once(self, stack: Stack) -> None:
        body = orders.order_body(None, {})

        result = orders.follow(stack, orders.fresh_object_key(), body, times=4, concurrently=True)

        assert len(result["executions"]) == 4
        assert {item["status"] for item in result["executions"]} == {"SUCCEEDED"}
        assert sum(item["path"] == HAPPY_PATH for item in result["executions"]) == 1
        assert len(result["charges"]) == 1

    def test_a_decline_is_final(self, stack: Stack) -> None:
        result = drop(stack, payment_method="tok_declined")

        assert result["executions"][0]["path"][-1] == "Declined"
        assert result["record"]["status"] == "declined"
        assert result["record"]["reason"] == "card_declined"

    def test_the_console_and_the_page_show_the_run(self, stack: Stack) -> None:
        result = drop(stack)
        arn = result["executions"][0]["arn"]
        listed = f"api/stepfunctions/state-machines/{stack.state_machine_arn}/executions"

        def seen(url: str) -> str | None:
            text = httpx.get(url, trust_env=False, timeout=30).text
            return text if result["object"]["key"] in text or arn in text else None

        assert wait_for(lambda: seen(f"{stack.console_url}/{listed}"), PATIENCE_SECONDS)
        assert wait_for(lambda: seen(f"{stack.page_url}/orders.json"), PATIENCE_SECONDS)

    def test_a_stopped_run_is_queued_by_the_backstop_and_a_replay_settles_it(
        self, stack: Stack, machine: Machine
    ) -> None:
        result = drop(stack, "provider.timeout_before:9", wait=False)
        key, arn = result["idempotency_key"], result["executions"][0]["arn"]
        wait_for(lambda: books.execution(stack, arn).path[-1:] == ["Charge"], PATIENCE_SECONDS)

        stopped = machine.command("stop", "--execution", arn)
        faults.clear(stack)

        assert stopped["status"] == "ABORTED"
        (message,) = wait_for(lambda: messages_of(stack, key), PATIENCE_SECONDS)
        assert message.error == "ExecutionAborted"
        assert message.body["execution"] == arn
        assert status_of(stack, key) == "in_progress"

        report = replay(stack, idempotency_key=key)

        assert [item["status"] for item in report.replayed] == ["SUCCEEDED"]
        assert status_of(stack, key) == "done"
        assert charge_count(stack, key) == 1
        assert messages_of(stack, key) == []

    def test_nothing_is_lost_or_taken_for_dead_when_the_engine_is_restarted_in_a_burst(
        self, stack: Stack, machine: Machine
    ) -> None:
        def put() -> str:
            body = orders.order_body(None, {})
            return orders.put(stack, orders.fresh_object_key(), body).idempotency_key

        slow = drop(stack, "provider.timeout_before:2", wait=False)
        arn = slow["executions"][0]["arn"]
        early = [put() for _ in range(4)]
        wait_for(lambda: all(books.record(stack, key) for key in early), PATIENCE_SECONDS)
        machine.kill_engine()
        late = [put() for _ in range(3)]
        client = stack.client("stepfunctions")
        while_away = client.describe_execution(executionArn=arn)["status"]
        assert not any(books.record(stack, key) for key in late)

        machine.up()

        everything = [slow["idempotency_key"], *early, *late]
        wait_for(
            lambda: {status_of(stack, key) for key in everything} == {"done"}, PATIENCE_SECONDS
        )
        for key in everything:
            assert charge_count(stack, key) == 1
            assert messages_of(stack, key) == []
        # Its run was ended in the middle, and went on as its own successor.
        assert while_away == "RUNNING"
        record = books.record(stack, slow["idempotency_key"])
        assert record is not None
        assert record["owner"] == arn
        assert books.execution(stack, arn).status == "SUCCEEDED"
