"""Which steps of a simulation fail, and how: decided by dice, or repeated from a list."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


class Died(BaseException):
    """The process that works on a call ends here and now. No handler in it may survive that."""


@dataclass
class Faults:
    """At each opportunity one of the kinds that are possible there, or none.

    Opportunities are numbered in the order in which they come. `chosen` repeats the faults of
    another run by their numbers, whatever the dice say; None lets the dice decide, of which one
    in `1 / rate` brings a fault. `injected` counts (place, kind); `story` has one line for each.
    """

    dice: random.Random
    rate: float
    chosen: Mapping[int, str] | None = None
    active: bool = True
    injected: Counter[tuple[str, str]] = field(default_factory=Counter)
    taken: dict[int, str] = field(default_factory=dict)
    story: list[str] = field(default_factory=list)
    _number: int = 0

    def at(
        self, place: str, kinds: Sequence[str], who: str = "", *, ease: float = 1.0
    ) -> str | None:
        """The kind of fault that strikes at `place` now; None when all goes well.

        `ease` makes faults rarer here than elsewhere: 0.2 a fifth as likely.
        """
        if not self.active or not kinds:
            return None
        self._number += 1
        hit, kind = self.dice.random() < self.rate * ease, self.dice.choice(kinds)
        if self.chosen is not None:
            kind = self.chosen.get(self._number, "")
            hit = kind in kinds
        if not hit:
            return None
        self.taken[self._number] = kind
        self.note(place, kind, who)
        return kind

    def note(self, place: str, kind: str, who: str = "") -> None:
        """Count a fault that was decided elsewhere."""
        self.injected[place, kind] += 1
        self.story.append(f"{who} {place}: {kind}".strip())
