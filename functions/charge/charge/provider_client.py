"""The payment provider over HTTP. Every answer is checked before anyone acts upon it.

urllib3 and not http.client: botocore has loaded it already, it keeps connections between
invocations, and replaces one that the provider closed meanwhile before it sends anything. All of
its own retries and redirects are off: a repetition is the state machine's to decide.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Protocol
from urllib.parse import urlencode

import urllib3

from charge.charging import ChargeRequest, ProviderCharge
from charge.errors import (
    KeyInUse,
    KeyReuseMismatch,
    PaymentDeclined,
    ProviderCredentialsRefused,
    ProviderMisbehaved,
    ProviderRateLimited,
    ProviderUnavailable,
)
from charge.money import MAX_AMOUNT_MINOR

MAX_ANSWER_BYTES = 1024 * 1024
"""A hundred charges whose object keys are all as long as S3 allows take half of it."""

CHARGES_PER_LOOK_UP = 100
"""One is expected. More than this under one reference is no case to page through."""

SHORTEST_CALL_SECONDS = 0.5
"""With less time left than this, an answer would not be heard."""

_CHUNK_BYTES = 64 * 1024
_CHARGE_ID = re.compile(r"[\x21-\x7e]{1,255}")
_CURRENCY = re.compile(r"[A-Z]{3}")
_TEXT_CHARACTERS = 200
_YEAR_10000 = 253_402_300_800  # epoch seconds; datetime ends here
_NO_REASON = "declined without a reason"


class Secret(Protocol):
    def __call__(self, *, fresh: bool = False) -> str: ...


def connection_pool() -> urllib3.PoolManager:
    """Made once for each environment. Certificates and host names are verified."""
    return urllib3.PoolManager(cert_reqs="CERT_REQUIRED", retries=False)


class ProviderClient:
    """A `charging.Provider` for one invocation.

    `timeout_seconds` bounds each call as a whole, and `seconds_left` all of them: a call gets
    what is left when that is less.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: Secret,
        pool: urllib3.PoolManager,
        timeout_seconds: float,
        seconds_left: Callable[[], float],
    ) -> None:
        self._charges_url = f"{base_url}/v1/charges"
        self._api_key = api_key
        self._pool = pool
        self._timeout_seconds = timeout_seconds
        self._seconds_left = seconds_left

    def charge(self, request: ChargeRequest) -> tuple[ProviderCharge, bool]:
        """POST the charge; the flag says that the provider replayed an earlier answer."""
        answer = self._ask(
            "POST",
            self._charges_url,
            {"Idempotency-Key": request.reference, "Content-Type": "application/json"},
            request.body,
        )
        if answer.status == 201:
            charge = _charge(answer.json(), request.reference)
            if not charge.succeeded:
                raise ProviderMisbehaved(f"201 for charge {charge.id}, which did not succeed")
            return charge, answer.headers.get("Idempotent-Replayed") == "true"
        if answer.status == 402:
            # Only in the contract's form: a 402 of some proxy is nobody's declined card, and a
            # decline ends the order for good, so it must be this order's.
            charge = _charge(answer.problem().get("charge"), request.reference)
            if charge.succeeded:
                raise ProviderMisbehaved(f"402 for charge {charge.id}, which succeeded")
            raise PaymentDeclined(charge.decline_reason)
        if answer.status == 409:
            raise KeyInUse("another request with this key is under way", retry_after=answer.wait)
        if answer.status == 422:
            raise KeyReuseMismatch("the key was used before with other parameters")
        raise answer.unexpected()

    def find(self, reference: str) -> list[ProviderCharge]:
        """GET all charges with this reference, oldest first."""
        query = urlencode({"reference": reference, "limit": CHARGES_PER_LOOK_UP})
        answer = self._ask("GET", f"{self._charges_url}?{query}", {}, None)
        if answer.status != 200:
            raise answer.unexpected()
        page = answer.json()
        charges = page.get("data")
        if not isinstance(charges, list) or page.get("has_more") is not False:
            raise ProviderMisbehaved("a list of charges without `data`, or with an open end")
        return [_charge(charge, reference) for charge in charges]

    def _ask(self, method: str, url: str, headers: dict[str, str], body: bytes | None) -> _Answer:
        key = self._api_key()
        answer = self._send(method, url, headers, body, key)
        if answer.status in (401, 403):
            # The key may have been rotated since it was read. Nothing was done, so ask again.
            fresh = self._api_key(fresh=True)
            if fresh != key:
                answer = self._send(method, url, headers, body, fresh)
        if answer.status in (401, 403):
            raise ProviderCredentialsRefused(f"{answer.status} with the newest API key")
        if answer.status == 429:
            raise ProviderRateLimited("the provider limits our rate", retry_after=answer.wait)
        if answer.status >= 500:
            raise ProviderUnavailable(
                f"the provider answered {answer.status}", status=answer.status
            )
        return answer

    def _send(
        self, method: str, url: str, headers: dict[str, str], body: bytes | None, key: str
    ) -> _Answer:
        seconds_left = self._seconds_left()
        if seconds_left < SHORTEST_CALL_SECONDS:
            raise ProviderUnavailable("no time is left in this invocation to ask the provider")
        seconds = min(self._timeout_seconds, seconds_left)
        deadline = time.monotonic() + seconds
        try:
            response = self._pool.request(
                method,
                url,
                body=body,
                headers={**headers, "Accept": "application/json", "Authorization": f"Bearer {key}"},
                timeout=urllib3.Timeout(total=seconds),
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
            # Read to its end, the answer has given its connection back and has none to close.
            # Otherwise what is left on the wire must not be taken for the next answer.
            with response:
                content = _read(response, deadline)
        except urllib3.exceptions.HTTPError as error:
            # Only the kind: the error's text holds the address, and with it the reference.
            kind = type(error).__name__
            raise ProviderUnavailable(f"no answer from the provider: {kind}") from error
        return _Answer(response.status, response.headers, content)


class _Answer:
    def __init__(self, status: int, headers: urllib3.HTTPHeaderDict, content: bytes) -> None:
        self.status = status
        self.headers = headers
        self._content = content

    @property
    def wait(self) -> float | None:
        """Retry-After in seconds from now, in either of its forms (RFC 9110, 10.2.3)."""
        text = self.headers.get("Retry-After", "")
        if text.isascii() and text.isdigit():
            return float(text[:9])  # some thirty years are enough
        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
        if moment.tzinfo is None:
            return None
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())

    def json(self) -> dict[str, object]:
        return self._object("application/json")

    def problem(self) -> dict[str, object]:
        """RFC 9457."""
        return self._object("application/problem+json")

    def _object(self, media_type: str) -> dict[str, object]:
        found = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if found != media_type:
            raise ProviderMisbehaved(f"{self.status} without {media_type}")
        try:
            document = json.loads(self._content)
        except (ValueError, RecursionError) as error:
            raise ProviderMisbehaved(f"{self.status} with a body that is no JSON") from error
        if not isinstance(document, dict):
            raise ProviderMisbehaved(f"{self.status} with a body that is no JSON object")
        return document

    def unexpected(self) -> ProviderMisbehaved:
        return ProviderMisbehaved(f"the provider answered {self.status}, outside its contract")


