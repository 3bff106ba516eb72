"""Descriptors, firmware, endpoints and standard requests against what the documents of USB say.

The references below are written from USB 3.2 (9.4, 9.6) and DFU 1.1 (6, appendix A), not from the
model.
"""

from __future__ import annotations

import struct

import pytest
from darwinn_sim.usb import descriptors
from darwinn_sim.usb.descriptors import Mode, Speed
from darwinn_sim.usb.endpoints import InEndpoint, OutEndpoint, Status, Transfer
from darwinn_sim.usb.errors import Stall
from darwinn_sim.usb.firmware import Firmware
from darwinn_sim.usb.function import UsbFunction
from darwinn_sim.usb.requests import Setup
from echo_chip import echo
from hypothesis import given, settings
from hypothesis import strategies as st

# --- descriptors ----------------------------------------------------------------------------------

HEAD = "09 02 {total} 01 01 00 80 {power}"
DFU = "09 04 00 00 00 fe 01 02 00  09 21 07 e8 03 00 01 01 01"
BULK, INTERRUPT = "07 05 {address} 02 {packet} 00", "07 05 {address} 03 40 00 01"
COMPANION = {BULK: "06 30 0f 00 00 00", INTERRUPT: "06 30 00 00 40 00"}


def application(packet: str, *, companions: bool) -> str:
    parts = ["09 04 00 00 06 ff ff ff 00"]
    for address in ("01", "02", "03", "81", "82", "83"):
        kind = INTERRUPT if address == "83" else BULK
        parts.append(kind.format(address=address, packet=packet))
        if companions:
            parts.append(COMPANION[kind])
    return " ".join(parts)


@pytest.mark.parametrize(
    ("mode", "speed", "release", "packet", "names", "body", "total", "power"),
    [
        (Mode.BOOT, Speed.HIGH, "10 02", "40", "6e 1a 9a 08", DFU, "1b 00", "fa"),
        (Mode.BOOT, Speed.SUPER, "10 03", "09", "6e 1a 9a 08", DFU, "1b 00", "70"),
        (
            *(Mode.APPLICATION, Speed.HIGH, "10 02", "40", "d1 18 02 93"),
            *(application("00 02", companions=False), "3c 00", "fa"),
        ),
        (
            *(Mode.APPLICATION, Speed.SUPER, "10 03", "09", "d1 18 02 93"),
            *(application("00 04", companions=True), "60 00", "70"),
        ),
    ],
)
def test_descriptors(
    mode: Mode,
    speed: Speed,
    release: str,
    packet: str,
    names: str,
    body: str,
    total: str,
    power: str,
) -> None:
    expected = f"12 01 {release} 00 00 00 {packet} {names} 00 01 00 00 00 01"
    assert descriptors.device(mode, speed) == bytes.fromhex(expected)
    head = HEAD.format(total=total, power=power)
    assert descriptors.configuration(mode, speed) == bytes.fromhex(head + body)


def test_capabilities() -> None:
    usb_2 = "07 10 02 00 00 00 00"
    usb_3 = "0a 10 03 00 0c 00 02 00 00 00"
    expected = {
        Speed.HIGH: f"05 0f 0c 00 01 {usb_2}",
        Speed.SUPER: f"05 0f 16 00 02 {usb_2}{usb_3}",
    }
    for speed, text in expected.items():
        assert descriptors.binary_object_store(speed) == bytes.fromhex(text)


# --- setup packets --------------------------------------------------------------------------------

U8, U16 = st.integers(0, 255), st.integers(0, 0xFFFF)


