"""The lab played once for all tests that look at its outcome."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from local.lab import tallies
from local.lab.function.handlers.table import Table
from local.lab.rows import Row


@pytest.fixture(scope="session")
def sim_rows() -> list[Row]:
    """The rows of `sim`."""
    return tallies.sim()


@pytest.fixture(scope="session")
def played(sim_rows: list[Row]) -> dict[tuple[str, str], Row]:
    """The rows by handler and scenario."""
    return {(row.handler, row.scenario): row for row in sim_rows}


@pytest.fixture
def dynamodb(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A DynamoDB client with the lab's empty table "Lab"."""
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        client = boto3.client("dynamodb", region_name="us-east-1")
        client.create_table(
            TableName="Lab",
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield client


@pytest.fixture
def table(dynamodb: Any) -> Table:
    """The lab's empty table."""
    return Table(dynamodb, "Lab")
