"""The document says what the code and the template say."""

from __future__ import annotations

import re

from reconciler.auditing import MOST_FINDINGS, PHASES
from reconciler.judging import Kind

from local.paths import PROJECT, TEMPLATE

TEXT = (PROJECT / "docs" / "reconciler.md").read_text()


def first_cells(heading: str) -> list[str]:
    """The first column of the first table below a heading."""
    section = TEXT.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)
    return [row.strip("`") for row in rows[1:]]


def test_every_kind_of_finding_is_explained_in_its_order() -> None:
    assert first_cells("Findings") == [kind.value for kind in Kind]


def test_every_phase_is_explained_in_its_order() -> None:
    assert first_cells("A pass") == list(PHASES)


def test_every_alarm_is_explained_and_says_what_to_do() -> None:
    template = TEMPLATE.read_text()
    alarms = re.findall(
        r"^  (\w+):\n    Type: AWS::CloudWatch::Alarm\n    Properties:\n      AlarmDescription: >-",
        template,
        re.MULTILINE,
    )

    assert first_cells("Signals") == alarms
    assert len(alarms) == template.count("Type: AWS::CloudWatch::Alarm")
    assert template.count("AlarmActions: [!Ref AlarmTopic]") == len(alarms)


def test_the_most_findings_of_a_pass_are_told() -> None:
    assert f"at most {MOST_FINDINGS:,} findings" in TEXT


def test_the_decisions_that_are_named_exist() -> None:
    names = re.findall(r"\((decisions/[^)]+)\)", TEXT)

    assert names
    assert all((PROJECT / "docs" / name).is_file() for name in names)
