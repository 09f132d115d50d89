"""What each handler does to one order: (charges, record, queued, findings), cell by cell.

Pinned on purpose. A change that makes the naive handler charge once, or claim-first lose nothing,
has not mended a bug but removed a lesson.
"""

from __future__ import annotations

Cell = tuple[int, str | None, int, list[str]]

SCENARIOS = (
    "clean",
    "fails before the charge, once",
    "fails after the charge, once",
    "provider dead, every attempt",
    "fails after the charge, every attempt",
    "duplicate after success",
    "8 at once",
    "time-out right after the charge",
)

_TWICE = ["charged_twice"]
_LOST = ["arrived_not_charged"]

_CLAIM_FIRST: tuple[Cell, ...] = (
    (1, "claimed", 0, []),
    (0, "claimed", 0, _LOST),
    (1, "claimed", 0, []),
    (0, "claimed", 0, _LOST),
    (1, "claimed", 0, []),
    (1, "claimed", 0, []),
    (1, "claimed", 0, []),
    (1, "claimed", 0, []),
)

CELLS: dict[str, tuple[Cell, ...]] = {
    "naive": (
        (1, None, 0, []),
        (1, None, 0, []),
        (2, None, 0, _TWICE),
        (0, None, 1, _LOST),
        (3, None, 1, _TWICE),
        (2, None, 0, _TWICE),
        (8, None, 0, _TWICE),
        (2, None, 0, _TWICE),
    ),
    "claim-first-by-version": _CLAIM_FIRST,
    "claim-first-by-content": _CLAIM_FIRST,
    "robust": (
        (1, "done", 0, []),
        (1, "done", 0, []),
        (2, "done", 0, _TWICE),
        (0, "in_progress", 1, [*_LOST, "stuck"]),
        (3, "in_progress", 1, [*_TWICE, "stuck"]),
        (1, "done", 0, []),
        (8, "done", 0, _TWICE),  # in the worst order; measured, it is 1 to 8
        (2, "done", 0, _TWICE),
    ),
    "charge-once": (
        (1, "done", 0, []),
        (1, "done", 0, []),
        (1, "done", 0, []),
        (0, "in_progress", 1, ["stuck"]),
        (1, "in_progress", 1, ["charged_not_recorded"]),
        (1, "done", 0, []),
        (1, "done", 0, []),
        (1, "done", 0, []),
    ),
}

#: The one cell that is a race: how often robust charges depends on who reads when.
RACE = ("robust", "8 at once")

ALL = [
    (handler, scenario, cell)
    for handler, cells in CELLS.items()
    for scenario, cell in zip(SCENARIOS, cells, strict=True)
]

#: The words that the tables have for a cell besides its number.
REMARKS = {
    ("naive", "provider dead, every attempt"): "queued",
    ("naive", "fails after the charge, every attempt"): "queued",
    ("robust", "provider dead, every attempt"): "queued, open",
    ("robust", "fails after the charge, every attempt"): "queued, open",
    ("charge-once", "provider dead, every attempt"): "queued, open",
    ("charge-once", "fails after the charge, every attempt"): ("queued, settled by the reconciler"),
} | {
    (handler, scenario): remark
    for handler in ("claim-first-by-version", "claim-first-by-content")
    for scenario, remark in (
        ("fails before the charge, once", "silently lost"),
        ("provider dead, every attempt", "silently lost"),
        ("fails after the charge, once", "reported as failed: silent mismatch"),
        ("fails after the charge, every attempt", "reported as failed: silent mismatch"),
        ("time-out right after the charge", "reported as failed: silent mismatch"),
    )
}


def verdict(handler: str, scenario: str, charges: int) -> str:
    """The cell as the tables print it."""
    remark = REMARKS.get((handler, scenario))
    return f"{charges}, {remark}" if remark else str(charges)
