"""The Lambda's settings, read from its environment when it first runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

DEFAULT_KEY_RETENTION_SECONDS: Final = 86_400  # 24 h, the least that Stripe promises

# A charge takes milliseconds, a client retries for minutes: ten seconds suit both.
DEFAULT_IN_FLIGHT_SECONDS: Final = 10


@dataclass(frozen=True)
class Settings:
    """Where the Lambda keeps its books and its key, and how it behaves."""

    table: str
    api_key_secret_arn: str
    key_retention_seconds: int
    in_flight_seconds: int
    test_mode: bool

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> "Settings":
        """Raises ValueError, naming the variable and what it should be."""
        return cls(
            table=_text(environment, "PROVIDER_TABLE"),
            api_key_secret_arn=_text(environment, "API_KEY_SECRET_ARN"),
            key_retention_seconds=_seconds(
                environment, "KEY_RETENTION_SECONDS", DEFAULT_KEY_RETENTION_SECONDS
            ),
            in_flight_seconds=_seconds(environment, "IN_FLIGHT_SECONDS", DEFAULT_IN_FLIGHT_SECONDS),
            test_mode=_switch(environment, "TEST_MODE"),
        )


def _text(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise ValueError(f"{name} is not set")
    return value


def _seconds(environment: Mapping[str, str], name: str, default: int) -> int:
    value = environment.get(name, str(default))
    if not (value.isascii() and value.isdigit() and int(value) > 0):
        raise ValueError(f"{name}: expected a positive number of seconds, got {value!r}")
    return int(value)


def _switch(environment: Mapping[str, str], name: str) -> bool:
    value = environment.get(name, "false")
    if value not in ("true", "false"):
        raise ValueError(f"{name}: expected true or false, got {value!r}")
    return value == "true"
