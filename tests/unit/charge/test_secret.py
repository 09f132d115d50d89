"""The API key is fetched once, kept for a while and read again on demand."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from charge.errors import ProviderCredentialsRefused, ProviderUnavailable
from charge.secret import MAX_AGE_SECONDS, ApiKey


class FakeSecrets:
    """Hands out `answers` one after the other."""

    def __init__(self, *answers: str | Exception | None) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []
        self.time = 1000.0

    def get_secret_value(self, **request: Any) -> Any:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"SecretString": answer} if answer is not None else {"SecretBinary": b"key"}

    def key(self) -> ApiKey:
        return ApiKey(self, "arn:secret", lambda: self.time)


def test_the_key_is_fetched_once() -> None:
    secrets = FakeSecrets("sk_1")
    key = secrets.key()

    assert [key(), key(), key()] == ["sk_1"] * 3
    assert secrets.requests == [{"SecretId": "arn:secret"}]


def test_an_old_key_is_fetched_again() -> None:
    secrets = FakeSecrets("sk_1", "sk_2")
    key = secrets.key()
    key()

    secrets.time += MAX_AGE_SECONDS
    unchanged = key()
    secrets.time += 1
    changed = key()

    assert (unchanged, changed) == ("sk_1", "sk_2")


def test_a_fresh_key_is_fetched_whatever_its_age_and_kept() -> None:
    secrets = FakeSecrets("sk_1", "sk_2")
    key = secrets.key()

    assert [key(), key(fresh=True), key()] == ["sk_1", "sk_2", "sk_2"]


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (ClientError({"Error": {"Code": "AccessDeniedException"}}, "Get"), "AccessDeniedException"),
        (EndpointConnectionError(endpoint_url="https://x.example"), "EndpointConnectionError"),
    ],
)
def test_without_the_key_there_is_no_way_to_the_provider(error: Exception, word: str) -> None:
    key = FakeSecrets(error).key()

    with pytest.raises(ProviderUnavailable, match=word):
        key()


@pytest.mark.parametrize("value", [None, "", "sk 1", "sk_1\n", "sk_ü", "x" * 1025])
def test_a_secret_that_fits_no_header_is_refused_and_not_shown(value: str | None) -> None:
    key = FakeSecrets(value).key()

    with pytest.raises(ProviderCredentialsRefused) as caught:
        key()

    assert "sk" not in str(caught.value)


def test_a_failure_is_not_kept() -> None:
    key = FakeSecrets(EndpointConnectionError(endpoint_url="https://x.example"), "sk_1").key()
    with pytest.raises(ProviderUnavailable):
        key()

    assert key() == "sk_1"
