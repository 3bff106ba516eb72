"""The chip with its host: composes host interface, scalar core and tiles, and runs executables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Protocol

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_formats.errors import FormatError
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.errors import (
    ChipFault,
    Deadlock,
    IncompleteProgram,
    SimulationError,
    UninitialisedRead,
)
from darwinn_sim.host.buffers import Request
from darwinn_sim.host.dma_trace import Transfer
from darwinn_sim.host.driver import Driver
from darwinn_sim.host.interface import HostInterface
from darwinn_sim.host.memory import HostMemory
from darwinn_sim.host.output_check import Elements, differing_output, unknown_output
from darwinn_sim.isa import grading
from darwinn_sim.isa.builder import frame
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.isa.grading import Assumption
from darwinn_sim.kernel import state, unwritten
from darwinn_sim.machine import core_alone, diagnosis, schedule
from darwinn_sim.machine.completeness import awaits_chunk
from darwinn_sim.machine.examine import StopPoint, Tap, TappedBytes
from darwinn_sim.machine.lowering import LoweredProgram, lower, patch
from darwinn_sim.machine.observer import Observer, Progress, Wanted
from darwinn_sim.units import scalar_core

DEFAULT_WORK_LIMIT = 1 << 31
"""Work of a run before it is called endless: bundles, tensor iterations, and words moved. The
largest program at hand needs a thirtieth of it, which takes a second."""

_WORK_BETWEEN_REPORTS = 1 << 26
_DESCRIPTOR_WORK = 1 << 13
"""Work that a descriptor counts for: about as long as the host takes to serve it, so that a program
which issues descriptors without end is ended as soon as any other."""
_CACHED_PROGRAMS = 8


@dataclass(frozen=True)
class RunResult:
    """What a run gave.

    ``outputs`` holds the bytes of each output layer in device order (empty if the run was stopped
    early), ``transfers`` the DMA trace in issue order, ``interrupts`` the host interrupts in order,
    ``tapped`` what the taps copied, ``statistics`` counts of what was executed. ``incomplete``: it
    stopped where a further chunk is awaited.
    """

    outputs: dict[str, bytes]
    transfers: list[Transfer]
    interrupts: list[int]
    tapped: list[TappedBytes] = field(default_factory=list)
    statistics: dict[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    stopped: bool = False
    incomplete: bool = False


@cache
def compile_kernels() -> None:
    """Compile what runs call, or load it from the cache, so that no run that is timed has to."""
    core = state.new_core()
    core["halted"] = 1
    nothing = lower([frame(b"")])
    schedule.run(core[0], state.new_tiles(), nothing.tables, np.zeros(1, state.TAP))


class Engine(Protocol):
    """What executes programs: the kernels of the model, or another implementation of the chip."""

    def power_up(self, strict: bool) -> HostInterface:
        """Begin with a chip as after power-up; its interface to the host."""

    def run_of(
        self, accelerator: Accelerator, program: LoweredProgram, wanted: Wanted
    ) -> ProgramRun:
        """A run of a program that was submitted."""


class ModelEngine:
    """The kernels of the model, behind a host interface of the kind ``host``."""

    def __init__(self, host: Callable[[HostMemory], HostInterface] = HostInterface) -> None:
        self._host = host

    def power_up(self, strict: bool) -> HostInterface:
        """A host interface with nothing in flight; the tiles are the accelerator's."""
        return self._host(HostMemory(strict=strict))

    def run_of(
        self, accelerator: Accelerator, program: LoweredProgram, wanted: Wanted
    ) -> ProgramRun:
        """A run on the accelerator's tiles."""
        return ProgramRun(accelerator, program, wanted)


