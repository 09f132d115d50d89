"""The state machine's definition and the template that fills in its tokens."""

from __future__ import annotations

import copy
import functools
import json
import re
from typing import Any

from samcli.yamlhelper import yaml_parse  # type: ignore[import-untyped]

from local.paths import DEFINITION, TEMPLATE

Json = dict[str, Any]

_TOKEN = re.compile(r"\$\{(\w+)\}")


def load_template() -> Json:
    """The SAM template, with `!Ref X` as `{"Ref": "X"}` and so on."""
    return copy.deepcopy(_parsed(TEMPLATE.read_text()))


@functools.cache
def _parsed(text: str) -> Json:
    """Parsing takes a quarter of a second."""
    return dict(yaml_parse(text))


def load_definition() -> Json:
    """The definition as it stands in the file, with its tokens."""
    return dict(json.loads(DEFINITION.read_text()))


def state_machine_of(template: Json) -> Json:
    """The properties of the template's one state machine. Raises ValueError for another number."""
    (found,) = (
        resource["Properties"]
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::Serverless::StateMachine"
    )
    return dict(found)


def ledger_shape(template: Json) -> Json:
    """The arguments of CreateTable that make the ledger what the template says, but for its name.

    For engines that know no CloudFormation; what guards the data (encryption, recovery) is left
    out.
    """
    properties = template["Resources"]["LedgerTable"]["Properties"]
    names = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")
    return {name: properties[name] for name in names}


def tokens(text: str) -> set[str]:
    """The names of the `${tokens}` in a definition's text."""
    return set(_TOKEN.findall(text))


def fill(definition: Json, template: Json, physical: dict[str, str]) -> Json:
    """`definition` as SAM deploys it: each token is what the template's substitution refers to.

    `physical` gives for a logical name ("LedgerTable", "ChargeFunction.Version") what `!Ref`
    yields. Raises KeyError for a token without a substitution, or one that `physical` lacks.
    """
    substitutions = {
        name: physical[value["Ref"]]
        for name, value in state_machine_of(template)["DefinitionSubstitutions"].items()
    }

    def replaced(node: Any) -> Any:
        if isinstance(node, dict):
            return {name: replaced(value) for name, value in node.items()}
        if isinstance(node, list):
            return [replaced(value) for value in node]
        if isinstance(node, str):
            return _TOKEN.sub(lambda match: substitutions[match[1]], node)
        return node

    return dict(replaced(definition))
