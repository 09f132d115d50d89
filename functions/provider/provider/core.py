"""The provider's rules: what a key is worth, what is charged, what fails on order.

No HTTP, no data base, no environment: a `Store` and two functions for time come from outside.
"""

import hashlib
import json
import math
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from provider.ids import after, first_id, is_id, new_id
from provider.problem import Problem, invalid, key_problem
from provider.store import Answer, Fault, Marker, Store

Document = dict[str, Any]

DECLINES: Final = {
    "tok_declined": "card_declined",
    "tok_insufficient_funds": "insufficient_funds",
}

# What a fault does, by the moment at which it strikes.
BEFORE_MONEY: Final = ("unavailable", "rate_limit", "timeout_before")
WHILE_IN_FLIGHT: Final = ("decline", "slow")
AFTER_MONEY: Final = ("error_after_charge", "timeout_after_charge")

DEFAULT_FAULT_SECONDS: Final = 30.0  # longer than any client's time-out that is worth having
DEFAULT_SLOW_SECONDS: Final = 3.0  # long enough to see a key in flight, short enough to wait for

# Most charges in flight end within milliseconds, and a retry into a dead one's lease is cheap.
RETRY_AFTER_SECONDS: Final = "1"

# One claim may be lost to a successor while this process is frozen; a second time is a coincidence.
CLAIM_ATTEMPTS: Final = 3

# A Lambda's answer may be 6 MB, and escaping it once more may triple it.
MAX_PAGE_BYTES: Final = 1024 * 1024

# A clock further ahead than this helps no test, and ids must not run out of time.
MAX_CLOCK_OFFSET_SECONDS: Final = 10 * 366 * 86_400

MAX_LOGGED_REQUESTS: Final = 1_000  # what one answer can carry; a test sends far fewer per key