class Accelerator:
    """A simulated Beagle with its driver: run executables on it, one after another.

    Tile memories keep their contents between runs, so a PARAMETER_CACHING executable is run once
    and its EXECUTION_ONLY partner as often as wanted.

    Args:
        strict: a use of memory that nothing has written is an error.
        seed: contents of destinations before a run, and data in DMA-only mode.
        dma_only: run the scalar core and its DMA alone; the tiles do nothing, and outputs, scratch
            and what tiles would send to scalar memory come from the seed.
        work_limit: work that a run may do before it is called endless.
        assumptions: execute values whose meaning is assumed; False refuses them. A program's are
            in ``load(executable).assumptions``, those of all programs in ``assumed``.
        engine: what executes programs; the kernels of the model by default.
    """

    def __init__(
        self,
        *,
        strict: bool = False,
        seed: int = 0,
        dma_only: bool = False,
        work_limit: int = DEFAULT_WORK_LIMIT,
        assumptions: bool = True,
        engine: Engine | None = None,
    ) -> None:
        self.engine = engine or ModelEngine()
        self.strict = strict
        self.assumptions = assumptions
        self.seed = seed
        self.dma_only = dma_only
        self.work_limit = work_limit
        self._random = np.random.default_rng(seed)
        self._programs: dict[tuple[bytes, ...], LoweredProgram] = {}
        self._assumed: dict[tuple[bytes, ...], tuple[Assumption, ...]] = {}
        self.power_ups = 0
        """How often the chip was powered up: its memories are lost when this grows."""
        self._power_up()

    def _power_up(self) -> None:
        self.power_ups += 1
        self.host = self.engine.power_up(self.strict)
        self._driver = Driver(self.host, seed=self.seed)
        self._driver.open()
        self._tiles = state.new_tiles()
        self._core_array = state.new_core()
        self._core = self._core_array[0]
        # Without tiles, what they would have written is missing everywhere.
        self._core["strict"] = self.strict and not self.dma_only
        # The generator of the kernels has 64 bits; a longer seed differs in its lower ones alone.
        self._core["random"] = np.uint64((self.seed << 1 | 1) & 0xFFFF_FFFF_FFFF_FFFF)

    def preload_wide(self, tile: int, row: int, data: bytes) -> None:
        """Put ``data`` into wide memory of ``tile`` from ``row`` on, as if a program had.

        It stays until a program overwrites it or the chip is powered up anew (see :meth:`run`).

        Raises:
            ValueError: there is no such tile, or the bytes are not within its wide memory.
        """
        first, last = row * chip.ROW_BYTES, row * chip.ROW_BYTES + len(data)
        if not 0 <= tile < chip.TILES or not 0 <= first < last <= chip.WIDE_ROWS * chip.ROW_BYTES:
            raise ValueError(f"{len(data)} bytes from row {row} on do not fit wide memory")
        self._tiles[tile]["wide"].view(np.uint8)[first:last] = np.frombuffer(data, np.uint8)
        self._tiles[tile]["wide_written"].view(np.uint8)[first:last] = 1

    @property
    def assumed(self) -> tuple[Assumption, ...]:
        """What the programs that were loaded so far assume."""
        return grading.merged(self._assumed.values())

    def load(self, executable: Executable) -> LoweredProgram:
        """Decode and lower ``executable``; later runs of it use the result.

        Raises:
            FormatError: it has no instructions.
            UnsupportedInstruction: something in it is not implemented.
            DecodeError: its bitstreams are no instruction streams.
        """
        if not any(part.bitstream for part in executable.instruction_bitstreams):
            raise FormatError("instruction_bitstreams", "the executable has no instructions")
        chunks = tuple(bytes(part.bitstream) for part in executable.instruction_bitstreams)
        if chunks not in self._programs:
            while len(self._programs) >= _CACHED_PROGRAMS:
                del self._programs[next(iter(self._programs))]
            self._programs[chunks] = lower(
                chunks, dma_only=self.dma_only, assumptions=self.assumptions
            )
            self._assumed[chunks] = self._programs[chunks].assumptions
        return self._programs[chunks]

    def run(
        self,
        executable: Executable,
        inputs: Mapping[str, bytes],
        *,
        until: StopPoint | None = None,
        taps: Sequence[Tap] = (),
        look: Callable[[int], None] | None = None,
        program: LoweredProgram | None = None,
        progress: Progress | None = None,
        as_far_as_it_goes: bool = False,
    ) -> RunResult:
        """Run ``executable`` from its instruction fetch to its last interrupt.

        After an error, or a stop before the end, the chip is powered up anew: its memories are
        lost, cached parameters too.

        Args:
            executable: what to run.
            inputs: bytes of each input layer in device order.
            until: stop here instead of at the end.
            taps: what to copy out of the chip.
            look: called with a tile that stands before an observed segment (``observer.Wanted``).
            program: executed in place of the executable's own, which it is made from.
            progress: called now and then.
            as_far_as_it_goes: a program that waits for a further chunk stops there; otherwise that
                is an error.

        Raises:
            UnsupportedInstruction: before anything runs.
            IncompleteProgram: it waits for a further chunk.
            Deadlock: nothing can go on; names the waiting units and flags.
            SimulationError: a fault of memory, page table, descriptor or program.
        """
        wanted = Wanted(until, taps, look, progress)
        run = self.engine.run_of(self, program or self.load(executable), wanted)
        request = self._driver.prepare(executable, inputs)
        before = self._contents() if self.strict else None
        try:
            result, unknown = self._execute(run, request, as_far_as_it_goes)
            if unknown is not None and before is not None:
                text = self._doubt(unknown, run.origin(), before, executable, inputs, result)
                result = replace(result, warnings=(text,))
        except BaseException:
            # The chip hangs as it is: whoever wants to go on needs a new one.
            self._power_up()
            raise
        return result

    def _execute(
        self, run: ProgramRun, request: Request, as_far_as_it_goes: bool
    ) -> tuple[RunResult, Elements | None]:
        """What a run gave, and the elements of outputs that may follow from unwritten memory."""
        # The history of earlier runs would grow without end.
        self.host.transfers.clear()
        self.host.interrupts.raised.clear()
        self.host.interrupts.messages.clear()
        self._driver.submit(request)
        program = run.program
        stopped = run.execute()
        tapped = run.observer.collect(self._tiles)
        transfers = list(self.host.transfers)
        incomplete = not stopped and self._is_incomplete(program)
        if incomplete and not as_far_as_it_goes:
            raise IncompleteProgram(len(program.chunks))
        stopped |= incomplete
        unknown = None
        if not stopped and self._driver.poll():
            unknown = unknown_output(request)
        if unknown is not None and not self.strict:
            self._core["uninitialised"] += unknown.number
        statistics = run.statistics()
        result = RunResult(
            self._finish(request, stopped),
            transfers,
            [t.number for t in transfers if t.is_interrupt],
            tapped,
            statistics,
            self._warnings(statistics),
            stopped,
            incomplete,
        )
        return result, unknown

    def _contents(self) -> tuple[NDArray[np.void], NDArray[np.void]]:
        return self._tiles.copy(), self._core_array.copy()

    def _restore(self, contents: tuple[NDArray[np.void], NDArray[np.void]]) -> None:
        self._tiles[:], self._core_array[:] = contents

    def _doubt(
        self,
        unknown: Elements,
        origin: str,
        before: tuple[NDArray[np.void], NDArray[np.void]],
        executable: Executable,
        inputs: Mapping[str, bytes],
        result: RunResult,
    ) -> str:
        """Strict mode: run again with other bytes wherever nothing had written, twice.

        Elements that then differ are made of unwritten memory: ``UninitialisedRead``. If there are
        none, a warning is returned.
        """
        after = self._contents()
        for random in (None, np.random.default_rng(self.seed)):
            self._restore(before)
            unwritten.change(self._tiles, self._core_array, random)
            # Only the bytes are wanted, and the check of all operands takes long.
            self._core["strict"] = 0
            run = self.engine.run_of(self, self.load(executable), Wanted())
            again, _ = self._execute(run, self._driver.prepare(executable, inputs), False)
            differing = differing_output(executable, result.outputs, again.outputs)
            if differing is not None:
                raise UninitialisedRead(
                    f"elements of output {differing.name!r}{origin}",
                    differing.first,
                    differing.number,
                )
        self._restore(after)
        return (
            f"{unknown.number} elements of output {unknown.name!r} are computed from memory that "
            f"nothing has written{origin}; with other bytes there they are the same"
        )

    def _is_incomplete(self, program: LoweredProgram) -> bool:
        return awaits_chunk(program.chunks) and not self._driver.poll()

    def _finish(self, request: Request, stopped: bool) -> dict[str, bytes]:
        if stopped:
            self._power_up()
            return {}
        return self._driver.finish(request)

    def _warnings(self, statistics: Mapping[str, int]) -> tuple[str, ...]:
        count = statistics["uninitialised_reads"]
        if not count or self.strict:
            return ()
        return (f"{count} uses of memory that nothing has written (--strict stops at the first)",)


class ProgramRun:
    """One run of a program: drives the kernels and serves what they ask of the host."""

    def __init__(self, accelerator: Accelerator, program: LoweredProgram, wanted: Wanted) -> None:
        self.host = accelerator.host
        self.tiles = accelerator._tiles
        self.core = accelerator._core
        self.dma_only = accelerator.dma_only
        self.random = accelerator._random
        self.work_limit = accelerator.work_limit
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
            return core_alone.run(self.core, self.program.tables)
        return schedule.run(self.core, self.tiles, self.program.tables, self.observer.buffer)

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
    fifo: NDArray[np.void], data: NDArray[np.uint8], known: NDArray[np.bool_] | None = None
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


def _take_all(fifo: NDArray[np.void]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Empty a byte FIFO: its bytes, and which of them follow from written ones."""
    places = (int(fifo["head"]) + np.arange(int(fifo["length"]))) % chip.HOST_FIFO_BYTES
    fifo["head"] = (fifo["head"] + fifo["length"]) % chip.HOST_FIFO_BYTES
    fifo["length"] = 0
    return fifo["data"][places], fifo["written"][places] != 0
