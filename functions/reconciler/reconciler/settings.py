"""The function's settings, read from the environment when the first pass begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

QUEUE_RETENTION = timedelta(days=14)
"""How long a message may wait in the failure queue: the longest that SQS offers."""

LONGEST_DAYS = 36_500


class SettingInvalid(Exception):
    """An environment variable is missing or wrong. The message names it, never a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Names and durations. `repair`: whether the scheduled function starts repairs."""

    order_bucket: str
    ledger_table: str
    state_machine_arn: str
    reports_bucket: str
    provider_url: str
    provider_secret_arn: str
    record_ttl: timedelta
    horizon: timedelta
    grace: timedelta
    repair: bool

    def __post_init__(self) -> None:
        """Raises SettingInvalid when a record could expire while its order may be started."""
        if self.record_ttl <= self.horizon + QUEUE_RETENTION:
            raise SettingInvalid(
                f"RECORD_TTL_DAYS must be more than HORIZON_DAYS plus the {QUEUE_RETENTION.days} "
                f"days that a message may wait in the failure queue: {_days(self.record_ttl)} is "
                f"not more than {_days(self.horizon)} + {QUEUE_RETENTION.days}. Otherwise an "
                f"expired record could be taken for an order that was never charged."
            )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Raises SettingInvalid."""
        return cls(
            order_bucket=_text(environment, "ORDER_BUCKET"),
            ledger_table=_text(environment, "LEDGER_TABLE"),
            state_machine_arn=_text(environment, "STATE_MACHINE_ARN"),
            reports_bucket=_text(environment, "REPORTS_BUCKET"),
            # The charge function sends money there and checks its form; here it is only read.
            provider_url=_text(environment, "PROVIDER_URL").rstrip("/"),
            provider_secret_arn=_text(environment, "PROVIDER_SECRET_ARN"),
            record_ttl=timedelta(days=_whole(environment, "RECORD_TTL_DAYS", LONGEST_DAYS)),
            horizon=timedelta(days=_whole(environment, "HORIZON_DAYS", LONGEST_DAYS)),
            grace=timedelta(minutes=_whole(environment, "GRACE_MINUTES", 24 * 60)),
            repair=_flag(environment, "REPAIR_FINDINGS"),
        )


def _text(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "").strip()
    if not value:
        raise SettingInvalid(f"{name} is not set")
    return value


def _whole(environment: Mapping[str, str], name: str, most: int) -> int:
    text = _text(environment, name)
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= most):
        raise SettingInvalid(f"{name} must be a whole number from 1 to {most}: {text!r}")
    return int(text)


def _flag(environment: Mapping[str, str], name: str) -> bool:
    text = _text(environment, name)
    if text not in ("true", "false"):
        raise SettingInvalid(f"{name} must be true or false: {text!r}")
    return text == "true"


def _days(duration: timedelta) -> str:
    return f"{duration / timedelta(days=1):g}"