@given(U8, U8, U16, U16, U16)
def test_a_setup_packet(kind: int, request: int, value: int, index: int, length: int) -> None:
    packed = struct.pack("<BBHHH", kind, request, value, index, length)
    setup = Setup.unpack(packed)
    assert setup == Setup(kind, request, value, index, length)
    assert setup.pack() == packed
    assert setup.to_host is (kind >= 0x80)
    assert (setup.kind, setup.recipient) == (kind % 128 // 32, kind % 32)
    shown = f"{kind:02X} {request:02X} wValue={value:04X} wIndex={index:04X} wLength={length}"
    assert str(setup) == shown


# --- standard requests ----------------------------------------------------------------------------

ENDPOINTS = (1, 2, 3, 0x81, 0x82, 0x83)


class SlowStandard:
    """Answers of the standard requests; None: a stall."""

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.configuration = 1

    def answer(self, recipient: int, request: int, value: int, index: int) -> bytes | None:
        if recipient == 1 and index % 256:
            return None
        known = ENDPOINTS if self.mode is Mode.APPLICATION else ()
        if recipient == 2 and index % 256 not in (0, 0x80, *known):
            return None
        if request == 6:
            held = {
                0x100: descriptors.device(self.mode, Speed.SUPER),
                0x200: descriptors.configuration(self.mode, Speed.SUPER),
                0xF00: descriptors.binary_object_store(Speed.SUPER),
            }
            return held.get(value)
        if request == 9:
            if value > 1:
                return None
            self.configuration = value
            return b""
        if request == 8:
            return bytes([self.configuration])
        if request == 0:
            return b"\0\0"
        if request == 10:
            return None if index else b"\0"
        if request == 11:
            return None if index or value else b""
        return b"" if request in (1, 3, 0x30, 0x31) else None


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("recipient", range(3))
def test_standard_requests(mode: Mode, recipient: int) -> None:
    function, slow = UsbFunction(echo, mode=mode), SlowStandard(mode)
    for request in (*range(14), 0x30, 0x31, 0x32):
        for value in (0, 1, 2, 0x100, 0x101, 0x200, 0x201, 0x300, 0xF00, 0xF01):
            for index in (0, 1, 3, 4, 0x80, 0x81, 0x83, 0x84, 0x100):
                expected = slow.answer(recipient, request, value, index)
                try:
                    found = function.control(Setup(0x80 | recipient, request, value, index, 512))
                except Stall:
                    assert expected is None, (request, value, index)
                else:
                    assert found == expected, (request, value, index)


# --- firmware -------------------------------------------------------------------------------------

IDLE, DOWNLOAD_SYNC, DOWNLOAD_IDLE, MANIFEST_SYNC, UPLOAD_IDLE, ERROR = 2, 3, 5, 6, 9, 10


class SlowFirmware:
    """States of DFU 1.1 by request; what is not allowed leads to ERROR with errSTALLEDPKT."""

    def __init__(self) -> None:
        self.state, self.status = IDLE, 0
        self.image, self.coming, self.block = b"", b"", 0
        self.complete = False

    def request(self, request: int, block: int, data: bytes, length: int) -> bytes | None:
        """The answer; None: a stall."""
        if request == 3:
            self.state = {DOWNLOAD_SYNC: DOWNLOAD_IDLE, MANIFEST_SYNC: IDLE}.get(
                self.state, self.state
            )
            return bytes([self.status, 0, 0, 0, self.state, 0])[:length]
        if request == 5:
            return bytes([self.state])[:length]
        if request == 1 and self.state in (IDLE, DOWNLOAD_IDLE):
            return self._download(block, data)
        if request == 2 and self.state in (IDLE, UPLOAD_IDLE):
            part = self.image[256 * block : 256 * block + min(length, 256)]
            self.state = UPLOAD_IDLE if len(part) == length else IDLE
            return part
        allowed = {4: [ERROR], 6: [IDLE, DOWNLOAD_IDLE, UPLOAD_IDLE]}
        if self.state in allowed.get(request, []):
            self.state, self.status, self.coming, self.block = IDLE, 0, b"", 0
            return b""
        self._stall(0x0F)
        return None

    def _download(self, block: int, data: bytes) -> bytes | None:
        if self.state == IDLE:
            self.complete, self.coming, self.block = False, b"", block
        if len(data) > 256 or block != self.block:
            self._stall(0x0F)
            return None
        if len(self.coming + data) > 65536:
            self._stall(0x08)
            return None
        if data:
            self.coming += data
            self.block = (block + 1) % 65536
            self.state = DOWNLOAD_SYNC
        elif self.state == IDLE:
            self._stall(0x0F)
            return None
        else:
            self.image, self.complete, self.state = self.coming, True, MANIFEST_SYNC
        return b""

    def _stall(self, status: int) -> None:
        self.state, self.status = ERROR, status


BLOCKS = st.sampled_from([0, 1, 2, 65535])
REQUESTS = st.one_of(
    st.tuples(st.just(1), BLOCKS, st.sampled_from([0, 0, 1, 200, 256, 257])),
    st.tuples(st.sampled_from([1, 3]), st.just(-1), st.sampled_from([0, 256])),
    st.tuples(st.sampled_from([2, 3, 3, 3, 4, 5, 6, 7]), BLOCKS, st.just(0)),
)


@settings(max_examples=200)
@given(
    st.lists(st.tuples(REQUESTS, st.sampled_from([0, 1, 6, 255, 256, 257])), max_size=25),
    st.sampled_from([0, 0, 0, 65280, 65536]),
)
def test_firmware(requests: list[tuple[tuple[int, int, int], int]], held: int) -> None:
    """Requests in any order; a block of number -1 is the one that is awaited."""
    firmware, slow = Firmware(), SlowFirmware()
    sent = 0
    ahead = [((request, -1, 256), 6) for _ in range(held // 256) for request in (1, 3)]
    for (request, block, size), length in [*ahead, *requests]:
        number = slow.block if block < 0 and slow.state != IDLE else max(block, 0)
        data = bytes((sent + k) % 251 for k in range(size)) if request == 1 else b""
        sent += size
        expected = slow.request(request, number, data, length)
        try:
            found = firmware.request(request, number, data, length)
        except Stall as stall:
            assert expected is None
            assert str(stall).startswith("firmware: ")
        else:
            assert found == expected
        assert (firmware.state, firmware.status) == (slow.state, slow.status)
        assert (firmware.complete, firmware.image) == (slow.complete, slow.image)
    image = firmware.image
    firmware.reset()
    assert (firmware.state, firmware.status, firmware.image) == (IDLE, 0, image)


# --- endpoints ------------------------------------------------------------------------------------


class SlowIn:
    """Packets, each with whether it is a short one, and lengths of transfers that wait."""

    def __init__(self, packet: int | None) -> None:
        self.packet = packet
        self.packets: list[tuple[bytes, bool]] = []
        self.waiting: list[int] = []
        self.ended: list[tuple[Status, bytes]] = []
        self.halted = False

    @property
    def held(self) -> int:
        return sum(len(part) for part, _ in self.packets)

    def put(self, data: bytes) -> None:
        while data:
            size = self.packet or len(data)
            self.packets.append((data[:size], len(data) < size))
            data = data[size:]
        self._move()

    def submit(self, length: int) -> None:
        self.waiting.append(length)
        self._move()

    def halt(self) -> None:
        self.halted = True
        self._move()

    def clear(self) -> None:
        self.halted, self.packets = False, []

    def _move(self) -> None:
        while self.waiting and self.packets:
            length = self.waiting.pop(0)
            taken = self._one(length) if self.packet is None else self._some(length)
            status = Status.OVERFLOW if taken is None else Status.COMPLETED
            self.ended.append((status, taken or b""))
        while self.halted and self.waiting and not self.packets:
            self.waiting.pop(0)
            self.ended.append((Status.STALLED, b""))

    def _one(self, length: int) -> bytes | None:
        first, _ = self.packets.pop(0)
        return first if len(first) <= length else None

    def _some(self, length: int) -> bytes:
        taken = b""
        while self.packets and len(taken) < length:
            part, is_short = self.packets.pop(0)
            room = length - len(taken)
            taken += part[:room]
            if part[room:]:
                self.packets.insert(0, (part[room:], is_short))
            elif is_short:
                break
        return taken


IN = st.one_of(
    st.tuples(st.just("put"), st.integers(1, 12)),
    st.tuples(st.just("submit"), st.integers(0, 12)),
    st.tuples(st.sampled_from(["halt", "clear", "cancel", "again"]), st.just(0)),
)


@settings(max_examples=200)
@given(st.lists(IN, max_size=20), st.sampled_from([None, 1, 4, 5]))
def test_bytes_for_the_host(operations: list[tuple[str, int]], packet: int | None) -> None:
    ended: list[Transfer] = []
    seen: list[bytes] = []
    endpoint = InEndpoint(packet is not None, packet or 16, seen.append)
    slow = SlowIn(packet)
    sent = 0
    for name, size in operations:
        if name == "put":
            data = bytes(range(sent, sent + size))
            sent += size
            endpoint.put(data)
            slow.put(data)
        elif name == "submit":
            endpoint.submit(Transfer(0x81, ended.append, length=size))
            slow.submit(size)
        elif name == "cancel":
            if slow.waiting:
                assert endpoint.cancel(endpoint.transfers[-1])
                slow.waiting.pop()
                slow.ended.append((Status.CANCELLED, b""))
        elif name == "again":
            assert not any(map(endpoint.cancel, ended))
        else:
            getattr(endpoint, name)()
            getattr(slow, name)()
        assert endpoint.held == slow.held
        assert endpoint.halted is slow.halted
        assert [each.length for each in endpoint.transfers] == slow.waiting
        assert [(each.status, each.data) for each in ended] == slow.ended
    assert all(each.actual == len(each.data) for each in ended)
    completed = [data for status, data in slow.ended if status is Status.COMPLETED]
    assert seen == completed
    endpoint.end_all(Status.NO_DEVICE)
    assert all(each.status is Status.NO_DEVICE for each in ended[len(slow.ended) :])


OUT = st.one_of(
    st.tuples(st.just("submit"), st.integers(0, 6)),
    st.tuples(st.just("room"), st.integers(-2, 9)),
    st.tuples(st.sampled_from(["halt", "clear", "cancel"]), st.just(0)),
)


class SlowOut:
    """Transfers that wait: [first byte, bytes taken, bytes]; ``fatal`` halts what takes it."""

    def __init__(self, fatal: int) -> None:
        self.fatal = fatal
        self.waiting: list[list[int]] = []
        self.ended: list[tuple[Status, int]] = []
        self.arrived = b""
        self.sent, self.space, self.halted = 0, 5, False

    def submit(self, size: int) -> bytes:
        first, self.sent = self.sent, self.sent + size
        self.waiting.append([first, 0, size])
        self.move()
        return bytes(range(first, self.sent))

    def cancel(self) -> None:
        self.ended.append((Status.CANCELLED, self.waiting.pop(0)[1]))

    def move(self) -> None:
        while self.waiting and not self.halted:
            first, taken, size = self.waiting[0]
            part = bytes(range(first + taken, first + size))[: max(self.space, 0)]
            self.waiting[0][1] += len(part)
            self.arrived += part
            self.space -= len(part)
            self.halted = self.fatal in part
            if self.halted or taken + len(part) < size:
                break
            self.ended.append((Status.COMPLETED, size))
            self.waiting.pop(0)
        while self.halted and self.waiting:
            self.ended.append((Status.STALLED, self.waiting.pop(0)[1]))


@settings(max_examples=200)
@given(st.lists(OUT, max_size=20), st.integers(0, 40))
def test_bytes_from_the_host(operations: list[tuple[str, int]], fatal: int) -> None:
    """With the byte ``fatal`` the endpoint halts, as where a message makes no sense."""
    ended: list[Transfer] = []
    slow, taken, room = SlowOut(fatal), bytearray(), 5

    def take(piece: bytes) -> None:
        nonlocal room
        taken.extend(piece)
        room -= len(piece)
        if fatal in piece:
            endpoint.halt()

    endpoint = OutEndpoint(lambda: room, take)
    for name, size in operations:
        if name == "submit":
            endpoint.submit(Transfer(1, ended.append, data=slow.submit(size)))
        elif name == "room":
            room = slow.space = size
            endpoint.move()
            slow.move()
        elif name == "cancel":
            if slow.waiting:
                assert endpoint.cancel(endpoint.transfers[0])
                slow.cancel()
        else:
            getattr(endpoint, name)()
            slow.halted = name == "halt"
            slow.move()
        assert bytes(taken) == slow.arrived
        assert endpoint.halted is slow.halted
        assert [(each.status, each.actual) for each in ended] == slow.ended
        assert [each.actual for each in endpoint.transfers] == [each[1] for each in slow.waiting]
