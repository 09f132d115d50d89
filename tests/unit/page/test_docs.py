"""The page's document lists what the page can say."""

from __future__ import annotations

import re

from local.page import verdict
from local.paths import PROJECT

DOCUMENT = (PROJECT / "docs" / "page.md").read_text()


def test_every_verdict_is_documented() -> None:
    source = (PROJECT / "local" / "page" / "verdict.py").read_text()
    words = re.findall(r'Verdict\(\s*"\w+",\s*f?"([^"]+)"', source)
    assert len(words) > 12

    for word in words:
        assert word.replace("{len(taken)}", "2") in DOCUMENT, word


def test_every_group_of_the_filter_is_documented() -> None:
    for label in verdict.GROUPS.values():
        assert f"| {label.lower()} |" in DOCUMENT, label


def test_every_picture_of_the_document_exists() -> None:
    for name in re.findall(r"\(images/([^)]+)\)", DOCUMENT):
        assert (PROJECT / "docs" / "images" / name).exists(), name
