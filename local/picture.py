"""The picture of the state machine, drawn from its definition.

Boxes stand where `PLACES` puts them; names, kinds and arrows are read from the definition, and
the arrows find their own way. `python -m local picture` writes it for the docs; the page draws
the path of an order on it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any

from local.paths import DEFINITION, PROJECT
from local.picture_routing import Grid, Point, Router

Json = dict[str, Any]

PICTURE = PROJECT / "docs" / "images" / "state-machine.svg"

#: (column, row) of every state: the happy path runs down the middle, refusals to its left, the
#: question who holds the claim to its right. A state that is missing here gets a row at the end.
PLACES = {
    "IsVersioned?": (2, 0),
    "IdentifyByContent": (1, 1),
    "IdentifyByVersion": (2, 1),
    "Claim": (2, 2),
    "ReadRecord": (3, 2),
    "WhoHoldsTheClaim?": (3, 3),
    "AlreadySettled": (4, 2),
    "ClaimedElsewhere": (4, 3),
    "QuoteRefusal": (0, 4),
    "IsRefusalReadable?": (1, 4),
    "Charge": (2, 4),
    "TakeOver": (3, 4),
    "ReportConflictingCharge": (4, 4),
    "WhichRefusal?": (0, 5),
    "ReadRefusal": (1, 5),
    "MarkDone": (2, 5),
    "ReportUnknownStatus": (4, 5),
    "MarkDeclined": (0, 6),
    "MarkRejected": (1, 6),
    "QueueFailure": (3, 6),
    "FailureQueueUnreachable": (4, 6),
    "Declined": (0, 7),
    "ChargeFailed": (3, 7),
}

BOX = (190.0, 42.0)
PITCH = (242.0, 88.0)
MARGIN = (44.0, 58.0)
LEGEND_HEIGHT = 34
CORNER = 7.0

CONFLICT = ["DynamoDB.ConditionalCheckFailedException"]
LEGEND = (
    ("next", "goes on"),
    ("conflict", "the condition failed: ask the record"),
    ("catch", "refused, or failed for good"),
)
SERVICES = {"dynamodb": "DynamoDB", "lambda": "Lambda", "sqs": "SQS"}


@dataclass(frozen=True)
class Box:
    """A state; `kind` is its type in lower case, `x` and `y` the middle of its box."""

    name: str
    kind: str
    service: str
    settles: bool
    x: float
    y: float


@dataclass(frozen=True)
class Line:
    """An arrow. `kind` is next, conflict or catch; `points` run along it, box edge to box edge."""

    source: str
    target: str
    kind: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Drawing:
    """The whole picture, placed and routed, in pixels."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


@cache
def charge_order() -> Drawing:
    """The drawing of this project's own state machine."""
    return draw(json.loads(DEFINITION.read_text()))


def draw(definition: Json) -> Drawing:
    """Place the states of an Amazon States Language definition and route its arrows."""
    states = definition["States"]
    places = _places(states)
    grid = Grid(
        columns=max(column for column, _ in places.values()) + 1,
        rows=max(row for _, row in places.values()) + 1,
        box=BOX,
        pitch=PITCH,
        margin=MARGIN,
        ports=((-60, -30, 0, 30, 60), (-11, 0, 11)),
        track=9,
    )
    middles = {name: grid.middle(*places[name]) for name in states}
    router = Router(grid, middles)

    def distance(arrow: tuple[str, str, str]) -> tuple[int, float]:
        # Plain arrows first, short before long: the others find their way around them.
        (x, y), (to_x, to_y) = middles[arrow[0]], middles[arrow[1]]
        return ("next", "conflict", "catch").index(arrow[2]), abs(x - to_x) + abs(y - to_y)

    lines = tuple(
        Line(*arrow, router.route(*arrow)) for arrow in sorted(arrows(definition), key=distance)
    )
    return Drawing(
        width=2 * MARGIN[0] + (grid.columns - 1) * PITCH[0] + BOX[0],
        height=2 * MARGIN[1] + (grid.rows - 1) * PITCH[1] + BOX[1] + LEGEND_HEIGHT,
        boxes=tuple(
            Box(
                name=name,
                kind=state["Type"].lower(),
                service=_service(state),
                settles=bool(state.get("End")),
                x=middles[name][0],
                y=middles[name][1],
            )
            for name, state in states.items()
        ),
        lines=lines,
    )