def _read(response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    """The whole body. A time-out of urllib3 is for each read, so a trickle would never end."""
    content = bytearray()
    while chunk := response.read1(_CHUNK_BYTES):
        content += chunk
        if len(content) > MAX_ANSWER_BYTES:
            raise ProviderMisbehaved(f"an answer of more than {MAX_ANSWER_BYTES} bytes")
        if time.monotonic() > deadline:
            raise ProviderUnavailable("the provider's answer did not end in time")
    return bytes(content)


def _charge(document: object, reference: str) -> ProviderCharge:
    """Check a charge field by field. Raises ProviderMisbehaved, naming the first wrong one."""
    if not isinstance(document, dict):
        raise ProviderMisbehaved("a charge that is no JSON object")
    id_, amount, currency, status, created = (
        document.get(name) for name in ("id", "amount", "currency", "status", "created")
    )
    if not isinstance(id_, str) or not _CHARGE_ID.fullmatch(id_):
        raise ProviderMisbehaved("a charge without a usable `id`")
    # bool is a kind of int, and an amount of `true` must not become 1.
    if type(amount) is not int or not 0 < amount <= MAX_AMOUNT_MINOR:
        raise ProviderMisbehaved(f"charge {id_}: `amount` is no amount in minor units")
    if not isinstance(currency, str) or not _CURRENCY.fullmatch(currency):
        raise ProviderMisbehaved(f"charge {id_}: `currency` is no currency code")
    if document.get("reference") != reference:
        # A provider that ignored the filter would make a stranger's charge ours.
        raise ProviderMisbehaved(f"charge {id_}: `reference` is another one than asked for")
    if status not in ("succeeded", "failed"):
        raise ProviderMisbehaved(f"charge {id_}: `status` is neither succeeded nor failed")
    if type(created) is not int or not 0 <= created < _YEAR_10000:
        raise ProviderMisbehaved(f"charge {id_}: `created` is no time in epoch seconds")
    return ProviderCharge(
        id=id_,
        amount_minor=amount,
        currency=currency,
        reference=reference,
        succeeded=status == "succeeded",
        charged_at=datetime.fromtimestamp(created, UTC),
        order_id=_text(document.get("metadata"), "order_id"),
        decline_reason=_text(document, "failure_code") or _NO_REASON,
    )


def _text(members: object, name: str) -> str | None:
    """A short printable text in a JSON object, or None."""
    value = members.get(name) if isinstance(members, dict) else None
    if isinstance(value, str) and 1 <= len(value) <= _TEXT_CHARACTERS and value.isprintable():
        return value
    return None
