"""The API key: compared in constant time, fetched from where it is kept, remembered for a while."""

import hmac
import time
from collections.abc import Callable
from typing import Final

MAX_AGE_SECONDS: Final = 60  # how long a key that was rotated away still opens the door
MIN_AGE_SECONDS: Final = 1  # strangers with wrong keys cause at most one fetch a second


class Credential:
    """`fetch` gives the key; `clock` gives seconds and never goes back."""

    def __init__(
        self, fetch: Callable[[], str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._key = ""
        self._fetched_at = float("-inf")

    def accepts(self, presented: str) -> bool:
        """Whether this is the key. A wrong one is held against a fresh copy: it may be newer."""
        return self._matches(presented, MAX_AGE_SECONDS) or (
            self._matches(presented, MIN_AGE_SECONDS)
        )

    def _matches(self, presented: str, max_age: float) -> bool:
        if self._clock() - self._fetched_at >= max_age:
            self._key = self._fetch()
            self._fetched_at = self._clock()
        return hmac.compare_digest(self._key.encode(), presented.encode("utf-8", "replace"))