def arrows(definition: Json) -> list[tuple[str, str, str]]:
    """Every (source, target, kind) once, in the definition's order."""
    found: dict[tuple[str, str, str], None] = {}
    for name, state in definition["States"].items():
        choices = [choice["Next"] for choice in state.get("Choices", [])]
        for target in [state.get("Next"), *choices, state.get("Default")]:
            if target:
                found[name, target, "next"] = None
        for catch in state.get("Catch", []):
            kind = "conflict" if catch["ErrorEquals"] == CONFLICT else "catch"
            found[name, catch["Next"], kind] = None
    return list(found)


def _places(states: Json) -> dict[str, tuple[int, int]]:
    columns = max(column for column, _ in PLACES.values()) + 1
    next_row = max(row for _, row in PLACES.values()) + 1
    number = itertools.count()
    places = {}
    for name in states:
        if name in PLACES:
            places[name] = PLACES[name]
        else:
            row, column = divmod(next(number), columns)
            places[name] = (column, next_row + row)
    return places


def _service(state: Json) -> str:
    """`DynamoDB putItem` from `arn:aws:states:::dynamodb:putItem`; nothing for other states."""
    if state["Type"] != "Task":
        return ""
    service, _, action = state["Resource"].removeprefix("arn:aws:states:::").partition(":")
    return f"{SERVICES.get(service, service)} {action}"


# ---------------------------------------------------------------- SVG


def svg(
    drawing: Drawing,
    marks: Mapping[str, str] | None = None,
    taken: Collection[tuple[str, str]] = (),
) -> str:
    """The drawing as the inside of an `<svg>` element, without any style of its own.

    `marks` gives states an extra class, such as what happened there; arrows in `taken` get the
    class `taken`, and the box of a state without a mark the class `idle` when there are marks.
    """
    marks = marks or {}
    parts = [_arrowheads()]
    for line in sorted(drawing.lines, key=lambda line: (line.source, line.target) in taken):
        extra = " taken" if (line.source, line.target) in taken else ""
        head = "taken" if extra else line.kind
        parts.append(
            f'<path class="line {line.kind}{extra}" d="{_rounded(line.points)}" '
            f'marker-end="url(#head-{head})"/>'
        )
    idle = "idle" if marks else ""
    parts += [_box(box, marks.get(box.name, idle)) for box in drawing.boxes]
    parts.append(_start(drawing, "taken" if marks else "next"))
    return "\n".join(parts)


def _arrowheads() -> str:
    kinds = ("next", "conflict", "catch", "taken")
    return (
        "<defs>"
        + "".join(
            f'<marker id="head-{kind}" class="head {kind}" viewBox="0 0 8 8" refX="7" refY="4" '
            f'markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
            f'<path d="M0 .6 8 4 0 7.4z"/></marker>'
            for kind in kinds
        )
        + "</defs>"
    )


def _box(box: Box, mark: str) -> str:
    left, top = box.x - BOX[0] / 2, box.y - BOX[1] / 2
    radius = {"succeed": BOX[1] / 2, "fail": BOX[1] / 2, "choice": 4, "pass": 4}.get(box.kind, 8)
    shape = (
        f'<rect x="{_n(left)}" y="{_n(top)}" width="{_n(BOX[0])}" height="{_n(BOX[1])}" '
        f'rx="{_n(radius)}"/>'
    )
    if box.kind == "choice":
        nose, right, bottom = 12, left + BOX[0], top + BOX[1]
        shape = (
            f'<path class="shape" d="M{_n(left + nose)} {_n(top)}H{_n(right - nose)}'
            f"L{_n(right)} {_n(box.y)}L{_n(right - nose)} {_n(bottom)}H{_n(left + nose)}"
            f'L{_n(left)} {_n(box.y)}z"/>'
        )
    name_y = box.y - 2 if box.service else box.y + 4.5
    settles = "settles" if box.settles else ""
    service = (
        f'<text class="service" x="{_n(box.x)}" y="{_n(box.y + 13)}">{escape(box.service)}</text>'
        if box.service
        else ""
    )
    return (
        f'<g class="{" ".join(filter(None, ("state", box.kind, settles, mark)))}">{shape}'
        f'<text x="{_n(box.x)}" y="{_n(name_y)}">{escape(box.name)}</text>{service}</g>'
    )


def _start(drawing: Drawing, head: str) -> str:
    first = drawing.boxes[0]
    top = first.y - BOX[1] / 2
    return (
        f'<circle class="start" cx="{_n(first.x)}" cy="{_n(top - 26)}" r="6"/>'
        f'<path class="line next first" d="M{_n(first.x)} {_n(top - 20)}V{_n(top)}" '
        f'marker-end="url(#head-{head})"/>'
    )


