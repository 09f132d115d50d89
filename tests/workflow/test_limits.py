"""What no Catch can see, and what takes too long."""

from __future__ import annotations

import pytest

from local.definition import load_definition
from tests.workflow.engines import Engine, event_of
from tests.workflow.scenarios import BROKEN, CHARGE, SCENARIOS, Fault, Json, Scenario

DEFINITION = load_definition()
NEW_ORDER = SCENARIOS[0]


def without(event: Json, *path: str) -> Json:
    """The event without one of its fields."""
    *outer, last = path
    inner = event
    for name in outer:
        inner = inner[name]
    del inner[last]
    return event


@pytest.mark.parametrize(
    ("version", "field", "state"),
    [
        ("v1", ("detail", "bucket"), "IdentifyByVersion"),
        ("v1", ("detail", "object", "key"), "IdentifyByVersion"),
        ("v1", ("detail", "object", "etag"), "IdentifyByVersion"),
        (None, ("detail", "object", "sequencer"), "IdentifyByContent"),
    ],
)
def test_an_input_that_is_no_event_fails_before_anything_is_claimed(
    engine: Engine, version: str | None, field: tuple[str, ...], state: str
) -> None:
    scenario = Scenario(name=NEW_ORDER.name, version=version, path="", after=None)
    event = without(event_of(scenario), *field)

    outcome = engine.execute(event, NEW_ORDER)

    # The backstop rule listens for this very name.
    assert (outcome.status, outcome.error) == ("FAILED", "States.Runtime")
    assert outcome.path == ["IsVersioned?", state]
    assert outcome.messages == []


@pytest.mark.parametrize("missing", CHARGE)
def test_an_answer_without_a_field_fails_where_the_backstop_sees_it(
    engine: Engine, missing: str
) -> None:
    scenario = next(scenario for scenario in BROKEN if scenario.name == f"no {missing}")

    outcome = engine.run(scenario)

    assert (outcome.status, outcome.error) == ("FAILED", "States.Runtime")
    assert outcome.path == ["IsVersioned?", "IdentifyByVersion", "Claim", "Charge"]
    assert outcome.record is not None
    assert outcome.record["status"] == "in_progress"
    assert outcome.messages == []


@pytest.mark.parametrize(
    ("cause", "last"),
    [
        ("", "Declined"),
        ("declined", "Declined"),
        ('["declined"]', "Declined"),
        ('{"errorMessage": "declined"} and more', "Declined"),
        ('{"errorMessage": "declined"}', "Declined"),
        ("{declined}", "ReadRefusal"),
        ('{"message": "declined"}', "MarkDeclined"),
    ],
)
def test_a_cause_in_any_form_settles_the_order_or_fails_where_the_backstop_sees_it(
    engine: Engine, cause: str, last: str
) -> None:
    caught = {
        "Type": "Pass",
        "Parameters": {"Error": "PaymentDeclined", "Cause": cause},
        "ResultPath": "$.error",
        "Next": "IsRefusalReadable?",
    }
    machine = engine.machine(DEFINITION | {"States": DEFINITION["States"] | {"Charge": caught}})

    outcome = engine.run(NEW_ORDER, machine)

    assert outcome.path[-1] == last
    assert outcome.record is not None
    if last == "Declined":
        assert outcome.record["status"] == "declined"
        assert "declined" in outcome.record["reason"].lower()
    else:
        assert outcome.error == "States.Runtime"
        assert outcome.record["status"] == "in_progress"


def test_the_machine_ends_a_run_that_takes_too_long(engine: Engine) -> None:
    machine = engine.machine(DEFINITION | {"TimeoutSeconds": 1})
    scenario = Scenario(
        name=NEW_ORDER.name, faults=(Fault("Charge", "delay", seconds=1.5),), path="", after=None
    )

    outcome = engine.run(scenario, machine)

    # Catch sees nothing of it: the backstop rule listens for the status.
    assert (outcome.status, outcome.error) == ("TIMED_OUT", None)
    assert outcome.path == ["IsVersioned?", "IdentifyByVersion", "Claim", "Charge"]
    assert outcome.record is not None
    assert outcome.record["status"] == "in_progress"
    assert outcome.messages == []


@pytest.mark.parametrize("state", ["Claim", "Charge", "MarkDone"])
def test_a_call_that_takes_too_long_is_made_again(engine: Engine, state: str) -> None:
    states = DEFINITION["States"]
    impatient = states | {state: states[state] | {"TimeoutSeconds": 1}}
    machine = engine.machine(DEFINITION | {"States": impatient})
    scenario = Scenario(
        name=NEW_ORDER.name, faults=(Fault(state, "delay", seconds=1.3),), path="", after=None
    )

    outcome = engine.run(scenario, machine)

    assert outcome.status == "SUCCEEDED"
    assert outcome.attempts[state] == 2
    assert outcome.record is not None
    assert outcome.record["status"] == "done"
