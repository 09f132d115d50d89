"""Who waits for whom: each waits longer than what it waits for."""

from __future__ import annotations

from typing import Any

import pytest

from local.definition import load_definition, load_template
from local.deploy import local_parameters

Json = dict[str, Any]

DEFINITION = load_definition()
PARAMETERS = load_template()["Parameters"]
FUNCTION = load_template()["Resources"]["ChargeFunction"]["Properties"]
CHARGE = DEFINITION["States"]["Charge"]

DEFAULTS = {name: parameter.get("Default", "") for name, parameter in PARAMETERS.items()}
#: The most and the least that a person may choose, where that makes the order tightest.
TIGHTEST = DEFAULTS | {
    "ProviderKeyRetentionSeconds": PARAMETERS["ProviderKeyRetentionSeconds"]["MinValue"],
    "ChargeTimeoutSeconds": PARAMETERS["ChargeTimeoutSeconds"]["MaxValue"],
}
SETTINGS = {
    "the defaults": DEFAULTS,
    "the local run": DEFAULTS | local_parameters(),
    "the tightest": TIGHTEST,
}

#: The longest path through the function: a look-up, the charge, and a look-up after a 5xx.
CALLS_OF_THE_PROVIDER = 3
#: The least that the issue of a failed order may take to reach a person.
WANTED_RETRY_SECONDS = 300


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_each_waits_longer_than_what_it_waits_for(settings: Json) -> None:
    call = int(settings["ProviderTimeoutSeconds"])
    function = int(settings["ChargeTimeoutSeconds"])
    state, machine = CHARGE["TimeoutSeconds"], DEFINITION["TimeoutSeconds"]
    retention = int(settings["ProviderKeyRetentionSeconds"])

    assert CALLS_OF_THE_PROVIDER * call < function < state < machine < retention


def test_the_parameters_are_what_the_function_gets() -> None:
    variables = FUNCTION["Environment"]["Variables"]

    assert FUNCTION["Timeout"] == {"Ref": "ChargeTimeoutSeconds"}
    assert variables["PROVIDER_TIMEOUT_SECONDS"] == {"Ref": "ProviderTimeoutSeconds"}
    assert variables["PROVIDER_KEY_RETENTION_SECONDS"] == {"Ref": "ProviderKeyRetentionSeconds"}


def waits(retrier: Json) -> list[float]:
    """The longest wait before each retry, in seconds."""
    return [
        min(
            retrier["IntervalSeconds"] * retrier["BackoffRate"] ** retry,
            retrier["MaxDelaySeconds"],
        )
        for retry in range(retrier["MaxAttempts"])
    ]


def test_a_charge_is_retried_for_five_minutes_on_average_and_in_few_transitions() -> None:
    (retrier,) = CHARGE["Retry"]

    # Full jitter waits half of the longest wait on average.
    assert sum(waits(retrier)) / 2 >= WANTED_RETRY_SECONDS
    # Each retry is a billed transition.
    assert retrier["MaxAttempts"] <= 10


def test_the_comment_tells_the_waits_that_there_are() -> None:
    (retrier,) = CHARGE["Retry"]

    assert f"wait {int(sum(waits(retrier)) / 2)} s on average" in CHARGE["Comment"]


def test_the_worst_run_ends_before_the_machine_times_out() -> None:
    """Every call of a path times out at its last second, every wait is the longest."""
    path = ("Claim", "Charge", "MarkDone", "QueueFailure")
    longest = 0.0
    for name in path:
        state = DEFINITION["States"][name]
        retriers = [one for one in state["Retry"] if one["MaxAttempts"]]
        longest += sum(sum(waits(retrier)) for retrier in retriers)
        attempts = 1 + sum(retrier["MaxAttempts"] for retrier in retriers)
        longest += attempts * state["TimeoutSeconds"]

    assert longest < DEFINITION["TimeoutSeconds"]


def test_records_outlive_the_horizon_and_the_failure_queue() -> None:
    """Else a replay could charge an order whose record had expired."""
    queue = load_template()["Resources"]["FailureQueue"]["Properties"]
    queue_days = queue["MessageRetentionPeriod"] / 86_400

    assert DEFAULTS["RecordTtlDays"] > DEFAULTS["HorizonDays"] + queue_days
