"""The function's settings, read from the environment when the first order arrives."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

A_DAY_SECONDS = 86_400
A_CENTURY_DAYS = 36_500  # whatever is longer than that is a slip of the finger


class SettingInvalid(Exception):
    """An environment variable is missing or wrong. The message names it, never a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Durations are in whole seconds. `fault_table` is None unless faults may be injected."""

    provider_url: str
    provider_secret_arn: str
    provider_timeout_seconds: int
    provider_key_retention_seconds: int
    record_ttl_seconds: int
    fault_table: str | None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Raises SettingInvalid."""
        return cls(
            provider_url=_provider_url(environment),
            provider_secret_arn=_text(environment, "PROVIDER_SECRET_ARN"),
            # 60 s: a Lambda function that waits longer than that for one answer is misplaced.
            provider_timeout_seconds=_whole(environment, "PROVIDER_TIMEOUT_SECONDS", "seconds", 60),
            # An hour or less means that the books are asked before every charge (`charging`).
            provider_key_retention_seconds=_whole(
                environment,
                "PROVIDER_KEY_RETENTION_SECONDS",
                "seconds",
                A_CENTURY_DAYS * A_DAY_SECONDS,
            ),
            record_ttl_seconds=A_DAY_SECONDS
            * _whole(environment, "RECORD_TTL_DAYS", "days", A_CENTURY_DAYS),
            fault_table=environment.get("FAULT_TABLE") or None,
        )


def _text(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "").strip()
    if not value:
        raise SettingInvalid(f"{name} is not set")
    return value


def _whole(environment: Mapping[str, str], name: str, unit: str, most: int) -> int:
    text = _text(environment, name)
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= most):
        raise SettingInvalid(f"{name} must be whole {unit} from 1 to {most}: {text!r}")
    return int(text)


def _provider_url(environment: Mapping[str, str]) -> str:
    """The base URL without a slash at its end."""
    name = "PROVIDER_URL"
    text = _text(environment, name)
    try:
        url = urlsplit(text)
        host = url.hostname
        _ = url.port  # raises when it is not a number
    except ValueError as error:
        raise SettingInvalid(f"{name} is not a URL") from error
    if url.username or url.password or url.query or url.fragment or not host:
        # The text is not shown: it may hold a password.
        raise SettingInvalid(f"{name} must be scheme, host, port and path only")
    if url.scheme != "https" and not (url.scheme == "http" and _is_loopback(host)):
        raise SettingInvalid(f"{name} must be https, or http on a loopback address: {text!r}")
    return text.rstrip("/")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
