"""Two summaries of a fixed size, so that an audit's memory does not grow with the books.

Neither ever hides anything: what they may err in costs a look-up more, never a finding.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from array import array
from collections.abc import Iterable

FILTER_BYTES = 4 * 1024 * 1024
"""2**25 bits. With 4 bits for each of 1,000,000 ids, 1 in 6,000 is taken for a repetition by
mistake, and costs one query. At 10,000,000 it is every fourth: still correct, no longer cheap."""

TALLY_BUCKETS = 65_536
"""At 1,000,000 records a bucket holds 15, and one unmatched record makes 15 look-ups."""


class Repeats:
    """A Bloom filter that asks "was this text here before?"; a "no" is certain."""

    def __init__(self, bits: bytes | None = None) -> None:
        self._bits = bytearray(bits or FILTER_BYTES)
        self._mask = len(self._bits) * 8 - 1  # the size is a power of two

    def add(self, text: str) -> bool:
        """Remember `text`. Gives whether it may have been added before."""
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        bits, mask, seen = self._bits, self._mask, True
        for start in (0, 4, 8, 12):
            position = int.from_bytes(digest[start : start + 4]) & mask
            byte, bit = position >> 3, 1 << (position & 7)
            if not bits[byte] & bit:
                bits[byte] |= bit
                seen = False
        return seen

    def dump(self) -> str:
        return _packed(self._bits)

    @classmethod
    def load(cls, text: str) -> Repeats:
        return cls(_unpacked(text))


class Tally:
    """Settled records less the charges that match them, counted by the key's hash.

    Every matched record adds one and takes one from its own bucket. So what is above zero in the
    end holds a record without its charge, together with others that are looked up in vain.
    """

    def __init__(self, counts: bytes | None = None) -> None:
        self._counts = array("i", counts or bytes(4 * TALLY_BUCKETS))

    def add(self, keys: Iterable[str], amount: int) -> None:
        for key in keys:
            self._counts[_bucket(key)] += amount

    def is_suspect(self, key: str) -> bool:
        return self._counts[_bucket(key)] > 0

    @property
    def is_clear(self) -> bool:
        return all(count <= 0 for count in self._counts)

    def dump(self) -> str:
        return _packed(self._counts.tobytes())

    @classmethod
    def load(cls, text: str) -> Tally:
        return cls(_unpacked(text))


def _bucket(key: str) -> int:
    return zlib.crc32(key.encode()) % TALLY_BUCKETS


def _packed(content: bytes | bytearray) -> str:
    return base64.b64encode(zlib.compress(content, 1)).decode("ascii")


def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))
