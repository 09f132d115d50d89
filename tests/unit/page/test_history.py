"""An execution's events become steps, attempts and writes."""

from __future__ import annotations

import json

import pytest

from local.page import history
from tests.unit.page.fakes import MACHINE, Events, happy_events

CONFLICT = history.CONFLICT


def test_the_happy_path_is_five_states_that_are_done() -> None:
    steps = history.steps(happy_events())

    assert [step.state for step in steps] == [
        "IsVersioned?",
        "IdentifyByVersion",
        "Claim",
        "Charge",
        "MarkDone",
    ]
    assert {step.outcome for step in steps} == {"done"}


def test_a_retry_is_an_attempt_of_the_same_step() -> None:
    events = Events().task("Charge", "Runtime.ExitError", None).list

    (step,) = history.steps(events)

    assert [attempt.error for attempt in step.attempts] == ["Runtime.ExitError", None]
    assert step.outcome == "retried"


@pytest.mark.parametrize(
    ("error", "outcome"), [("ProviderUnavailable", "caught"), (CONFLICT, "conflict")]
)
def test_a_step_that_a_catch_left_says_so(error: str, outcome: str) -> None:
    (step,) = history.steps(Events().task("Claim", error).list)

    assert step.outcome == outcome


def test_a_step_without_an_end_is_running() -> None:
    events = Events().enter("Task", "Charge").add("TaskScheduled").list

    (step,) = history.steps(events)

    assert step.outcome == "running"
    assert step.attempts[0].seconds is None


@pytest.mark.parametrize("ending", ["ExecutionAborted", "ExecutionTimedOut", "ExecutionFailed"])
def test_a_run_that_is_cut_short_fails_where_it_was(ending: str) -> None:
    events = Events().enter("Task", "Charge").add("TaskScheduled").add(ending).list

    (step,) = history.steps(events)

    assert step.outcome == "failed"


def test_a_fail_state_is_a_failure() -> None:
    (step,) = history.steps(Events().enter("Fail", "ChargeFailed").add("ExecutionFailed").list)

    assert step.outcome == "failed"


def test_a_time_out_without_details_is_still_a_failed_attempt() -> None:
    events = Events().enter("Task", "Charge").add("TaskScheduled").add("TaskTimedOut").list

    (step,) = history.steps(events)

    assert step.attempts[0].error == "States.TaskFailed"


def test_a_failure_that_nothing_announced_is_an_attempt_of_its_own() -> None:
    events = (
        Events()
        .enter("Task", "Charge")
        .add("TaskFailed", taskFailedEventDetails={"error": "States.Runtime"})
        .list
    )

    (step,) = history.steps(events)

    assert [attempt.error for attempt in step.attempts] == ["States.Runtime"]


@pytest.mark.parametrize(
    ("cause", "readable"),
    [
        (json.dumps({"errorMessage": "no answer", "errorType": "X"}), "no answer"),
        (json.dumps({"other": 1}), json.dumps({"other": 1})),
        ("plain words", "plain words"),
        ("[1]", "[1]"),
        ("", None),
        (None, None),
    ],
)
def test_a_cause_is_read_whatever_it_is(cause: str | None, readable: str | None) -> None:
    assert history.readable_cause(cause) == readable


def test_writes_are_told_with_those_that_the_condition_refused() -> None:
    run = f"{MACHINE}:run-1"
    steps = history.steps(Events().task("Claim", CONFLICT).task("TakeOver").task("MarkDone").list)

    found = history.writes(run, steps)

    assert [(write.state, write.refused) for write in found] == [
        ("Claim", True),
        ("TakeOver", False),
        ("MarkDone", False),
    ]
    assert found[-1].words == "done"


def test_an_attempt_whose_outcome_is_unknown_is_no_write() -> None:
    steps = history.steps(Events().task("MarkDone", "States.Timeout").list)

    assert history.writes(f"{MACHINE}:run-1", steps) == []
