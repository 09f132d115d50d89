"""The provider's API key, from Secrets Manager."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from charge.errors import ProviderCredentialsRefused, ProviderUnavailable

MAX_AGE_SECONDS = 300.0
"""A withdrawn key is noticed at once by its 401; this only bounds how long an old key that still
works stays in use. A request each 5 minutes and environment costs next to nothing."""

_SENDABLE = re.compile(r"[\x21-\x7e]{1,1024}")  # what fits in an Authorization header


class SecretsManagerClient(Protocol):
    """The part of botocore's client that is used."""

    def get_secret_value(self, **request: Any) -> Any: ...


class ApiKey:
    """Fetched on first use and kept for `MAX_AGE_SECONDS`. `clock` is monotonic, in seconds."""

    def __init__(
        self, secrets: SecretsManagerClient, secret_arn: str, clock: Callable[[], float]
    ) -> None:
        self._secrets = secrets
        self._secret_arn = secret_arn
        self._clock = clock
        self._value: str | None = None
        self._fetched_at = 0.0

    def __call__(self, *, fresh: bool = False) -> str:
        """The key; `fresh` reads it again whatever its age.

        Raises ProviderUnavailable when it cannot be read: without it there is no way to the
        provider, and nothing has been asked of it.
        """
        expired = self._clock() - self._fetched_at > MAX_AGE_SECONDS
        if self._value is None or fresh or expired:
            self._value = self._fetch()
            self._fetched_at = self._clock()
        return self._value

    def _fetch(self) -> str:
        try:
            answer = self._secrets.get_secret_value(SecretId=self._secret_arn)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            raise ProviderUnavailable(f"Secrets Manager refused the API key: {code}") from error
        except BotoCoreError as error:
            kind = type(error).__name__
            raise ProviderUnavailable(f"Secrets Manager did not answer: {kind}") from error
        value = answer.get("SecretString") or ""
        if not _SENDABLE.fullmatch(value):
            raise ProviderCredentialsRefused(
                "the secret is not a plain API key: 1 to 1024 printable ASCII characters"
            )
        return str(value)
