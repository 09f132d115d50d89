"""Servers that the tests of one worker share."""

from collections.abc import Iterator

import httpx
import pytest
from provider import handler

from tests.contract.provider.harness import (
    API_KEY,
    Aws,
    FunctionUrl,
    StandAlone,
    client,
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
def aws() -> Iterator[Aws]:
    """An emulator."""
    with ministack() as emulator:
        yield emulator


@pytest.fixture(scope="session")
def function(aws: Aws) -> Iterator[httpx.Client]:
    """The Lambda's handler, on DynamoDB and Secrets Manager."""
    table = aws.make_table()
    secret = aws.client("secretsmanager").create_secret(Name=table, SecretString=API_KEY)
    with pytest.MonkeyPatch.context() as environment:
        settings = {
            "PROVIDER_TABLE": table,
            "API_KEY_SECRET_ARN": secret["ARN"],
            "TEST_MODE": "true",
        }
        for name, value in (aws.environment | settings).items():
            environment.setenv(name, value)
        environment.delenv("AWS_PROFILE", raising=False)
        handler._api()  # it stays; the environment, which other tests share, does not
    with client("http://function", transport=FunctionUrl(handler.handle)) as api:
        yield api
    handler._api.cache_clear()
