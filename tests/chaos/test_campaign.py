"""The local stack under fire, in its short form: one seed that is always the same, one fresh.

The fresh one stands at the head of every test run, and `CHAOS_FRESH_SEED` gives it again.
"""

from __future__ import annotations

import os

import pytest

from local.chaos import campaign
from local.chaos.report import Report
from tests.conftest import FRESH_SEED_VARIABLE

pytestmark = pytest.mark.xdist_group("chaos")

FIXED_SEED, FRESH_SEED = 1, int(os.environ[FRESH_SEED_VARIABLE])
ORDERS = 30


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Report]:
    """Both campaigns, one after the other on one stack."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CHARGE_ONCE_STATE", str(tmp_path_factory.mktemp("chaos")))
        return campaign.run_several(ORDERS, [FIXED_SEED, FRESH_SEED])


@pytest.mark.parametrize("seed", [FIXED_SEED, FRESH_SEED], ids=["fixed seed", "fresh seed"])
def test_every_order_is_settled_once(reports: dict[int, Report], seed: int) -> None:
    verdict = reports[seed].verdict

    assert verdict.violations == [], f"seed {seed}"
    assert (verdict.settled, verdict.lost, verdict.double_charges) == (ORDERS, 0, 0)


@pytest.mark.parametrize("seed", [FIXED_SEED, FRESH_SEED], ids=["fixed seed", "fresh seed"])
def test_enough_was_broken(reports: dict[int, Report], seed: int) -> None:
    document = reports[seed].document()

    assert document["faults_injected"] >= 20
    assert document["boundaries"] >= 6
    assert document["deliveries"] > ORDERS
