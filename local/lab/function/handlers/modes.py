"""The handlers themselves: what each does with one object that has arrived.

`charge()` moves money and may raise before or after it did; with an argument, that is the
idempotency key for the provider. What a handler does not catch makes Lambda try again.

These are lessons, not advice: every one but the last can be made to lose or repeat a charge, and
tests hold them to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .recipes import S3Object, key_by_content, key_by_version
from .table import Ledger


class Charge(Protocol):
    def __call__(self, idempotency_key: str | None = None) -> None: ...


Handler = Callable[[S3Object, Ledger, Charge], None]


def naive(_: S3Object, __: Ledger, charge: Charge) -> None:
    """Charge whenever called, so every retry and every duplicate charges again."""
    charge()


def claim_first(key_of: Callable[[S3Object], str]) -> Handler:
    """Claim the key, then charge. The record says that the work was seen, not that it was done."""

    def handler(s3_object: S3Object, ledger: Ledger, charge: Charge) -> None:
        if ledger.claim(key_of(s3_object), "claimed"):
            charge()

    return handler


def robust(s3_object: S3Object, ledger: Ledger, charge: Charge) -> None:
    """Claim as in progress, charge, mark done.

    A retry that finds `in_progress` cannot tell whether the money moved, and charges.
    """
    _claim_charge_commit(s3_object, ledger, lambda _: charge())


def robust_with_key(s3_object: S3Object, ledger: Ledger, charge: Charge) -> None:
    """The same with the key handed on: the provider recognises the second request."""
    _claim_charge_commit(s3_object, ledger, charge)


def _claim_charge_commit(
    s3_object: S3Object, ledger: Ledger, charge: Callable[[str], None]
) -> None:
    key = key_by_version(s3_object)
    status = ledger.status(key)
    if status == "done":
        return
    if status is None and not ledger.claim(key, "in_progress"):
        return  # a concurrent duplicate was first
    charge(key)
    ledger.mark_done(key)


HANDLERS: dict[str, Handler] = {
    "naive": naive,
    "claim-first-by-version": claim_first(key_by_version),
    "claim-first-by-content": claim_first(key_by_content),
    "robust": robust,
    "robust-with-key": robust_with_key,
}
