"""Several clients of the socket, message by message."""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
from darwinn_sim.usb.descriptors import Mode
from darwinn_sim.usb.function import UsbFunction
from darwinn_testbench.device.usb.messages import Error, Operation
from darwinn_testbench.device.usb.socket_server import MAX_WAITING, SocketServer
from echo_chip import RUN, echo

TIME_LIMIT = 20
ADDRESS = 1 << 8


class Client:
    """A connection that sends requests and takes replies."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def begin(self, operation: Operation, where: int = 0, room: int = 0, data: bytes = b"") -> None:
        """A request, whose number is that of its operation."""
        self.writer.write(struct.pack("<5I", operation, operation, where, room, len(data)) + data)

    async def reply(self) -> tuple[Operation, int, bytes]:
        header = struct.unpack("<IIiII", await self.reader.readexactly(20))
        return Operation(header[0]), header[2], await self.reader.readexactly(header[4])

    async def call(self, operation: Operation, where: int = 0, data: bytes = b"") -> bytes:
        self.begin(operation, where, data=data)
        answered, error, answer = await self.reply()
        assert (answered, error) == (operation, Error.NONE)
        return answer

    async def open(self) -> None:
        await self.call(Operation.OPEN, ADDRESS)

    async def run_control(self, command: int | None = None) -> int:
        """Write or read a register."""
        if command is None:
            setup = struct.pack("<BBHHH", 0xC0, 0, RUN & 0xFFFF, RUN >> 16, 8)
            return int.from_bytes(await self.call(Operation.CONTROL, ADDRESS, setup), "little")
        setup = struct.pack("<BBHHH", 0x40, 0, RUN & 0xFFFF, RUN >> 16, 8)
        await self.call(Operation.CONTROL, ADDRESS, setup + command.to_bytes(8, "little"))
        return command

    async def leave(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


class Bench:
    """A device on a socket."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "device"
        self.function = UsbFunction(echo, mode=Mode.APPLICATION)
        self.server = SocketServer(self.function)

    async def client(self) -> Client:
        return Client(*await asyncio.open_unix_connection(self.path))

    async def leave(self, client: Client) -> None:
        """The client goes, and the server has seen it."""
        before = len(self.server._connections)
        await client.leave()
        while len(self.server._connections) == before:
            await asyncio.sleep(0.01)


async def one_leaves_what_another_has(bench: Bench) -> None:
    first, second = await bench.client(), await bench.client()
    await first.open()
    await first.call(Operation.CLOSE, ADDRESS)
    await second.open()
    await second.run_control(1)
    await bench.leave(first)
    assert await second.run_control() == 1


async def one_closes_and_still_reads(bench: Bench) -> None:
    first, second = await bench.client(), await bench.client()
    await first.open()
    first.begin(Operation.IN, ADDRESS | 0x81, room=64)
    first.begin(Operation.CLOSE, ADDRESS)
    ended = sorted([await first.reply(), await first.reply()])
    assert ended == [(Operation.CLOSE, Error.NONE, b""), (Operation.IN, Error.INTERRUPTED, b"")]
    await second.open()


async def one_leaves_and_the_next_opens_at_once(bench: Bench) -> None:
    first, second = await bench.client(), await bench.client()
    await first.open()
    await first.run_control(1)
    await bench.leave(first)
    await second.open()
    assert await second.run_control() == 0


async def one_leaves_while_it_opens(bench: Bench) -> None:
    for _ in range(5):
        first = await bench.client()
        first.begin(Operation.OPEN, ADDRESS)
        await first.leave()
        await asyncio.sleep(0.02)
    await (await bench.client()).open()


async def one_detaches_and_the_next_has_its_firmware(bench: Bench) -> None:
    detach = struct.pack("<BBHHH", 0x21, 0, 0, 0, 0)
    for has_reset in (False, True):
        client = await bench.client()
        address = (await client.call(Operation.DEVICE))[3] << 8
        await client.call(Operation.OPEN, address)
        await client.call(Operation.CONTROL, address, detach)
        if has_reset:
            client.begin(Operation.RESET, address)
            came = {(await client.reply())[0] for _ in range(2)}
            assert came == {Operation.RESET, Operation.CHANGED}
            assert bench.function.mode is Mode.BOOT
        await bench.leave(client)
        assert bench.function.mode is Mode.APPLICATION


async def one_asks_for_more_than_can_wait(bench: Bench) -> None:
    client = await bench.client()
    await client.open()
    read = struct.pack("<BBHHH", 0xC0, 0, RUN & 0xFFFF, RUN >> 16, 8)
    go = threading.Event()
    held = asyncio.ensure_future(
        bench.server.plugged[0].handover.waited(lambda: go.wait(TIME_LIMIT))
    )
    try:
        for _ in range(MAX_WAITING + 3):
            client.begin(Operation.CONTROL, ADDRESS, data=read)
        refused = [await client.reply() for _ in range(3)]
    finally:
        go.set()
    answered = [await client.reply() for _ in range(MAX_WAITING)]
    assert await held
    assert {error for _, error, _ in refused} == {Error.NO_MEM}
    assert {error for _, error, _ in answered} == {Error.NONE}
    assert await client.run_control() == 0


async def one_sends_more_data_than_a_control_request_has(bench: Bench) -> None:
    client = await bench.client()
    await client.open()
    client.begin(Operation.CONTROL, ADDRESS, data=bytes(8 + (1 << 16)))
    assert await client.reply() == (Operation.CONTROL, Error.PIPE, b"")
    assert await client.run_control() == 0


@pytest.mark.parametrize(
    "scenario",
    [
        one_asks_for_more_than_can_wait,
        one_sends_more_data_than_a_control_request_has,
        one_leaves_what_another_has,
        one_closes_and_still_reads,
        one_leaves_and_the_next_opens_at_once,
        one_leaves_while_it_opens,
        one_detaches_and_the_next_has_its_firmware,
    ],
)
def test_clients_come_and_go(
    tmp_path: Path, scenario: Callable[[Bench], Coroutine[object, object, None]]
) -> None:
    async def run() -> None:
        bench = Bench(tmp_path)
        bench.server.listen(bench.path)
        await asyncio.wait_for(scenario(bench), TIME_LIMIT)
        await bench.server.close()

    asyncio.run(run())


def test_a_reset_that_fails_keeps_neither_the_device_nor_the_server(tmp_path: Path) -> None:
    def fail() -> bool:
        raise RuntimeError("no reset")

    async def run() -> None:
        bench = Bench(tmp_path)
        bench.server.listen(bench.path)
        first, second = await bench.client(), await bench.client()
        await first.open()
        bench.function.reset = fail  # type: ignore[method-assign]
        await bench.leave(first)
        await second.open()
        await asyncio.wait_for(bench.server.close(), TIME_LIMIT)

    asyncio.run(run())
