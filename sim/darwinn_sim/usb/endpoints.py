"""Bulk and interrupt endpoints: transfers of the host that wait, and bytes that wait for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """How a transfer ended."""

    COMPLETED = "completed"
    STALLED = "stalled"
    CANCELLED = "cancelled"
    OVERFLOW = "overflow"
    NO_DEVICE = "no device"


@dataclass(eq=False)
class Transfer:
    """A bulk or interrupt transfer of the host.

    ``data`` is what goes out, or what has come in; ``length`` what may come in. ``done`` is called
    once, by whatever thread ends the transfer, with the function locked: it must not wait, nor ask
    anything of the function. ``status`` and ``actual`` (bytes moved) hold from then on.
    """

    endpoint: int
    done: Callable[[Transfer], None]
    data: bytes = b""
    length: int = 0
    status: Status | None = None
    actual: int = 0

    def end(self, status: Status) -> None:
        """The transfer is over."""
        self.status = status
        self.done(self)


class Waiting:
    """The transfers of an endpoint that wait, in order; a halted one stalls instead."""

    def __init__(self) -> None:
        self.transfers: deque[Transfer] = deque()
        self.halted = False

    def end_all(self, status: Status) -> None:
        """End every transfer that waits."""
        while self.transfers:
            self.transfers.popleft().end(status)

    def clear(self) -> None:
        """The endpoint is not halted any more."""
        self.halted = False

    def cancel(self, transfer: Transfer) -> bool:
        """End ``transfer`` as cancelled; False if it does not wait here any more."""
        if transfer not in self.transfers:
            return False
        self.transfers.remove(transfer)
        transfer.end(Status.CANCELLED)
        return True


class InEndpoint(Waiting):
    """Packets for the host, which its transfers take.

    Args:
        is_stream: packets may be split and joined: a transfer takes what fits, up to the first
            packet that is shorter than ``packet_bytes``. Otherwise a transfer takes one packet,
            and overflows if the packet is longer.
        packet_bytes: the longest packet.
        seen: told of the bytes that reach the host.
    """

    def __init__(self, is_stream: bool, packet_bytes: int, seen: Callable[[bytes], None]) -> None:
        super().__init__()
        self.packet_bytes = packet_bytes
        self._is_stream = is_stream
        self._seen = seen
        self._packets: deque[bytes] = deque()
        self._head = 0
        self.held = 0
        """Bytes that wait for the host."""

    def put(self, data: bytes) -> None:
        """Queue ``data``, in packets of ``packet_bytes`` at most."""
        step = self.packet_bytes if self._is_stream else len(data)
        self._packets += [data[at : at + step] for at in range(0, len(data), step)]
        self.held += len(data)
        self._move()

    def submit(self, transfer: Transfer) -> None:
        """A transfer of the host waits for bytes."""
        self.transfers.append(transfer)
        self._move()

    def halt(self) -> None:
        """Stall the host, once it has taken what there is."""
        self.halted = True
        self._move()

    def clear(self) -> None:
        """Nor does anything wait for the host."""
        super().clear()
        self._packets.clear()
        self._head = self.held = 0

    def _move(self) -> None:
        while self.transfers and self._packets:
            transfer = self.transfers.popleft()
            transfer.data = self._stream_for(transfer) if self._is_stream else self._packets[0]
            if len(transfer.data) > transfer.length:
                self._drop()
                transfer.data = b""
                transfer.end(Status.OVERFLOW)
                continue
            if not self._is_stream:
                self._drop()
            transfer.actual = len(transfer.data)
            self._seen(transfer.data)
            transfer.end(Status.COMPLETED)
        if self.halted and not self._packets:
            self.end_all(Status.STALLED)

    def _drop(self) -> None:
        self.held -= len(self._packets.popleft())

    def _stream_for(self, transfer: Transfer) -> bytes:
        """What ``transfer`` takes of the packets."""
        parts: list[bytes] = []
        room = transfer.length
        while room and self._packets:
            packet = self._packets[0]
            part = packet[self._head : self._head + room]
            parts.append(part)
            room -= len(part)
            self._head += len(part)
            if self._head < len(packet):
                break
            self._packets.popleft()
            self._head = 0
            if len(packet) < self.packet_bytes:
                break
        data = b"".join(parts)
        self.held -= len(data)
        return data


class OutEndpoint(Waiting):
    """Bytes from the host, taken as far as there is room: a transfer without room waits (NAK).

    Args:
        room: how many bytes may be taken now.
        take: takes them.
    """

    def __init__(self, room: Callable[[], int], take: Callable[[bytes], None]) -> None:
        super().__init__()
        self._room = room
        self._take = take

    def submit(self, transfer: Transfer) -> None:
        """The host has bytes."""
        self.transfers.append(transfer)
        self.move()

    def halt(self) -> None:
        """Stall the host."""
        self.halted = True
        self.end_all(Status.STALLED)

    def move(self) -> None:
        """Take what there is room for."""
        if self.halted:
            self.end_all(Status.STALLED)
        while self.transfers:
            transfer = self.transfers[0]
            piece = transfer.data[transfer.actual : transfer.actual + max(self._room(), 0)]
            transfer.actual += len(piece)
            if piece:
                self._take(piece)
            if self.halted:
                # By what was just taken: the transfer has ended with the others.
                return
            if transfer.actual < len(transfer.data):
                return
            self.transfers.popleft()
            transfer.end(Status.COMPLETED)
