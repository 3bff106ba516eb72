"""The chip as a device: tiles, scalar core and host interface, which belong to no driver.

A run of a program drives the kernels, and serves what they ask of the host: it takes instruction
chunks, hands descriptors over, and moves bytes between the host interface and the FIFOs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.errors import ChipFault, Deadlock, SimulationError, UninitialisedRead
from darwinn_sim.host.interface import HostInterface
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.kernel import state
from darwinn_sim.kernel.structure import Records
from darwinn_sim.machine import core_alone, diagnosis, schedule
from darwinn_sim.machine.completeness import awaits_chunk
from darwinn_sim.machine.lowering import LoweredProgram, patch
from darwinn_sim.machine.observer import Observer, Wanted
from darwinn_sim.units import scalar_core

_WORK_BETWEEN_REPORTS = 1 << 26
_DESCRIPTOR_WORK = 1 << 13
"""Work that a descriptor counts for: about as long as the host takes to serve it, so that a program
which issues descriptors without end is ended as soon as any other."""


class Chip:
    """A chip after power-up: tiles and scalar core behind ``host``.

    Args:
        host: how it is attached.
        strict: a use of memory that nothing has written is an error.
        dma_only: the tiles do nothing; what they would give comes from ``random``.
        seed: data in DMA-only mode.
        work_limit: work that a program may do before it is called endless.
    """

    def __init__(
        self,
        host: HostInterface,
        *,
        strict: bool,
        dma_only: bool,
        seed: int,
        random: np.random.Generator,
        work_limit: int,
    ) -> None:
        self.host = host
        self.dma_only = dma_only
        self.work_limit = work_limit
        self.random = random
        self.tiles = state.new_tiles()
        self.core_array = state.new_core()
        self.core = self.core_array[0]
        # Without tiles, what they would have written is missing everywhere.
        self.core["strict"] = strict and not dma_only
        # The generator of the kernels has 64 bits; a longer seed differs in its lower ones alone.
        self.core["random"] = np.uint64((seed << 1 | 1) & 0xFFFF_FFFF_FFFF_FFFF)

    def contents(self) -> Contents:
        """A copy of all that tiles and core hold."""
        return Contents(self.tiles.copy(), self.core_array.copy())

    def restore(self, contents: Contents) -> None:
        """Give tiles and core what they held."""
        self.tiles[:] = contents.tiles
        self.core_array[:] = contents.core


@dataclass(frozen=True)
class Contents:
    """What a chip holds: records of ``state.Tile``, and one of ``state.Core``."""

    tiles: Records[state.Tile]
    core: Records[state.Core]


class ProgramRun:
    """One run of a program: drives the kernels and serves what they ask of the host."""

    def __init__(self, device: Chip, program: LoweredProgram, wanted: Wanted) -> None:
        self.host = device.host
        self.tiles = device.tiles
        self.core = device.core
        self.dma_only = device.dma_only
        self.random = device.random
        self.work_limit = device.work_limit
        self.program = program
        self.core["fault"] = state.NO_FAULT
        for counter in ("steps", "work", "iterations", "rows_sent", "uninitialised"):
            self.core[counter] = 0
        self.core["origin_pc"] = -1
        self.observer = Observer(self.core, program, wanted)

    def execute(self) -> bool:
        """Run every chunk that the host has queued; True if the stop point was reached."""
        number = 0
        while (chunk := self.host.fetch_chunk()) is not None:
            patch(self.program, number, chunk)
            start = self.program.starts[number]
            self.core["pc"] = self.program.entries[number]
            self.core["end_pc"] = start + self.program.chunks[number].bundles
            self.core["halted"] = 0
            self.core["loop_depth"] = 0
            self.host.chunk_done()
            number += 1
            last = number == len(self.program.chunks)
            if self.run_chunk(last):
                return True
        return False

    def run_chunk(self, last: bool) -> bool:
        """Run the chunk that was just fetched; True if the stop point was reached."""
        core = self.core
        while True:
            core["work_limit"] = min(self.work_limit, int(core["work"]) + _WORK_BETWEEN_REPORTS)
            reason = self._run_chip()
            self.observer.report()
            if reason == scalar_core.FAULT:
                raise self._fault()
            if reason == scalar_core.DESCRIPTOR:
                self._issue()
                continue
            if reason == scalar_core.FENCED:
                self.host.fence()
                continue
            if reason == scalar_core.TAP_FULL:
                self.observer.take()
                self.tiles["awake"] = 1
                continue
            if reason == scalar_core.STOPPED and self.observer.looks():
                continue
            if reason == scalar_core.SPENT:
                if core["work"] >= self.work_limit:
                    raise Deadlock((f"the program has not ended after {self.work_limit} steps",))
                continue
            moved = self._serve_host()
            if reason == scalar_core.HALTED and not last:
                return False
            if moved:
                continue
            if reason == scalar_core.STOPPED:
                return True
            waiting = diagnosis.waiting(core, self.tiles, self.program)
            halted = reason == scalar_core.HALTED
            if halted and (not waiting or awaits_chunk(self.program.chunks)):
                return False
            raise Deadlock(waiting)

    def _run_chip(self) -> int:
        """Let the chip go on until it needs the host; a reason of ``scalar_core``."""
        if self.dma_only:
            return core_alone.run(self.core, self.program.tables, self.observer.stop_pc)
        return schedule.run(self.core, self.tiles, self.program.tables, self.observer.seen)

    def _fault(self) -> SimulationError:
        core = self.core
        memory, reason = state.FAULT_REASONS[int(core["fault"])]
        chunk, pc = self.program.locate(int(core["fault_pc"]))
        tile, address = int(core["fault_tile"]), int(core["fault_address"])
        if core["fault"] == state.FAULT_UNINITIALISED:
            place = f"tile {tile}" if tile >= 0 else "scalar core"
            return UninitialisedRead(f"{place}, chunk {chunk}, pc {pc}{self.origin()}", address, 1)
        return ChipFault(memory, reason, chunk, pc, tile, address)

    def origin(self) -> str:
        """The first operand that nothing had written: where to look for the cause."""
        if self.core["origin_pc"] < 0:
            return ""
        chunk, pc = self.program.locate(int(self.core["origin_pc"]))
        tile, address = int(self.core["origin_tile"]), int(self.core["origin_address"])
        place = f"tile {tile}" if tile >= 0 else "scalar core"
        return f" (first unwritten operand: {place}, chunk {chunk}, pc {pc}, {address:#x})"

    def _issue(self) -> None:
        """Hand the descriptor that the scalar core has just issued to the host interface."""
        self.core["work"] += _DESCRIPTOR_WORK
        handed = self.core["handed"]
        tag, size = int(handed["target"]), int(handed["size"])
        self.host.issue(tag, int(handed["address"]), size)
        if self.dma_only:
            if tag in (DescriptorTag.INPUT, DescriptorTag.PARAMETERS):
                self.host.pull(tag, size)
            elif tag == DescriptorTag.OUTPUT:
                self.host.push(self.random.integers(0, 256, size, np.uint8))
        self.core["output_pending"] = self.host.output_pending

    def _serve_host(self) -> bool:
        """Move bytes between the host and the FIFOs, and tapped words out; True if any moved."""
        moved = False
        for fifo, tag in ((0, DescriptorTag.PARAMETERS), (1, DescriptorTag.INPUT)):
            stream = self.core["input"][fifo]
            room = chip.HOST_FIFO_BYTES - int(stream["length"])
            known = self.host.next_known(tag, room)
            data = self.host.pull(tag, room)
            if data.size:
                _append(stream, data, known)
                moved = True
        output = self.core["output"]
        if output["length"]:
            data, written = _take_all(output)
            self.host.push(data, written)
            self.core["output_pending"] = self.host.output_pending
            moved = True
        return self.observer.take() or moved

    def statistics(self) -> dict[str, int]:
        """Counts of the run."""
        return {
            "scalar_bundles": int(self.core["steps"]),
            "tensor_iterations": int(self.core["iterations"]),
            "ring_rows": int(self.core["rows_sent"]),
            "uninitialised_reads": int(self.core["uninitialised"]),
        }


def _append(
    fifo: state.ByteFifo, data: NDArray[np.uint8], known: NDArray[np.bool_] | None = None
) -> None:
    """Append bytes to a byte FIFO that has room for them; ``known``: which follow from written
    ones, None: all.
    """
    first = (int(fifo["head"]) + int(fifo["length"])) % chip.HOST_FIFO_BYTES
    fits = min(data.size, chip.HOST_FIFO_BYTES - first)
    fifo["data"][first : first + fits] = data[:fits]
    fifo["data"][: data.size - fits] = data[fits:]
    fifo["written"][first : first + fits] = 1 if known is None else known[:fits]
    fifo["written"][: data.size - fits] = 1 if known is None else known[fits : data.size]
    fifo["length"] += data.size


def _take_all(fifo: state.ByteFifo) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Empty a byte FIFO: its bytes, and which of them follow from written ones."""
    places = (int(fifo["head"]) + np.arange(int(fifo["length"]))) % chip.HOST_FIFO_BYTES
    fifo["head"] = (fifo["head"] + fifo["length"]) % chip.HOST_FIFO_BYTES
    fifo["length"] = 0
    return fifo["data"][places], fifo["written"][places] != 0
