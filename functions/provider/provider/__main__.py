"""The provider alone, on this machine: `python -m provider`. No AWS, no emulator."""

import argparse
import logging
import os
import signal
import sqlite3
import sys
from ipaddress import ip_address
from typing import Final, NoReturn

from provider.api import Api
from provider.core import Provider
from provider.credential import Credential
from provider.server import Server
from provider.settings import DEFAULT_IN_FLIGHT_SECONDS, DEFAULT_KEY_RETENTION_SECONDS
from provider.sqlite import SqliteStore

DEFAULT_API_KEY: Final = "sk_test_mock"  # good enough for a port that only this machine reaches


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM. Exit 0; 1 when the port or the file cannot be had."""
    options = _options(arguments)
    logging.basicConfig(
        level=logging.INFO if options.verbose else logging.WARNING, format="%(message)s"
    )
    try:
        store = SqliteStore(options.database)
    except sqlite3.Error as error:
        print(f"Cannot open {options.database}: {error}", file=sys.stderr)
        return 1
    provider = Provider(
        store,
        key_retention_seconds=options.key_retention_seconds,
        in_flight_seconds=options.in_flight_seconds,
        test_mode=options.test_mode,
    )
    api = Api(provider, Credential(lambda: options.api_key).accepts)
    try:
        server = Server((options.host, options.port), api)
    except OSError as error:
        store.close()
        print(f"Cannot listen on {options.host}:{options.port}: {error}", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, _interrupt)
    host, port = server.server_address[:2]
    print(f"Listening on http://{host!s}:{port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return 0
    finally:
        server.server_close()
        store.close()
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m provider",
        description="A mock payment provider that deduplicates by Idempotency-Key.",
        epilog="The contract is at /openapi.json.",
    )
    add = parser.add_argument
    add("--port", type=int, default=9090, help="0 takes a free one (default: 9090)")
    add("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    add(
        "--database",
        default=":memory:",
        metavar="FILE",
        help="keep the books in this SQLite file (default: in memory, gone at the end)",
    )
    add(
        "--api-key",
        default=os.environ.get("PROVIDER_API_KEY"),
        metavar="KEY",
        help=f"the bearer key (default: PROVIDER_API_KEY, else {DEFAULT_API_KEY})",
    )
    add(
        "--key-retention-seconds",
        type=_positive,
        metavar="N",
        default=DEFAULT_KEY_RETENTION_SECONDS,
        help="how long a key is remembered (default: %(default)s)",
    )
    add(
        "--in-flight-seconds",
        type=_positive,
        metavar="N",
        default=DEFAULT_IN_FLIGHT_SECONDS,
        help="how long a key stays reserved for a process that died (default: %(default)s)",
    )
    add("--test-mode", action="store_true", help="faults on demand, a movable clock, /v1/test")
    add("--verbose", action="store_true", help="a line per request on standard error")
    options = parser.parse_args(arguments)
    if not options.api_key:
        if not _is_loopback(options.host):
            parser.error("--host is open to others: give an --api-key of your own")
        options.api_key = DEFAULT_API_KEY
    return options


def _positive(text: str) -> int:
    number = int(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"expected a positive number of seconds, got {text}")
    return number


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _interrupt(signal_number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
