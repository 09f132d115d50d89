"""What the rules ask of a data base.

Both implementations pass the same tests. Every method is atomic on its own, and nothing is kept
between calls: any number of processes may share one store.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Marker:
    """Says that somebody is working on a key.

    `token` is random and names the holder; `fingerprint` is of the request's parameters.
    `lease_until` (epoch seconds, wall clock) is when others may suppose the holder dead.
    `expires_at` (epoch seconds, the provider's clock) is when the key is forgotten.
    """

    token: str
    fingerprint: str
    lease_until: float
    expires_at: int


@dataclass(frozen=True)
class Answer:
    """A status and the exact text of a body; `replayed` says that it was stored before."""

    status: int
    body: str
    replayed: bool = False


@dataclass(frozen=True)
class KeyState:
    """What a key is held by: an answer once the work is done, none while it is in flight."""

    fingerprint: str
    answer: Answer | None


@dataclass(frozen=True)
class Fault:
    """A failure on order. `remaining` counts down; the rest is as it was armed.

    `seconds` is how long the slow and the hanging ones take. A fault without `reference` or
    `metadata` matches every request of its `operation` ("charge" or "lookup").
    """

    id: str
    name: str
    operation: str
    times: int
    remaining: int
    seconds: float
    reference: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)


class Store(Protocol):
    """Keys with their answers, charges, and what only test mode needs."""

    def claim(self, key: str, marker: Marker, *, now: float, wall: float) -> KeyState | None:
        """Put the marker on the key, or return what holds it.

        The marker is put if the key is unknown; or forgotten (its `expires_at` is not after
        `now`); or held by a marker of the same fingerprint whose lease ended before `wall`.
        """

    def commit(
        self,
        key: str,
        marker: Marker,
        answer: Answer,
        *,
        charge_id: str,
        reference: str | None,
        charge: str,
    ) -> bool:
        """Keep the charge, its reference entry and the answer, all or nothing.

        False, and nothing kept, when the marker's token no longer holds the key.
        """

    def release(self, key: str, marker: Marker) -> None:
        """Take the marker off, if its token still holds the key."""

    def charge(self, charge_id: str) -> str | None:
        """The charge's JSON text. Consistent: a committed charge is always seen."""

    def charges(self, reference: str | None, first: str, limit: int) -> Iterator[str]:
        """JSON texts of at most `limit` charges with `id >= first`, in the order of their ids.

        Consistent, and in bounded memory however many there are.
        """

    def add_fault(self, fault: Fault) -> None:
        """Arm a fault."""

    def faults(self) -> list[Fault]:
        """Faults with something left, oldest first."""

    def take_fault(self, fault_id: str) -> bool:
        """Count one down. False when nothing was left: two callers never take the same one."""

    def clear_faults(self) -> None:
        """Disarm everything."""

    def log_request(self, key: str, entry_id: str, entry: str, expires_at: int) -> None:
        """Note what was answered (JSON text). Entries may go after `expires_at`."""

    def requests(self, key: str, limit: int) -> list[str]:
        """The first `limit` entries for a key, oldest first."""

    def clock_offset(self) -> int:
        """By how many seconds the provider's clock is ahead of the wall clock."""

    def advance_clock(self, seconds: int) -> int:
        """Move it further ahead; returns the new offset."""

    def reset_clock(self) -> None:
        """Back to the wall clock."""
