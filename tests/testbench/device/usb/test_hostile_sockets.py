"""Random messages on the sockets of a USB device, by seed: the next client gets right results."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from darwinn_sim.device.worker import Worker
from darwinn_sim.usb.descriptors import Mode
from darwinn_sim.usb.function import UsbFunction
from darwinn_testbench.device.usb.messages import Error, Operation
from darwinn_testbench.device.usb.socket_server import SocketServer
from darwinn_testbench.device.usb.usbip import BUS_ID, UsbIpServer
from echo_chip import RUN, echo
from exact_read import exact
from usbip_client import UsbIpClient

SEQUENCES = 200
SECONDS = 20.0
REQUEST = struct.Struct("<5I")
REPLY = struct.Struct("<IIiII")
BASIC = struct.Struct(">5I")
SUBMISSION = struct.Struct(">5I8s")

PROGRAM = bytes((1, 5, 3, 5, 4, 0))
ECHO = struct.pack("<II", 6, 0) + PROGRAM + struct.pack("<II", 5, 1) + b"right"
START = struct.pack("<BBHHHQ", 0x40, 0, RUN & 0xFFFF, RUN >> 16, 8, 1)


def number(draw: random.Random, bits: int = 32) -> int:
    """Any number of so many bits; small ones and the largest are frequent."""
    return draw.choice(
        (draw.randrange(16), draw.getrandbits(8), draw.getrandbits(bits), (1 << bits) - 1)
    )


def setup(draw: random.Random) -> bytes:
    """A setup packet: any one, or one of a kind that there is."""
    if draw.random() < 0.2:
        return draw.randbytes(8)
    kind = draw.choice((0x00, 0x02, 0x21, 0x40, 0x80, 0x82, 0xA1, 0xC0))
    where = draw.choice((RUN, 0x4C060, 0x4C058, 0x1A318, number(draw)))
    return struct.pack(
        "<BBHHH", kind, draw.randrange(12), where & 0xFFFF, where >> 16, draw.choice((0, 4, 8, 99))
    )


def data(draw: random.Random) -> bytes:
    """What goes to an endpoint: a whole program, the beginning of one, or anything."""
    return draw.choice((ECHO, ECHO[: draw.randrange(len(ECHO))], draw.randbytes(number(draw, 10))))


def stand_in_message(draw: random.Random, address: int) -> bytes:
    """For the socket of the stand-in: of any kind, with any fields, or none."""
    operation = draw.choice([*Operation])
    where = address << 8 | draw.choice((1, 2, 3, 0x81, 0x82, 0x83, draw.randrange(256)))
    content = {
        Operation.CONTROL: setup(draw) + draw.randbytes(draw.choice((0, 8))),
        Operation.OUT: data(draw),
    }.get(operation, b"")
    kind = draw.random()
    if kind < 0.05:
        return draw.randbytes(number(draw, 10))
    if kind < 0.1:
        return REQUEST.pack(*(number(draw) for _ in range(5)))
    if kind < 0.2:
        where = number(draw)
    room = number(draw, 22)
    return REQUEST.pack(operation, number(draw, 8), where, room, len(content)) + content


def urb(draw: random.Random) -> bytes:
    """For the socket of USB/IP: a command, with any fields, or none."""
    kind = draw.random()
    if kind < 0.05:
        return draw.randbytes(number(draw, 10))
    if kind < 0.1:
        return BASIC.pack(1, *(number(draw) for _ in range(4))) + draw.randbytes(28)
    if kind < 0.2:
        return BASIC.pack(2, number(draw, 8), 0, 0, 0) + struct.pack(">I24x", number(draw, 8))
    endpoint = draw.choice((0, 0, 1, 1, 2, 3, draw.randrange(16)))
    to_host = draw.randrange(2)
    content = b"" if to_host else data(draw)
    length = number(draw, 22) if to_host else len(content)
    packet = setup(draw) if not endpoint else bytes(8)
    head = BASIC.pack(1, number(draw, 8), 0, to_host, endpoint)
    return head + SUBMISSION.pack(0, length, 0, 0, 0, packet) + content


def send_and_leave(draw: random.Random, connection: socket.socket, messages: list[bytes]) -> None:
    """Send them, the last one perhaps in part; read some answers or none; close or drop it."""
    with connection:
        connection.settimeout(SECONDS)
        if draw.random() < 0.3:
            messages[-1] = messages[-1][: draw.randrange(len(messages[-1]) + 1)]
        with suppress(ConnectionError):
            for each in messages:
                connection.sendall(each)
            if draw.random() < 0.5:
                connection.settimeout(0.02)
                with suppress(TimeoutError):
                    connection.recv(1 << 16)
        if draw.random() < 0.5:
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


@contextmanager
def loop_in_a_thread() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(SECONDS)
        assert not thread.is_alive()


class StandInClient:
    """A client of the stand-in's socket that does as it should."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(SECONDS)
        self.socket.connect(str(path))

    def call(self, operation: Operation, where: int = 0, room: int = 0, data: bytes = b"") -> bytes:
        self.socket.sendall(REQUEST.pack(operation, 7, where, room, len(data)) + data)
        while True:
            answered, _, error, _, size = REPLY.unpack(exact(self.socket, REPLY.size))
            answer = exact(self.socket, size)
            if answered == operation:
                assert error == Error.NONE, Error(error)
                return answer


