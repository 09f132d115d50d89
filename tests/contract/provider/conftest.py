"""Servers that the tests of one worker share."""

import os
from collections.abc import Iterator
from uuid import uuid4

import boto3
import httpx
import pytest
from provider import handler

from tests.contract.provider.harness import (
    API_KEY,
    FunctionUrl,
    StandAlone,
    client,
    make_table,
    ministack,
    stand_alone,
)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandAlone]:
    """The stand-alone server, on a file."""
    books = tmp_path_factory.mktemp("provider") / "books.sqlite"
    with stand_alone("--database", str(books)) as running:
        yield running


@pytest.fixture(scope="session")
def aws() -> Iterator[None]:
    """An emulator, which boto3 finds through the environment."""
    before = dict(os.environ)
    with ministack() as environment:
        os.environ.update(environment)
        yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def table(aws: None) -> str:
    """A table of the provider."""
    name = f"provider-{uuid4()}"
    make_table(name)
    return name


@pytest.fixture(scope="session")
def function(table: str) -> Iterator[httpx.Client]:
    """The Lambda's handler, on DynamoDB and Secrets Manager."""
    secret = boto3.client("secretsmanager").create_secret(Name=table, SecretString=API_KEY)
    os.environ |= {
        "PROVIDER_TABLE": table,
        "API_KEY_SECRET_ARN": secret["ARN"],
        "TEST_MODE": "true",
    }
    with client("http://function", transport=FunctionUrl(handler.handle)) as api:
        yield api
    handler._api.cache_clear()
