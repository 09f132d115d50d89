"""Puts an audit together for AWS; the function and the command line use the same one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from reconciler.auditing import Audit
from reconciler.aws import DynamoLedger, S3Bucket, StepFunctions
from reconciler.provider_client import ProviderClient
from reconciler.settings import Settings


def audit_of(settings: Settings, client: Callable[[str], Any]) -> Audit:
    """`client` gives the boto3 client of a service by its name."""

    def api_key() -> str:
        secret = client("secretsmanager").get_secret_value(SecretId=settings.provider_secret_arn)
        return str(secret["SecretString"])

    return Audit(
        bucket=S3Bucket(client("s3"), settings.order_bucket),
        ledger=DynamoLedger(client("dynamodb"), settings.ledger_table),
        provider=ProviderClient(settings.provider_url, api_key),
        executions=StepFunctions(client("stepfunctions"), settings.state_machine_arn),
        grace=settings.grace,
        repair=settings.repair,
        now=lambda: datetime.now(UTC),
    )
