"""The template as CloudFormation gets it, and as it is with the parameters filled in.

Offline: SAM's own transform, and the few intrinsic functions that the template uses.
"""

from __future__ import annotations

import copy
import functools
import json
import sys
from typing import Any

import yaml
from samcli.lib.translate.sam_template_validator import (  # type: ignore[import-untyped]
    SamTemplateValidator,
)
from samtranslator.translator.managed_policy_translator import (  # type: ignore[import-untyped]
    ManagedPolicyLoader,
)

from local.definition import Json, load_template
from local.stack import LOCAL_REGION

_NO_VALUE = object()


@functools.cache
def _transformed() -> Json:
    validator = SamTemplateValidator(load_template(), ManagedPolicyLoader({}), region=LOCAL_REGION)
    return dict(yaml.safe_load(validator.get_translated_template_if_valid()))


def transformed() -> Json:
    """Every AWS::Serverless resource as the resources that it stands for."""
    return copy.deepcopy(_transformed())


def resolved(**parameters: str) -> Json:
    """The transformed template with its conditions and parameters filled in.

    `parameters` are those that differ from their defaults. Resources whose condition does not
    hold are gone. What only a deployment knows (`Ref` of a resource, `GetAtt`, pseudo
    parameters) stays as it is. Raises ValueError for an unknown parameter.
    """
    template = transformed()
    if unknown := set(parameters) - set(template["Parameters"]):
        raise ValueError(f"unknown parameters: {sorted(unknown)}")
    defaults = {name: one.get("Default", "") for name, one in template["Parameters"].items()}
    filling = _Filling(defaults | parameters, template["Conditions"])
    resources = {
        name: filling.fill(resource)
        for name, resource in template["Resources"].items()
        if "Condition" not in resource or filling.holds(resource["Condition"])
    }
    return template | {"Resources": resources}


class _Filling:
    def __init__(self, parameters: Json, conditions: Json) -> None:
        self._parameters = parameters
        self._conditions = conditions

    def holds(self, name: str) -> bool:
        return bool(self.fill(self._conditions[name]))

    def fill(self, node: Any) -> Any:  # noqa: PLR0911 - one for each intrinsic function
        match node:
            case {"Ref": "AWS::NoValue"}:
                return _NO_VALUE
            case {"Ref": str(name)} if name in self._parameters:
                return self._parameters[name]
            case {"Condition": str(name)} if len(node) == 1:
                return self.holds(name)
            case {"Fn::Equals": [left, right]}:
                return self.fill(left) == self.fill(right)
            case {"Fn::Not": [inner]}:
                return not self.fill(inner)
            case {"Fn::And": list(inner)}:
                return all(self.fill(one) for one in inner)
            case {"Fn::If": [str(name), then, otherwise]}:
                return self.fill(then if self.holds(name) else otherwise)
            case dict():
                filled = {key: self.fill(value) for key, value in node.items()}
                return {key: value for key, value in filled.items() if value is not _NO_VALUE}
            case list():
                return [one for one in map(self.fill, node) if one is not _NO_VALUE]
        return node


if __name__ == "__main__":  # python -m local.transform NAME=VALUE …: for tools that read JSON
    chosen = dict(argument.split("=", 1) for argument in sys.argv[1:])
    json.dump(resolved(**chosen), sys.stdout, indent=2)
