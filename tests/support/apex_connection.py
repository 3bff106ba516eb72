"""A program in Python that speaks to the device as the shim does, and can do so wrongly."""

from __future__ import annotations

import mmap
import os
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from apex_queue import PAGE, RING, SET_UP, STATUS, descriptor
from bus_chip import program
from darwinn_sim.host.mmu import EXTENDED_BIT
from darwinn_sim.host.registers import register
from exact_read import exact

MESSAGE = struct.Struct("<II5Q")
REQUEST = struct.Struct("<IIQ")
ANSWER = struct.Struct("<II")
OPEN, CLOSE, READ, WRITE, IOCTL = 1, 2, 3, 4, 5
PARTITION, MAP, UNMAP, COHERENT = 0xDC07, 0xDC08, 0xDC09, 0xDC0B
CODE, INPUT, OUTPUT = (EXTENDED_BIT | n << 20 for n in (1, 2, 3))
MEMORY = 0x7000_0000_0000
"""Where this program says that its memory is: code, input and output, 1 MiB each."""

Reply = Callable[["Connection", int, int, int, bytes], bytes | None]
"""Answers an access (kind, address, bytes, data) to the memory; None ends the conversation."""


def honest(self: Connection, kind: int, address: int, size: int, data: bytes) -> bytes | None:
    start = address - MEMORY
    if kind == 1:
        return ANSWER.pack(0, size) + bytes(self.memory[start : start + size])
    self.memory[start : start + size] = data
    return ANSWER.pack(0, size)


class Connection:
    """See above. A context manager, which hangs up."""

    def __init__(self, folder: Path, reply: Reply = honest) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(str(folder / "socket_0"))
        self.reply = reply
        self.memory = bytearray(3 << 20)
        self.channel: socket.socket | None = None
        self.events: list[int] = []
        self.interrupted = threading.Condition()
        self.tail = 0

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        if self.channel is not None:
            with suppress(OSError):
                self.channel.shutdown(socket.SHUT_RDWR)
            self.channel.close()

    def ask(self, what: int, argument: int = 0, *words: int) -> tuple[int, tuple[int, ...], int]:
        """errno, words and descriptor (-1: none) of the answer."""
        self.socket.sendall(MESSAGE.pack(what, argument, *words, *(0,) * (5 - len(words))))
        data, descriptors, _, _ = socket.recv_fds(self.socket, MESSAGE.size, 1)
        if not data:
            raise EOFError
        error, _, *answer = MESSAGE.unpack(data)
        return error, tuple(answer), descriptors[0] if descriptors else -1

    def put(self, name: str, value: int) -> None:
        error, _, _ = self.ask(WRITE, 0, register(name).offset, value)
        assert not error

    def get(self, name: str) -> int:
        error, words, _ = self.ask(READ, 0, register(name).offset)
        assert not error
        return words[0]

    def open(self) -> int:
        error, _, descriptor = self.ask(OPEN)
        if error:
            return error
        self.channel = socket.socket(fileno=descriptor)
        threading.Thread(target=self._serve, daemon=True).start()
        assert not self.ask(IOCTL, PARTITION, 0, 6144)[0]
        error, (_, _, _, address, _), descriptor = self.ask(IOCTL, COHERENT, 0, 1, 4 * PAGE)
        assert not error
        self.coherent = mmap.mmap(descriptor, 4 * PAGE)
        os.close(descriptor)
        for bus, device, size in (
            (address, RING, PAGE),
            (address + PAGE, STATUS, PAGE),
            (MEMORY, CODE, 1 << 20),
            (MEMORY + (1 << 20), INPUT, 1 << 20),
            (MEMORY + (2 << 20), OUTPUT, 1 << 20),
        ):
            assert not self.ask(IOCTL, MAP, 0, size, bus, device)[0]
        for name, value in SET_UP:
            self.put(name, value)
        return 0

    def queue(self, *descriptors: tuple[int, int, int]) -> None:
        code = program(*descriptors)
        self.memory[: len(code)] = code
        self.coherent[16 * self.tail : 16 * self.tail + 16] = descriptor(CODE, len(code))
        self.tail += 1
        self.put("instruction_queue_tail", self.tail)

    def copy(self, data: bytes) -> bytes:
        """What comes back of ``data``."""
        self.memory[1 << 20 : (1 << 20) + len(data)] = data
        self.queue((1, len(data), INPUT), (3, len(data), OUTPUT), (4, 0, 0))
        with self.interrupted:
            assert self.interrupted.wait_for(lambda: 4 in self.events, 20)
        return bytes(self.memory[2 << 20 : (2 << 20) + len(data)])

    def _serve(self) -> None:
        assert self.channel is not None
        with suppress(OSError, EOFError):
            while True:
                kind, size, address = REQUEST.unpack(exact(self.channel, REQUEST.size))
                if kind == 3:
                    with self.interrupted:
                        self.events.append(address)
                        self.interrupted.notify_all()
                    continue
                data = exact(self.channel, size) if kind == 2 else b""
                answer = self.reply(self, kind, address, size, data)
                if answer is None:
                    return
                self.channel.sendall(answer)
