"""Decides how an order is settled at the provider. Knows neither AWS nor HTTP.

The rule that everything here serves: money moves once for one idempotency key. The provider
deduplicates by key as long as it remembers the key; its books remember the charge for good. So
the key protects a young order, and the books are asked before an old one is charged.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from charge.errors import (
    Busy,
    KeyReuseMismatch,
    OrderRejected,
    PaymentDeclined,
    ProviderMisbehaved,
    ProviderUnavailable,
)
from charge.order_file import Order, parse_order

_Answer = TypeVar("_Answer")

LAST_HOUR_OF_A_KEY = timedelta(hours=1)
"""Not relied upon. It covers this invocation (15 minutes at most) and leaves 45 minutes for the
clocks of S3, the provider and this function to disagree."""

LONGEST_WAIT_SECONDS = 3.0
"""Up to about this time it costs less to wait here than to have the state machine retry: a state
transition ($0.000025) buys 3.7 s of a 512 MB arm64 function. Longer waits are its back-off's."""

UNVERSIONED = "null"
"""The version id of an object in a bucket without versioning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderReference:
    """Which object version is to be charged, and the key that names this charge everywhere."""

    bucket: str
    key: str
    version_id: str  # or UNVERSIONED: then the etag identifies the content
    etag: str
    idempotency_key: str


@dataclass(frozen=True, slots=True)
class StoredOrder:
    """The bytes of exactly that version; `last_modified` is aware."""

    body: bytes
    last_modified: datetime


class ObjectGone(Exception):
    """This version of the object does not exist (any more)."""


class OrderStore(Protocol):
    def read(self, order: OrderReference) -> StoredOrder:
        """Raises ObjectGone or OrderUnreadable."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCharge:
    """A charge as the provider's books have it. `amount_minor` is in the smallest unit."""

    id: str
    amount_minor: int
    currency: str
    reference: str
    succeeded: bool
    charged_at: datetime
    order_id: str | None  # from the metadata that we sent along
    decline_reason: str  # says something only when it did not succeed


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeRequest:
    """What is asked of the provider: a function of the object version alone.

    The provider compares a repeated request with the first one under its key. So nothing here
    may depend on the attempt: no time, no execution, no owner.
    """

    amount_minor: int
    currency: str
    reference: str
    body: bytes = field(repr=False)  # holds the payment method

    @classmethod
    def of(cls, order: Order, reference: OrderReference) -> ChargeRequest:
        body = {
            "amount": order.amount_minor,
            "currency": order.currency,
            "source": order.payment_method,
            "reference": reference.idempotency_key,
            "metadata": {
                "order_id": order.order_id,
                "customer": order.customer,
                "bucket": reference.bucket,
                "object_key": reference.key,
                "version_id": reference.version_id,
            },
        }
        return cls(
            amount_minor=order.amount_minor,
            currency=order.currency,
            reference=reference.idempotency_key,
            # ASCII with sorted members: the same bytes from every version of Python.
            body=json.dumps(body, sort_keys=True, separators=(",", ":")).encode("ascii"),
        )


class Provider(Protocol):
    def charge(self, request: ChargeRequest) -> tuple[ProviderCharge, bool]:
        """The charge, and whether it is the replay of an earlier answer.

        Raises PaymentDeclined, every Retry error but OrderUnreadable, and every Alert error.
        """
        ...

    def find(self, reference: str) -> list[ProviderCharge]:
        """All charges with this reference, oldest first. Raises as `charge` does, less declines."""
        ...