def fingerprint(parameters: Document) -> str:
    """SHA-256 of the canonical JSON: key order and white space do not matter, types do."""
    canonical = json.dumps(parameters, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def dump(document: Document) -> str:
    """JSON text as it goes on the wire."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


class Provider:
    """One payment provider.

    `key_retention_seconds`: how long a key is remembered from its first request on.
    `in_flight_seconds`: how long a key stays reserved for a process that may have died. Longer
    than a charge takes (milliseconds), shorter than a client goes on retrying (minutes).
    `wall` gives epoch seconds, `sleep` takes seconds.
    """

    def __init__(
        self,
        store: Store,
        *,
        key_retention_seconds: int,
        in_flight_seconds: float,
        test_mode: bool,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store = store
        self._retention = key_retention_seconds
        self._in_flight = in_flight_seconds
        self.test_mode = test_mode
        self._wall = wall
        self._sleep = sleep

    # Charging

    def charge(self, key: str, order: Document) -> Answer:
        """Charge once for a key, or repeat what was answered before.

        Raises Problem: 409 in flight, 422 other parameters, and what faults demand.
        """
        armed = self._armed("charge", order.get("reference"), order.get("metadata", {}))
        outcome = "refused"
        try:
            self._fail(armed, BEFORE_MONEY)
            answer = self._charge_once(key, order, armed)
            outcome = "replayed" if answer.replayed else "made"
            self._fail(armed, AFTER_MONEY)
        except Problem as problem:
            self.log(key, outcome, problem.status)
            self._sleep(problem.hang_seconds)
            raise
        self.log(key, outcome, answer.status)
        return answer

    def _charge_once(self, key: str, order: Document, armed: list[Fault]) -> Answer:
        digest = fingerprint(order)
        ahead = self._ahead()
        for _ in range(CLAIM_ATTEMPTS):
            wall = self._wall()
            now = wall + ahead
            marker = Marker(
                token=secrets.token_hex(16),
                fingerprint=digest,
                lease_until=wall + self._in_flight,
                expires_at=math.ceil(now + self._retention),
            )
            held = self._store.claim(key, marker, now=now, wall=wall)
            if held is None:
                answer = self._execute(key, marker, order, armed, ahead)
                if answer is not None:
                    return answer
            elif held.fingerprint != digest:
                raise key_problem(
                    422,
                    "idempotency-key-reused",
                    "The key belongs to another request",
                    "This Idempotency-Key was first used with other parameters.",
                )
            elif held.answer is None:
                break
            else:
                return replace(held.answer, replayed=True)
        raise key_problem(
            409,
            "idempotency-key-in-use",
            "The first request is still in flight",
            "A request with this Idempotency-Key is being worked on. Send it again later.",
            headers={"Retry-After": RETRY_AFTER_SECONDS},
        )

    def _execute(
        self, key: str, marker: Marker, order: Document, armed: list[Fault], ahead: int
    ) -> Answer | None:
        """Move the money under a marker; None when the marker was lost on the way."""
        try:
            slow = self._take(armed, ("slow",))
            if slow:
                self._sleep(slow.seconds)
            forced = self._take(armed, ("decline",))
            failure = "card_declined" if forced else DECLINES.get(order["source"])
            charge = _new_charge(order, failure, self._wall() + ahead)
            text = dump(charge)
            if charge["status"] == "succeeded":
                answer = Answer(201, text)
            else:
                answer = Answer(402, dump(declined(charge)))
            kept = self._store.commit(
                key,
                marker,
                answer,
                charge_id=charge["id"],
                reference=charge["reference"],
                charge=text,
            )
        except Exception:
            # Whether the commit happened is unknown here, but not to the store: a key that has
            # its answer no longer holds this token and is left alone.
            self._store.release(key, marker)
            raise
        return answer if kept else None

    # Looking up

    def retrieve(self, charge_id: str) -> Document:
        """One charge. Raises Problem 404."""
        text = self._store.charge(charge_id) if is_id("ch", charge_id) else None
        if text is None:
            raise Problem(404, "not-found", "Not found", "There is no charge with this id.")
        charge: Document = json.loads(text)
        self._disturb_lookup(charge["reference"])
        return charge

    def list_charges(
        self,
        *,
        limit: int,
        reference: str | None = None,
        created_gte: int = 0,
        starting_after: str | None = None,
    ) -> Document:
        """A page, oldest first. It is shorter than `limit` when the charges are very large."""
        self._disturb_lookup(reference)
        first = max(first_id("ch", created_gte), after(starting_after) if starting_after else "")
        page: list[Document] = []
        size = 0
        has_more = False
        for text in self._store.charges(reference, first, limit + 1):
            if len(page) == limit or size > MAX_PAGE_BYTES:
                has_more = True
                break
            size += len(text.encode())
            page.append(json.loads(text))
        return {"object": "list", "data": page, "has_more": has_more}

    def _disturb_lookup(self, reference: str | None) -> None:
        armed = self._armed("lookup", reference, {})
        try:
            self._fail(armed, BEFORE_MONEY)
        except Problem as problem:
            self._sleep(problem.hang_seconds)
            raise
        slow = self._take(armed, ("slow",))
        if slow:
            self._sleep(slow.seconds)

    # Faults, test mode only

    def arm(self, wish: Document) -> Document:
        """Arm a fault; `wish` is as in the contract, checked by the caller."""
        name = wish["fault"]
        fault = Fault(
            id=new_id("flt", self._wall()),
            name=name,
            operation=wish.get("operation", "charge"),
            times=wish.get("times", 1),
            remaining=wish.get("times", 1),
            seconds=float(
                wish.get(
                    "seconds", DEFAULT_SLOW_SECONDS if name == "slow" else DEFAULT_FAULT_SECONDS
                )
            ),
            reference=wish.get("reference"),
            metadata=wish.get("metadata", {}),
        )
        self._store.add_fault(fault)
        return _shown(fault)

    def list_faults(self) -> Document:
        """What is still armed, oldest first."""
        return {"object": "list", "data": [_shown(fault) for fault in self._store.faults()]}

    def clear_faults(self) -> None:
        """Disarm everything."""
        self._store.clear_faults()

    def _armed(
        self, operation: str, reference: str | None, metadata: Mapping[str, str]
    ) -> list[Fault]:
        if not self.test_mode:
            return []
        return [
            fault
            for fault in self._store.faults()
            if fault.operation == operation
            and fault.reference in (None, reference)
            and fault.metadata.items() <= metadata.items()
        ]

    def _take(self, armed: Iterable[Fault], names: tuple[str, ...]) -> Fault | None:
        """Use up the oldest of these faults that still has something left."""
        for fault in armed:
            if fault.name in names and self._store.take_fault(fault.id):
                return fault
        return None

    def _fail(self, armed: list[Fault], names: tuple[str, ...]) -> None:
        fault = self._take(armed, names)
        if fault:
            raise _failure(fault)

    # What was seen, test mode only

    def log(self, key: str, outcome: str, status: int) -> None:
        """Note an answer. After the fact, so a crash can lose an entry: charges are the books."""
        if not self.test_mode:
            return
        wall = self._wall()
        entry = {"at": wall, "outcome": outcome, "status": status}
        expires_at = math.ceil(wall + self._retention)
        self._store.log_request(key, new_id("req", wall), dump(entry), expires_at)

    def list_requests(self, key: str) -> Document:
        """What was answered to requests with a key: made, replayed or refused, oldest first."""
        entries = self._store.requests(key, MAX_LOGGED_REQUESTS)
        return {"object": "list", "data": [json.loads(entry) for entry in entries]}

    # The clock, movable in test mode only

    def _ahead(self) -> int:
        return self._store.clock_offset() if self.test_mode else 0

    def show_clock(self) -> Document:
        """The provider's time in epoch seconds, and by how much it is ahead."""
        offset = self._store.clock_offset()
        return {"now": int(self._wall()) + offset, "offset_seconds": offset}

    def advance_clock(self, seconds: int) -> Document:
        """Move the provider's clock ahead: keys grow old, new charges are dated later."""
        if self._store.clock_offset() + seconds > MAX_CLOCK_OFFSET_SECONDS:
            raise invalid(f"advance_seconds: more than {MAX_CLOCK_OFFSET_SECONDS} s in all")
        self._store.advance_clock(seconds)
        return self.show_clock()

    def reset_clock(self) -> None:
        """Back to the wall clock."""
        self._store.reset_clock()


def _new_charge(order: Document, failure: str | None, now: float) -> Document:
    return {
        "id": new_id("ch", now),
        "object": "charge",
        "status": "failed" if failure else "succeeded",
        "amount": order["amount"],
        "currency": order["currency"],
        "source": order["source"],
        "reference": order.get("reference"),
        "metadata": order.get("metadata", {}),
        "failure_code": failure,
        "created": int(now),
    }


def declined(charge: Document) -> Document:
    """The problem that tells of a failed charge, with the charge in it."""
    problem = Problem(
        402,
        "payment-declined",
        "The payment was declined",
        f"The issuer declined the payment: {charge['failure_code']}.",
    )
    return problem.document | {"charge": charge}


def _shown(fault: Fault) -> Document:
    return {
        "id": fault.id,
        "object": "fault",
        "fault": fault.name,
        "operation": fault.operation,
        "times": fault.times,
        "remaining": fault.remaining,
        "seconds": fault.seconds,
        "reference": fault.reference,
        "metadata": fault.metadata,
    }


def _failure(fault: Fault) -> Problem:
    detail = f"Armed fault {fault.id} ({fault.name})."
    match fault.name:
        case "unavailable":
            return Problem(503, "unavailable", "The provider is unavailable", detail)
        case "rate_limit":
            return Problem(
                429,
                "rate-limited",
                "Too many requests",
                detail,
                headers={"Retry-After": RETRY_AFTER_SECONDS},
            )
        case "error_after_charge":
            return Problem(500, "internal-error", "Something went wrong", detail)
        case "timeout_before" | "timeout_after_charge":
            return Problem(
                504,
                "timed-out",
                "The provider took too long",
                detail,
                hang_seconds=fault.seconds,
            )
    raise AssertionError(f"bug: no failure is defined for the fault {fault.name}")
