"""Compares a chip in RTL with the model: every row on the ring, flags, outputs, interrupts."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge
from darwinn_formats.darwinn import Executable
from darwinn_sim import chip
from darwinn_sim.host.registers import register
from pyuvm import ConfigDB, uvm_component

from darwinn_rtl.bench import Bench
from darwinn_rtl.chip.monitors import RowCarried, UnitWorked
from darwinn_rtl.chip.reference import OUTFEED, ChipReference, Expected, Receiver
from darwinn_rtl.dma.monitors import DmaEvent, InterruptLevel, Raised
from darwinn_rtl.dma.register_agent import RegisterAccess
from darwinn_rtl.dma.scoreboard import Mismatch
from darwinn_rtl.environment import Subscriber

_FATAL_LINE = 5
_LONGEST_ACCESS = 40
"""Cycles within which a register access is over."""


class ChipScoreboard(uvm_component):
    """Checks the programs that the host queues, one after another, against the model.

    ``rows`` counts the rows that were compared, ``worked`` are the units (tile, unit) that did
    something. Any difference raises ``Mismatch`` where it is seen.
    """

    def build_phase(self) -> None:
        """Expect nothing."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        self.submitted = Subscriber("submitted", self, self._submitted)
        self.carried = Subscriber("carried", self, self.carried_row)
        self.work = Subscriber("work", self, self._worked)
        self.done = Subscriber("done", self, self._ended)
        self.resets = Subscriber("resets", self, lambda _: self.forget())
        self.rows = 0
        self.programs = 0
        self.worked: set[tuple[int, int]] = set()
        self.outputs: deque[Mapping[str, bytes]] = deque()
        self.forget()

    def forget(self) -> None:
        """Note a reset of the chip: nothing is pending, and its memories are empty."""
        self._reference = ChipReference(self.bench.seed)
        self._expected: deque[Expected] = deque()
        self._arrived: dict[Receiver, int] = {}
        self.outputs.clear()

    def _submitted(self, program: tuple[Executable, Mapping[str, bytes]]) -> None:
        expected = self._reference.run(*program)
        self._expected.append(expected)
        self.outputs.append(expected.outputs)

    def check_outputs(self, outputs: Mapping[str, bytes]) -> None:
        """Compare the outputs of the program that was queued first and has not been compared."""
        expected = self.outputs.popleft()
        for name, data in expected.items():
            _require(outputs[name] == data, f"output {name!r}: bytes differ from the model's")
        _require(outputs.keys() == expected.keys(), f"outputs {sorted(outputs)}")

    def carried_row(self, event: RowCarried) -> None:
        """Compare a row with the next one of each of its receivers."""
        _require(bool(self._expected), f"cycle {event.cycle}: a row while no program runs")
        words = b"".join(word.to_bytes(4, "little") for word in event.row.words)
        for target in range(chip.TILES + 1):
            if event.row.targets >> target & 1:
                channel = 0 if target == OUTFEED else event.row.channel
                self._arrives(event.cycle, Receiver(target, channel), words)
        self.rows += 1

    def _arrives(self, cycle: int, receiver: Receiver, words: bytes) -> None:
        rows = self._expected[0].rows[receiver]
        number = self._arrived.get(receiver, 0)
        where = f"cycle {cycle}, row {number} of {receiver}"
        _require(number < len(rows), f"{where}: the model sends it {len(rows)}")
        difference = rows[number].difference(words)
        _require(not difference, f"{where}: {difference}")
        self._arrived[receiver] = number + 1

    def _worked(self, event: UnitWorked) -> None:
        self.worked.add((event.tile, event.unit))

    def _ended(self, _: Mapping[str, int]) -> None:
        """Check that everything has arrived, and that the sync flags are the model's."""
        expected = self._expected.popleft()
        for receiver, rows in expected.rows.items():
            found = self._arrived.get(receiver, 0)
            _require(found == len(rows), f"{receiver} got {found} rows, of the model {len(rows)}")
        self._arrived.clear()
        dut = self.bench.dut
        tiles = _halves(dut.tiles2monitor_flags, chip.TILES * chip.TILE_FLAGS)
        _compare_flags("tile flags", tiles, expected.tile_flags.ravel())
        scalar = _halves(dut.flags2monitor_values, chip.SCALAR_FLAGS)
        _compare_flags("scalar flags", scalar, expected.scalar_flags)
        self.programs += 1


def _halves(signal: Any, count: int) -> np.ndarray[Any, np.dtype[np.uint16]]:
    return np.frombuffer(int(signal.value).to_bytes(2 * count, "little"), "<u2")


def _compare_flags(what: str, found: Any, expected: Any) -> None:
    different = np.flatnonzero(found != expected)
    if different.size:
        at = int(different[0])
        raise Mismatch(f"{what}: number {at} is {found[at]}, of the model {expected[at]}")


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise Mismatch(what)


class InterruptScoreboard(uvm_component):
    """Checks the interrupt lines against what the chip raises and what the host has enabled.

    An enabled line of the host is up in the cycle after its interrupt. A masked line is never up,
    and no line goes up without an interrupt. ``raised`` counts interrupts by number.
    """

    def build_phase(self) -> None:
        """No interrupt has come."""
        self.bench: Bench = ConfigDB().get(self, "", "BENCH")
        self.events = Subscriber("events", self, self._event)
        self.levels = Subscriber("levels", self, self._level)
        self.accesses = Subscriber("accesses", self, self._access)
        self.resets = Subscriber("resets", self, lambda _: self.forget())
        self.forget()

    def forget(self) -> None:
        """The chip has been reset."""
        self.raised = [0] * 4
        self._raised_at_fall = [0] * 4
        self._lines = 0
        self._enabled = 0

    def _event(self, event: DmaEvent) -> None:
        if isinstance(event, Raised):
            self.raised[event.number] += 1
            if self._enabled >> event.number & 1:
                cocotb.start_soon(self._line_follows(event.number))

    async def _line_follows(self, number: int) -> None:
        await RisingEdge(self.bench.clk)
        up = int(self.bench.dut.dma2host_interrupt.value) >> number & 1
        if not self.bench.in_reset:
            _require(bool(up), f"host interrupt {number} is enabled, and its line is not up")

    def _level(self, level: InterruptLevel) -> None:
        changed, self._lines = level.lines ^ self._lines, level.lines
        for number in range(4):
            if not changed >> number & 1:
                continue
            raised = self.raised[number]
            if level.lines >> number & 1:
                new = raised > self._raised_at_fall[number]
                _require(new, f"line {number} goes up without an interrupt")
                cocotb.start_soon(self._is_enabled(number))
            else:
                self._raised_at_fall[number] = raised
        _require(not level.lines >> _FATAL_LINE, "the line of fatal errors is up")

    async def _is_enabled(self, number: int) -> None:
        """Check that the host has enabled a line that is up; a write of the host that enables it is
        seen only after its access."""
        await ClockCycles(self.bench.clk, _LONGEST_ACCESS)
        if not self.bench.in_reset and self._lines >> number & 1:
            _require(bool(self._enabled >> number & 1), f"line {number} is up, but masked")

    def _access(self, access: RegisterAccess) -> None:
        if access.write and access.address == register("sc_host_int_control").offset:
            self._enabled = access.data
