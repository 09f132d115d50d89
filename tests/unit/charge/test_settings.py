"""A wrong setting is refused with its name."""

import pytest
from charge.settings import SettingInvalid, Settings

VALID = {
    "PROVIDER_URL": "https://api.provider.example",
    "PROVIDER_SECRET_ARN": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:key",
    "PROVIDER_TIMEOUT_SECONDS": "10",
    "PROVIDER_KEY_RETENTION_SECONDS": "86400",
    "RECORD_TTL_DAYS": "90",
}


def test_valid_settings_are_typed() -> None:
    assert Settings.from_environment(VALID) == Settings(
        provider_url="https://api.provider.example",
        provider_secret_arn="arn:aws:secretsmanager:eu-central-1:123456789012:secret:key",
        provider_timeout_seconds=10,
        provider_key_retention_seconds=86_400,
        record_ttl_seconds=7_776_000,
        fault_table=None,
    )


@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize("value", [None, "", "  "], ids=["missing", "empty", "blank"])
def test_a_missing_setting_is_named(name: str, value: str | None) -> None:
    environment = {key: text for key, text in VALID.items() if key != name}
    if value is not None:
        environment[name] = value

    with pytest.raises(SettingInvalid, match=f"^{name} is not set$"):
        Settings.from_environment(environment)


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("PROVIDER_TIMEOUT_SECONDS", "seconds"),
        ("PROVIDER_KEY_RETENTION_SECONDS", "seconds"),
        ("RECORD_TTL_DAYS", "days"),
    ],
)
@pytest.mark.parametrize("value", ["0", "-1", "1.5", "10s", "1e3", "٣", "9" * 30])
def test_a_duration_is_a_sane_whole_number(name: str, unit: str, value: str) -> None:
    with pytest.raises(SettingInvalid, match=f"^{name} must be whole {unit} from 1 to "):
        Settings.from_environment(VALID | {name: value})


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("https://provider.example/v2/", "https://provider.example/v2"),
        ("http://127.0.0.1:4566/_aws/lambda-url/abc/", "http://127.0.0.1:4566/_aws/lambda-url/abc"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_https_and_plain_http_on_loopback_are_accepted(url: str, base: str) -> None:
    settings = Settings.from_environment(VALID | {"PROVIDER_URL": url})

    assert settings.provider_url == base


@pytest.mark.parametrize(
    "url",
    [
        "http://provider.example",
        "http://127.0.0.1.evil.example",
        "http://localhost.evil.example",
        "http://10.0.0.1",
        "ftp://127.0.0.1",
        "provider.example",
        "https://",
        "https://provider.example:port",
        "https://provider.example?a=b",
        "https://provider.example#a",
        "https://user:pass-word@provider.example",
        "https://[::1",
    ],
)
def test_another_address_of_the_provider_is_refused(url: str) -> None:
    with pytest.raises(SettingInvalid, match=r"^PROVIDER_URL ") as caught:
        Settings.from_environment(VALID | {"PROVIDER_URL": url})

    assert "pass-word" not in str(caught.value)


@pytest.mark.parametrize(("value", "table"), [("", None), ("faults", "faults")])
def test_faults_are_off_unless_there_is_a_table(value: str, table: str | None) -> None:
    assert Settings.from_environment(VALID | {"FAULT_TABLE": value}).fault_table == table
