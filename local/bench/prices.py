"""List prices of AWS in us-east-1, without free tiers and discounts."""

from __future__ import annotations

from dataclasses import dataclass

REGION = "us-east-1"
#: When the table was written down, from memory of those pages and not from the price list API.
#: Prices change: ask the page that is named beside each.
AS_OF = "2026-11-29"

_MILLION = 1_000_000


@dataclass(frozen=True)
class Price:
    """`usd` for `per` units; `unit` is what is counted."""

    usd: float
    per: int
    unit: str
    source: str

    def of(self, quantity: float) -> float:
        """The dollars for a quantity."""
        return quantity * self.usd / self.per


_PAGE = "https://aws.amazon.com/{}/pricing/"
_LAMBDA, _S3, _CLOUDWATCH = (_PAGE.format(name) for name in ("lambda", "s3", "cloudwatch"))
_DYNAMODB = _PAGE.format("dynamodb") + "on-demand/"
_EVENTBRIDGE = _PAGE.format("eventbridge")

PRICES = {
    "transitions": Price(25.00, _MILLION, "state transition", _PAGE.format("step-functions")),
    "writes": Price(0.625, _MILLION, "write request unit", _DYNAMODB),
    "reads": Price(0.125, _MILLION, "read request unit", _DYNAMODB),
    "invocations": Price(0.20, _MILLION, "invocation", _LAMBDA),
    "compute-arm64": Price(0.0000133334, 1, "GB-second on arm64", _LAMBDA),
    "compute-x86_64": Price(0.0000166667, 1, "GB-second on x86_64", _LAMBDA),
    "operations": Price(8.00, _MILLION, "durable operation", _LAMBDA),
    "checkpoints": Price(0.25, 1, "GB of checkpoints written", _LAMBDA),
    "checkpoints kept": Price(0.15, 1, "GB-month of checkpoints", _LAMBDA),
    "events": Price(1.00, _MILLION, "event of S3 on EventBridge", _EVENTBRIDGE),
    "puts": Price(5.00, _MILLION, "S3 PUT", _S3),
    "gets": Price(0.40, _MILLION, "S3 GET", _S3),
    "messages": Price(0.40, _MILLION, "SQS request", _PAGE.format("sqs")),
    "logs": Price(0.50, 1, "GB of logs", _CLOUDWATCH),
    "traces": Price(5.00, _MILLION, "X-Ray trace recorded", _PAGE.format("xray")),
    "alarms": Price(0.10, 1, "alarm and month", _CLOUDWATCH),
    "metrics": Price(0.30, 1, "custom metric and month", _CLOUDWATCH),
    "dashboards": Price(3.00, 1, "dashboard and month", _CLOUDWATCH),
    "secrets": Price(0.40, 1, "secret and month", _PAGE.format("secrets-manager")),
}
