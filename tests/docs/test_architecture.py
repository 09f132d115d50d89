"""docs/architecture.md says what definition, template and code say."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from backstop.message import ERROR_OF_STATUS
from charge import errors

from local.definition import load_definition, load_template
from local.paths import PROJECT
from tests.docs.pages import blocks, table, words
from tests.workflow.scenarios import SCENARIOS

Json = dict[str, Any]

PAGE = (PROJECT / "docs" / "architecture.md").read_text()
RUNBOOK = (PROJECT / "docs" / "runbook.md").read_text()
STATES: Json = load_definition()["States"]
TEMPLATE = load_template()

#: Words in the drawings that look like states and are something else's.
OTHER_NAMES = {
    *("StartExecution", "DescribeExecution", "GetExecutionHistory"),
    *("EventBridge", "BackstopRule"),
}


def written() -> dict[str, tuple[str, set[str]]]:
    """Type of each attribute of a record, and the states that write it."""
    types: dict[str, str] = {}
    states: dict[str, set[str]] = defaultdict(set)
    for name, state in STATES.items():
        parameters = state.get("Parameters", {})
        values = dict(parameters.get("Item", {}))
        aliases = parameters.get("ExpressionAttributeNames", {})
        sets = parameters.get("UpdateExpression", "").partition(" REMOVE ")[0]
        for attribute, value in re.findall(r"([#\w]+) = [^,:]*(?:, )?(:\w+)", sets):
            values[aliases.get(attribute, attribute)] = parameters["ExpressionAttributeValues"][
                value
            ]
        for attribute, value in values.items():
            types[attribute] = next(iter(value)).removesuffix(".$")
            states[attribute].add(name)
    return {attribute: (types[attribute], states[attribute]) for attribute in types}


def test_every_attribute_of_a_record_is_there_with_its_type_and_who_writes_it() -> None:
    documented = {
        attribute: (kind, set(words(by)))
        for attributes, kind, by, _ in table(PAGE, "The ledger record")
        for attribute in words(attributes)
    }

    assert documented == written()


def leaves(base: type[Exception]) -> set[str]:
    """The classes that are raised: those without subclasses."""
    if not base.__subclasses__():
        return {base.__name__}
    return {name for child in base.__subclasses__() for name in leaves(child)}


def test_every_error_of_the_charge_function_is_there_as_what_it_is_treated() -> None:
    rows = {row[0]: set(words(row[1])) for row in table(PAGE, "The charge function")}
    retrier = STATES["Charge"]["Retry"][0]

    assert rows == {
        f"retry, {retrier['MaxAttempts']} times": leaves(errors.Retry),
        "refuse": leaves(errors.Refuse),
        "alert": leaves(errors.Alert),
    }
    assert leaves(errors.Retry) == {name for name in retrier["ErrorEquals"] if "." not in name}


def test_every_error_that_a_message_can_name_is_in_the_runbook() -> None:
    rows = table(RUNBOOK, "Errors in the failure queue") + table(RUNBOOK, "Ends of a run")
    documented = {name for row in rows for name in words(row[0])}

    assert leaves(errors.ChargeError) | set(ERROR_OF_STATUS.values()) <= documented
    assert {"ConflictingCharge", "UnknownRecordStatus", "FailureQueueUnreachable"} <= documented


def test_every_part_of_a_failure_message_is_shown() -> None:
    message = STATES["QueueFailure"]["Parameters"]
    (shown,) = [
        block
        for _, block in blocks(PAGE.partition("### The failure message")[2], "json")
        if '"execution"' in block
    ]

    assert set(re.findall(r'"(\w+)":', shown)) == {
        *(name.removesuffix(".$") for name in message["MessageBody"]),
        *("bucket", "key", "version_id", "etag", "Error", "Cause"),
    }
    for attribute in message["MessageAttributes"]:
        assert f"`{attribute}`" in PAGE


def test_every_setting_of_a_function_is_there_with_the_functions_that_have_it() -> None:
    functions = {
        resource["Properties"]["CodeUri"].strip("/").rpartition("/")[2]: resource["Properties"]
        for resource in TEMPLATE["Resources"].values()
        if resource["Type"] == "AWS::Serverless::Function"
    }
    everywhere = set(TEMPLATE["Globals"]["Function"]["Environment"]["Variables"])
    settings: dict[str, set[str]] = defaultdict(set)
    for function, properties in functions.items():
        own = set(properties["Environment"]["Variables"])
        for variable in own | everywhere:
            settings[variable].add(function)
    # The provider is somebody else's: what it alone has is on its own page, and tested there.
    expected = {name: by for name, by in settings.items() if by != {"provider"}}

    documented = {
        variable: set(functions) if by == "each" else set(by.split(", "))
        for variables, by, _ in table(PAGE, "Settings of the functions")
        for variable in words(variables)
    }

    assert documented == expected


def test_every_path_is_one_that_the_workflow_tests_walk() -> None:
    walked = {tuple(scenario.path.split()) for scenario in SCENARIOS}
    shown = [tuple(words(path)) for path in re.findall(r"`\w+\??`(?:\s→\s`\w+\??`)+", PAGE)]

    assert len(shown) > 6
    assert [path for path in shown if path not in walked] == []


def test_the_drawings_name_only_states_and_errors_that_there_are() -> None:
    drawn = "".join(block for _, block in blocks(PAGE, "mermaid"))
    # Two capitals make a name; words of the services' own errors follow a full stop.
    names = set(re.findall(r"(?<![.\w])(?:[A-Z][a-z]+){2,}\??(?!\w)", drawn))

    assert names - set(STATES) - leaves(errors.ChargeError) - OTHER_NAMES == set()


def test_the_drawing_of_a_dead_provider_has_the_definitions_numbers() -> None:
    (retrier,) = STATES["Charge"]["Retry"]
    longest = [
        min(retrier["IntervalSeconds"] * retrier["BackoffRate"] ** n, retrier["MaxDelaySeconds"])
        for n in range(retrier["MaxAttempts"])
    ]

    # Full jitter waits half of the longest wait on average.
    on_average = int(sum(longest) / 2)
    assert f"{retrier['MaxAttempts'] + 1} attempts, {on_average} s of waiting on average" in PAGE
