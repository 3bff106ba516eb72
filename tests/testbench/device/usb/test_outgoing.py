"""What threads send to a process that reads late, or not at all."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading

import pytest
from darwinn_testbench.device.usb import outgoing as outgoing_module
from darwinn_testbench.device.usb.outgoing import Outgoing

SECONDS = 20
HEADER = struct.Struct("<III")
"""Which thread sent it, its number there, its size."""


def connected() -> tuple[Outgoing, socket.socket, socket.socket]:
    own, other = socket.socketpair()
    other.settimeout(SECONDS)
    return Outgoing(own), own, other


def read_all(other: socket.socket) -> bytes:
    parts = []
    while part := other.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("seed", range(5))
def test_a_process_that_reads_late_gets_everything_in_order(seed: int) -> None:
    threads, each = 3, 100

    def messages(thread: int) -> list[bytes]:
        draw = random.Random(seed * threads + thread)
        sizes = (draw.choice((0, 1, 16, 1024, 65536)) for _ in range(each))
        return [
            HEADER.pack(thread, number, size) + bytes([thread]) * size
            for number, size in enumerate(sizes)
        ]

    async def test() -> None:
        outgoing, own, other = connected()

        def send(thread: int) -> None:
            for message in messages(thread):
                outgoing.send(message)

        senders = [threading.Thread(target=send, args=(number,)) for number in range(threads)]
        for sender in senders:
            sender.start()
        # None of them waits for the reader, who begins only now.
        for sender in senders:
            await asyncio.to_thread(sender.join, SECONDS)
            assert not sender.is_alive()
        size = sum(len(message) for number in range(threads) for message in messages(number))
        parts = []
        while size:
            parts.append(await asyncio.to_thread(other.recv, 1 << 16))
            size -= len(parts[-1])
        data = b"".join(parts)
        came: dict[int, list[bytes]] = {number: [] for number in range(threads)}
        while data:
            thread, _, length = HEADER.unpack_from(data)
            came[thread].append(data[: HEADER.size + length])
            data = data[HEADER.size + length :]
        assert came == {number: messages(number) for number in range(threads)}
        outgoing.send(b"end")
        outgoing.close()
        own.close()
        assert await asyncio.to_thread(read_all, other) == b"end"

    asyncio.run(asyncio.wait_for(test(), SECONDS))


def test_what_is_for_a_process_that_has_gone_is_dropped() -> None:
    async def test() -> None:
        outgoing, own, other = connected()
        outgoing.send(bytes(1 << 22))
        other.close()
        for _ in range(3):
            await asyncio.sleep(0.01)
            outgoing.send(b"nobody reads this")
        outgoing.close()
        outgoing.send(b"nor this")
        own.close()

    asyncio.run(asyncio.wait_for(test(), SECONDS))


def test_closing_drops_what_has_not_gone() -> None:
    async def test() -> None:
        outgoing, own, other = connected()
        outgoing.send(bytes(1 << 22))
        await asyncio.sleep(0.01)
        outgoing.close()
        own.close()
        came = await asyncio.to_thread(read_all, other)
        assert 0 < len(came) < 1 << 22

    asyncio.run(asyncio.wait_for(test(), SECONDS))


def test_a_process_that_never_reads_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outgoing_module, "MAX_LEFT_BYTES", 1 << 20)

    async def test() -> None:
        outgoing, own, other = connected()
        for _ in range(64):
            outgoing.send(bytes(1 << 16))
        assert len(outgoing._left) <= 1 << 20
        # What the socket had taken ends here: this side hears of it as of a process that has gone.
        assert await asyncio.to_thread(own.recv, 1) == b""
        outgoing.close()
        own.close()
        other.close()

    asyncio.run(asyncio.wait_for(test(), SECONDS))
