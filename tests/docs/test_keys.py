"""docs/keys.md makes the keys that the code makes, and has the numbers of the template."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
from backstop.message import order_of

from local.definition import load_definition, load_template
from local.paths import PROJECT
from tests.docs.pages import blocks, table, words

Json = dict[str, Any]

PAGE = (PROJECT / "docs" / "keys.md").read_text()
ROWS = {row[0].partition(" (")[0]: row for row in table(PAGE, "How long everything lives")}
DEFINITION = load_definition()
RESOURCES = load_template()["Resources"]
DEFAULTS = {name: value.get("Default") for name, value in load_template()["Parameters"].items()}
DAY_SECONDS = 86_400


def key_of(object_: Json) -> str:
    event = {"detail": {"bucket": {"name": "shop-orders"}, "object": object_}}
    return order_of(event)["idempotency_key"].removeprefix("charge#")


def test_the_shell_makes_the_keys_that_the_code_makes() -> None:
    (script,) = [block for _, block in blocks(PAGE, "bash")]
    (shown,) = [block for _, block in blocks(PAGE, "text")]
    upload = {"key": "orders/a-1001.json", "etag": "9a0364b9e99bb480dd25e1f0284c8555"}

    printed = subprocess.run(
        ["bash", "-euc", script], capture_output=True, text=True, check=True
    ).stdout

    assert printed == shown
    assert [line.split()[0] for line in printed.splitlines()] == [
        key_of(upload | {"version-id": "3sL4kqtJlcpXroDTDmJrmSpXd3dIbrHY"}),
        key_of(upload | {"sequencer": "0055AED6DCD90281E5"}),
    ]


def test_both_recipes_are_there() -> None:
    states = {words(row[2])[0] for row in table(PAGE, "Recipes")}

    assert states == {name for name in DEFINITION["States"] if name.startswith("Identify")}


@pytest.mark.parametrize("rule", ["OrderRule", "BackstopRule"])
def test_an_events_retries_are_those_of_its_rule(rule: str) -> None:
    (target,) = RESOURCES[rule]["Properties"]["Targets"]
    policy = target["RetryPolicy"]
    row = ROWS["an event on its way to the state machine or the backstop"]

    hours = policy["MaximumEventAgeInSeconds"] // 3600
    assert row[1].startswith(f"{hours} h or {policy['MaximumRetryAttempts']} retries")
    assert f"`{rule}`" in row[2]


def test_the_waits_of_charge_are_the_definitions() -> None:
    charge = DEFINITION["States"]["Charge"]
    (retrier,) = charge["Retry"]
    longest = sum(
        min(retrier["IntervalSeconds"] * retrier["BackoffRate"] ** n, retrier["MaxDelaySeconds"])
        for n in range(retrier["MaxAttempts"])
    )
    calls = charge["TimeoutSeconds"] * (retrier["MaxAttempts"] + 1)

    assert ROWS["retries of `Charge`"][1] == (
        f"{retrier['MaxAttempts']}; {int(longest / 2)} s of waiting on average, {int(longest)} s "
        f"at most; {int((longest + calls) / 60)} min with nine full time-outs"
    )


def test_the_pass_is_started_as_long_as_the_schedule_tries() -> None:
    target = RESOURCES["ReconcilerSchedule"]["Properties"]["Target"]
    policy = target["RetryPolicy"]

    hours = policy["MaximumEventAgeInSeconds"] // 3600
    assert ROWS["the start of a reconciler pass"][1].startswith(
        f"{hours} h or {policy['MaximumRetryAttempts']} retries"
    )


def test_a_message_lives_as_long_as_its_queue_keeps_it() -> None:
    kept = {
        resource["Properties"]["MessageRetentionPeriod"] // DAY_SECONDS
        for resource in RESOURCES.values()
        if resource["Type"] == "AWS::SQS::Queue"
    }

    (days,) = kept
    assert ROWS["a message in a queue"][1].startswith(f"{days} days")
    assert f"more than `HorizonDays` + {days}" in re.sub(r"\s+", " ", PAGE)


@pytest.mark.parametrize(
    ("what", "number"),
    [
        ("one run", f"{DEFINITION['TimeoutSeconds'] // 3600} h"),
        ("a repair", f"orders up to {DEFAULTS['HorizonDays']} days old"),
        ("a record that is done", f"{DEFAULTS['RecordTtlDays']} days"),
        (
            "the provider's memory of a key",
            f"{DEFAULTS['ProviderKeyRetentionSeconds'] // 3600} h",
        ),
    ],
)
def test_a_horizon_is_that_of_template_and_definition(what: str, number: str) -> None:
    assert ROWS[what][1].startswith(number)
