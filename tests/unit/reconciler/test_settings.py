"""Settings: what is refused, and that the template gives what is read."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from reconciler.settings import SettingInvalid, Settings

from local.paths import TEMPLATE

ENVIRONMENT = {
    "ORDER_BUCKET": "orders",
    "LEDGER_TABLE": "ledger",
    "STATE_MACHINE_ARN": "arn:aws:states:eu-central-1:123456789012:stateMachine:ChargeOrder",
    "REPORTS_BUCKET": "reports",
    "PROVIDER_URL": "https://provider.example/",
    "PROVIDER_SECRET_ARN": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:key",
    "RECORD_TTL_DAYS": "90",
    "HORIZON_DAYS": "14",
    "GRACE_MINUTES": "15",
    "REPAIR_FINDINGS": "false",
}


def test_settings_are_read_with_their_units() -> None:
    settings = Settings.from_environment(ENVIRONMENT)

    assert settings.provider_url == "https://provider.example"
    assert settings.record_ttl == timedelta(days=90)
    assert settings.horizon == timedelta(days=14)
    assert settings.grace == timedelta(minutes=15)
    assert settings.repair is False


@pytest.mark.parametrize("name", ENVIRONMENT)
@pytest.mark.parametrize("value", ["", "  ", None])
def test_a_setting_that_is_missing_is_named(name: str, value: str | None) -> None:
    environment = {**ENVIRONMENT, name: value}

    with pytest.raises(SettingInvalid, match=name):
        Settings.from_environment({k: v for k, v in environment.items() if v is not None})


@pytest.mark.parametrize("name", ["RECORD_TTL_DAYS", "HORIZON_DAYS", "GRACE_MINUTES"])
@pytest.mark.parametrize("value", ["0", "-1", "1.5", "ten", "99999999"])
def test_a_duration_that_is_no_sensible_whole_number_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingInvalid, match=name):
        Settings.from_environment(ENVIRONMENT | {name: value})


@pytest.mark.parametrize("value", ["yes", "True", "1"])
def test_a_flag_is_true_or_false(value: str) -> None:
    with pytest.raises(SettingInvalid, match="REPAIR_FINDINGS"):
        Settings.from_environment(ENVIRONMENT | {"REPAIR_FINDINGS": value})


@pytest.mark.parametrize(("ttl", "horizon"), [("28", "14"), ("90", "76"), ("14", "14")])
def test_a_record_must_outlive_horizon_and_queue(ttl: str, horizon: str) -> None:
    with pytest.raises(SettingInvalid, match=f"{ttl} is not more than {horizon} \\+ 14"):
        Settings.from_environment(ENVIRONMENT | {"RECORD_TTL_DAYS": ttl, "HORIZON_DAYS": horizon})


def test_a_record_that_lives_a_day_longer_will_do() -> None:
    settings = Settings.from_environment(
        ENVIRONMENT | {"RECORD_TTL_DAYS": "29", "HORIZON_DAYS": "14"}
    )

    assert settings.record_ttl == timedelta(days=29)


def test_the_template_gives_every_setting_and_no_other() -> None:
    section = TEMPLATE.read_text().partition("  ReconcilerFunction:\n")[2]
    variables = section.partition("        Variables:\n")[2].partition("      LoggingConfig:")[0]

    given = set(re.findall(r"^          ([A-Z_]+):", variables, re.MULTILINE))

    assert given == set(ENVIRONMENT) | {"POWERTOOLS_SERVICE_NAME"}