def by_stand_in(path: Path) -> bytes:
    """What a client gets that finds, opens and uses the device."""
    client = StandInClient(path)
    with client.socket:
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                address = client.call(Operation.DEVICE)[3] << 8
                client.call(Operation.OPEN, address)
                break
            except (AssertionError, EOFError):
                # The one before has not left it yet.
                assert time.monotonic() < deadline
                time.sleep(0.005)
        client.call(Operation.CONTROL, address, data=START)
        client.call(Operation.OUT, address | 1, data=ECHO)
        return client.call(Operation.IN, address | 0x81, 64)


def test_any_messages_to_the_stand_in_s_socket(tmp_path: Path) -> None:
    function = UsbFunction(echo, mode=Mode.APPLICATION)
    path = tmp_path / "device"

    async def begin() -> SocketServer:
        server = SocketServer(function)
        server.listen(path)
        return server

    with loop_in_a_thread() as loop, Worker(function):
        server = asyncio.run_coroutine_threadsafe(begin(), loop).result(SECONDS)
        for seed in range(SEQUENCES):
            draw = random.Random(seed)
            begins = [REQUEST.pack(Operation.OPEN, 0, function.address << 8, 0, 0)]
            begins += [REQUEST.pack(Operation.CONTROL, 0, function.address << 8, 0, 16) + START]
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(str(path))
            messages = [
                stand_in_message(draw, function.address) for _ in range(draw.randrange(1, 20))
            ]
            send_and_leave(draw, connection, begins[: draw.randrange(3)] + messages)
            assert by_stand_in(path) == b"right", f"seed {seed}"
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(SECONDS)


def by_kernel(port: int) -> bytes:
    """What a kernel gets that imports and uses the device."""
    deadline = time.monotonic() + SECONDS
    while True:
        client = UsbIpClient(port)
        client.socket.settimeout(SECONDS)
        if not client.take(BUS_ID):
            break
        client.close()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    client.ctrl_transfer(0x40, 0, RUN & 0xFFFF, RUN >> 16, (1).to_bytes(8, "little"))
    client.write(1, ECHO)
    came = client.read(1, 64)
    client.close()
    return came


def test_any_messages_to_the_socket_of_usb_ip() -> None:
    function = UsbFunction(echo, mode=Mode.APPLICATION)

    async def begin() -> asyncio.Server:
        return await UsbIpServer(function).listen(0)

    with loop_in_a_thread() as loop, Worker(function):
        listening = asyncio.run_coroutine_threadsafe(begin(), loop).result(SECONDS)
        port = listening.sockets[0].getsockname()[1]
        for seed in range(SEQUENCES):
            draw = random.Random(seed)
            start = BASIC.pack(1, 0, 0, 0, 0) + SUBMISSION.pack(0, 8, 0, 0, 0, START[:8])
            begins = [struct.pack(">HHI32s", 0x0111, 0x8003, 0, BUS_ID.encode()), start + START[8:]]
            connection = socket.create_connection(("127.0.0.1", port))
            messages = [urb(draw) for _ in range(draw.randrange(1, 20))]
            send_and_leave(draw, connection, begins[: draw.randrange(3)] + messages)
            assert by_kernel(port) == b"right", f"seed {seed}"
        loop.call_soon_threadsafe(listening.close)
        time.sleep(0.05)


def test_one_message_may_not_hold_the_device(tmp_path: Path) -> None:
    """Of a length that is never sent: others are answered."""
    function = UsbFunction(echo, mode=Mode.APPLICATION)
    path = tmp_path / "device"

    async def begin() -> SocketServer:
        server = SocketServer(function)
        server.listen(path)
        return server

    with loop_in_a_thread() as loop, Worker(function), socket.socket(socket.AF_UNIX) as silent:
        server = asyncio.run_coroutine_threadsafe(begin(), loop).result(SECONDS)
        silent.connect(str(path))
        silent.sendall(REQUEST.pack(Operation.OUT, 1, 0x101, 0, 1 << 26) + b"half")
        assert by_stand_in(path) == b"right"
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(SECONDS)
