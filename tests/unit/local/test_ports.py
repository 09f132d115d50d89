"""A port that was found free stays so until a server listens there."""

from __future__ import annotations

import socket

from local import ports


def test_a_free_port_is_below_those_of_outgoing_connections() -> None:
    found = {ports.free_port() for _ in range(50)}

    assert len(found) > 1
    assert all(1024 < port < 32_768 for port in found)


def test_a_port_where_somebody_listens_is_not_free() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        assert not ports.is_free(listener.getsockname()[1])
