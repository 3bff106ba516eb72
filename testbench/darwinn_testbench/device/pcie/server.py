"""The device for programs in other processes, which reach it through the shim.

Each program has a connection, and one of them at a time the device: it is opened with the first
file that the program opens, and closed with its last one, or when the program ends.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType

from darwinn_sim.device.worker import Worker
from darwinn_sim.errors import SimulationError
from darwinn_sim.pcie.function import HostFault, PcieFunction
from darwinn_sim.pcie.kernel_driver import KernelDriver

from darwinn_testbench.device.pcie import ioctls, messages
from darwinn_testbench.device.pcie.messages import BrokenMessage, Message, Operation, answer
from darwinn_testbench.device.pcie.program_memory import ProgramGone, ProgramMemory
from darwinn_testbench.device.sockets import is_of_this_user
from darwinn_testbench.report import one_line

MAX_CONNECTIONS = 32
"""Programs that may be connected; further ones are turned away."""

_PRIVATE = 0o700
_PAGE_MASK = ~0xFFF


class Device:
    """A device with its kernel driver, which one program at a time may have open.

    Args:
        function: the device.
        write: takes a line about what goes wrong.
    """

    def __init__(self, function: PcieFunction, write: Callable[[str], None]) -> None:
        self.function = function
        self.driver = KernelDriver(function)
        self.write = write
        self.faults = 0
        """Faults of the chip."""
        self.faulted = threading.Event()
        self._changed = threading.Condition()
        self._owner: Connection | None = None
        function.failed = self._failed

    def claim(self, owner: Connection) -> None:
        """Give the device to a connection; raises ``OSError`` if another one has it.

        One whose program has ended is waited for: whoever saw that end finds the device free.
        """
        with self._changed:
            while self._owner is not None:
                if not self._owner.has_ended() or not self._changed.wait(messages.SECONDS):
                    raise OSError(errno.EBUSY, "another program has the device open")
            self._owner = owner

    def release(self) -> None:
        """The device is free again."""
        with self._changed:
            self._owner = None
            self._changed.notify_all()

    def _failed(self, error: SimulationError) -> None:
        if isinstance(error, HostFault):
            if not isinstance(error, ProgramGone):
                self.write(one_line(error))
            owner = self._owner
            if owner is not None:
                owner.hang_up()
            return
        self.faults += 1
        self.write(f"fault: {one_line(error)}")
        self.faulted.set()


class Connection:
    """A program; it is served by a thread of its own."""

    def __init__(self, device: Device, connection: socket.socket) -> None:
        self._device = device
        self._connection = connection
        self._memory: ProgramMemory | None = None
        self._files = 0
        self._operations = {
            Operation.OPEN: self._open,
            Operation.CLOSE: self._close,
            Operation.READ: self._read,
            Operation.WRITE: self._write,
            Operation.IOCTL: self._control,
        }

    def serve(self) -> None:
        """Answer until the program goes."""
        try:
            while (message := messages.receive(self._connection)) is not None:
                self._answer(message)
        except BrokenMessage as error:
            self._device.write(f"a program is turned away: {error}")
        except OSError:
            pass
        finally:
            self._leave()
            self._connection.close()

    def has_ended(self) -> bool:
        """Whether the program has closed its end, or its process is no more."""
        ends = select.poll()
        ends.register(self._connection, select.POLLRDHUP)
        return bool(ends.poll(0))

    def hang_up(self) -> None:
        """Turn the program away: the device is gone for it."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def _answer(self, message: Message) -> None:
        descriptor = None
        try:
            operation = self._operations.get(Operation(message.what))
        except ValueError:
            raise BrokenMessage(f"there is no operation {message.what}") from None
        assert operation is not None
        try:
            words, descriptor = operation(message)
            reply = answer(0, *words)
        except OSError as error:
            reply = answer(error.errno or errno.EIO)
        try:
            messages.send(self._connection, reply, descriptor)
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _open(self, message: Message) -> ioctls.Answer:
        if self._files:
            self._files += 1
            return (), None
        self._device.claim(self)
        own, programs = socket.socketpair()
        self._memory = ProgramMemory(own)
        try:
            self._device.driver.open(self._memory)
        except OSError:
            programs.close()
            self._memory.close()
            self._device.release()
            raise
        self._files = 1
        return (), programs.detach()

    def _close(self, message: Message) -> ioctls.Answer:
        self._check_open()
        self._files -= 1
        if not self._files:
            self._give_back()
        return (), None

    def _leave(self) -> None:
        """The program has gone: whatever it had is free, and nobody answers for its memory."""
        if self._files:
            self._files = 0
            assert self._memory is not None
            self._memory.close()
            self._give_back()

    def _give_back(self) -> None:
        try:
            self._device.driver.close()
        except OSError as error:
            self._device.write(f"the device does not close: {error.strerror}")
        assert self._memory is not None
        self._memory.close()
        self._device.release()

    def _check_open(self) -> None:
        if not self._files:
            raise OSError(errno.EBADF, "the device is not open")

    def _offset(self, message: Message) -> int:
        self._check_open()
        offset = message.words[0]
        if offset & _PAGE_MASK not in messages.REGISTER_PAGES or offset % 8:
            raise OSError(errno.EINVAL, f"no register of a window is at {offset:#x}")
        return offset

    def _read(self, message: Message) -> ioctls.Answer:
        return (self._device.function.read(self._offset(message), 8),), None

    def _write(self, message: Message) -> ioctls.Answer:
        self._device.function.write(self._offset(message), message.words[1], 8)
        return (), None

    def _control(self, message: Message) -> ioctls.Answer:
        self._check_open()
        return ioctls.carry_out(self._device.driver, message.argument, message.words)


class Server:
    """Takes connections to a device from programs of this user; a context manager.

    Args:
        device: what they open.
        folder: where its socket is; none but this user can enter it from then on.
        number: of the device, from 0.

    Raises:
        OSError: the socket cannot be made (a path of more than 107 bytes, for one).
    """

    def __init__(self, device: Device, folder: Path, number: int = 0) -> None:
        self._device = device
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._lock = threading.Lock()
        self._served: dict[threading.Thread, Connection] = {}
        self._stack = ExitStack()
        folder.chmod(_PRIVATE)
        try:
            self._listener.bind(str(folder / f"{messages.SOCKET_NAME}{number}"))
            self._listener.listen()
        except BaseException:
            self._listener.close()
            raise
        # What programs look for devices in.
        (folder / messages.CLASS_NAME / f"{messages.DEVICE_NAME}{number}").mkdir(parents=True)

    def __enter__(self) -> Server:
        self._stack.enter_context(Worker(self._device.function))
        self._thread = threading.Thread(target=self._accept, name="darwinn-apex", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        with self._lock:
            served = dict(self._served)
        for thread, connection in served.items():
            connection.hang_up()
            thread.join()
        self._stack.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                welcome = len(self._served) < MAX_CONNECTIONS and is_of_this_user(connection)
                if welcome:
                    self._start(Connection(self._device, connection))
            if not welcome:
                connection.close()

    def _start(self, connection: Connection) -> None:
        thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
        self._served[thread] = connection
        thread.start()

    def _serve(self, connection: Connection) -> None:
        try:
            connection.serve()
        finally:
            with self._lock:
                del self._served[threading.current_thread()]
