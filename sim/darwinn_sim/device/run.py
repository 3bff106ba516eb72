"""One run of a program, turn by turn: the kernels go on, and the host serves what they ask."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, Protocol

import numpy as np
from darwinn_formats.limits import Clock, Limits
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.errors import ChipFault, NotEnded, SimulationError, UninitialisedRead
from darwinn_sim.host.attachment import Attachment
from darwinn_sim.host.descriptors import STREAMS
from darwinn_sim.isa.codec import DecodedChunk
from darwinn_sim.isa.codes import DescriptorTag, InputFifo
from darwinn_sim.kernel import order, state
from darwinn_sim.kernel.shadows import places_of, shadows_of
from darwinn_sim.kernel.structure import Records
from darwinn_sim.machine import core_alone, diagnosis, random_schedule, schedule
from darwinn_sim.machine.completeness import awaits_chunk
from darwinn_sim.machine.host_order import HostOrder
from darwinn_sim.machine.lowering import LoweredProgram, patch
from darwinn_sim.machine.observer import Observer, Wanted
from darwinn_sim.units import scalar_core

_INPUTS = (
    (InputFifo.PARAMETERS, DescriptorTag.PARAMETERS),
    (InputFifo.ACTIVATIONS, DescriptorTag.INPUT),
)

_DESCRIPTOR_WORK = 1 << 15
"""Work that a descriptor or a DMA fence counts for: the host serves it and notes it in its trace,
so that a program which issues them without end is ended as soon as any other."""

_PIECE = 1 << 20
"""Bytes that are moved at once where no FIFO bounds them."""

_UNITS_TOLD = 4
"""Units of a program that does not end whose places are told."""

_COUNTED = {"steps": "bundles", "iterations": "tensor iterations", "rows_sent": "ring rows"}


class Turn(Enum):
    """What came of a turn of a run."""

    GOES_ON = auto()
    HALTS = auto()
    """The scalar core has halted; others may go on."""
    HALTED = auto()
    """The same, and nothing has moved."""
    STUCK = auto()
    """Nothing has moved."""
    STOPPED = auto()
    """The stop point has been reached."""


class Device(Protocol):
    """What a run needs of its chip."""

    host: Attachment
    tiles: Records[state.Tile]
    core: state.Core
    dma_only: bool
    random: np.random.Generator
    work_limit: int
    work_of_a_turn: int
    limits: Limits
    schedule: int | None
    hazards: bool


class ProgramRun:
    """One run of a program: drives the kernels and serves what they ask of the host.

    Args:
        device: the chip that runs it.
        program: what it runs.
        wanted: what is to be seen of it.
        recognised: the program is known as far as it has been fetched.

    Raises:
        ValueError: the program has no such layer, chunk or instruction as is wanted.
    """

    def __init__(
        self, device: Device, program: LoweredProgram, wanted: Wanted, *, recognised: bool = False
    ) -> None:
        self.device = device
        self.host = device.host
        self.tiles = device.tiles
        self.core = device.core
        self.program = program
        self.recognised = recognised
        self.chunks_taken = 0
        self.over = False
        self.core["fault"] = state.NO_FAULT
        for counter in (
            "steps",
            "work",
            "iterations",
            "rows_sent",
            "uninitialised",
        ):
            self.core[counter] = 0
        self.core["origin_pc"] = -1
        numbered = "numbering" in (self.core.dtype.names or ())
        self._numbers = self.core["numbering"] if numbered else None
        self._clock: Clock | None = None
        self._counts = self._counted()
        self.host_order = HostOrder()
        self.observer = Observer(self.core, program, wanted)
        self._order: random_schedule.RandomOrder | None = None
        if device.schedule is not None:
            self._order = random_schedule.RandomOrder(device.schedule)

    def begin(self) -> None:
        """It is about to begin; for engines that have more to do then, as the RTL has."""

    def end(self) -> None:
        """It is over, or there was a fault; for the same."""

    @property
    def taken(self) -> tuple[DecodedChunk, ...]:
        """The chunks that the chip has taken."""
        return self.program.chunks[: self.chunks_taken]

    @property
    def awaits_chunk(self) -> bool:
        """Whether the program goes on in a further chunk, when the core has halted."""
        if self.recognised:
            return awaits_chunk(self.taken)
        return self.chunks_taken < len(self.program.chunks)

    def take(self, chunk: bytes) -> None:
        """Begin with the next chunk, as it was fetched."""
        number = self.chunks_taken
        if not self.recognised:
            patch(self.program, number, chunk)
        self.core["pc"] = self.program.entries[number]
        self.core["end_pc"] = self.program.starts[number] + self.program.chunks[number].bundles
        self.core["halted"] = 0
        self.core["loop_depth"] = 0
        self.host.chunk_done()
        self.chunks_taken += 1

    def waiting(self) -> tuple[str, ...]:
        """What holds up each unit that has work left."""
        return diagnosis.waiting(self.core, self.tiles, self.program)

    def turn(self) -> Turn:
        """Let the chip go on for a moment, and serve what it asks of the host."""
        work = self.device.work_of_a_turn if self._order is None else self._order.work_of_a_turn()
        self.core["work_limit"] = min(self.device.work_limit, int(self.core["work"]) + work)
        # Here, since it may have changed without the chip: a host that lets DMA go on again.
        self.core["output_pending"] = self.host.output_pending
        reason = self._run_chip()
        self.observer.report()
        if reason == scalar_core.FAULT:
            raise self._fault()
        self._look(reason)
        if self._is_served(reason):
            if self._order is not None and self._order.host_is_quick():
                self._serve_host()
            return Turn.GOES_ON
        moved = self._serve_host()
        if reason == scalar_core.HALTED:
            return Turn.HALTS if moved else Turn.HALTED
        if moved:
            return Turn.GOES_ON
        return Turn.STOPPED if reason == scalar_core.STOPPED else Turn.STUCK

    def _look(self, reason: int) -> None:
        """End a program that has used up its work, its seconds or its memory: ``NotEnded``."""
        if reason == scalar_core.SPENT and self.core["work"] >= self.device.work_limit:
            raise NotEnded(f"{self.device.work_limit} steps", self._doing())
        if self._clock is None:
            # Not before the first turn, in which kernels may have to be compiled.
            self._clock = Clock(self.device.limits)
        elif passed := self._clock.passed():
            raise NotEnded(passed, self._doing())

    def _seen(self) -> None:
        """The host has seen the program go on."""
        if self._clock is not None:
            self._clock.seen()
            self._counts = self._counted()

    def _counted(self) -> list[int]:
        return [int(self.core[name]) for name in _COUNTED]

    def _doing(self) -> tuple[str, ...]:
        """What has moved since the host saw the program go on, and where its units stand."""
        counts = zip(_COUNTED.values(), self._counted(), self._counts, strict=True)
        moved = ", ".join(f"{now - before} {name}" for name, now, before in counts)
        standing = self.waiting()
        more = len(standing) - _UNITS_TOLD
        told = (*standing[:_UNITS_TOLD], *([f"and {more} more"] if more > 0 else []))
        return f"{moved} since the host last saw it go on", *told

    def _is_served(self, reason: int) -> bool:
        """Do what the kernels ask for; False if they can go no further."""
        if reason == scalar_core.DESCRIPTOR:
            self._issue()
        elif reason == scalar_core.FENCED:
            self.core["work"] += _DESCRIPTOR_WORK
            self.host.fence()
        elif reason == scalar_core.TAP_FULL:
            self.observer.make_room()
            self.tiles["awake"] = 1
        elif reason == scalar_core.STOPPED:
            self._seen()
            return False
        else:
            return reason == scalar_core.SPENT
        return True

    def _run_chip(self) -> int:
        """Let the chip go on until it needs the host; a reason of ``scalar_core``."""
        if self.device.dma_only:
            return core_alone.run(self.core, self.program.tables, self.observer.stop_pc)
        state_of_chip = (self.core, self.tiles, self.program.tables, self.observer.seen)
        if self._order is not None:
            return random_schedule.run(*state_of_chip, self._order.record)
        return schedule.run(*state_of_chip)

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
        self._seen()
        handed = self.core["handed"]
        tag, size = int(handed["target"]), int(handed["size"])
        self.host.issue(tag, int(handed["address"]), size)
        if self.device.hazards:
            self._order_descriptor(tag, int(handed["address"]), size)
        if self.device.dma_only:
            self._move(tag, size)

    def _order_descriptor(self, tag: int, address: int, size: int) -> None:
        """Tell the checker of hazards of a descriptor."""
        order.descriptor_issued(self.core, tag, size)
        clocks = self.core["clocks"]
        self.host_order.issue(
            int(clocks["origin"]) + int(self.core["handed"]["instruction"]),
            tag,
            address,
            size,
            drained=int(clocks["drained"]),
            taken=int(clocks["taken"]),
        )

    def _move(self, tag: int, size: int) -> None:
        """Without tiles: take what a descriptor brings, or give it what it asks for, in pieces: the
        program says how much, and the page table how far that goes.
        """
        for begin in range(0, size, _PIECE):
            count = min(_PIECE, size - begin)
            if tag in STREAMS:
                self.host.pull(tag, count)
            elif tag == DescriptorTag.OUTPUT:
                self.host.push(self.device.random.integers(0, 256, count, np.uint8))

    def _serve_host(self) -> bool:
        """Move bytes between the host and the FIFOs, and tapped words out; True if any moved."""
        moved = False
        for fifo, tag in _INPUTS:
            stream = self.core["input"][fifo]
            room = chip.HOST_FIFO_BYTES - int(stream["length"])
            if self._order is not None:
                room = min(room, self._order.host_bytes())
            known: NDArray[Any] | None = self.host.next_known(tag, room)
            data = self.host.pull(tag, room)
            if data.size:
                if self._numbers is not None and known is not None:
                    places = _free_places(stream, data.size)
                    self._numbers["input"][fifo, places] = places_of(known)
                    known = shadows_of(known)
                _append(stream, data, known)
                moved = True
        output = self.core["output"]
        if output["length"]:
            places = _places(output)
            data, written = _take_all(output)
            if self._numbers is not None:
                written = np.where(written, np.uint64(1), self._numbers["output"][places])
            self.host.push(data, written)
            moved = True
        if moved:
            self._seen()
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
    fifo: state.ByteFifo, data: NDArray[np.uint8], known: NDArray[Any] | None = None
) -> None:
    """Append bytes to a byte FIFO that has room for them; ``known``: which follow from written
    ones, or their shadows; None: all.
    """
    first = (int(fifo["head"]) + int(fifo["length"])) % chip.HOST_FIFO_BYTES
    fits = min(data.size, chip.HOST_FIFO_BYTES - first)
    fifo["data"][first : first + fits] = data[:fits]
    fifo["data"][: data.size - fits] = data[fits:]
    fifo["written"][first : first + fits] = 1 if known is None else known[:fits]
    fifo["written"][: data.size - fits] = 1 if known is None else known[fits : data.size]
    fifo["length"] += data.size


def _places(fifo: state.ByteFifo) -> NDArray[np.int64]:
    """Where the bytes of a byte FIFO are."""
    return (int(fifo["head"]) + np.arange(int(fifo["length"]))) % chip.HOST_FIFO_BYTES


def _free_places(fifo: state.ByteFifo, count: int) -> NDArray[np.int64]:
    """Where the next bytes of a byte FIFO will be."""
    return (int(fifo["head"] + fifo["length"]) + np.arange(count)) % chip.HOST_FIFO_BYTES


def _take_all(fifo: state.ByteFifo) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Empty a byte FIFO: its bytes, and which of them follow from written ones."""
    places = _places(fifo)
    fifo["head"] = (fifo["head"] + fifo["length"]) % chip.HOST_FIFO_BYTES
    fifo["length"] = 0
    return fifo["data"][places], fifo["written"][places] != 0
