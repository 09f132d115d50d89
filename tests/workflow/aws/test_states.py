"""Every case of `mock_config.json`, evaluated by AWS state by state."""

from __future__ import annotations

from typing import Any

import boto3
import pytest

from tests.workflow.test_mock_config import CASES, EXECUTIONS, EXPECTED, answers_of, filled, given
from tests.workflow.walking import Walk, walk


@pytest.fixture(scope="module")
def client() -> Any:
    return boto3.client("stepfunctions")


@pytest.mark.parametrize("case", CASES)
def test_aws_takes_the_path_of_the_case(client: Any, case: str) -> None:
    found = walk(client, filled(), answers_of(case), given(case), f"{EXECUTIONS}:{case}")

    assert found == Walk(EXPECTED[case].states, EXPECTED[case].error)
