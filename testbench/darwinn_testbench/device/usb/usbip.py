"""The device for a kernel: a server of USB/IP on the loopback interface.

`usbip attach` makes a kernel's virtual host controller import it; then it is a device like any
other, for unmodified drivers. Bus resets stay in the kernel, so that the device has its firmware
from the beginning. Format: the kernel's Documentation/usb/usbip_protocol.rst.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import struct
from collections.abc import Callable
from contextlib import suppress

from darwinn_sim.usb.descriptors import Speed
from darwinn_sim.usb.endpoints import Status, Transfer
from darwinn_sim.usb.errors import Stall
from darwinn_sim.usb.function import UsbFunction
from darwinn_sim.usb.requests import Setup

from darwinn_testbench.device.usb.handover import Handover
from darwinn_testbench.device.usb.outgoing import MAX_LEFT_BYTES
from darwinn_testbench.device.usb.port import BUS, PORT
from darwinn_testbench.device.usb.under_way import MAX_BYTES, UnderWay
from darwinn_testbench.errors import InputError

LOOPBACK = "127.0.0.1"
USUAL_PORT = 3240
BUS_ID = f"{BUS}-{PORT}"
"""What the device is imported by."""

_VERSION = 0x0111
_LIST_REQUEST, _LIST_REPLY = 0x8005, 0x0005
_IMPORT_REQUEST, _IMPORT_REPLY = 0x8003, 0x0003
_OK, _NOT_AVAILABLE, _BUSY = 0, 1, 2
_BUS_ID_BYTES = 32
_SUBMIT, _UNLINK, _SUBMITTED, _UNLINKED = 1, 2, 3, 4

_OPERATION = struct.Struct(">HHI")
_DEVICE = struct.Struct(">256s32sIIIHHHBBBBBB")
_BASIC = struct.Struct(">IIIII")
_SUBMISSION = struct.Struct(">IIIII8s")
_UNLINKING = struct.Struct(">I24x")
_SUBMISSION_RETURN = struct.Struct(">iIIII8x")
_UNLINK_RETURN = struct.Struct(">i24x")

_NO_PACKETS = (0, 0xFFFF_FFFF)
"""Numbers of isochronous packets of a transfer that is not isochronous."""

_SPEEDS = {Speed.HIGH: 3, Speed.SUPER: 5}
_ERRORS = {
    Status.COMPLETED: 0,
    Status.STALLED: errno.EPIPE,
    Status.OVERFLOW: errno.EOVERFLOW,
    Status.CANCELLED: errno.ECONNRESET,
    Status.NO_DEVICE: errno.ESHUTDOWN,
}


async def serve_until_signal(function: UsbFunction, port: int, say: Callable[[str], None]) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP; raises ``InputError`` if the port cannot be had."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stopped.set)
    try:
        listening = await UsbIpServer(function).listen(port)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise InputError(f"--port {port}: {reason} ({LOOPBACK}); another can be given") from None
    say(f"at {LOOPBACK}:{port}: usbip --tcp-port {port} attach -r {LOOPBACK} -b {BUS_ID}")
    await stopped.wait()
    listening.close()


class UsbIpServer:
    """Lists the device, and lends it to one kernel at a time, which finds it reset."""

    def __init__(self, function: UsbFunction) -> None:
        self.function = function
        self.handover = Handover(function)
        self._is_lent = self._is_coming_back = False
        self._is_back = asyncio.Event()

    async def listen(self, port: int = USUAL_PORT) -> asyncio.Server:
        """Begin to serve, on the loopback interface alone; raises ``OSError``."""
        return await asyncio.start_server(self._serve, LOOPBACK, port, limit=1 << 22)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            _, code, _ = _OPERATION.unpack(await reader.readexactly(_OPERATION.size))
            if code == _LIST_REQUEST:
                writer.write(_reply(_LIST_REPLY) + struct.pack(">I", 1) + self._record())
                writer.write(self._interfaces())
                await writer.drain()
            elif code == _IMPORT_REQUEST:
                bus_id = (await reader.readexactly(_BUS_ID_BYTES)).split(b"\0")[0]
                await self._lend(bus_id, reader, writer)
        writer.close()

    async def _lend(
        self, bus_id: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if self._is_coming_back:
            await self._is_back.wait()
        if bus_id != BUS_ID.encode() or self._is_lent:
            writer.write(_reply(_IMPORT_REPLY, _BUSY if self._is_lent else _NOT_AVAILABLE))
            return
        self._is_lent = True
        self._is_back.clear()
        kernel = _Kernel(self, writer)
        try:
            await self.handover.reset()
            writer.write(_reply(_IMPORT_REPLY) + self._record())
            await kernel.serve(reader)
        finally:
            kernel.leave()
            self._is_coming_back = True
            await self.handover.reset()
            self._is_lent = self._is_coming_back = False
            self._is_back.set()

    def _record(self) -> bytes:
        """struct usbip_usb_device."""
        device = self.function.device_descriptor()
        vendor, product, version = struct.unpack_from("<HHH", device, 8)
        path = f"/sys/devices/platform/darwinn/usb{BUS}/{BUS_ID}"
        return _DEVICE.pack(
            *(path.encode(), BUS_ID.encode(), BUS, self.function.address),
            *(_SPEEDS[self.function.speed], vendor, product, version),
            *(*device[4:7], 1, device[17], 1),
        )

    def _interfaces(self) -> bytes:
        """Class, subclass and protocol of the one interface."""
        return self.function.configuration_descriptor()[14:17] + b"\0"


def _reply(code: int, status: int = _OK) -> bytes:
    return _OPERATION.pack(_VERSION, code, status)


class _Kernel:
    """A kernel that has imported the device: its URBs, by their sequence numbers."""

    def __init__(self, server: UsbIpServer, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._writer = writer
        self._transfers = UnderWay(server.function)
        self._unlinked: set[int] = set()
        self._loop = asyncio.get_running_loop()

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Carry out URBs until the kernel detaches, or sends what is none."""
        while True:
            header = _BASIC.unpack(await reader.readexactly(_BASIC.size))
            command, number, _, to_host, endpoint = header
            if command == _UNLINK:
                rest = await reader.readexactly(_UNLINKING.size)
                self._unlink(number, _UNLINKING.unpack(rest)[0])
                continue
            if command != _SUBMIT or endpoint > 0xF:
                return
            rest = await reader.readexactly(_SUBMISSION.size)
            _, length, _, packets, _, setup = _SUBMISSION.unpack(rest)
            if length > MAX_BYTES or packets not in _NO_PACKETS:
                return
            data = b"" if to_host else await reader.readexactly(length)
            if not endpoint:
                await self._control(number, Setup.unpack(setup), data)
            elif not self._transfers.takes(number):
                self._return(number, errno.ENOMEM, 0)
            elif to_host:
                self._transfers.receive(number, endpoint | 0x80, length, self._by_loop)
            else:
                self._transfers.send(number, endpoint, data, self._by_loop)

    def leave(self) -> None:
        """The kernel is gone."""
        self._transfers.cancel_all()

    async def _control(self, number: int, setup: Setup, data: bytes) -> None:
        try:
            answer = await self._server.handover.waited(
                lambda: self._server.function.control(setup, data)
            )
        except Stall:
            self._return(number, errno.EPIPE, 0)
            return
        self._return(number, 0, len(answer) if setup.to_host else len(data), answer)

    def _by_loop(self, number: int, transfer: Transfer) -> None:
        self._loop.call_soon_threadsafe(self._ended, number, transfer)

    def _ended(self, number: int, transfer: Transfer) -> None:
        if number in self._unlinked:
            self._unlinked.remove(number)
            return
        assert transfer.status is not None
        data = transfer.data if transfer.endpoint & 0x80 else b""
        self._return(number, _ERRORS[transfer.status], transfer.actual, data)

    def _return(self, number: int, error: int, moved: int, data: bytes = b"") -> None:
        self._write(_BASIC.pack(_SUBMITTED, number, 0, 0, 0))
        self._write(_SUBMISSION_RETURN.pack(-error, moved, 0, 0xFFFF_FFFF, 0) + data)

    def _unlink(self, number: int, victim: int) -> None:
        """End a URB, which is not returned then; 0 says that it was returned already."""
        ended = self._transfers.cancel(victim)
        if ended:
            self._unlinked.add(victim)
        # Behind the return of a URB that has ended by now: a kernel knows none that comes later.
        self._loop.call_soon(self._unlinked_reply, number, ended)

    def _unlinked_reply(self, number: int, ended: bool) -> None:
        self._write(_BASIC.pack(_UNLINKED, number, 0, 0, 0))
        self._write(_UNLINK_RETURN.pack(-errno.ECONNRESET if ended else 0))

    def _write(self, data: bytes) -> None:
        if self._writer.is_closing():
            return
        self._writer.write(data)
        if self._writer.transport.get_write_buffer_size() > MAX_LEFT_BYTES:
            self._writer.transport.abort()