class Faults(Protocol):
    def strike(self, moment: str) -> None:
        """Kills the function if a test has asked for it at this moment."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Money moved, once. `replayed`: it had moved before this call asked for it."""

    charge_id: str
    amount_minor: int
    currency: str
    order_id: str
    replayed: bool
    charged_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Charging:
    """Settles one order.

    `provider_key_retention`: how long the provider remembers a key, and
    `provider_timeout_seconds`: the longest that one call of it takes. `now` returns an aware
    time, `seconds_left` what remains of this invocation. `faults` is None in production.
    `is_restart`: a replay or a repair, so the books are asked first, whatever the key's age.
    Somebody may have charged by hand meanwhile, under a key of their own.
    """

    store: OrderStore
    provider: Provider
    provider_key_retention: timedelta
    provider_timeout_seconds: float
    now: Callable[[], datetime]
    sleep: Callable[[float], None]
    seconds_left: Callable[[], float]
    faults: Faults | None = None
    is_restart: bool = False

    def settle(self, reference: OrderReference) -> Settled:
        """Charge the order, or find out that it has been charged.

        Raises every ChargeError; `charge.errors` says what each asks of the caller.
        """
        key = reference.idempotency_key
        try:
            stored = self.store.read(reference)
        except ObjectGone as gone:
            # The charge, if there is one, is the fact: the order to compare it with is lost.
            if settled := self._look_up(key):
                return settled
            raise OrderRejected("object", "none", "the object version of the event") from gone
        try:
            order = parse_order(stored.body)
        except OrderRejected:
            # An earlier release may have accepted this file. Money that moved outweighs our rules.
            if settled := self._look_up(key):
                return settled
            raise
        self._strike("exit_before_charge")
        trusts_the_key = self._key_is_alive(reference, stored) and not self.is_restart
        settled = None if trusts_the_key else self._look_up(key, order)
        settled = settled or self._charge(order, ChargeRequest.of(order, reference))
        self._strike("exit_after_charge")
        self._strike("timeout_after_charge")
        return settled

    def _key_is_alive(self, reference: OrderReference, stored: StoredOrder) -> bool:
        """No key is used before its object version exists, so a young version has a live key.

        Without versions there is no such thing: the same bytes uploaded again are found under the
        old event's etag, and look younger than the key that was made for them.
        """
        if reference.version_id == UNVERSIONED:
            return False
        age = self.now() - stored.last_modified
        return age < self.provider_key_retention - LAST_HOUR_OF_A_KEY

    def _charge(self, order: Order, request: ChargeRequest) -> Settled:
        try:
            charge, replayed = self._patiently(lambda: self.provider.charge(request))
        except ProviderUnavailable as error:
            # A 5xx may be a stored answer that every repetition returns: only the books can tell.
            # After a time-out they cannot, since the charge may still be on its way into them:
            # the next attempt asks again with the same key, or looks first if that has grown old.
            if error.status is not None and (settled := self._look_up(request.reference, order)):
                return settled
            raise
        except KeyReuseMismatch as error:
            # A release that words the request otherwise is no reason to leave the order open.
            try:
                settled = self._look_up(request.reference, order)
            except ProviderMisbehaved as difference:
                raise KeyReuseMismatch(f"{error}; {difference}") from error
            if settled:
                return settled
            raise
        return _settled(charge, order, replayed=replayed)

    def _look_up(self, key: str, order: Order | None = None) -> Settled | None:
        """What the books say about this key: None when they hold nothing.

        Raises PaymentDeclined when all they hold is a failed charge, and ProviderMisbehaved when
        they hold two that succeeded, or one that differs from the order.
        """
        charges = self._patiently(lambda: self.provider.find(key))
        succeeded = [charge for charge in charges if charge.succeeded]
        if len(succeeded) > 1:
            ids = ", ".join(charge.id for charge in succeeded)
            raise ProviderMisbehaved(f"charged more than once under one reference: {ids}")
        if succeeded:
            return _settled(succeeded[0], order, replayed=True)
        if charges:
            raise PaymentDeclined(charges[0].decline_reason)
        return None

    def _patiently(self, call: Callable[[], _Answer]) -> _Answer:
        """One more call after the wait that the provider asks for, if there is time for both."""
        try:
            return call()
        except Busy as busy:
            wait = busy.retry_after
            if (
                wait is None
                or wait > LONGEST_WAIT_SECONDS
                or wait + self.provider_timeout_seconds > self.seconds_left()
            ):
                raise
        self.sleep(wait)
        return call()

    def _strike(self, moment: str) -> None:
        if self.faults:
            self.faults.strike(moment)


def _settled(charge: ProviderCharge, order: Order | None, *, replayed: bool) -> Settled:
    order_id = order.order_id if order else charge.order_id
    if order_id is None:
        raise ProviderMisbehaved(f"charge {charge.id} names no order in its metadata")
    if order and (charge.amount_minor, charge.currency) != (order.amount_minor, order.currency):
        raise ProviderMisbehaved(
            f"charge {charge.id} is {charge.amount_minor} {charge.currency} in minor units, "
            f"the order says {order.amount_minor} {order.currency}"
        )
    return Settled(
        charge_id=charge.id,
        amount_minor=charge.amount_minor,
        currency=charge.currency,
        order_id=order_id,
        replayed=replayed,
        charged_at=charge.charged_at,
    )
