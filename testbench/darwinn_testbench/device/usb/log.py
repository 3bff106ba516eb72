"""What passes on the cable, in lines for people: registers by name, messages, resets, faults."""

from __future__ import annotations

from collections.abc import Callable

from darwinn_sim.errors import SimulationError
from darwinn_sim.usb import descriptors
from darwinn_sim.usb.descriptors import DEVICE, EVENTS, Mode, Speed
from darwinn_sim.usb.firmware import Request
from darwinn_sim.usb.function import Watcher
from darwinn_sim.usb.requests import Kind, Setup, Standard

from darwinn_testbench.device.shown import named, octets
from darwinn_testbench.report import one_line


def _ids(device: bytes) -> str:
    """Vendor and product of a device descriptor."""
    vendor, product = (device[at : at + 2][::-1].hex() for at in (8, 10))
    return f"{vendor}:{product}"


BOOT_IDS = _ids(descriptors.device(Mode.BOOT, Speed.SUPER)).upper()
"""Who the device is until it has firmware."""


class Downloads(Watcher):
    """Counts the pieces of firmware that hosts have sent."""

    def __init__(self) -> None:
        self.count = 0

    def control(self, setup: Setup, data: bytes, answer: bytes | None) -> None:
        """As :class:`Watcher`."""
        self.count += setup.kind == Kind.CLASS and setup.request == Request.DOWNLOAD


class Faults(Watcher):
    """Says each fault by ``write``; ``count`` is how many there were."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self.count = 0

    def fault(self, error: SimulationError) -> None:
        """As :class:`Watcher`."""
        self.count += 1
        self._write(f"fault: {one_line(error)}")

    def untaken(self, reason: str) -> None:
        """As :class:`Watcher`."""
        self._write(
            f"nothing takes a transfer of the program: {reason}. The chip waits as well, so the "
            "program's time-out follows; `darwinn inspect MODEL` names a DMA hint that sends too "
            "much (darwinn docs field-failure)"
        )


class Log(Watcher):
    """Writes a line for each thing that passes."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def control(self, setup: Setup, data: bytes, answer: bytes | None) -> None:
        """As :class:`Watcher`."""
        if answer is None:
            return
        if setup.kind == Kind.VENDOR:
            self._write(_access(setup, data, answer))
        elif setup.kind == Kind.CLASS:
            name = Request(setup.request).name.lower() if setup.request <= 6 else setup.request
            self._write(f"firmware {name} {setup.value}: {len(answer or data)} bytes")
        elif setup.request == Standard.GET_DESCRIPTOR and setup.value >> 8 == DEVICE:
            self._write(f"device descriptor: {_ids(answer)}")

    def sent(self, endpoint: int, data: bytes) -> None:
        """As :class:`Watcher`."""
        self._write(f"out {endpoint}: {octets(data)}")

    def received(self, endpoint: int, data: bytes) -> None:
        """As :class:`Watcher`."""
        if endpoint == EVENTS & 0xF:
            address = int.from_bytes(data[:8], "little")
            size = int.from_bytes(data[8:12], "little")
            self._write(f"in {endpoint}: event tag {data[12]} address {address:#x} size {size}")
        else:
            self._write(f"in {endpoint}: {octets(data)}")

    def was_reset(self, quiet: bool) -> None:
        """As :class:`Watcher`."""
        self._write("reset")

    def refused(self, reason: str) -> None:
        """As :class:`Watcher`."""
        self._write(f"stalled: {reason}")


def _access(setup: Setup, data: bytes, answer: bytes) -> str:
    offset = setup.index << 16 | setup.value
    value = int.from_bytes(answer if setup.to_host else data, "little")
    arrow = "->" if setup.to_host else "<-"
    return f"{'read' if setup.to_host else 'write'} {named(offset)} {arrow} {value:X}"
