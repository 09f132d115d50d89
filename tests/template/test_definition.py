"""The template and the definition fit together."""

from __future__ import annotations

import json
import re
from typing import Any

from local.definition import load_definition, load_template, state_machine_of, tokens
from local.paths import DEFINITION
from local.transform import resolved

Json = dict[str, Any]

TEMPLATE = load_template()
SUBSTITUTIONS = state_machine_of(TEMPLATE)["DefinitionSubstitutions"]


def strings(node: Any) -> list[tuple[str, str]]:
    """Every text in a document with the name of its field."""
    if isinstance(node, dict):
        found: list[tuple[str, str]] = []
        for name, value in node.items():
            found += [(name, value)] if isinstance(value, str) else strings(value)
        return found
    return [pair for value in node for pair in strings(value)] if isinstance(node, list) else []


def test_each_token_has_a_substitution_and_each_substitution_a_token() -> None:
    assert tokens(DEFINITION.read_text()) == set(SUBSTITUTIONS)


def test_tokens_stand_only_inside_of_texts() -> None:
    everywhere = re.findall(r"\$\{", DEFINITION.read_text())
    in_texts = [value for _, value in strings(load_definition()) if "${" in value]

    assert len(in_texts) == len(everywhere)


def test_no_token_stands_for_a_number() -> None:
    """`"MaxAttempts": "${N}"` would deploy a text, which CloudFormation refuses."""
    fields = {name for name, value in strings(load_definition()) if "${" in value}

    assert fields == {"TableName", "FunctionName", "QueueUrl"}


def test_each_substitution_refers_to_a_resource() -> None:
    assert {json.dumps(value) for value in SUBSTITUTIONS.values()} == {
        json.dumps({"Ref": name})
        for name in ("LedgerTable", "FailureQueue", "ChargeFunction.Version")
    }
    assert {"LedgerTable", "FailureQueue", "ChargeFunction"} <= set(TEMPLATE["Resources"])


def test_the_charge_function_publishes_the_version_that_is_called() -> None:
    function = TEMPLATE["Resources"]["ChargeFunction"]["Properties"]

    assert function["AutoPublishAlias"]
    # Else a new setting would not make a new version, and runs would go on without it.
    assert function["AutoPublishAliasAllProperties"] is True


def test_the_deployed_definition_points_at_the_published_version(template: Json) -> None:
    (version,) = (
        name
        for name, resource in template["Resources"].items()
        if resource["Type"] == "AWS::Lambda::Version" and name.startswith("ChargeFunction")
    )
    machine = template["Resources"]["ChargeOrder"]["Properties"]

    assert machine["DefinitionSubstitutions"]["ChargeFunctionVersion"] == {"Ref": version}


def test_the_state_machine_is_standard_and_says_what_it_does() -> None:
    machine = state_machine_of(TEMPLATE)

    assert machine["Type"] == "STANDARD"
    assert machine["Tracing"] == {"Enabled": True}
    logging = resolved()["Resources"]["ChargeOrder"]["Properties"]["LoggingConfiguration"]
    assert logging["Level"] == "ALL"
    # An order's contents never enter an execution, but its key may say something of a customer.
    assert logging["IncludeExecutionData"] is False


def test_the_state_machines_log_group_does_not_count_against_the_policy_size() -> None:
    (destination,) = state_machine_of(TEMPLATE)["Logging"]["Destinations"]
    arn = destination["CloudWatchLogsLogGroup"]["LogGroupArn"]
    group = TEMPLATE["Resources"][arn["Fn::GetAtt"][0]]["Properties"]

    assert group["LogGroupName"]["Fn::Sub"].startswith("/aws/vendedlogs/states/")
