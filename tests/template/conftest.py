"""The template as CloudFormation gets it: SAM's own transform, without an account."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import yaml
from samcli.lib.translate.sam_template_validator import (  # type: ignore[import-untyped]
    SamTemplateValidator,
)
from samtranslator.translator.managed_policy_translator import (  # type: ignore[import-untyped]
    ManagedPolicyLoader,
)

from local.definition import load_template
from local.stack import LOCAL_REGION

Json = dict[str, Any]


@functools.cache
def transformed_template() -> Json:
    """Every AWS::Serverless resource as the resources that it stands for."""
    validator = SamTemplateValidator(load_template(), ManagedPolicyLoader({}), region=LOCAL_REGION)
    return dict(yaml.safe_load(validator.get_translated_template_if_valid()))


@pytest.fixture(scope="session")
def template() -> Json:
    return transformed_template()
