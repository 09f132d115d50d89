"""The local stack under fire, in its short form: one seed that is always the same, one fresh.

The fresh one is printed. `python -m local chaos --orders 40 --seed N` plays its plan again.
"""

from __future__ import annotations

import secrets

import pytest

from local.chaos import campaign
from local.chaos.report import Report

pytestmark = pytest.mark.xdist_group("chaos")

FIXED_SEED, FRESH_SEED = 1, secrets.randbelow(1_000_000)
ORDERS = 40


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Report]:
    """Both campaigns, one after the other on one stack."""
    print(f"fresh seed: {FRESH_SEED}")
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
