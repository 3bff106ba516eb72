"""Stands in for the chip's process of the delegate, and does one thing wrong: ``rude=WHAT``."""

from __future__ import annotations

import socket
import struct
import sys
import time

DONE, CLOSE = 0, 4


def header(kind: int, size: int, magic: bytes = b"EDTP") -> bytes:
    return struct.pack("=4sIQ", magic, kind, size)


def main() -> None:
    what = dict(each.split("=", 1) for each in sys.argv[1:])["rude"]
    connection = socket.socket(fileno=3)
    if what == "gone":
        return
    if what == "silent":
        time.sleep(60)
    if what == "garbage":
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    if what == "huge":
        connection.sendall(header(DONE, 1 << 40))
    if what == "half":
        connection.sendall(header(DONE, 100) + bytes(50))
        return
    connection.sendall(header(DONE, 0))
    # What it says of the part that is opened: its number, then a shape.
    opened = {
        "no shapes": b"",
        "rank": struct.pack("=II", 1, 1 << 20),
        "negative": struct.pack("=IIii", 1, 2, 1, -5),
        "short": struct.pack("=IIii", 1, 2, 1, 20),
        "long": struct.pack("=IIii", 1, 2, 1, 20),
    }[what]
    receive(connection)
    connection.sendall(header(DONE, len(opened)) + opened)
    answer = {"short": bytes(3), "long": bytes(1 << 20)}.get(what, b"")
    while receive(connection) != CLOSE:
        connection.sendall(header(DONE, len(answer)) + answer)


def receive(connection: socket.socket) -> int:
    """Take a message; return its kind."""
    first = connection.recv(16, socket.MSG_WAITALL)
    if len(first) < 16:
        sys.exit()
    _, kind, size = struct.unpack("=4sIQ", first)
    connection.recv(size, socket.MSG_WAITALL)
    return int(kind)


if __name__ == "__main__":
    main()
