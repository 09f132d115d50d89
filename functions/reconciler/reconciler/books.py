"""What stands in the three books, as far as an audit needs it. Knows neither AWS nor HTTP.

All times are aware datetimes in UTC; all amounts are integers in the currency's smallest unit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Generic, NamedTuple, Protocol, TypeGuard, TypeVar

PREFIX = "orders/"
SUFFIX = ".json"
UNVERSIONED = "null"
"""The version id of an object that was written while its bucket had no versioning."""

IN_PROGRESS = "in_progress"
DONE = "done"
REFUSED = frozenset({"declined", "rejected"})
SETTLED = REFUSED | {DONE}

Cursor = Any
"""Where a listing continues: JSON, made and understood by its source alone. None: from the start
when it is given, at the end when it is returned."""

_Item = TypeVar("_Item")


class Place(NamedTuple):
    """An object version by name."""

    bucket: str
    key: str
    version_id: str

    @property
    def idempotency_key(self) -> str:
        """The key that the state `IdentifyByVersion` gives to this version's order."""
        work = f"{self.bucket}/{self.key}#{self.version_id}"
        return f"charge#{hashlib.sha256(work.encode()).hexdigest()}"

    @property
    def is_folder_marker(self) -> bool:
        """What the console makes for "Create folder"; no upload of anybody's."""
        return self.key.endswith("/")

    @property
    def is_order(self) -> bool:
        """Whether the rule's pattern `orders/*.json` matches."""
        return (
            self.key.startswith(PREFIX)
            and self.key.endswith(SUFFIX)
            and len(self.key) >= len(PREFIX + SUFFIX)
        )


def is_our_reference(reference: object) -> TypeGuard[str]:
    """Whether a charge's reference is an idempotency key of this pipeline."""
    return (
        isinstance(reference, str)
        and len(reference) == len("charge#") + 64
        and reference.startswith("charge#")
    )


class ObjectVersion(NamedTuple):
    """An object version that exists. `etag` has no quotes; delete markers are no versions."""

    place: Place
    etag: str
    size: int
    last_modified: datetime
    is_latest: bool


class Record(NamedTuple):
    """A ledger record; what it lacks is None. Times are as the state machine wrote them."""

    key: str
    status: str | None
    owner: str | None = None
    open_since: str | None = None
    claimed_at: str | None = None
    settled_at: str | None = None
    bucket: str | None = None
    object_key: str | None = None
    version_id: str | None = None
    etag: str | None = None
    order_id: str | None = None
    charge_id: str | None = None
    amount_minor: int | None = None
    currency: str | None = None
    reason: str | None = None

    @property
    def place(self) -> Place | None:
        """The object version that the record names, if it names one whole."""
        if self.bucket is None or self.object_key is None or self.version_id is None:
            return None
        return Place(self.bucket, self.object_key, self.version_id)


class Settlement(NamedTuple):
    """What the index `order-id` holds of a record; `settled_at` is None when it is no time."""

    key: str
    order_id: str
    status: str | None
    settled_at: datetime | None


class Charge(NamedTuple):
    """A charge at the provider. `place` is what its metadata names, believed only if it fits."""

    id: str
    reference: str | None
    succeeded: bool
    amount_minor: int
    currency: str
    created: datetime
    place: Place | None


class Run(NamedTuple):
    """An execution: AWS's status word, or "GONE" when there is none of that name."""

    status: str
    error: str | None

    @property
    def is_running(self) -> bool:
        return self.status in {"RUNNING", "PENDING_REDRIVE"}


class Money(NamedTuple):
    amount_minor: int
    currency: str


class Page(NamedTuple, Generic[_Item]):
    """One page of a listing, and where the next one starts; `next` is None after the last."""

    items: Sequence[_Item]
    next: Cursor


class Unreadable(Exception):
    """One entry of a book cannot be read, for a reason of its own. The others go on."""


class Bucket(Protocol):
    """The order bucket."""

    @property
    def name(self) -> str: ...

    def versions(self, cursor: Cursor) -> Page[ObjectVersion]:
        """Every object version below `orders/`."""
        ...

    def version(self, place: Place) -> ObjectVersion | None:
        """This version as it is now; None when it is gone. Raises Unreadable."""
        ...

    def ordered(self, place: Place) -> Money | None:
        """Amount and currency in the order file; None when it does not say them clearly."""
        ...


class Ledger(Protocol):
    """Our ledger."""

    def created(self) -> datetime:
        """When the ledger came to be: nothing older can have a record."""
        ...

    def records(self, keys: Iterable[str], *, consistent: bool = False) -> dict[str, Record]:
        """The records under `keys`; keys without one are left out."""
        ...

    def settlements(self, cursor: Cursor) -> Page[Settlement]:
        """Every record that has an order id, in no order."""
        ...

    def open_records(self, cursor: Cursor) -> Page[Record]:
        """Every record that is in progress, in no order."""
        ...

    def keys_of_order(self, order_id: str) -> list[str]:
        """Keys of the records with this order id."""
        ...


class Provider(Protocol):
    """The provider's books."""

    def charges(self, cursor: Cursor, since: datetime) -> Page[Charge]:
        """Every charge created at `since` or later, oldest first."""
        ...

    def find(self, reference: str) -> list[Charge]:
        """All charges with this reference, oldest first. Raises Unreadable."""
        ...


class Executions(Protocol):
    """The state machine's executions."""

    def run(self, arn: str) -> Run:
        """What became of an execution. Raises Unreadable."""
        ...

    def start(self, name: str, execution_input: dict[str, Any]) -> str:
        """Start one; gives its ARN, also when that very name was started before.

        Raises Unreadable.
        """
        ...
