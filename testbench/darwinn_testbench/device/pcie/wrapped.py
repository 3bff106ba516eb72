"""A command with the device in its machine: the shim stands in front of its C library."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from darwinn_sim.pcie.function import PcieFunction

from darwinn_testbench.device import native
from darwinn_testbench.device.pcie.server import Device, Server
from darwinn_testbench.device.private import private_folder
from darwinn_testbench.errors import InputError, Unavailable

FOLDER_VARIABLE = "DARWINN_APEX"
"""Where the shim finds the device."""

GRACE_SECONDS = 5.0
"""How long a command may go on after a fault of the chip: many drivers wait for ever then."""

_SOURCES = Path(__file__).parent / "shim"
_NAME = "apex.so"
_MACHINES = ("x86_64", "AMD64")
_LOOK_SECONDS = 0.2


def shim() -> Path:
    """The library that stands in front, built if it is not there.

    Raises:
        Unavailable: it cannot be built, or is not for this machine.
    """
    if platform.machine() not in _MACHINES or platform.system() != "Linux":
        raise Unavailable(
            "--pcie needs Linux on x86-64, whose instructions it decodes; this is "
            f"{platform.system()} on {platform.machine()} (--usb works everywhere)"
        )
    return native.library(_SOURCES, _NAME)


def run_command(
    function: PcieFunction, command: Sequence[str], write: Callable[[str], None]
) -> tuple[int, int]:
    """Run ``command`` with the device: its exit status, as a shell tells it, and the chip's faults.

    Args:
        function: the device after power-up.
        command: words of the command.
        write: takes a line about what goes wrong.

    Raises:
        Unavailable: the shim cannot be built.
        InputError: there is no such command.
    """
    library = shim()
    device = Device(function, write)
    with private_folder() as folder, Server(device, folder):
        status = _run(command, environment(library, folder), device)
    return status, device.faults


def environment(library: Path, folder: Path) -> Mapping[str, str]:
    """The environment of a command that is to find the device in ``folder``."""
    others = os.environ.get("LD_PRELOAD", "")
    return {
        **os.environ,
        "LD_PRELOAD": ":".join(filter(None, [str(library), others])),
        FOLDER_VARIABLE: str(folder),
    }


def _run(command: Sequence[str], environ: Mapping[str, str], device: Device) -> int:
    try:
        process = subprocess.Popen(command, env=environ)
    except OSError as error:
        raise InputError(f"{command[0]}: {error.strerror}") from None
    with _signals_for(process):
        status = _wait(process, device)
    return 128 - status if status < 0 else status


def _wait(process: subprocess.Popen[bytes], device: Device) -> int:
    """The end of the command, which comes soon after a fault of the chip."""
    while not device.faulted.is_set():
        try:
            return process.wait(_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    for end in (process.terminate, process.kill):
        try:
            return process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            end()
    return process.wait()


@contextmanager
def _signals_for(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Keys at the terminal are for the command, which gets them too; SIGTERM is handed on."""
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
        signal.SIGQUIT: signal.signal(signal.SIGQUIT, signal.SIG_IGN),
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda *_: process.terminate()),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
