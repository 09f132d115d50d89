"""Stand-ins for S3, the provider and the clock, small enough to be seen through."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from charge.charging import (
    ChargeRequest,
    Charging,
    ObjectGone,
    OrderReference,
    ProviderCharge,
    StoredOrder,
)
from charge.errors import KeyReuseMismatch

from tests.malformed_orders import valid_text

KEY_RETENTION = timedelta(hours=24)

REFERENCE = OrderReference(
    bucket="orders-bucket",
    key="orders/a b+c/ü.json",
    version_id="3sL4kqtJlcpXroDTDmJ.rmSpXd3dIbrHY",
    etag="d41d8cd98f00b204e9800998ecf8427e",
    idempotency_key="charge#" + "0" * 64,
)


@dataclass
class FakeClock:
    """Stands still until it is moved."""

    time: datetime = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
    slept: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return self.time

    def pass_(self, hours: float) -> None:
        self.time += timedelta(hours=hours)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@dataclass
class FakeStore:
    """Holds one object version, or none."""

    stored: StoredOrder | None

    def read(self, order: OrderReference) -> StoredOrder:
        if self.stored is None:
            raise ObjectGone("NoSuchVersion")
        return self.stored


@dataclass
class FakeProvider:
    """Deduplicates by key for `KEY_RETENTION`, keeps its books for good.

    `refusals` are raised, one for each request, before anything is done; `losses` after the money
    has moved.
    """

    clock: FakeClock
    refusals: list[Exception] = field(default_factory=list)
    losses: list[Exception] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    books: list[ProviderCharge] = field(default_factory=list)
    answers: dict[str, tuple[datetime, bytes, ProviderCharge]] = field(default_factory=dict)

    def charge(self, request: ChargeRequest) -> tuple[ProviderCharge, bool]:
        self._begin("charge")
        known = self.answers.get(request.reference)
        replayed = known is not None and self.clock.now() - known[0] < KEY_RETENTION
        if known and replayed:
            if known[1] != request.body:
                raise KeyReuseMismatch("other parameters")
            charge = known[2]
        else:
            charge = self.enter(amount_minor=request.amount_minor, currency=request.currency)
            self.answers[request.reference] = (self.clock.now(), request.body, charge)
        if self.losses:
            raise self.losses.pop(0)
        return charge, replayed

    def find(self, reference: str) -> list[ProviderCharge]:
        self._begin("find")
        return [charge for charge in self.books if charge.reference == reference]

    def enter(self, **changes: object) -> ProviderCharge:
        """Write a charge of the valid order, with changes, into the books."""
        charge = ProviderCharge(
            id=f"ch_{len(self.books) + 1}",
            amount_minor=1999,
            currency="EUR",
            reference=REFERENCE.idempotency_key,
            succeeded=True,
            charged_at=self.clock.now(),
            order_id="A-1001",
            decline_reason="",
        )
        charge = replace(charge, **changes)  # type: ignore[arg-type]
        self.books.append(charge)
        return charge

    def _begin(self, call: str) -> None:
        self.calls.append(call)
        if self.refusals:
            raise self.refusals.pop(0)


@dataclass
class FakeFaults:
    """Notes the moments at which a fault could have struck."""

    provider: FakeProvider
    moments: list[tuple[str, int]] = field(default_factory=list)

    def strike(self, moment: str) -> None:
        self.moments.append((moment, len(self.provider.books)))


@dataclass
class Bench:
    """A `Charging` on fakes: a valid order that was uploaded this very moment."""

    clock: FakeClock = field(default_factory=FakeClock)
    seconds_left: float = 40.0

    def __post_init__(self) -> None:
        self.provider = FakeProvider(self.clock)
        self.faults = FakeFaults(self.provider)
        self.store = FakeStore(StoredOrder(valid_text().encode(), self.clock.now()))
        self.charging = Charging(
            store=self.store,
            provider=self.provider,
            provider_key_retention=KEY_RETENTION,
            provider_timeout_seconds=10,
            now=self.clock.now,
            sleep=self.clock.sleep,
            seconds_left=lambda: self.seconds_left,
            faults=self.faults,
        )

    def put(self, text: str) -> None:
        self.store.stored = StoredOrder(text.encode(), self.clock.now())
