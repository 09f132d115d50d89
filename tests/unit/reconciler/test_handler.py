"""One run of the scheduled function: its place, its report, its metrics, and who was faster."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from reconciler import handler
from reconciler.settings import SettingInvalid

from tests.unit.reconciler.fakes import World
from tests.unit.reconciler.test_settings import ENVIRONMENT


class FakeS3:
    """One bucket with conditional writes."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.writes = 0

    def get_object(self, Bucket: str, Key: str) -> Any:  # noqa: N803 - boto3's spelling
        if Key not in self.objects:
            raise refused("NoSuchKey")
        return {"Body": io.BytesIO(self.objects[Key]), "ETag": self._etag(Key)}

    def put_object(self, Bucket: str, Key: str, Body: bytes, **options: str) -> Any:  # noqa: N803
        current = self._etag(Key) if Key in self.objects else None
        if "IfNoneMatch" in options and current is not None:
            raise refused("PreconditionFailed")
        if "IfMatch" in options and options["IfMatch"] != current:
            raise refused("PreconditionFailed")
        self.objects[Key] = Body
        self.writes += 1
        return {"ETag": self._etag(Key)}

    def _etag(self, key: str) -> str:
        return f'"{hash(self.objects[key])}"'

    def document(self, key: str) -> Any:
        return json.loads(self.objects[key])


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": ""}}, "call")


class Context:
    """Lambda's context: `calls` times there is time enough, then no more."""

    def __init__(self, calls: int = 10**9) -> None:
        self.calls = calls

    def get_remaining_time_in_millis(self) -> int:
        self.calls -= 1
        return 900_000 if self.calls >= 0 else 1_000


@pytest.fixture
def world() -> World:
    world = World()
    for number in range(4):
        world.settle(f"good-{number}.json")
    world.land("missing.json")
    return world


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch, world: World) -> FakeS3:
    s3 = FakeS3()
    monkeypatch.setattr(handler, "_client", lambda _: s3)
    monkeypatch.setattr(
        handler, "audit_of", lambda settings, _: world.audit(repair=settings.repair)
    )
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "reconciler")
    return s3


def emitted(capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    """The values of the one EMF document that was printed."""
    (line,) = [line for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    document = json.loads(line)
    (directive,) = document["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "ChargeOnce"
    assert directive["Dimensions"] == [["service"]]
    assert document["service"] == "reconciler"
    return {item["Name"]: document[item["Name"]][0] for item in directive["Metrics"]}


def test_a_whole_pass_leaves_a_report_and_no_place(
    s3: FakeS3, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = handler.handle({}, Context())

    assert outcome | {"pass": ""} == {
        "pass": "",
        "complete": True,
        "overtaken": False,
        "findings": 1,
        "repaired": 0,
    }
    assert s3.document("position.json") == {"pass": None}
    report = s3.document(f"reports/2026/11/30/{outcome['pass']}.json")
    assert [item["kind"] for item in report["findings"]] == ["missing"]
    values = emitted(capsys)
    assert (values["Findings"], values["Missing"], values["Stuck"]) == (1, 1, 0)
    assert (values["PassCompleted"], values["OrdersIn"], values["RecordsOut"]) == (1, 5, 4)
    assert values["OrdersWithoutRecord"] == 1


def test_a_run_out_of_time_saves_its_place_and_the_next_one_goes_on(
    s3: FakeS3, capsys: pytest.CaptureFixture[str]
) -> None:
    runs: list[dict[str, Any]] = []
    while not runs or not runs[-1]["complete"]:
        runs.append(handler.handle({}, Context(calls=4)))
        capsys.readouterr()

    assert len(runs) > 2
    assert len({run["pass"] for run in runs}) == 1
    assert sum(run["findings"] for run in runs) == 1
    assert len([key for key in s3.objects if key.startswith("reports/")]) == 1


def test_a_run_that_does_not_complete_counts_what_it_found_and_no_pass(
    s3: FakeS3, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.versions_.reverse()

    handler.handle({}, Context(calls=3))

    values = emitted(capsys)
    assert values["Missing"] == 1
    assert "PassCompleted" not in values


def test_findings_of_earlier_runs_are_not_counted_again(
    s3: FakeS3, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.versions_.reverse()
    handler.handle({}, Context(calls=3))
    capsys.readouterr()

    outcome = handler.handle({}, Context())

    assert outcome["complete"]
    assert emitted(capsys)["Findings"] == 0


def test_repairs_are_started_when_the_setting_says_so(
    s3: FakeS3, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPAIR_FINDINGS", "true")

    outcome = handler.handle({}, Context())

    assert outcome["repaired"] == len(world.started) == 1


def test_of_two_runs_at_once_one_learns_that_it_was_overtaken(
    s3: FakeS3, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    def the_other_finishes_first(_: str) -> None:
        world.looked_at = lambda _: None
        assert handler.handle({}, Context())["complete"]

    world.open_record(world.land("stuck.json"))
    world.looked_at = the_other_finishes_first

    outcome = handler.handle({}, Context())

    assert outcome["overtaken"]
    assert not outcome["complete"]
    assert s3.document("position.json") == {"pass": None}


def test_a_book_that_fails_is_an_error_and_the_place_is_kept(
    s3: FakeS3, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> Any:
        raise ConnectionError("the provider is away")

    with monkeypatch.context() as broken, pytest.raises(ConnectionError):
        broken.setattr(world, "charges", away)
        handler.handle({}, Context())
    phase = s3.document("position.json")["pass"]["phase"]

    outcome = handler.handle({}, Context())

    assert phase == "charges"
    assert outcome["complete"]


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"pass": {}}', '{"pass": {"phase": "objects", "new": 1}}']
)
def test_a_place_that_another_release_left_is_overwritten(s3: FakeS3, content: str) -> None:
    s3.objects["position.json"] = content.encode()

    outcome = handler.handle({}, Context())

    assert outcome["complete"]
    assert s3.document("position.json") == {"pass": None}


def test_in_a_long_run_the_place_is_kept_now_and_then(
    s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "SECONDS_BETWEEN_SAVES", -1)

    handler.handle({}, Context())

    assert s3.writes > 5


def test_a_ledger_that_forgets_too_early_is_refused_before_anything_is_read(
    s3: FakeS3, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECORD_TTL_DAYS", "20")

    with pytest.raises(SettingInvalid, match="RECORD_TTL_DAYS"):
        handler.handle({}, Context())

    assert world.pages == 0
    assert s3.objects == {}


def test_each_finding_and_repair_is_a_line_in_the_log(
    s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[tuple[str, Any]] = []
    monkeypatch.setenv("REPAIR_FINDINGS", "true")
    for level in ("info", "warning", "error"):
        monkeypatch.setattr(
            handler.logger,
            level,
            lambda message, **fields: lines.append((message, fields.get("extra"))),
        )

    handler.handle({}, Context())

    by_message = dict(lines)
    assert by_message["finding"]["kind"] == "missing"
    assert by_message["repair started"]["execution"].startswith("arn:repair-")
