"""Devices behind a socket: what the stand-in for libusb asks for, and their answers.

One process at a time uses a device; whoever goes away without closing it leaves it reset.

A thread for each process reads its messages and carries out what waits for nothing, which is all
that moves data; what may wait for the chip is done by the loop.
"""

from __future__ import annotations

import asyncio
import select
import socket
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from io import BufferedReader
from pathlib import Path

from darwinn_sim.usb.endpoints import Status, Transfer
from darwinn_sim.usb.errors import Stall
from darwinn_sim.usb.function import MAX_ADDRESS, UsbFunction
from darwinn_sim.usb.requests import Setup

from darwinn_testbench.device.clock import LOOK_SECONDS, Clock, seconds_of
from darwinn_testbench.device.sockets import is_of_this_user
from darwinn_testbench.device.usb.handover import Handover
from darwinn_testbench.device.usb.messages import (
    ADDRESS_SHIFT,
    SETUP_BYTES,
    DeviceReply,
    Error,
    Operation,
    Reply,
    Request,
)
from darwinn_testbench.device.usb.outgoing import Outgoing
from darwinn_testbench.device.usb.port import BUS, PORT
from darwinn_testbench.device.usb.under_way import MAX_BYTES, UnderWay

_MAX_CONTROL_BYTES = SETUP_BYTES + (1 << 16) - 1

MAX_CONNECTIONS = 64

MAX_WAITING = 1024
"""Requests of a client that wait for the chip, besides transfers."""

_ON_THE_WAY_SECONDS = 2e-3
"""How long a message may have been under way."""

_PAUSE_SECONDS = 1.0
"""After a connection that could not be taken."""

_ERROR_OF_STATUS = {
    Status.COMPLETED: Error.NONE,
    Status.STALLED: Error.PIPE,
    Status.CANCELLED: Error.INTERRUPTED,
    Status.OVERFLOW: Error.OVERFLOW,
    Status.NO_DEVICE: Error.NO_DEVICE,
}


class Plugged:
    """A device at a port of the bus; ``clock`` is that of time-outs."""

    def __init__(self, function: UsbFunction, port: int, clock: Clock) -> None:
        self.function, self.port = function, port
        self.clock = seconds_of(clock, function)
        self.handover = Handover(function)
        self.user: Connection | None = None
        """Whose device it is now."""
        self.lock = threading.Lock()
        """For who opens and who closes it."""


