"""A chip in RTL whose host has holes in its memory, or stops in the middle of a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from darwinn_formats.darwinn import Executable
from darwinn_rtl.chip.engine import RtlRun
from darwinn_rtl.chip.host import RtlHost
from darwinn_rtl.chip.player import ChipPlayer
from darwinn_sim.device.chip import Chip
from darwinn_sim.host.buffers import Request
from darwinn_sim.host.driver import Driver
from darwinn_sim.host.memory import HostMemory
from darwinn_sim.machine.lowering import lower
from darwinn_sim.machine.observer import Wanted


class BrokenOff(Exception):
    """The scalar core has stopped, as it was to."""


class BreakableChip(ChipPlayer):
    """A chip whose surroundings fail.

    ``hole`` are bus addresses at which host memory answers with an error. After ``hand_overs``
    instructions and descriptors, if that is not None, the core hands over nothing more: ``cycles``
    later :class:`BrokenOff` is raised.
    """

    hole = range(0)
    hand_overs: int | None = None
    cycles = 0

    def mend(self) -> None:
        """Reset the chip; nothing fails any more."""
        self.hole, self.hand_overs = range(0), None
        self.unmap_all()
        self.reset()

    def map(self, address: int, place: int, size: int) -> None:
        """Map what is not in the hole."""
        end = address + size
        for first, last in (
            (address, min(end, self.hole.start)),
            (max(address, self.hole.stop), end),
        ):
            if first < last:
                super().map(first, place + first - address, last - first)

    def _hands_over(self) -> None:
        if self.hand_overs is None:
            return
        if not self.hand_overs:
            self.run(self.cycles)
            raise BrokenOff
        self.hand_overs -= 1

    def hand_over(self, *args: Any, **kwargs: Any) -> None:
        """As ever, or not at all."""
        self._hands_over()
        super().hand_over(*args, **kwargs)

    def descriptor(self, *args: Any, **kwargs: Any) -> None:
        """As ever, or not at all."""
        self._hands_over()
        super().descriptor(*args, **kwargs)


class Host:
    """A driver that has just opened the chip, with a host memory of its own."""

    def __init__(self, chip: BreakableChip, seed: int) -> None:
        self.memory = HostMemory()
        self.interface = RtlHost(self.memory, chip)
        self.driver = Driver(self.interface, self.memory, seed=seed)
        self.chip = Chip(self.interface, seed=seed)
        self.driver.open()

    def prepared(self, executable: Executable, inputs: Mapping[str, bytes]) -> Request:
        """A request with its buffers mapped and filled."""
        return self.driver.prepare(executable, inputs)

    def run(self, request: Request) -> dict[str, bytes]:
        """Run a program; its outputs. Raises as ``Chip.execute`` and ``Driver.finish``."""
        executable = request.executable
        program = lower([bytes(part.bitstream) for part in executable.instruction_bitstreams])
        self.driver.submit(request)
        self.chip.execute(RtlRun(self.interface, self.chip, program, Wanted()))
        self.driver.poll()
        return self.driver.finish(request)
