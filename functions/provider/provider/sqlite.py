"""The store of the stand-alone server: one SQLite file, shared by any number of processes."""

import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from provider.store import Answer, Fault, KeyState, Marker

_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (
  key TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, expires_at INTEGER NOT NULL,
  token TEXT, lease_until REAL,  -- while in flight
  status INTEGER, body TEXT      -- once answered
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS forgotten ON keys (expires_at);
CREATE TABLE IF NOT EXISTS charges (id TEXT PRIMARY KEY, reference TEXT, charge TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS by_reference ON charges (reference, id);
CREATE TABLE IF NOT EXISTS faults (id TEXT PRIMARY KEY, fault TEXT NOT NULL, remaining INTEGER);
CREATE TABLE IF NOT EXISTS requests (
  key TEXT, id TEXT, entry TEXT NOT NULL, expires_at INTEGER NOT NULL, PRIMARY KEY (key, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS stale ON requests (expires_at);
CREATE TABLE IF NOT EXISTS clock (one INTEGER PRIMARY KEY CHECK (one = 1), offset INTEGER);
"""

# A process that was killed or stopped inside a write (microseconds) is waited for this long.
_BUSY_TIMEOUT_SECONDS = 30

_PAGE = 200  # charges read at a time: memory stays flat, and a slow reader blocks no writer


class SqliteStore:
    """See `provider.store.Store`. `path` may be ":memory:" for books that end with the process."""

    def __init__(self, path: str) -> None:
        # One connection behind one lock: SQLite has one writer anyway, and threads that queue
        # here are served at once, where its own busy handler would sleep between tries.
        self._connection = sqlite3.connect(
            path, timeout=_BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._lock = threading.Lock()
        with self._lock:
            self._connection.execute("PRAGMA journal_mode = WAL")
            # A commit survives the death of the process, not that of the machine: enough here.
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.executescript(_SCHEMA)

    def close(self) -> None:
        """Give the file back, once the write under way has ended."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            # IMMEDIATE takes the write lock now: a transaction that starts as a reader could be
            # refused when it wants to write.
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def _read(self, statement: str, *values: object) -> list[tuple[str, ...]]:
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def claim(self, key: str, marker: Marker, *, now: float, wall: float) -> KeyState | None:
        with self._transaction() as db:
            # By the wall clock, as DynamoDB's TTL does: the provider's may be moved back again.
            db.execute("DELETE FROM keys WHERE expires_at <= ?", (time.time(),))
            claimed = db.execute(
                "INSERT INTO keys (key, fingerprint, expires_at, token, lease_until)"
                " VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET"
                " fingerprint = excluded.fingerprint, expires_at = excluded.expires_at,"
                " token = excluded.token, lease_until = excluded.lease_until,"
                " status = NULL, body = NULL"
                " WHERE expires_at <= ? OR (lease_until <= ? AND fingerprint = ?)",
                (
                    *(key, marker.fingerprint, marker.expires_at, marker.token),
                    *(marker.lease_until, now, wall, marker.fingerprint),
                ),
            ).rowcount
            if claimed:
                return None
            held, status, body = db.execute(
                "SELECT fingerprint, status, body FROM keys WHERE key = ?", (key,)
            ).fetchone()
        return KeyState(held, None if status is None else Answer(status, body))

    def commit(
        self,
        key: str,
        marker: Marker,
        answer: Answer,
        *,
        charge_id: str,
        reference: str | None,
        charge: str,
    ) -> bool:
        with self._transaction() as db:
            held = db.execute(
                "UPDATE keys SET token = NULL, lease_until = NULL, status = ?, body = ?"
                " WHERE key = ? AND token = ?",
                (answer.status, answer.body, key, marker.token),
            ).rowcount
            if held:
                db.execute("INSERT INTO charges VALUES (?, ?, ?)", (charge_id, reference, charge))
        return bool(held)

    def release(self, key: str, marker: Marker) -> None:
        with self._transaction() as db:
            db.execute("DELETE FROM keys WHERE key = ? AND token = ?", (key, marker.token))

    def charge(self, charge_id: str) -> str | None:
        rows = self._read("SELECT charge FROM charges WHERE id = ?", charge_id)
        return rows[0][0] if rows else None

    def charges(self, reference: str | None, first: str, limit: int) -> Iterator[str]:
        narrowed = "" if reference is None else "reference = ? AND "
        values = () if reference is None else (reference,)
        compare = ">="
        while limit > 0:
            rows = self._read(
                f"SELECT id, charge FROM charges WHERE {narrowed} id {compare} ?"  # noqa: S608
                " ORDER BY id LIMIT ?",
                *values,
                first,
                min(limit, _PAGE),
            )
            yield from (charge for _, charge in rows)
            if len(rows) < _PAGE:
                return
            first, compare, limit = rows[-1][0], ">", limit - len(rows)

    def add_fault(self, fault: Fault) -> None:
        with self._transaction() as db:
            db.execute(
                "INSERT INTO faults VALUES (?, ?, ?)",
                (fault.id, json.dumps(asdict(fault)), fault.remaining),
            )

    def faults(self) -> list[Fault]:
        rows = self._read("SELECT fault, remaining FROM faults WHERE remaining > 0 ORDER BY id")
        return [Fault(**json.loads(text) | {"remaining": left}) for text, left in rows]

    def take_fault(self, fault_id: str) -> bool:
        with self._transaction() as db:
            taken = db.execute(
                "UPDATE faults SET remaining = remaining - 1 WHERE id = ? AND remaining > 0",
                (fault_id,),
            ).rowcount
        return bool(taken)

    def clear_faults(self) -> None:
        with self._transaction() as db:
            db.execute("DELETE FROM faults")

    def log_request(self, key: str, entry_id: str, entry: str, expires_at: int) -> None:
        with self._transaction() as db:
            db.execute("DELETE FROM requests WHERE expires_at <= ?", (time.time(),))
            db.execute(
                "INSERT INTO requests VALUES (?, ?, ?, ?)", (key, entry_id, entry, expires_at)
            )

    def requests(self, key: str, limit: int) -> list[str]:
        rows = self._read(
            "SELECT entry FROM requests WHERE key = ? ORDER BY id LIMIT ?", key, limit
        )
        return [entry for (entry,) in rows]

    def clock_offset(self) -> int:
        rows = self._read("SELECT offset FROM clock")
        return int(rows[0][0]) if rows else 0

    def advance_clock(self, seconds: int) -> int:
        with self._transaction() as db:
            db.execute(
                "INSERT INTO clock VALUES (1, ?) ON CONFLICT (one) DO UPDATE"
                " SET offset = offset + excluded.offset",
                (seconds,),
            )
        return self.clock_offset()

    def reset_clock(self) -> None:
        with self._transaction() as db:
            db.execute("DELETE FROM clock")
