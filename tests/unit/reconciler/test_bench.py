"""The benchmark compares what it says, in memory that does not grow with it."""

from __future__ import annotations

import tracemalloc

from local.bench.reconcile import measure


def test_synthetic_books_hold_findings_of_both_sorts() -> None:
    figures = measure(20_000)

    assert figures["scanned"] == {"objects": 20_000, "records": 19_998, "charges": 19_998}
    assert figures["findings"] == {"charged_not_recorded": 2, "recorded_not_charged": 2}
    assert {"seconds", "peak_rss_mb", "cores", "versions"} <= set(figures)


def peak_bytes(objects: int) -> int:
    tracemalloc.start()
    try:
        measure(objects)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_three_times_the_books_need_no_more_memory() -> None:
    small = peak_bytes(2_000)

    large = peak_bytes(6_000)

    assert large < 1.1 * small
