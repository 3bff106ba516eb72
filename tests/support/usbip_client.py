"""A client of USB/IP that stands for a kernel: imports the device and submits URBs."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from exact_read import exact

BASIC = struct.Struct(">IIIII")


@dataclass(frozen=True)
class Returned:
    """RET_SUBMIT or RET_UNLINK."""

    command: int
    number: int
    status: int
    actual: int = 0
    data: bytes = b""


class UsbIpClient:
    """A connection; URBs have consecutive numbers."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._number = 0
        self._lengths: dict[int, int] = {}

    def close(self) -> None:
        self.socket.close()

    def devices(self) -> list[tuple[str, int, int, int]]:
        """Bus id, speed, vendor and product of what can be imported."""
        self.socket.sendall(struct.pack(">HHI", 0x0111, 0x8005, 0))
        version, code, status, count = struct.unpack(">HHII", exact(self.socket, 12))
        assert (version, code, status) == (0x0111, 0x0005, 0)
        return [self._device(interfaces=True) for _ in range(count)]

    def _device(self, interfaces: bool) -> tuple[str, int, int, int]:
        record = exact(self.socket, 312)
        speed, vendor, product = struct.unpack_from(">IHH", record, 256 + 32 + 8)
        if interfaces:
            exact(self.socket, 4 * record[-1])
        return record[256:288].split(b"\0")[0].decode(), speed, vendor, product

    def take(self, bus_id: str) -> int:
        """Import a device; the status."""
        self.socket.sendall(struct.pack(">HHI32s", 0x0111, 0x8003, 0, bus_id.encode()))
        version, code, status = struct.unpack(">HHI", exact(self.socket, 8))
        assert (version, code) == (0x0111, 0x0003)
        if not status:
            self._device(interfaces=False)
        return int(status)

    def submit(
        self, endpoint: int, data: bytes | int, setup: bytes = bytes(8), packets: int = 0
    ) -> int:
        """CMD_SUBMIT with data, or for how many bytes; its number."""
        self._number += 1
        to_host = isinstance(data, int)
        length = data if isinstance(data, int) else len(data)
        self.socket.sendall(
            BASIC.pack(1, self._number, BASIC.size, to_host, endpoint)
            + struct.pack(">IIIII8s", 0, length, 0, packets, 0, setup)
            + (b"" if isinstance(data, int) else data)
        )
        self._lengths[self._number] = length if to_host else 0
        return self._number

    def unlink(self, victim: int) -> int:
        self._number += 1
        self.socket.sendall(BASIC.pack(2, self._number, 0, 0, 0) + struct.pack(">I24x", victim))
        return self._number

    def returned(self) -> Returned:
        """The next that comes back."""
        command, number, *_ = BASIC.unpack(exact(self.socket, BASIC.size))
        status, actual = struct.unpack_from(">iI", exact(self.socket, 28))
        data = b""
        if command == 3 and self._lengths.pop(number):
            data = exact(self.socket, actual)
        return Returned(command, number, status, actual if command == 3 else 0, data)

    # As a driver of the kernel: one URB after another.

    def _one(self, number: int) -> Returned:
        came = self.returned()
        assert (came.command, came.number) == (3, number)
        return came

    def control(self, setup: bytes, data: bytes | int) -> Returned:
        return self._one(self.submit(0, data, setup))

    # The methods of PyUSB's devices.

    speed = 4

    def set_configuration(self, value: int) -> None:
        assert self.control(struct.pack("<BBHHH", 0, 9, value, 0, 0), b"").status == 0

    def ctrl_transfer(
        self, kind: int, request: int, value: int, index: int, data: bytes | int
    ) -> bytes | int:
        length = data if isinstance(data, int) else len(data)
        came = self.control(struct.pack("<BBHHH", kind, request, value, index, length), data)
        assert came.status == 0
        return came.data if isinstance(data, int) else came.actual

    def write(self, endpoint: int, data: bytes, timeout: int = 0) -> int:
        came = self._one(self.submit(endpoint, data))
        assert came.status == 0
        return came.actual

    def read(self, endpoint: int, length: int, timeout: int = 0) -> bytes:
        came = self._one(self.submit(endpoint & 0xF, length))
        assert came.status == 0
        return came.data

    def send(self, tag: int, payload: bytes) -> None:
        for data in _pieces(struct.pack("<II", len(payload), tag) + payload):
            assert self.write(1, data) == len(data)


def _pieces(data: bytes) -> Iterator[bytes]:
    yield from (data[at : at + (1 << 16)] for at in range(0, len(data), 1 << 16))
