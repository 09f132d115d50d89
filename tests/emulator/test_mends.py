"""Every mend restores what AWS does, and is still needed."""

from pathlib import Path

import pytest

from local.emulator import mends
from tests.emulator.differences import DIFFERENCES

# One worker starts the emulators, not each of them.
pytestmark = pytest.mark.xdist_group("emulator")


@pytest.mark.parametrize("name", DIFFERENCES)
def test_the_mended_emulator_does_what_aws_does(name: str, request: pytest.FixtureRequest) -> None:
    difference = DIFFERENCES[name]
    emulator = request.getfixturevalue("mended_with_auth" if difference.auth else "mended")

    seen = difference.look(emulator)

    assert seen == difference.aws


@pytest.mark.parametrize("name", DIFFERENCES)
def test_the_mend_is_still_needed(name: str, request: pytest.FixtureRequest) -> None:
    difference = DIFFERENCES[name]
    emulator = request.getfixturevalue("upstream_with_auth" if difference.auth else "upstream")

    seen = difference.look(emulator)

    assert seen != difference.aws, f"upstream fixed {name}: delete the mend {difference.mend}"
    assert seen == difference.ministack, f"upstream changed {name}: look at it again"


def test_every_mend_has_a_difference_that_shows_it() -> None:
    shown = {difference.mend for difference in DIFFERENCES.values()}

    assert shown == {mend.name for mend in mends.MENDS}


def test_every_mend_stands_in_the_fidelity_document() -> None:
    document = (Path(__file__).parents[2] / "docs" / "fidelity.md").read_text()

    assert [mend.name for mend in mends.MENDS if f"`{mend.name}`" not in document] == []


def test_a_mend_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no such mend: nonsense"):
        mends.apply(["nonsense"])
