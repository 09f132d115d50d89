"""Nothing in the definition is without a scenario."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from local.definition import load_definition
from tests.workflow.scenarios import RETRIED, SCENARIOS, Json, Scenario

STATES: Json = load_definition()["States"]

#: (state, next state) of every step that some scenario takes.
STEPS = {step for scenario in SCENARIOS for step in itertools.pairwise(scenario.states)}
VISITED = {state for scenario in SCENARIOS for state in scenario.states}


def handlers(kind: str) -> Iterator[tuple[str, Json, str]]:
    """Every error name of every Retry or Catch, with its state and its retrier or catcher."""
    for state, definition in STATES.items():
        for handler in definition.get(kind, []):
            for name in handler["ErrorEquals"]:
                yield state, handler, name


def handled_by(state: str, kind: str, error: str) -> Json | None:
    """The retrier or catcher that answers an error; by the rules of the States Language."""
    for handler in STATES[state].get(kind, []):
        names = handler["ErrorEquals"]
        task_failed = "States.TaskFailed" in names and error != "States.Timeout"
        if error in names or task_failed or "States.ALL" in names:
            return dict(handler)
    return None


def branches() -> Iterator[tuple[str, str]]:
    for state, definition in STATES.items():
        if definition["Type"] == "Choice":
            yield from ((state, choice["Next"]) for choice in definition["Choices"])
            yield state, definition["Default"]


def meets(scenario: Scenario, state: str, kind: str, handler: Json, name: str) -> bool:
    return state in scenario.states and any(
        handled_by(state, kind, error) == handler
        and (error == name or name in ("States.ALL", "States.TaskFailed"))
        for error in scenario.errors(state)
    )


def test_every_branch_of_a_choice_leads_elsewhere() -> None:
    """Else a step could not tell which branch was taken."""
    assert len(set(branches())) == len(list(branches()))


@pytest.mark.parametrize("state", STATES)
def test_every_state_has_a_scenario(state: str) -> None:
    assert state in VISITED


@pytest.mark.parametrize(("state", "target"), list(branches()))
def test_every_branch_has_a_scenario(state: str, target: str) -> None:
    assert (state, target) in STEPS


@pytest.mark.parametrize(
    ("state", "target"),
    [(state, body["Next"]) for state, body in STATES.items() if "Next" in body],
)
def test_every_next_has_a_scenario(state: str, target: str) -> None:
    assert (state, target) in STEPS


@pytest.mark.parametrize(("state", "catcher", "name"), list(handlers("Catch")))
def test_every_caught_error_has_a_scenario(state: str, catcher: Json, name: str) -> None:
    found = [
        scenario
        for scenario in SCENARIOS
        if meets(scenario, state, "Catch", catcher, name)
        and (state, catcher["Next"]) in itertools.pairwise(scenario.states)
    ]

    assert found


@pytest.mark.parametrize(("state", "retrier", "name"), list(handlers("Retry")))
def test_every_retried_error_has_a_scenario(state: str, retrier: Json, name: str) -> None:
    attempts = retrier.get("MaxAttempts", 3) > 0
    found = [
        scenario
        for scenario in SCENARIOS
        if meets(scenario, state, "Retry", retrier, name)
        # A retrier without attempts is there to be passed by.
        and (scenario.attempts.get(state, 1) > 1 or not attempts)
    ]

    assert found


def test_the_table_and_the_definition_name_the_same_retried_errors() -> None:
    (retrier,) = STATES["Charge"]["Retry"]

    assert list(RETRIED) == retrier["ErrorEquals"]


def test_scenarios_have_names_of_their_own() -> None:
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
