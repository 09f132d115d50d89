"""The real charge function and the real provider, in this process, behind the definition."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from local.inprocess import Call, InProcess, InProcessProvider, TaskFailure
from local.paths import SAMPLE_ORDER

pytestmark = pytest.mark.xdist_group("workflow-moto")

KEY = "orders/a b+c/ü.json"
ORDER = SAMPLE_ORDER.read_bytes()
SETTLED = ["IsVersioned?", "IdentifyByVersion", "Claim", "Charge", "MarkDone"]


@pytest.fixture
def pipeline() -> Iterator[InProcess]:
    with InProcess() as pipeline:
        yield pipeline


def failing(state: str, error: str, *, after: bool, times: int = 1) -> Callable[..., Any]:
    """Calls of a state that fail before or after they have had their effect."""

    def around(call: Call, proceed: Callable[[], Any]) -> Any:
        nonlocal times
        if call.state != state or times == 0:
            return proceed()
        times -= 1
        if after:
            proceed()
        raise TaskFailure(error)

    return around


def test_an_order_is_charged_and_recorded(pipeline: InProcess) -> None:
    run = pipeline.deliver(pipeline.drop(KEY, ORDER))

    assert (run.status, run.path, run.waits) == ("SUCCEEDED", SETTLED, [])
    (record,), (charge,) = pipeline.ledger(), pipeline.charges()
    assert record["status"] == "done"
    assert record["charge_id"] == charge["id"]
    assert charge["reference"] == record["pk"]
    assert pipeline.queue() == []


def test_a_late_duplicate_finds_it_settled(pipeline: InProcess) -> None:
    event = pipeline.drop(KEY, ORDER)
    pipeline.deliver(event)

    run = pipeline.deliver(event)

    assert run.path[-1] == "AlreadySettled"
    assert len(pipeline.charges()) == 1


def test_a_crash_after_the_charge_is_charged_once(pipeline: InProcess) -> None:
    pipeline.around = failing("Charge", "Runtime.ExitError", after=True)

    run = pipeline.deliver(pipeline.drop(KEY, ORDER))

    assert run.status == "SUCCEEDED"
    assert len(run.waits) == 1
    assert run.output is not None
    assert run.output["charge"]["replayed"] is True
    assert len(pipeline.charges()) == 1


@pytest.mark.parametrize(
    "fault",
    ["unavailable", "error_after_charge", "timeout_before", "timeout_after_charge", "rate_limit"],
)
def test_a_fault_of_the_provider_is_charged_once_without_waiting(
    pipeline: InProcess, fault: str
) -> None:
    pipeline.provider.arm_fault({"fault": fault, "times": 1})

    run = pipeline.deliver(pipeline.drop(KEY, ORDER))

    assert run.status == "SUCCEEDED"
    assert len(pipeline.charges()) == 1


def test_a_dead_provider_leaves_the_order_open_and_queued(pipeline: InProcess) -> None:
    pipeline.provider.arm_fault({"fault": "unavailable", "times": 99})

    run = pipeline.deliver(pipeline.drop(KEY, ORDER))

    assert (run.status, run.error) == ("FAILED", "ProviderUnavailable")
    assert len(run.waits) == 8
    assert pipeline.charges() == []
    (record,), (message,) = pipeline.ledger(), pipeline.queue()
    assert record["status"] == "in_progress"
    assert message.idempotency_key == record["pk"]


def test_a_replay_takes_over_and_settles(pipeline: InProcess) -> None:
    event = pipeline.drop(KEY, ORDER)
    pipeline.around = failing("MarkDone", "States.Timeout", after=False, times=99)
    first = pipeline.deliver(event)
    pipeline.around = failing("", "", after=False)

    run = pipeline.deliver(event | {"replay": {"owner": first.arn}})

    assert run.path[-3:] == ["TakeOver", "Charge", "MarkDone"]
    (record,) = pipeline.ledger()
    assert (record["status"], record["owner"]) == ("done", run.arn)
    assert len(pipeline.charges()) == 1


def test_a_run_stopped_in_the_middle_is_taken_over(pipeline: InProcess) -> None:
    event = pipeline.drop(KEY, ORDER)

    def stopping(call: Call, proceed: Callable[[], Any]) -> Any:
        if call.state == "Charge":
            pipeline.stop(call.parameters["Payload"]["execution"])
        return proceed()

    pipeline.around = stopping
    first = pipeline.deliver(event)
    pipeline.around = failing("", "", after=False)
    run = pipeline.deliver(event | {"replay": {"owner": first.arn}})

    assert first.status == "ABORTED"
    assert first.path[-1] == "Charge"
    assert run.status == "SUCCEEDED"
    assert len(pipeline.charges()) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (ORDER.replace(b"tok_visa", b"tok_declined"), "declined"),
        (ORDER.replace(b"19.99", b"-19.99"), "rejected"),
        (b"", "rejected"),
    ],
)
def test_a_refusal_is_recorded_and_not_retried(
    pipeline: InProcess, body: bytes, status: str
) -> None:
    run = pipeline.deliver(pipeline.drop(KEY, body))

    assert run.waits == []
    (record,) = pipeline.ledger()
    assert record["status"] == status
    assert record["reason"]
    assert [charge for charge in pipeline.charges() if charge["status"] == "succeeded"] == []


def test_every_version_of_an_object_is_an_order(pipeline: InProcess) -> None:
    versions = [pipeline.drop(KEY, ORDER) for _ in range(2)]

    paths = [pipeline.deliver(event).path for event in versions]

    assert paths == [SETTLED, SETTLED]
    assert len(pipeline.charges()) == 2


def test_two_pipelines_may_share_a_provider() -> None:
    provider = InProcessProvider()
    with InProcess(provider=provider) as pipeline:
        pipeline.deliver(pipeline.drop(KEY, ORDER))
    with InProcess(provider=provider) as pipeline:
        pipeline.deliver(pipeline.drop(KEY, ORDER))

    assert len(provider.charges()) == 2
    provider.close()


def test_two_pipelines_are_not_open_at_once(pipeline: InProcess) -> None:
    with pytest.raises(RuntimeError, match="another pipeline is open"), InProcess():
        pass


def test_a_stand_in_for_the_function_has_no_provider() -> None:
    with (
        InProcess(charge=lambda _: {}) as pipeline,
        pytest.raises(RuntimeError, match="without a provider"),
    ):
        pipeline.charges()


def test_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    before = dict(os.environ)

    with InProcess(charge=lambda _: {}):
        assert "AWS_ENDPOINT_URL" not in os.environ

    assert dict(os.environ) == before


def test_what_the_function_prints_is_kept_from_standard_output(
    pipeline: InProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline.deliver(pipeline.drop(KEY, ORDER))

    assert capsys.readouterr().out == ""
