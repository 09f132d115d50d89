"""The whole function on fake AWS clients and a scripted provider."""

import json
import logging
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from charge import handler
from charge.errors import (
    ChargeError,
    KeyInUse,
    OrderRejected,
    PaymentDeclined,
    ProviderCredentialsRefused,
    ProviderMisbehaved,
    ProviderUnavailable,
)
from charge.handler import BugInDefinition
from charge.settings import SettingInvalid

from tests.malformed_orders import valid_text
from tests.unit.charge.scripted_server import Scripted, answer, scripted_server

API_KEY = "sk_very_secret"
KEY = "charge#" + "0" * 64
EVENT: dict[str, Any] = {
    "execution": "arn:aws:states:eu-central-1:123456789012:execution:ChargeOrder:run-1",
    "order": {
        "bucket": "orders-bucket",
        "key": "orders/a b+c/ü.json",
        "version_id": "3sL4kqtJlcpXroDTDmJ.rmSpXd3dIbrHY",
        "etag": "d41d8cd98f00b204e9800998ecf8427e",
        "sequencer": "0055AED6DCD90281E5",
        "idempotency_key": KEY,
    },
}
CHARGE = {
    "id": "ch_1",
    "amount": 1999,
    "currency": "EUR",
    "reference": KEY,
    "status": "succeeded",
    "created": 1_764_417_600,
    "metadata": {"order_id": "A-1001"},
    "failure_code": None,
}
FAILED = CHARGE | {"status": "failed", "failure_code": "insufficient_funds"}
PROBLEM = {"Content_Type": "application/problem+json"}


class Context:
    def get_remaining_time_in_millis(self) -> int:
        return 30_000


@dataclass
class FakeAws:
    """A botocore session and every client of it."""

    body: str = valid_text()
    made: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)

    def create_client(self, service: str, **options: object) -> "FakeAws":
        self.made.append(service)
        return self

    def get_object(self, **request: Any) -> Any:
        return {"Body": BytesIO(self.body.encode()), "LastModified": datetime.now(UTC)}

    def get_secret_value(self, **request: Any) -> Any:
        return {"SecretString": API_KEY}

    def update_item(self, **request: Any) -> Any:
        self.taken.append(request["Key"]["pk"]["S"])
        raise botocore.exceptions.ClientError(
            {"Error": {"Code": "ConditionalCheckFailedException"}}, "UpdateItem"
        )


@pytest.fixture
def provider() -> Iterator[Scripted]:
    with scripted_server() as scripted:
        yield scripted


