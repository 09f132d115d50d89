"""The Lambda's environment."""

import pytest
from provider.settings import Settings

ENVIRONMENT = {"PROVIDER_TABLE": "books", "API_KEY_SECRET_ARN": "arn:secret"}


def test_the_least_gives_the_defaults() -> None:
    assert Settings.read(ENVIRONMENT) == Settings(
        table="books",
        api_key_secret_arn="arn:secret",
        key_retention_seconds=86_400,
        in_flight_seconds=10,
        test_mode=False,
    )


def test_everything_can_be_said() -> None:
    said = {"KEY_RETENTION_SECONDS": "60", "IN_FLIGHT_SECONDS": "2", "TEST_MODE": "true"}

    settings = Settings.read(ENVIRONMENT | said)

    assert (settings.key_retention_seconds, settings.in_flight_seconds) == (60, 2)
    assert settings.test_mode


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PROVIDER_TABLE", ""),
        ("API_KEY_SECRET_ARN", ""),
        ("KEY_RETENTION_SECONDS", "0"),
        ("KEY_RETENTION_SECONDS", "1.5"),
        ("KEY_RETENTION_SECONDS", "a day"),
        ("IN_FLIGHT_SECONDS", "-1"),
        ("TEST_MODE", "yes"),
        ("TEST_MODE", "True"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=name):
        Settings.read(ENVIRONMENT | {name: value})