def _rounded(points: tuple[Point, ...]) -> str:
    """An SVG path along the points with round corners."""
    parts = [f"M{_n(points[0][0])} {_n(points[0][1])}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        start = _towards(corner, before)
        end = _towards(corner, after)
        parts.append(
            f"L{_n(start[0])} {_n(start[1])}Q{_n(corner[0])} {_n(corner[1])} "
            f"{_n(end[0])} {_n(end[1])}"
        )
    parts.append(f"L{_n(points[-1][0])} {_n(points[-1][1])}")
    return "".join(parts)


def _towards(corner: Point, other: Point) -> Point:
    length = abs(corner[0] - other[0]) + abs(corner[1] - other[1])
    share = min(CORNER, length / 2) / length
    return (
        corner[0] + (other[0] - corner[0]) * share,
        corner[1] + (other[1] - corner[1]) * share,
    )


def _n(number: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{number:.1f}".removesuffix(".0")


# ---------------------------------------------------------------- the file

STYLE = """
:root{--paper:#fffdf8;--edge:#e4dccb;--ink:#2b2620;--soft:#6d6355;--line:#5c5347;--box:#fff;
--good:#1f6f54;--good-box:#e7f2ec;--amber:#9a6508;--red:#a3362a;--red-box:#fbebe8;--pass:#f6f1e6}
@media (prefers-color-scheme:dark){:root{--paper:#1b1917;--edge:#38332c;--ink:#efe8da;
--soft:#b0a592;--line:#a2978a;--box:#262320;--good:#74c9a5;--good-box:#1d3029;--amber:#e0ab4b;
--red:#ef8d7d;--red-box:#3a2320;--pass:#211e1b}}
text{font:600 12.5px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;fill:var(--ink);
text-anchor:middle}
.service{font-weight:400;font-size:11px;fill:var(--soft)}
.paper{fill:var(--paper);stroke:var(--edge)}
.state rect,.shape{fill:var(--box);stroke:var(--line);stroke-width:1.3}
.pass rect{fill:var(--pass);stroke:var(--edge);stroke-width:1.6}
.succeed rect,.settles rect{fill:var(--good-box);stroke:var(--good)}
.settles rect{stroke-width:2.2}
.fail rect{fill:var(--red-box);stroke:var(--red)}
.line{fill:none;stroke:var(--line);stroke-width:1.5}
.conflict.line{stroke:var(--amber);stroke-dasharray:6 3}
.catch.line{stroke:var(--red);stroke-dasharray:2 3}
.head path{fill:var(--line)}.head.conflict path{fill:var(--amber)}.head.catch path{fill:var(--red)}
.start{fill:var(--line)}
.legend{font-weight:400;font-size:12px;text-anchor:start;fill:var(--soft)}
""".strip()


def document(drawing: Drawing) -> str:
    """The picture as a file that reads well on light and on dark pages, and without colours."""
    width, height = _n(drawing.width), _n(drawing.height)
    ends = sum(box.kind == "succeed" or box.settles for box in drawing.boxes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-labelledby="title description">\n'
        f'<title id="title">The state machine ChargeOrder</title>\n'
        f'<desc id="description">{len(drawing.boxes)} states from {escape(drawing.boxes[0].name)} '
        f"to {ends} clean ends.</desc>\n"
        f"<style>\n{STYLE}\n</style>\n"
        f'<rect class="paper" x=".5" y=".5" width="{_n(drawing.width - 1)}" '
        f'height="{_n(drawing.height - 1)}" rx="10"/>\n'
        f"{svg(drawing)}\n{_legend(drawing)}\n</svg>\n"
    )


def _legend(drawing: Drawing) -> str:
    x, y = MARGIN[0], drawing.height - 28
    parts = []
    for kind, words in LEGEND:
        parts.append(
            f'<path class="line {kind}" d="M{_n(x)} {_n(y)}h34" marker-end="url(#head-{kind})"/>'
            f'<text class="legend" x="{_n(x + 44)}" y="{_n(y + 4)}">{words}</text>'
        )
        x += 44 + 6 * len(words) + 36
    return "\n".join(parts)


def write() -> bool:
    """Bring the checked-in picture up to date; gives whether it was out of date."""
    new = document(charge_order())
    if PICTURE.exists() and PICTURE.read_text() == new:
        return False
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    PICTURE.write_text(new)
    return True
