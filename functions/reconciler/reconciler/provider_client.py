"""The provider's books over HTTP: reading only.

The contract is the provider's OpenAPI document. urllib3 is used because boto3 brings it along; a
GET may be repeated freely, so its own retries with back-off are on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import urllib3

from reconciler.books import Charge, Cursor, Page, Place, Unreadable

CHARGES_PER_PAGE = 1000
"""The most that the provider gives. With 100 a pass would ask ten times as often."""

CHARGES_PER_LOOK_UP = 100
TIMEOUT_SECONDS = 10.0
MAX_ANSWER_BYTES = 8 * 1024 * 1024
"""A full page of charges whose object keys are all as long as S3 allows is 2 MB."""

RETRIES = urllib3.Retry(
    total=6,
    status_forcelist=(429, 500, 502, 503, 504),
    allowed_methods={"GET"},
    backoff_factor=0.5,
    backoff_jitter=0.5,
    backoff_max=20,
    # What the provider asks for is granted, but not a wait that outlasts the run.
    retry_after_max=30,
    redirect=False,
    raise_on_status=False,
)
"""Waits half a minute in all unless the provider asks for more."""


class ProviderUnreachable(Exception):
    """The provider as a whole does not answer as its contract says. The run ends."""


class ProviderClient:
    """An `auditing.Provider`. `api_key` gives the bearer key, read afresh when asked to."""

    def __init__(self, base_url: str, api_key: Callable[[], str]) -> None:
        self._url = f"{base_url.rstrip('/')}/v1/charges"
        self._read_key = api_key
        self._key: str | None = None
        self._pool = urllib3.PoolManager(maxsize=16, timeout=urllib3.Timeout(TIMEOUT_SECONDS))

    def close(self) -> None:
        """Give its connections back."""
        self._pool.clear()

    def charges(self, cursor: Cursor, since: datetime) -> Page[Charge]:
        """A page of up to 1,000; the cursor is the id of the page's last charge."""
        query: dict[str, Any] = {
            "limit": CHARGES_PER_PAGE,
            # Whole seconds, and none before `since`.
            "created_gte": max(0, math.ceil(since.timestamp())),
        }
        return self._page(query, cursor)

    def find(self, reference: str) -> list[Charge]:
        found: list[Charge] = []
        cursor: Cursor = None
        while True:
            page = self._page({"reference": reference, "limit": CHARGES_PER_LOOK_UP}, cursor)
            # A provider that ignored the filter would make a stranger's charge ours.
            found += [charge for charge in page.items if charge.reference == reference]
            cursor = page.next
            if cursor is None:
                return found

    def _page(self, query: dict[str, Any], cursor: Cursor) -> Page[Charge]:
        if cursor is not None:
            query["starting_after"] = cursor
        document = self._get(query)
        try:
            charges = [_charge(item) for item in document["data"]]
            more = bool(document["has_more"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ProviderUnreachable(f"a list of charges outside the contract: {error}") from error
        if more and not charges:
            raise ProviderUnreachable("an empty page of charges that says there is more")
        return Page(charges, charges[-1].id if more else None)

    def _get(self, query: dict[str, Any]) -> dict[str, Any]:
        answer = self._ask(query, fresh=False)
        if answer.status in (401, 403):
            answer = self._ask(query, fresh=True)  # the key may have been rotated meanwhile
        if answer.status in (400, 404) and "reference" in query:
            raise Unreadable(f"the provider refused to look it up: {answer.status}")
        if answer.status != 200:
            raise ProviderUnreachable(f"the provider answered {answer.status}")
        if len(answer.data) > MAX_ANSWER_BYTES:
            raise ProviderUnreachable(f"an answer of more than {MAX_ANSWER_BYTES} bytes")
        try:
            document = json.loads(answer.data)
        except ValueError as error:
            raise ProviderUnreachable("the provider's answer is no JSON") from error
        if not isinstance(document, dict):
            raise ProviderUnreachable("the provider's answer is no JSON object")
        return document

    def _ask(self, query: dict[str, Any], *, fresh: bool) -> urllib3.BaseHTTPResponse:
        if self._key is None or fresh:
            self._key = self._read_key()
        try:
            return self._pool.request(
                "GET",
                f"{self._url}?{urlencode(query)}",
                headers={"Accept": "application/json", "Authorization": f"Bearer {self._key}"},
                retries=RETRIES,
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            # Only the kind: the error's text holds the address.
            kind = type(error).__name__
            raise ProviderUnreachable(f"no answer from the provider: {kind}") from error


def _charge(item: dict[str, Any]) -> Charge:
    """Raises KeyError, TypeError or ValueError when it is not a charge of the contract."""
    id_, reference, amount, currency = (
        item[name] for name in ("id", "reference", "amount", "currency")
    )
    if not (isinstance(id_, str) and isinstance(currency, str) and type(amount) is int):
        raise TypeError("a charge without id, currency or whole amount")
    if item["status"] not in ("succeeded", "failed"):
        raise ValueError(f"charge {id_} has a status that is neither succeeded nor failed")
    return Charge(
        id=id_,
        reference=reference if isinstance(reference, str) else None,
        succeeded=item["status"] == "succeeded",
        amount_minor=amount,
        currency=currency,
        created=datetime.fromtimestamp(item["created"], UTC),
        place=_place(item.get("metadata")),
    )


def _place(metadata: object) -> Place | None:
    match metadata:
        case {"bucket": str(bucket), "object_key": str(key), "version_id": str(version_id)}:
            return Place(bucket, key, version_id)
    return None
