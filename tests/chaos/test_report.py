"""The document of the `chaos` command."""

from __future__ import annotations

from local.chaos.invariants import Verdict
from local.chaos.report import Report

REPORT = Report(
    seed=7,
    deliveries=5,
    injected={("Claim", "lost"): 2, ("Claim", "error"): 1, ("S3 read", "error"): 4},
    verdict=Verdict(orders=3, settled=2, open_and_reported=1, violations=["one"]),
    seconds=1.26,
    more={"schedules": 9},
)


def test_counts_are_numbers_and_say_how_much_was_broken_where() -> None:
    document = REPORT.document()

    assert document == {
        "orders": 3,
        "deliveries": 5,
        "faults_injected": 7,
        "boundaries": 2,
        "double_charges": 0,
        "lost": 0,
        "open_and_reported": 1,
        "settled": 2,
        "seconds": 1.3,
        "seed": 7,
        "violations": ["one"],
        "injected": {"Claim": {"error": 1, "lost": 2}, "S3 read": {"error": 4}},
        "schedules": 9,
    }