@pytest.fixture
def aws(provider: Scripted, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAws]:
    aws = FakeAws()
    monkeypatch.setattr(botocore.session, "get_session", lambda: aws)
    for name, value in {
        "PROVIDER_URL": provider.url,
        "PROVIDER_SECRET_ARN": "arn:secret",
        "PROVIDER_TIMEOUT_SECONDS": "5",
        "PROVIDER_KEY_RETENTION_SECONDS": "86400",
        "RECORD_TTL_DAYS": "90",
        "POWERTOOLS_SERVICE_NAME": "charge",
        "POWERTOOLS_LOG_LEVEL": "DEBUG",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("FAULT_TABLE", raising=False)
    handler._function.cache_clear()
    # A logger outlives its maker and would go on writing to the output of an earlier test.
    logging.Logger.manager.loggerDict.pop("charge", None)
    yield aws
    handler._function.cache_clear()


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_charged_order_is_reported_as_the_state_machine_expects(
    aws: FakeAws, provider: Scripted
) -> None:
    provider.script = [answer(201, CHARGE)]
    before = int(datetime.now(UTC).timestamp())

    result = handler.handle(EVENT, Context())

    expires_at = result.pop("expires_at")
    assert result == {
        "charge_id": "ch_1",
        "amount_minor": 1999,
        "currency": "EUR",
        "order_id": "A-1001",
        "replayed": False,
        "charged_at": "2025-11-29T12:00:00Z",
    }
    assert type(expires_at) is int
    assert before + 7_776_000 <= expires_at <= datetime.now(UTC).timestamp() + 7_776_000
    assert json.loads(provider.seen[0].body)["metadata"]["object_key"] == "orders/a b+c/ü.json"


def test_clients_and_connections_outlive_an_invocation(aws: FakeAws, provider: Scripted) -> None:
    provider.script = [answer(201, CHARGE), answer(201, CHARGE, Idempotent_Replayed="true")]

    results = [handler.handle(EVENT, Context())["replayed"] for _ in range(2)]

    assert results == [False, True]
    assert aws.made == ["s3", "secretsmanager"]
    assert provider.connections == 1


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ([answer(201, CHARGE)], "Charged"),
        ([answer(201, CHARGE, Idempotent_Replayed="true")], "AlreadyCharged"),
    ],
)
def test_a_settled_order_is_one_metric_and_one_line(
    aws: FakeAws,
    provider: Scripted,
    capsys: pytest.CaptureFixture[str],
    script: list[Any],
    outcome: str,
) -> None:
    provider.script = script

    handler.handle(EVENT, Context())

    log, metric = lines(capsys)
    assert (log["level"], log["message"], log["outcome"]) == ("INFO", "order charged", outcome)
    assert (log["order_id"], log["charge_id"]) == ("A-1001", "ch_1")
    assert_names_the_order(log)
    assert metric[outcome] == [1.0]
    assert metric["_aws"]["CloudWatchMetrics"] == [
        {
            "Namespace": "ChargeOnce",
            "Dimensions": [["service"]],
            "Metrics": [{"Name": outcome, "Unit": "Count"}],
        }
    ]


@pytest.mark.parametrize(
    ("reply", "error", "level"),
    [
        (answer(402, {"charge": FAILED}, **PROBLEM), PaymentDeclined, "WARNING"),
        (answer(409), KeyInUse, "WARNING"),
        (answer(401), ProviderCredentialsRefused, "ERROR"),
        (answer(418), ProviderMisbehaved, "ERROR"),
    ],
    ids=["declined", "in use", "credentials", "nonsense"],
)
def test_a_failure_is_one_metric_and_one_line(
    aws: FakeAws,
    provider: Scripted,
    capsys: pytest.CaptureFixture[str],
    reply: bytes,
    error: type[ChargeError],
    level: str,
) -> None:
    provider.script = [reply]

    with pytest.raises(error) as caught:
        handler.handle(EVENT, Context())

    log, metric = lines(capsys)
    assert (log["level"], log["message"]) == (level, "order not charged")
    assert (log["outcome"], log["reason"]) == (error.__name__, str(caught.value))
    assert_names_the_order(log)
    assert metric[error.__name__] == [1.0]


def test_a_rejection_says_why(aws: FakeAws, provider: Scripted) -> None:
    aws.body = valid_text(amount='"0"')
    provider.script = [answer(200, {"data": [], "has_more": False})]

    with pytest.raises(OrderRejected) as caught:
        handler.handle(EVENT, Context())

    assert str(caught.value) == 'amount: expected an amount above zero, found "0"'


def test_a_decline_says_why(aws: FakeAws, provider: Scripted) -> None:
    provider.script = [answer(402, {"charge": FAILED}, **PROBLEM)]

    with pytest.raises(PaymentDeclined) as caught:
        handler.handle(EVENT, Context())

    assert str(caught.value) == "insufficient_funds"


@pytest.mark.parametrize(
    "reply",
    [answer(201, CHARGE), answer(500), answer(418), answer(401)],
    ids=["charged", "error", "nonsense", "credentials"],
)
def test_nothing_secret_is_logged(
    aws: FakeAws, provider: Scripted, capsys: pytest.CaptureFixture[str], reply: bytes
) -> None:
    provider.script = [reply, answer(200, {"data": [CHARGE], "has_more": False})]

    try:
        handler.handle(EVENT, Context())
    except ChargeError as error:
        traceback.print_exception(error)  # as the Lambda runtime does

    written = "".join(capsys.readouterr())
    assert KEY in written
    for secret in (API_KEY, "tok_visa", "cus_42"):
        assert secret not in written


