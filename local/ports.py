"""Free ports on loopback."""

from __future__ import annotations

import random
import socket

#: Below those that systems give to outgoing connections: one of them may be taken by such a
#: connection before a server has started to listen there.
_OURS = range(20_000, 32_768)
_TRIES = 100


def is_free(port: int) -> bool:
    """Whether a server could listen at `port` now. Raises OverflowError for what is no port."""
    with socket.socket() as probe:
        # As servers do: a connection of the last run in TIME_WAIT does not make a port busy.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def any_free() -> int | None:
    """A free port, or None where there is none."""
    return next(filter(is_free, random.sample(_OURS, _TRIES)), None)
