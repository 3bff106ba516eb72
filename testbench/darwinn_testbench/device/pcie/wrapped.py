"""A command with devices in its machine: the shim stands in front of its C library."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
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


Write = Callable[[str], None]
"""Takes a line about what goes wrong with a device."""


def run_command(
    functions: Sequence[tuple[PcieFunction, Write]], command: Sequence[str]
) -> tuple[int, int]:
    """Run ``command`` with devices: its exit status, as a shell tells it, and the chips' faults.

    Args:
        functions: the devices after power-up, ``MAX_DEVICES`` of ``messages`` at most.
        command: words of the command.

    Raises:
        InputError: the shim cannot be built, or there is no such command.
    """
    library = shim()
    devices = [Device(*each) for each in functions]
    with ExitStack() as stack:
        folder = stack.enter_context(private_folder())
        for number, device in enumerate(devices):
            stack.enter_context(Server(device, folder, number))
        has_failed = lambda: any(each.faulted.is_set() for each in devices)  # noqa: E731
        status = asyncio.run(status_of(command, environment(library, folder), has_failed))
    return status, sum(each.faults for each in devices)


def environment(library: Path, folder: Path) -> Mapping[str, str]:
    """The environment of a command that is to find the devices in ``folder``."""
    return {**found_first(LD_PRELOAD=library), messages.FOLDER_VARIABLE: str(folder)}