def test_one_order_leaves_no_trace_in_the_log_of_the_next(
    aws: FakeAws, provider: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    provider.script = [answer(409), answer(201, CHARGE)]
    other = {**EVENT, "order": {**EVENT["order"], "bucket": "other-bucket"}}
    with pytest.raises(KeyInUse):
        handler.handle(other, Context())
    capsys.readouterr()

    handler.handle(EVENT, Context())

    assert "other-bucket" not in capsys.readouterr().out


def test_no_time_is_kept_from_the_report_of_a_failure(aws: FakeAws, provider: Scripted) -> None:
    context = Context()
    context.get_remaining_time_in_millis = lambda: 1_400  # type: ignore[method-assign]

    with pytest.raises(ProviderUnavailable, match="no time is left"):
        handler.handle(EVENT, context)

    assert provider.seen == []


@pytest.mark.parametrize(
    ("execution_input", "asked_first"),
    [
        ({"replay": {"owner": "arn"}}, True),
        ({"replay": {}}, True),
        ({"detail": {}}, False),
        ({"replay": "yes"}, False),
    ],
)
def test_the_input_of_the_execution_tells_a_restart(
    execution_input: dict[str, Any], asked_first: bool
) -> None:
    assert handler.is_restart(EVENT | {"input": execution_input}) is asked_first


def test_without_the_input_of_the_execution_it_is_no_restart() -> None:
    assert not handler.is_restart(EVENT)


# What has to be right before


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("event", "execution"),
        ("event", "order"),
        ("order", "bucket"),
        ("order", "key"),
        ("order", "version_id"),
        ("order", "etag"),
        ("order", "idempotency_key"),
    ],
)
@pytest.mark.parametrize("value", [None, "", 7, [], "missing"], ids=str)
def test_another_event_than_agreed_is_a_bug(
    aws: FakeAws, part: str, name: str, value: object
) -> None:
    order = dict(EVENT["order"])
    event: dict[str, Any] = EVENT | {"order": order}
    changed = event if part == "event" else order
    changed[name] = value
    if value == "missing":
        del changed[name]

    with pytest.raises(BugInDefinition, match=r"^bug: "):
        handler.handle(event, Context())


@pytest.mark.parametrize("key", ["a b", "a\r\nX: y", "ü", "k" * 256])
def test_a_key_that_fits_no_header_is_a_bug(aws: FakeAws, key: str) -> None:
    order = dict(EVENT["order"])

    with pytest.raises(BugInDefinition):
        handler.handle({**EVENT, "order": {**order, "idempotency_key": key}}, Context())


def test_a_missing_setting_is_named_by_every_invocation(
    aws: FakeAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PROVIDER_URL")

    for _ in range(2):
        with pytest.raises(SettingInvalid, match="PROVIDER_URL"):
            handler.handle(EVENT, Context())


def test_faults_are_looked_for_only_where_they_were_switched_on(
    aws: FakeAws, provider: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULT_TABLE", "faults")
    provider.script = [answer(201, CHARGE)]

    handler.handle(EVENT, Context())

    order = "orders-bucket/orders/a b+c/ü.json"
    assert aws.made == ["s3", "secretsmanager", "dynamodb"]
    assert aws.taken == [
        f"{order}#exit_before_charge",
        f"{order}#exit_after_charge",
        f"{order}#timeout_after_charge",
    ]


def assert_names_the_order(log: dict[str, Any]) -> None:
    assert log["service"] == "charge"
    assert log["execution"] == EVENT["execution"]
    assert log["idempotency_key"] == KEY
    assert (log["bucket"], log["object_key"]) == ("orders-bucket", "orders/a b+c/ü.json")
    assert log["version_id"] == "3sL4kqtJlcpXroDTDmJ.rmSpXd3dIbrHY"


def test_importing_the_function_reads_no_setting_and_leaves_boto3_alone() -> None:
    program = "import sys, charge.handler; print('boto3' in sys.modules)"
    path = str(Path(handler.__file__).parents[1])

    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )

    assert run.stdout == "False\n"
