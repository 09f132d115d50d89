"""Small drawings: an order's path as a string of beads, and as a way through the whole machine."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from markupsafe import Markup

from local import picture
from local.page.history import Step

BEAD_PITCH = 17
BEAD_HEIGHT = 22

#: What is drawn for each kind of state, around the middle (x, 11).
SHAPES = {
    "choice": '<path d="M{x} 6.6l4.4 4.4-4.4 4.4-4.4-4.4z"/>',
    "pass": '<circle cx="{x}" cy="11" r="3"/>',
    "succeed": '<circle cx="{x}" cy="11" r="6"/><path class="mark" d="M{l} 11.2l2 2 3.6-4.2"/>',
    "fail": '<circle cx="{x}" cy="11" r="6"/>'
    '<path class="mark" d="M{l} 8.4l5.2 5.2m0-5.2l-5.2 5.2"/>',
}
TASK = '<circle cx="{x}" cy="11" r="5.4"/>'


def path_words(steps: Sequence[Step]) -> str:
    """The path in words: `IsVersioned?, Claim, Charge (3 attempts, failed), ...`."""
    parts = []
    for step in steps:
        notes = []
        if len(step.attempts) > 1:
            notes.append(f"{len(step.attempts)} attempts")
        if step.outcome not in {"done", "retried"}:
            notes.append(step.outcome)
        parts.append(f"{step.state} ({', '.join(notes)})" if notes else step.state)
    return ", ".join(parts)


def beads(steps: Sequence[Step]) -> Markup:
    """The path as an inline SVG: a bead for each state, coloured by what happened there."""
    width = BEAD_PITCH * len(steps)
    parts = [
        Markup(
            '<svg class="beads" role="img" width="{0}" height="{1}" viewBox="0 0 {0} {1}" '
        ).format(width, BEAD_HEIGHT),
        Markup('aria-label="{}"><title>{}</title>').format(path_words(steps), path_words(steps)),
    ]
    if len(steps) > 1:
        parts.append(
            Markup('<path class="thread" d="M{} 11H{}"/>').format(
                BEAD_PITCH / 2, width - BEAD_PITCH / 2
            )
        )
    for number, step in enumerate(steps):
        x = BEAD_PITCH * (number + 0.5)
        shape = SHAPES.get(step.kind, TASK).format(x=x, l=x - 2.6)
        parts.append(
            Markup('<g class="bead {} {}">').format(step.kind, step.outcome) + Markup(shape)  # noqa: S704 - our own shapes
        )
        if len(step.attempts) > 1:
            parts.append(Markup('<text x="{}" y="14">{}</text>').format(x, len(step.attempts)))
        parts.append(Markup("</g>"))
    return Markup("").join([*parts, Markup("</svg>")])


def graph(steps: Sequence[Step]) -> Markup:
    """The state machine's picture with the path of one execution on it."""
    drawn = picture.charge_order()
    marks = {step.state: f"visited {step.outcome}" for step in steps}
    taken = {(a.state, b.state) for a, b in itertools.pairwise(steps)}
    body = picture.svg(drawn, marks, taken)
    return Markup(
        '<svg class="machine" role="img" viewBox="0 0 {} {}" aria-label="{}">{}</svg>'
    ).format(
        drawn.width,
        drawn.height - picture.LEGEND_HEIGHT,
        f"The state machine, with the path {path_words(steps)}",
        Markup(body),  # noqa: S704 - escaped there
    )
