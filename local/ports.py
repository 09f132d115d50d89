"""Free ports on loopback."""

from __future__ import annotations

import random
import socket

from local.errors import CommandError

#: Below those that systems give to outgoing connections: one of them may be taken by such a
#: connection before a server has started to listen there.
_OURS = range(20_000, 32_768)
_TRIES = 100


def free_port(preferred: int = 0) -> int:
    """`preferred` when nothing listens there, else another free one; 0 prefers none.

    Raises CommandError when there is none.
    """
    for port in [preferred, *random.sample(_OURS, _TRIES)]:
        if port and is_free(port):
            return port
    raise CommandError("No free port on 127.0.0.1.")


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
