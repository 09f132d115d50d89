"""The lab's template deploys the handlers that the lab measures."""

from __future__ import annotations

from typing import Any

import pytest
from samcli.yamlhelper import yaml_parse  # type: ignore[import-untyped]

from local.lab.function.handlers.faults import POINTS
from local.lab.function.handlers.modes import HANDLERS
from local.lab.measure import TEMPLATE
from local.lab.scenarios import LAB_HANDLERS


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    document: dict[str, Any] = yaml_parse(TEMPLATE.read_text())
    return document


def functions(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The functions' properties by HANDLER_MODE."""
    return {
        resource["Properties"]["Environment"]["Variables"]["HANDLER_MODE"]: resource["Properties"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::Serverless::Function"
    }


def test_each_measured_handler_has_a_function_and_a_folder_of_its_own(
    template: dict[str, Any],
) -> None:
    notifications = template["Resources"]["LabBucket"]["Properties"]["NotificationConfiguration"]
    folders = {
        rule["Value"]: configuration["Function"]["Fn::GetAtt"][0]
        for configuration in notifications["LambdaConfigurations"]
        for rule in configuration["Filter"]["S3Key"]["Rules"]
    }
    modes = {
        name: resource["Properties"]["Environment"]["Variables"]["HANDLER_MODE"]
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::Serverless::Function"
    }

    assert {folder: modes[name] for folder, name in folders.items()} == {
        f"{handler}/": handler for handler in LAB_HANDLERS
    }


def test_every_handler_mode_is_one_that_the_code_knows(template: dict[str, Any]) -> None:
    assert set(functions(template)) == set(LAB_HANDLERS)
    assert set(LAB_HANDLERS) < set(HANDLERS)


def test_failures_can_be_asked_for_at_every_point_and_are_off(template: dict[str, Any]) -> None:
    parameter = template["Parameters"]["FailOnce"]

    assert parameter["AllowedValues"] == ["never", *POINTS]
    assert parameter["Default"] == "never"


def test_lambda_tries_three_times_and_then_sends_the_event_to_the_queue(
    template: dict[str, Any],
) -> None:
    invocation = template["Globals"]["Function"]["EventInvokeConfig"]

    assert invocation["MaximumRetryAttempts"] == 2
    assert invocation["DestinationConfig"]["OnFailure"] == {
        "Type": "SQS",
        "Destination": {"Fn::GetAtt": ["FailureQueue", "Arn"]},
    }


def test_a_handler_may_touch_the_table_and_nothing_else(template: dict[str, Any]) -> None:
    policy = template["Resources"]["TablePolicy"]["Properties"]["PolicyDocument"]

    assert policy["Statement"] == [
        {
            "Effect": "Allow",
            "Action": ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"],
            "Resource": {"Fn::GetAtt": ["LabTable", "Arn"]},
        }
    ]
    assert all(
        properties["Policies"] == [{"Ref": "TablePolicy"}]
        for properties in functions(template).values()
    )
