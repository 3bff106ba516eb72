"""A command with the device plugged in: the stand-in for libusb is found, and finds the device."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from darwinn_sim.usb.function import UsbFunction

from darwinn_testbench.device import native
from darwinn_testbench.device.usb.socket_server import SocketServer
from darwinn_testbench.errors import InputError

SOCKET_VARIABLE = "DARWINN_USB_SOCKET"
"""Where the stand-in finds the device."""

_SOURCES = Path(__file__).parent / "libusb"
_NAME = "libusb-1.0.so.0"
_LINK = "libusb-1.0.so"
"""What compilers, and PyUSB, look for."""

_SOCKET_NAME = "device"
_LONGEST_PATH = 100
"""A little less than what addresses of sockets have room for."""


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


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder for a socket, which none but this user can enter."""
    with tempfile.TemporaryDirectory(prefix="darwinn-") as folder:
        if len(folder) <= _LONGEST_PATH:
            yield Path(folder)
            return
    with tempfile.TemporaryDirectory(prefix="darwinn-", dir="/tmp") as folder:
        yield Path(folder)


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
    try:
        process = await asyncio.create_subprocess_exec(*command, env=environment(libraries, path))
    except OSError as error:
        raise InputError(f"{command[0]}: {error.strerror}") from None
    else:
        with _signals_for(process):
            status = await process.wait()
    finally:
        listening.close()
        await server.close()
    return 128 - status if status < 0 else status


@contextmanager
def _signals_for(process: asyncio.subprocess.Process) -> Iterator[None]:
    """Keys at the terminal are for the command, which gets them too; SIGTERM is handed on."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGQUIT):
        loop.add_signal_handler(number, lambda: None)
    loop.add_signal_handler(signal.SIGTERM, process.terminate)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            loop.remove_signal_handler(number)
