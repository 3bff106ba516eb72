"""A command with devices plugged in: the stand-in for libusb is found, and finds the devices."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from darwinn_sim.usb.function import UsbFunction

from darwinn_testbench.device import native, wire
from darwinn_testbench.device.clock import Clock
from darwinn_testbench.device.command import found_first, status_of
from darwinn_testbench.device.sockets import private_folder
from darwinn_testbench.device.usb import messages
from darwinn_testbench.device.usb.socket_server import SocketServer

_SOURCES = Path(__file__).parent / "libusb"
_NAME = "libusb-1.0.so.0"
_LINK = "libusb-1.0.so"
"""What compilers, and PyUSB, look for."""

_SOCKET_NAME = "device"


def stand_in() -> Path:
    """The folder that holds the stand-in, built if it is not there.

    Raises:
        InputError: it cannot be built.
    """
    library = native.library(
        _SOURCES, _NAME, "-Wl,--version-script=exports.map", headers=wire.header(messages)
    )
    link = library.parent / _LINK
    if not link.exists():
        temporary = library.parent / f"{_LINK}.{os.getpid()}"
        temporary.symlink_to(_NAME)
        temporary.replace(link)
    return library.parent


def environment(libraries: Path, socket: Path) -> Mapping[str, str]:
    """The environment of a command that is to find the devices."""
    return {**found_first(LD_LIBRARY_PATH=libraries), messages.SOCKET_VARIABLE: str(socket)}


def run_command(
    functions: Sequence[UsbFunction], command: Sequence[str], clock: Clock = Clock.CHIP
) -> int:
    """Run ``command`` with devices plugged in; its exit status, as a shell tells it.

    Args:
        functions: the devices, ``MAX_DEVICES`` of ``messages`` at most.
        command: its words.
        clock: what time-outs of its transfers count.

    Raises:
        InputError: the stand-in cannot be built, or there is no such command.
    """
    libraries = stand_in()
    with private_folder() as folder:
        return asyncio.run(_run(functions, command, clock, libraries, folder / _SOCKET_NAME))


async def _run(
    functions: Sequence[UsbFunction],
    command: Sequence[str],
    clock: Clock,
    libraries: Path,
    path: Path,
) -> int:
    server = SocketServer(*functions, clock=clock)
    server.listen(path)
    try:
        return await status_of(
            command,
            environment(libraries, path),
            lambda: _has_failed(functions),
        )
    finally:
        await server.close()


def _has_failed(functions: Sequence[UsbFunction]) -> bool:
    """Whether a chip can do no more; what a program waits for in vain is said."""
    for function in functions:
        function.look()
    return any(function.fault is not None for function in functions)
