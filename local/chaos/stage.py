"""Many actors in one thread: one takes a step at a time, and a seed decides which.

An actor is ordinary code in a greenlet of its own. Whenever it calls `pause` the next step belongs
to whomever the dice choose; so the same seed gives the same interleaving, and every interleaving of
steps can happen. Sleeping costs nothing: the clock jumps when everybody sleeps.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import greenlet


class Gone(greenlet.GreenletExit):
    """Thrown into an actor that dies. Not an `Exception`: no handler may survive it."""


@dataclass(eq=False)
class Actor:
    """Somebody with a script. `place` says where it stands, for traces."""

    name: str
    body: greenlet.greenlet
    place: str = "start"
    wakes_at: float = 0.0
    waits_for: Callable[[], bool] | None = None
    held_until: int = 0

    @property
    def is_over(self) -> bool:
        return bool(self.body.dead)

    def is_ready(self, now: float) -> bool:
        """Whether it can take a step. A wait ends with its condition or with its time."""
        return now >= self.wakes_at or (self.waits_for is not None and self.waits_for())


@dataclass
class Stage:
    """`now` gives epoch seconds, `advance` moves that clock on by seconds."""

    dice: random.Random
    now: Callable[[], float]
    advance: Callable[[float], None]
    actors: list[Actor] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._director: greenlet.greenlet | None = None
        self.acting: Actor | None = None

    def enter(self, name: str, act: Callable[[], object]) -> Actor:
        """A new actor, who takes the first step when the dice say so."""
        body = greenlet.greenlet(act, parent=self._director or greenlet.getcurrent())
        actor = Actor(name, body)
        self.actors.append(actor)
        return actor

    def pause(self, place: str) -> None:
        """Let others act before what comes at `place`. Nothing happens outside of a play."""
        if self.acting is not None:
            self.acting.place = place
            self._leave()

    def sleep(self, seconds: float) -> None:
        """Be away for so long."""
        self._wait(None, self.now() + seconds)

    def wait(self, condition: Callable[[], bool], seconds: float = float("inf")) -> None:
        """Be away until `condition` holds, or for so long."""
        self._wait(condition, self.now() + seconds)

    def _wait(self, condition: Callable[[], bool] | None, until: float) -> None:
        actor = self.acting
        if actor is None:
            raise RuntimeError("bug: somebody waits who is not on stage")
        actor.wakes_at, actor.waits_for = until, condition
        self._leave()
        actor.wakes_at, actor.waits_for = 0.0, None

    def hold(self, name: str, steps: int) -> None:
        """Keep another actor from its next step until others have taken so many."""
        for actor in self.actors:
            if actor.name == name:
                actor.held_until = len(self.trace) + steps

    def idle(self, steps: int) -> None:
        """Let others take some steps."""
        for _ in range(steps):
            self.pause("idle")

    def play(self) -> None:
        """Until every actor is over. What an actor raises is raised here."""
        self._director = greenlet.getcurrent()
        while self.actors:
            now = self.now()
            ready = [actor for actor in self.actors if actor.is_ready(now)]
            free = [actor for actor in ready if actor.held_until <= len(self.trace)]
            if ready:  # whoever is held goes on when there are no others
                self._resume(self.dice.choice(free or ready))
                continue
            earliest = min(actor.wakes_at for actor in self.actors)
            if earliest == float("inf"):
                waiting = ", ".join(f"{actor.name} at {actor.place}" for actor in self.actors)
                raise RuntimeError(f"bug: everybody waits for ever: {waiting}")
            self.advance(earliest - now)

    def dismiss(self) -> None:
        """End whoever is still there: for a play that was broken off."""
        for actor in self.actors:
            if not actor.is_over:
                actor.body.throw(Gone)
        self.actors.clear()

    def _resume(self, actor: Actor) -> None:
        self.trace.append(f"{actor.name}: {actor.place}")
        self.acting = actor
        try:
            actor.body.switch()
        finally:
            self.acting = None
            if actor.is_over:
                self.actors.remove(actor)

    def _leave(self) -> Any:
        assert self._director is not None  # noqa: S101 - somebody acts, so there is a play
        return self._director.switch()
