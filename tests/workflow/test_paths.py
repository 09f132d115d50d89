"""Every scenario on both engines: the path, the end, the record and the message."""

from __future__ import annotations

import collections
import json
from dataclasses import replace

import pytest

from local.definition import load_definition
from tests.workflow.engines import Engine, Moto, Outcome
from tests.workflow.scenarios import CHARGE, ME, SCENARIOS, Json, Scenario

STATES: Json = load_definition()["States"]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_run_ends_as_the_table_says(engine: Engine, scenario: Scenario) -> None:
    outcome = engine.run(scenario)

    assert outcome.path == scenario.states
    if (type(engine), scenario.name) == (Moto, "States.Timeout for ever ends in the queue"):
        # Moto's Fail states bear no reserved name; what came before the last state is the same.
        assert (outcome.status, outcome.error) == ("FAILED", "States.Runtime")
        outcome = replace(outcome, cause='{"Error": "States.Timeout"}')
    else:
        assert (outcome.status, outcome.error) == (scenario.status, scenario.error)
    assert outcome.attempts == expected_attempts(scenario)
    assert_output(outcome, scenario)
    assert_record(outcome, scenario)
    assert_messages(outcome, scenario)


def expected_attempts(scenario: Scenario) -> collections.Counter[str]:
    calls = collections.Counter(
        state for state in scenario.states if STATES[state]["Type"] == "Task"
    )
    return collections.Counter(calls | scenario.attempts)


def assert_output(outcome: Outcome, scenario: Scenario) -> None:
    if scenario.states[-1] == "ChargeFailed":
        # The whole of what was caught, for whoever looks at the execution first.
        assert json.loads(outcome.cause or "")["Error"] == scenario.error
    elif scenario.states[-1] == "FailureQueueUnreachable":
        assert outcome.order["idempotency_key"] in (outcome.cause or "")
    else:
        assert outcome.output is not None
        assert outcome.output["run"] == {"execution": outcome.arn, "order": outcome.order}
        charged = "MarkDone" in scenario.states
        assert outcome.output.get("charge") == (CHARGE if charged else None)


def assert_record(outcome: Outcome, scenario: Scenario) -> None:
    if scenario.after is None:
        assert outcome.record is None
        return
    record = outcome.record
    assert record is not None
    assert record["pk"] == outcome.order["idempotency_key"]
    expected = {
        name: outcome.arn if value == ME else value for name, value in scenario.after.items()
    }
    assert {name: record.get(name) for name in expected} == expected
    settled_by_us = expected["owner"] == outcome.arn and expected["status"] != "in_progress"
    # Only what is open is in the open-records index; only what was charged ever expires.
    assert ("open_since" in record) is (expected["status"] == "in_progress")
    assert ("settled_at" in record) is settled_by_us
    charged_by_us = settled_by_us and expected["status"] == "done"
    assert record.get("expires_at") == (CHARGE["expires_at"] if charged_by_us else None)


def assert_messages(outcome: Outcome, scenario: Scenario) -> None:
    key = outcome.order["idempotency_key"]
    assert [message.error for message in outcome.messages] == list(scenario.queued)
    for message in outcome.messages:
        assert message.attributes == {"error": message.error, "idempotency_key": key}
        error = message.body.pop("error")
        assert message.body == {
            "execution": outcome.arn,
            "idempotency_key": key,
            "order": outcome.order,
        }
        assert error["Error"] == message.error
        assert set(error) == {"Error", "Cause"}
