"""The device for a kernel, by USB/IP; a client of the protocol stands for the kernel."""

from __future__ import annotations

import asyncio
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from darwinn_sim.device.worker import Worker
from darwinn_sim.usb.descriptors import Mode, Speed
from darwinn_sim.usb.function import UsbFunction
from darwinn_testbench.chip.inputs import random_inputs
from darwinn_testbench.chip.model import open_models
from darwinn_testbench.chip.session import Session
from darwinn_testbench.device.usb import usbip
from darwinn_testbench.device.usb.attach import new_function
from darwinn_testbench.device.usb.usbip import BUS_ID, UsbIpServer
from echo_chip import RUN, echo
from sample_files import sample
from usbip_client import Returned, UsbIpClient

PROGRAM = bytes((1, 5, 3, 5, 4, 0))
EVENT = struct.pack("<QIB3x", 0, 0, 4)

Connect = Callable[[], UsbIpClient]


@contextmanager
def serving(function: UsbFunction) -> Iterator[Connect]:
    """A server of the function in a thread; makes connections to it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def begin() -> asyncio.Server:
        return await UsbIpServer(function).listen(0)

    async def end() -> None:
        server.close()
        for client in clients:
            client.close()
        await asyncio.sleep(0.05)

    clients: list[UsbIpClient] = []
    server = asyncio.run_coroutine_threadsafe(begin(), loop).result(10)
    host, port = server.sockets[0].getsockname()
    assert host == "127.0.0.1"

    def connect() -> UsbIpClient:
        clients.append(UsbIpClient(port))
        return clients[-1]

    try:
        with Worker(function):
            yield connect
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


@pytest.fixture
def connect() -> Iterator[Connect]:
    with serving(UsbFunction(echo, mode=Mode.APPLICATION)) as made:
        yield made


def imported(connect: Connect) -> UsbIpClient:
    """A client that has the device; what another has sent may still be read."""
    for _ in range(1000):
        client = connect()
        if not client.take(BUS_ID):
            client.ctrl_transfer(0x40, 0, RUN & 0xFFFF, RUN >> 16, (1).to_bytes(8, "little"))
            return client
        client.close()
        time.sleep(0.01)
    raise AssertionError("the device stays busy")


def echoed(client: UsbIpClient, text: bytes) -> bytes:
    client.send(0, PROGRAM)
    client.send(1, text)
    data = client.read(1, 64)
    assert client.read(2, 16) == EVENT
    return data


@pytest.mark.parametrize(("speed", "number"), [(Speed.HIGH, 3), (Speed.SUPER, 5)])
def test_the_device_is_listed(speed: Speed, number: int) -> None:
    with serving(UsbFunction(echo, mode=Mode.APPLICATION, speed=speed)) as connect:
        assert connect().devices() == [(BUS_ID, number, 0x18D1, 0x9302)]


def test_it_enumerates_and_runs_a_program(connect: Connect) -> None:
    client = imported(connect)
    device = client.control(struct.pack("<BBHHH", 0x80, 6, 0x100, 0, 18), 18)
    assert device.data[8:12] == bytes.fromhex("d118 0293")
    configuration = client.control(struct.pack("<BBHHH", 0x80, 6, 0x200, 0, 512), 512)
    assert len(configuration.data) == int.from_bytes(configuration.data[2:4], "little")
    assert client.control(struct.pack("<BBHHH", 0x00, 9, 1, 0, 0), b"").status == 0
    assert client.control(struct.pack("<BBHHH", 0x80, 6, 0x300, 0, 255), 255).status == -32
    assert [echoed(client, text) for text in (b"first", b"again")] == [b"first", b"again"]


def test_urbs_wait_and_come_back_in_any_order(connect: Connect) -> None:
    client = imported(connect)
    error, event, output = (client.submit(*each) for each in ((3, 4), (2, 16), (1, 64)))
    stream = struct.pack("<II", 6, 0) + PROGRAM + struct.pack("<II", 5, 1) + b"later"
    sent = client.submit(1, stream)
    came = {each.number: each for each in (client.returned() for _ in range(3))}
    assert came[sent].actual == len(stream)
    assert came[output].data == b"later"
    assert came[event].data == EVENT
    assert error not in came


def test_an_unlinked_urb_does_not_come_back(connect: Connect) -> None:
    client = imported(connect)
    first, second = client.submit(1, 64), client.submit(1, 64)
    unlinked = client.unlink(first)
    assert client.returned() == Returned(4, unlinked, -104)
    stream = struct.pack("<II", 6, 0) + PROGRAM + struct.pack("<II", 5, 1) + b"other"
    sent = client.submit(1, stream)
    came = {each.number: each for each in (client.returned() for _ in range(2))}
    assert came.keys() == {sent, second}
    assert came[second].data == b"other"
    again = client.unlink(second)
    assert client.returned() == Returned(4, again, 0)


def test_one_kernel_at_a_time_and_the_next_finds_it_clean(connect: Connect) -> None:
    first = imported(connect)
    other = connect()
    assert other.take(BUS_ID) == 2
    assert connect().take("9-9") == 2
    first.send(0, PROGRAM)
    first.write(1, b"\x05\0\0\0\x01\0\0\0ha")
    first.close()
    assert echoed(imported(connect), b"right") == b"right"
    assert connect().devices()[0][0] == BUS_ID


def test_an_unknown_device_is_not_there(connect: Connect) -> None:
    assert connect().take("9-9") == 1


def test_a_model_runs(tmp_path: Path) -> None:
    pytest.importorskip("usb.core", reason="PyUSB is not installed")
    from usb_inference import outputs_by_usb

    sample(tmp_path)
    (model,) = open_models(tmp_path / "dense_edgetpu.tflite")
    (tensors,) = random_inputs(model.ports, seed=3, runs=1)
    expected = Session(model).infer(tensors).result.outputs
    with serving(new_function(boot=False)) as connect:
        client = connect()
        assert client.take(BUS_ID) == 0
        assert outputs_by_usb(model, 3, device=client) == expected


@pytest.mark.parametrize(
    "garbage",
    [
        b"\0" * 8,
        struct.pack(">HHI", 0x0111, 0x8003, 0) + b"half",
        struct.pack(">HHI32s", 0x0111, 0x8003, 0, BUS_ID.encode()) + b"\xff" * 48,
        struct.pack(">HHI32s", 0x0111, 0x8003, 0, BUS_ID.encode())
        + struct.pack(">IIIII", 1, 1, 0, 0, 1)
        + struct.pack(">IIIII8x", 0, 1 << 31, 0, 0, 0),
        struct.pack(">HHI32s", 0x0111, 0x8003, 0, BUS_ID.encode())
        + struct.pack(">IIIII", 1, 1, 0, 0, 1)
        + struct.pack(">IIIII8x", 0, 100, 0, 7, 0),
    ],
    ids=range(5),
)
def test_garbage_ends_that_connection_alone(connect: Connect, garbage: bytes) -> None:
    broken = connect()
    broken.socket.sendall(garbage)
    broken.close()
    assert echoed(imported(connect), b"right") == b"right"


def test_a_kernel_that_never_reads_is_left(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usbip, "MAX_LEFT_BYTES", 1 << 16)
    deaf = imported(connect)
    unlink = struct.pack(">IIIII", 2, 1, 0, 0, 0) + struct.pack(">I24x", 0)
    with pytest.raises(ConnectionError):
        for _ in range(1000):
            deaf.socket.sendall(unlink * 1000)
    assert echoed(imported(connect), b"right") == b"right"
