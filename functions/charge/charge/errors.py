"""What can go wrong, grouped by what has to be done about it.

Step Functions sees the class name as the error's name: a name here is a word of
`statemachine/charge_order.asl.json`, so renaming a class changes the state machine.
"""

from __future__ import annotations


class ChargeError(Exception):
    """Anything that the state machine handles by name."""


class Retry(ChargeError):
    """Passes with time. Nothing is known to have gone wrong with the order itself."""


class Refuse(ChargeError):
    """A final no: the message becomes the `reason` of the ledger record."""


class Alert(ChargeError):
    """Repeating it cannot help and nobody may guess: the record stays open for a person."""


class ProviderUnavailable(Retry):
    """The provider, or the way to it, failed: whether money moved is not known.

    `status` is the HTTP status (500-599), or None when there was no complete answer.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Busy(Retry):
    """The provider asks for patience: `retry_after` is in seconds, None when it did not say."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ProviderRateLimited(Busy):
    """429: the request was not looked at."""


class KeyInUse(Busy):
    """409: another request with this key is under way. Its outcome is unknown, not a decline."""


class OrderUnreadable(Retry):
    """S3 did not hand over the object, for a reason that may pass."""


class OrderRejected(Refuse):
    """The order file can never be charged. `value` is shortened and holds no card data."""

    def __init__(self, field: str, value: str, expected: str) -> None:
        super().__init__(f"{field}: expected {expected}, found {value}")
        self.field = field
        self.value = value
        self.expected = expected


class PaymentDeclined(Refuse):
    """The provider refused the payment. Its books keep a failed charge."""


class KeyReuseMismatch(Alert):
    """422: the key was used before with other parameters, and the books do not settle it."""


class ProviderCredentialsRefused(Alert):
    """401 or 403 with the newest key that Secrets Manager has, or a key that cannot be sent."""


class ProviderMisbehaved(Alert):
    """An answer outside the contract, or books that contradict the order."""
