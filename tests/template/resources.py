"""Finding things in a CloudFormation template."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]


def of_type(template: Json, kind: str) -> dict[str, Json]:
    """The properties of all resources of a type, by logical name."""
    return {
        name: resource.get("Properties", {})
        for name, resource in template["Resources"].items()
        if resource["Type"] == kind
    }


def listed(value: Any) -> list[Any]:
    """One or many, as policies write it, as a list."""
    return value if isinstance(value, list) else [value]


def statements(policy: Json) -> list[Json]:
    """The statements of a policy document."""
    return listed(policy["PolicyDocument"]["Statement"])


def role_statements(template: Json) -> Iterator[tuple[str, Json]]:
    """Every statement of every role's own policies, with the role's logical name.

    A policy that exists under a condition is looked at as if it did.
    """
    for name, role in of_type(template, "AWS::IAM::Role").items():
        for policy in role.get("Policies", []):
            _, then, _ = policy.get("Fn::If", (None, policy, None))
            for statement in statements(then):
                yield name, statement