class SocketServer:
    """Serves devices on a socket in a folder that nobody else can enter.

    Args:
        functions: the devices, in the order of their ports. They get addresses of one bus.
        clock: what time-outs of transfers count.
    """

    def __init__(self, *functions: UsbFunction, clock: Clock = Clock.CHIP) -> None:
        self.plugged = [
            Plugged(each, PORT + number, clock) for number, each in enumerate(functions)
        ]
        self._listener = socket.socket(socket.AF_UNIX)
        self._connections: set[Connection] = set()
        self._threads = ThreadPoolExecutor(MAX_CONNECTIONS, "darwinn-client")
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._address_lock = threading.Lock()
        self._last_address = len(functions)
        for address, function in enumerate(functions, 1):
            function.address = address
            function.readdress = lambda _: self._next_address()
            function.changed = self._changed

    def _next_address(self) -> int:
        """An address that no device has, and for long none has had."""
        with self._address_lock:
            taken = {each.function.address for each in self.plugged}
            while True:
                self._last_address = self._last_address % MAX_ADDRESS + 1
                if self._last_address not in taken:
                    return self._last_address

    def listen(self, path: Path) -> None:
        """Begin to serve; raises ``OSError`` if the socket cannot be made."""
        self._listener.bind(str(path))
        self._listener.listen()
        self._listener.setblocking(False)
        self._watch()

    def _watch(self) -> None:
        if self._listener.fileno() >= 0:
            self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError:
            # There may be no descriptor left: whoever knocks has to wait.
            self._loop.remove_reader(self._listener)
            self._loop.call_later(_PAUSE_SECONDS, self._watch)
            return
        if not is_of_this_user(client) or len(self._connections) >= MAX_CONNECTIONS:
            client.close()
            return
        client.setblocking(True)
        connection = Connection(self, client)
        self._connections.add(connection)
        task = self._loop.create_task(self._serve(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: Connection) -> None:
        try:
            await self._loop.run_in_executor(self._threads, connection.serve)
        finally:
            try:
                await connection.leave()
            finally:
                self._connections.discard(connection)
                connection.close()

    def _changed(self) -> None:
        """By whatever thread resets the device."""
        self._loop.call_soon_threadsafe(self._tell_changed)

    def _tell_changed(self) -> None:
        for connection in self._connections:
            connection.reply(Operation.CHANGED, 0, Error.NONE)

    async def close(self) -> None:
        """Serve nobody any more."""
        self._loop.remove_reader(self._listener)
        self._listener.close()
        for connection in self._connections:
            connection.hang_up()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._threads.shutdown()
        for each in self.plugged:
            each.handover.close()


class Use:
    """What a process has of a device."""

    def __init__(self, plugged: Plugged) -> None:
        self.plugged = plugged
        self.function = plugged.function
        self.opened: Counter[int] = Counter()
        """Handles, by the address that the device had when they were opened."""
        self.has_opened = False
        """At some time."""
        self.transfers = UnderWay(plugged.function, plugged.clock)


class Connection:
    """A process that has loaded the stand-in."""

    def __init__(self, server: SocketServer, client: socket.socket) -> None:
        self._socket = client
        self._outgoing = Outgoing(client)
        self._loop = asyncio.get_running_loop()
        self._uses = [Use(each) for each in server.plugged]
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = threading.Semaphore(MAX_WAITING)
        self._left = asyncio.Event()

    def serve(self) -> None:
        """Answer messages until the process is gone, or sends what is none; by its own thread."""
        try:
            with suppress(OSError), self._socket.makefile("rb") as messages:
                while self._answer(messages):
                    pass
        finally:
            # Also of one that is still there: who opens the device next sees that it has ended.
            self.hang_up()

    def _answer(self, messages: BufferedReader) -> bool:
        """The next message; False if there is none."""
        header = messages.read(Request.layout.size)
        if len(header) < Request.layout.size:
            return False
        asked = Request.unpack(header)
        if max(asked.size, asked.room) > MAX_BYTES or asked.operation not in _HANDLERS:
            return False
        payload = messages.read(asked.size)
        if len(payload) == asked.size:
            _HANDLERS[asked.operation](self, asked.number, asked.where, asked.room, payload)
        return bool(len(payload) == asked.size)

    def hang_up(self) -> None:
        """End it: the process is told nothing more, and nothing of it is read."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def has_ended(self) -> bool:
        """Whether the process is gone, or has closed its end."""
        ends = select.poll()
        ends.register(self._socket, select.POLLRDHUP)
        return bool(ends.poll(0))

    async def leave(self) -> None:
        """The process is gone: what it began ends, and the next one finds clean devices."""
        for use in self._uses:
            use.transfers.cancel_all()
        for task in self._tasks:
            task.cancel()
        try:
            await asyncio.gather(*(self._hand_back(use) for use in self._uses))
        finally:
            self._left.set()

    async def _hand_back(self, use: Use) -> None:
        plugged = use.plugged
        if use.has_opened and plugged.user is None:
            plugged.user = self
        if plugged.user is not self:
            return
        try:
            await plugged.handover.reset()
        finally:
            plugged.user = None

    def close(self) -> None:
        """It has ended."""
        self.hang_up()
        self._outgoing.close()
        self._socket.close()

    def reply(
        self, operation: int, number: int, error: Error, moved: int = 0, data: bytes = b""
    ) -> None:
        """Send a reply, from any thread; it never waits."""
        reply = Reply(operation=operation, number=number, status=error, moved=moved, size=len(data))
        self._outgoing.send(reply.pack() + data)

    # Messages.

    def _device(self, number: int, where: int, room: int, payload: bytes) -> None:
        if where >= len(self._uses):
            self.reply(Operation.DEVICE, number, Error.NO_DEVICE)
            return
        function = self._uses[where].function
        found = DeviceReply(
            count=len(self._uses),
            bus=BUS,
            port=self._uses[where].plugged.port,
            address=function.address,
            speed=function.speed,
            device=function.device_descriptor(),
        )
        data = found.pack() + function.configuration_descriptor()
        self.reply(Operation.DEVICE, number, Error.NONE, data=data)

    def _open(self, number: int, where: int, room: int, payload: bytes) -> None:
        self._by_loop(Operation.OPEN, number, lambda: self._do_open(number, where))

    async def _do_open(self, number: int, where: int) -> None:
        use = self._at(where)
        if use is None:
            self.reply(Operation.OPEN, number, Error.NO_DEVICE)
            return
        # Behind the reset for a process that has gone, also if that is not seen yet.
        await use.plugged.handover.waited(lambda: None)
        while (user := use.plugged.user) not in (None, self) and user.has_ended():
            await user._left.wait()
        self.reply(Operation.OPEN, number, self._take(use, where >> ADDRESS_SHIFT))

    def _at(self, where: int) -> Use | None:
        """The device that has an address now."""
        address = where >> ADDRESS_SHIFT
        return next((use for use in self._uses if use.function.address == address), None)

    def _take(self, use: Use, address: int) -> Error:
        """Have the device; why that cannot be."""
        with use.plugged.lock:
            if address != use.function.address:
                return Error.NO_DEVICE
            if use.plugged.user not in (None, self):
                return Error.BUSY
            use.plugged.user = self
            use.has_opened = True
            use.opened[address] += 1
            return Error.NONE

    def _close(self, number: int, where: int, room: int, payload: bytes) -> None:
        address = where >> ADDRESS_SHIFT
        # A reset may have made another device of it, which has another address.
        for use in self._uses:
            with use.plugged.lock:
                if use.opened[address]:
                    use.opened[address] -= 1
                    if not use.opened.total():
                        use.transfers.cancel_all()
                        use.plugged.user = None
        self.reply(Operation.CLOSE, number, Error.NONE)

    def _opened_at(self, where: int) -> Use | None:
        """The device that has an address now, if the process has it open."""
        use = self._at(where)
        return use if use is not None and use.opened.total() else None

    def _reset(self, number: int, where: int, room: int, payload: bytes) -> None:
        self._later(Operation.RESET, number, where, self._do_reset)

    def _do_reset(self, function: UsbFunction) -> tuple[Error, int, bytes]:
        return (Error.NOT_FOUND if function.reset() else Error.NONE), 0, b""

    def _control(self, number: int, where: int, room: int, payload: bytes) -> None:
        if not SETUP_BYTES <= len(payload) <= _MAX_CONTROL_BYTES:
            self.reply(Operation.CONTROL, number, Error.PIPE)
            return
        setup, data = Setup.unpack(payload[:SETUP_BYTES]), payload[SETUP_BYTES:]
        work = partial(self._do_control, setup=setup, data=data)
        self._later(Operation.CONTROL, number, where, work)

    def _do_control(
        self, function: UsbFunction, setup: Setup, data: bytes
    ) -> tuple[Error, int, bytes]:
        try:
            answer = function.control(setup, data)
        except Stall:
            return Error.PIPE, 0, b""
        return Error.NONE, len(answer) if setup.to_host else len(data), answer

    def _later(
        self,
        operation: Operation,
        number: int,
        where: int,
        work: Callable[[UsbFunction], tuple[Error, int, bytes]],
    ) -> None:
        """Reply when ``work`` is done with the device, which may wait for the chip a little."""
        use = self._opened_at(where)
        if use is None:
            self.reply(operation, number, Error.NO_DEVICE)
            return
        plugged = use.plugged

        async def answer() -> None:
            try:
                answered = await plugged.handover.waited(partial(work, plugged.function))
            except Exception:
                # A defect of this program, which is said; a client should not wait for ever.
                self.reply(operation, number, Error.IO)
                raise
            self.reply(operation, number, *answered)

        self._by_loop(operation, number, answer)

    def _by_loop(
        self, operation: Operation, number: int, work: Callable[[], Coroutine[object, object, None]]
    ) -> None:
        if self._room.acquire(blocking=False):
            self._loop.call_soon_threadsafe(self._spawn, work)
        else:
            self.reply(operation, number, Error.NO_MEM)

    def _spawn(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        task = self._loop.create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._room.release()

    def _out(self, number: int, where: int, room: int, payload: bytes) -> None:
        if transfers := self._room_for(Operation.OUT, number, where):
            transfers.send(number, where & 0xFF, payload, self._sent)

    def _in(self, number: int, where: int, room: int, payload: bytes) -> None:
        if transfers := self._room_for(Operation.IN, number, where):
            transfers.receive(number, where & 0xFF, room, self._received)

    def _room_for(self, operation: Operation, number: int, where: int) -> UnderWay | None:
        """Where a transfer can begin; if it cannot, that is the reply."""
        use = self._opened_at(where)
        if use is not None and use.transfers.takes(number):
            return use.transfers
        self.reply(operation, number, Error.NO_DEVICE if use is None else Error.NO_MEM)
        return None

    def _sent(self, number: int, transfer: Transfer) -> None:
        self.reply(Operation.OUT, number, _error_of(transfer), transfer.actual)

    def _received(self, number: int, transfer: Transfer) -> None:
        data = transfer.data
        self.reply(Operation.IN, number, _error_of(transfer), len(data), data)

    def _expire(self, number: int, where: int, room: int, payload: bytes) -> None:
        """End a transfer when it is as old as the client has let it become, by its clock."""
        for use in self._uses:
            age = use.transfers.age(where)
            if age is None:
                continue
            left = room / 1000 - age
            # The client's clock began a little earlier, when it sent the transfer.
            if left <= _ON_THE_WAY_SECONDS:
                use.transfers.cancel(where)
            else:
                again = partial(self._expire, number, where, room, payload)
                wait = max(left, LOOK_SECONDS)
                self._loop.call_soon_threadsafe(self._loop.call_later, wait, again)

    def _cancel(self, number: int, where: int, room: int, payload: bytes) -> None:
        for use in self._uses:
            use.transfers.cancel(where)


def _error_of(transfer: Transfer) -> Error:
    assert transfer.status is not None
    return _ERROR_OF_STATUS[transfer.status]


_HANDLERS: Mapping[int, Callable[[Connection, int, int, int, bytes], None]] = {
    Operation.DEVICE: Connection._device,
    Operation.OPEN: Connection._open,
    Operation.CLOSE: Connection._close,
    Operation.RESET: Connection._reset,
    Operation.CONTROL: Connection._control,
    Operation.OUT: Connection._out,
    Operation.IN: Connection._in,
    Operation.CANCEL: Connection._cancel,
    Operation.EXPIRE: Connection._expire,
}
