"""A command with the device in its machine: the shim stands in front of its C library."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from darwinn_formats.errors import Unavailable
from darwinn_sim.pcie.function import PcieFunction

from darwinn_testbench.device import native, wire
from darwinn_testbench.device.command import found_first, status_of
from darwinn_testbench.device.pcie import messages
from darwinn_testbench.device.pcie.server import Device, Server
from darwinn_testbench.device.sockets import private_folder

_SOURCES = Path(__file__).parent / "shim"
_NAME = "apex.so"
_MACHINES = ("x86_64", "AMD64")


def shim() -> Path:
    """The library that stands in front, built if it is not there.

    Raises:
        InputError: it cannot be built.
        Unavailable: it is not for this machine.
    """
    if platform.machine() not in _MACHINES or platform.system() != "Linux":
        raise Unavailable(
            "--pcie needs Linux on x86-64, whose instructions it decodes; this is "
            f"{platform.system()} on {platform.machine()} (--usb works everywhere)"
        )
    return native.library(_SOURCES, _NAME, headers=wire.header(messages))


def run_command(
    function: PcieFunction, command: Sequence[str], write: Callable[[str], None]
) -> tuple[int, int]:
    """Run ``command`` with the device: its exit status, as a shell tells it, and the chip's faults.

    Args:
        function: the device after power-up.
        command: words of the command.
        write: takes a line about what goes wrong.

    Raises:
        InputError: the shim cannot be built, or there is no such command.
    """
    library = shim()
    device = Device(function, write)
    with private_folder() as folder, Server(device, folder):
        environ = environment(library, folder)
        status = asyncio.run(status_of(command, environ, device.faulted.is_set))
    return status, device.faults


def environment(library: Path, folder: Path) -> Mapping[str, str]:
    """The environment of a command that is to find the device in ``folder``."""
    return {**found_first(LD_PRELOAD=library), messages.FOLDER_VARIABLE: str(folder)}
