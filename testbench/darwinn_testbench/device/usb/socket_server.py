"""The device behind a socket: what the stand-in for libusb asks for, and its answers.

Messages and their numbers are those of ``libusb/stand_in.h``. One process at a time uses the
device; whoever goes away without closing it leaves it reset.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Coroutine
from contextlib import suppress
from enum import IntEnum
from pathlib import Path

from darwinn_sim.usb.endpoints import Status, Transfer
from darwinn_sim.usb.errors import Stall
from darwinn_sim.usb.function import UsbFunction
from darwinn_sim.usb.requests import Setup

from darwinn_testbench.device.sockets import is_of_this_user
from darwinn_testbench.device.usb.handover import Handover
from darwinn_testbench.device.usb.outgoing import Outgoing
from darwinn_testbench.device.usb.port import BUS, PORT
from darwinn_testbench.device.usb.under_way import MAX_BYTES, UnderWay

_REQUEST = struct.Struct("<IIIII")
_REPLY = struct.Struct("<IIiII")
_SETUP_BYTES = 8

MAX_CONNECTIONS = 64


class Operation(IntEnum):
    """What a message asks for."""

    DEVICE = 1
    OPEN = 2
    CLOSE = 3
    RESET = 4
    CONTROL = 5
    OUT = 6
    IN = 7
    CANCEL = 8
    CHANGED = 9


class Error(IntEnum):
    """Errors of libusb, and 0."""

    NONE = 0
    IO = -1
    NO_DEVICE = -4
    NOT_FOUND = -5
    BUSY = -6
    OVERFLOW = -8
    PIPE = -9
    INTERRUPTED = -10
    NO_MEMORY = -11


_ERROR_OF_STATUS = {
    Status.COMPLETED: Error.NONE,
    Status.STALLED: Error.PIPE,
    Status.CANCELLED: Error.INTERRUPTED,
    Status.OVERFLOW: Error.OVERFLOW,
    Status.NO_DEVICE: Error.NO_DEVICE,
}


class SocketServer:
    """Serves a device on a socket in a folder that nobody else can enter."""

    def __init__(self, function: UsbFunction) -> None:
        self.function = function
        self.handover = Handover(function)
        self.user: Connection | None = None
        """Whose device it is now."""
        self._connections: set[Connection] = set()
        self._loop = asyncio.get_running_loop()
        self._alone = asyncio.Event()
        function.changed = self._changed

    async def listen(self, path: Path) -> asyncio.Server:
        """Begin to serve."""
        return await asyncio.start_unix_server(self._serve, path, limit=1 << 22)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ours = is_of_this_user(writer.get_extra_info("socket"))
        if not ours or len(self._connections) >= MAX_CONNECTIONS:
            writer.close()
            return
        connection = Connection(self, writer)
        self._connections.add(connection)
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                await connection.serve(reader)
        finally:
            try:
                await connection.leave()
            finally:
                self._connections.discard(connection)
                connection.close()
                writer.close()
                if not self._connections:
                    self._alone.set()

    def _changed(self) -> None:
        """By whatever thread resets the device."""
        self._loop.call_soon_threadsafe(self._tell_changed)

    def _tell_changed(self) -> None:
        for connection in self._connections:
            connection.reply(Operation.CHANGED, 0, Error.NONE)

    async def close(self) -> None:
        """End all connections."""
        self._alone.clear()
        for connection in self._connections:
            connection.abort()
        if self._connections:
            await self._alone.wait()
        self.handover.close()


class Connection:
    """A process that has loaded the stand-in."""

    def __init__(self, server: SocketServer, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._function = server.function
        self._transport = writer.transport
        self._outgoing = Outgoing(writer)
        self._loop = asyncio.get_running_loop()
        self._opened = 0
        self._has_used = False
        self._transfers = UnderWay(server.function)
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Answer messages until the process is gone, or sends what is none."""
        while True:
            header = await reader.readexactly(_REQUEST.size)
            operation, number, where, room, size = _REQUEST.unpack(header)
            if size > MAX_BYTES or room > MAX_BYTES or operation not in _HANDLERS:
                return
            payload = await reader.readexactly(size)
            _HANDLERS[operation](self, number, where, room, payload)

    def abort(self) -> None:
        """End it at once."""
        self._transport.abort()

    def close(self) -> None:
        """It has ended."""
        self._outgoing.close()

    async def leave(self) -> None:
        """The process is gone: what it began ends, and the next one finds a clean device."""
        self._transfers.cancel_all()
        for task in self._tasks:
            task.cancel()
        if self._has_used and self._server.user is None:
            self._server.user = self
        if self._server.user is self:
            try:
                await self._server.handover.reset()
            finally:
                self._server.user = None

    def reply(
        self, operation: int, number: int, error: Error, moved: int = 0, data: bytes = b""
    ) -> None:
        """Send a reply, from any thread; it never waits."""
        self._outgoing.send(_REPLY.pack(operation, number, error, moved, len(data)) + data)

    # Messages.

    def _device(self, number: int, where: int, room: int, payload: bytes) -> None:
        function = self._function
        head = bytes((BUS, PORT, function.address, function.speed))
        data = head + function.device_descriptor() + function.configuration_descriptor()
        self.reply(Operation.DEVICE, number, Error.NONE, data=data)

    def _open(self, number: int, where: int, room: int, payload: bytes) -> None:
        self._spawn(self._do_open(number, where))

    async def _do_open(self, number: int, where: int) -> None:
        # Behind the reset for a process that has gone.
        await self._server.handover.waited(lambda: None)
        error = Error.NONE
        if where >> 8 != self._function.address:
            error = Error.NO_DEVICE
        elif self._server.user not in (None, self):
            error = Error.BUSY
        else:
            self._server.user = self
            self._has_used = True
            self._opened += 1
        self.reply(Operation.OPEN, number, error)

    def _close(self, number: int, where: int, room: int, payload: bytes) -> None:
        if self._opened:
            self._opened -= 1
            if not self._opened:
                self._transfers.cancel_all()
                self._server.user = None
        self.reply(Operation.CLOSE, number, Error.NONE)

    def _refusal(self, where: int) -> Error:
        """Why a message to the device at an address cannot be carried out."""
        if not self._opened or where >> 8 != self._function.address:
            return Error.NO_DEVICE
        return Error.NONE

    def _reset(self, number: int, where: int, room: int, payload: bytes) -> None:
        self._later(Operation.RESET, number, where, self._do_reset)

    def _do_reset(self) -> tuple[Error, int, bytes]:
        return (Error.NOT_FOUND if self._function.reset() else Error.NONE), 0, b""

    def _control(self, number: int, where: int, room: int, payload: bytes) -> None:
        if len(payload) < _SETUP_BYTES:
            self.reply(Operation.CONTROL, number, Error.PIPE)
            return
        setup, data = Setup.unpack(payload[:_SETUP_BYTES]), payload[_SETUP_BYTES:]
        self._later(Operation.CONTROL, number, where, lambda: self._do_control(setup, data))

    def _do_control(self, setup: Setup, data: bytes) -> tuple[Error, int, bytes]:
        try:
            answer = self._function.control(setup, data)
        except Stall:
            return Error.PIPE, 0, b""
        return Error.NONE, len(answer) if setup.to_host else len(data), answer

    def _later(
        self,
        operation: Operation,
        number: int,
        where: int,
        work: Callable[[], tuple[Error, int, bytes]],
    ) -> None:
        """Reply when ``work`` is done, which may wait for the chip a little."""
        if error := self._refusal(where):
            self.reply(operation, number, error)
            return

        async def answer() -> None:
            try:
                answered = await self._server.handover.waited(work)
            except Exception:
                # A defect of this program, which is said; a client should not wait for ever.
                self.reply(operation, number, Error.IO)
                raise
            self.reply(operation, number, *answered)

        self._spawn(answer())

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _out(self, number: int, where: int, room: int, payload: bytes) -> None:
        if self._can_begin(Operation.OUT, number, where):
            self._transfers.send(number, where & 0xFF, payload, self._sent)

    def _in(self, number: int, where: int, room: int, payload: bytes) -> None:
        if self._can_begin(Operation.IN, number, where):
            self._transfers.receive(number, where & 0xFF, room, self._received)

    def _can_begin(self, operation: Operation, number: int, where: int) -> bool:
        error = self._refusal(where)
        if not error and not self._transfers.takes(number):
            error = Error.NO_MEMORY
        if error:
            self.reply(operation, number, error)
        return not error

    def _sent(self, number: int, transfer: Transfer) -> None:
        self.reply(Operation.OUT, number, _error_of(transfer), transfer.actual)

    def _received(self, number: int, transfer: Transfer) -> None:
        data = transfer.data
        self.reply(Operation.IN, number, _error_of(transfer), len(data), data)

    def _cancel(self, number: int, where: int, room: int, payload: bytes) -> None:
        self._transfers.cancel(where)


def _error_of(transfer: Transfer) -> Error:
    assert transfer.status is not None
    return _ERROR_OF_STATUS[transfer.status]


_HANDLERS = {
    Operation.DEVICE: Connection._device,
    Operation.OPEN: Connection._open,
    Operation.CLOSE: Connection._close,
    Operation.RESET: Connection._reset,
    Operation.CONTROL: Connection._control,
    Operation.OUT: Connection._out,
    Operation.IN: Connection._in,
    Operation.CANCEL: Connection._cancel,
}
