"""A command with the device plugged in: the stand-in for libusb is found, and finds the device."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from darwinn_sim.usb.function import UsbFunction

from darwinn_testbench.device import native
from darwinn_testbench.device.private import private_folder
from darwinn_testbench.device.usb.socket_server import SocketServer
from darwinn_testbench.errors import InputError

SOCKET_VARIABLE = "DARWINN_USB_SOCKET"
"""Where the stand-in finds the device."""

GRACE_SECONDS = 5.0
"""How long a command may go on after a fault, unless it resets the device: many wait for ever."""

_LOOK_SECONDS = 0.2
_SOURCES = Path(__file__).parent / "libusb"
_NAME = "libusb-1.0.so.0"
_LINK = "libusb-1.0.so"
"""What compilers, and PyUSB, look for."""

_SOCKET_NAME = "device"


def stand_in() -> Path:
    """The folder that holds the stand-in, built if it is not there.

    Raises:
        Unavailable: it cannot be built.
    """
    library = native.library(_SOURCES, _NAME, "-Wl,--version-script=exports.map")
    link = library.parent / _LINK
    if not link.exists():
        temporary = library.parent / f"{_LINK}.{os.getpid()}"
        temporary.symlink_to(_NAME)
        temporary.replace(link)
    return library.parent


def environment(libraries: Path, socket: Path) -> Mapping[str, str]:
    """The environment of a command that is to find the device."""
    paths = [str(libraries), os.environ.get("LD_LIBRARY_PATH", "")]
    return {
        **os.environ,
        "LD_LIBRARY_PATH": ":".join(filter(None, paths)),
        SOCKET_VARIABLE: str(socket),
    }


def run_command(function: UsbFunction, command: Sequence[str]) -> int:
    """Run ``command`` with the device plugged in; its exit status, as a shell tells it.

    Raises:
        Unavailable: the stand-in cannot be built.
        InputError: there is no such command.
    """
    libraries = stand_in()
    with private_folder() as folder:
        return asyncio.run(_run(function, command, libraries, folder / _SOCKET_NAME))


async def _run(function: UsbFunction, command: Sequence[str], libraries: Path, path: Path) -> int:
    server = SocketServer(function)
    listening = await server.listen(path)
    started: list[asyncio.subprocess.Process] = []
    try:
        with _signals_for(started):
            started.append(
                await asyncio.create_subprocess_exec(*command, env=environment(libraries, path))
            )
            status = await _end_of(started[0], function)
    except OSError as error:
        raise InputError(f"{command[0]}: {error.strerror}") from None
    finally:
        listening.close()
        await server.close()
    return 128 - status if status < 0 else status


async def _end_of(process: asyncio.subprocess.Process, function: UsbFunction) -> int:
    """The end of the command, which comes soon after a fault that stays."""
    ending = asyncio.ensure_future(process.wait())
    deadlines = {process.terminate: GRACE_SECONDS, process.kill: 2 * GRACE_SECONDS}
    since = 0.0
    while not (await asyncio.wait([ending], timeout=_LOOK_SECONDS))[0]:
        since = since + _LOOK_SECONDS if function.fault is not None else 0.0
        for end, deadline in deadlines.items():
            if deadline <= since < deadline + _LOOK_SECONDS:
                end()
    return ending.result()


@contextmanager
def _signals_for(started: Sequence[asyncio.subprocess.Process]) -> Iterator[None]:
    """Keys at the terminal are for what is started, which gets them too; SIGTERM is handed on."""
    loop = asyncio.get_running_loop()

    def terminate() -> None:
        for process in started:
            process.terminate()

    handlers = {signal.SIGINT: _ignore, signal.SIGQUIT: _ignore, signal.SIGTERM: terminate}
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)


def _ignore() -> None:
    pass
