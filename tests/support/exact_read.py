"""Reading from sockets."""

from __future__ import annotations

import socket


def exact(connection: socket.socket, size: int) -> bytes:
    """``size`` bytes; raises ``EOFError`` if the other end closes before."""
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data
