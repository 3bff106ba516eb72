"""The chip with its driver: runs executables on it, one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from typing import NamedTuple, Protocol

import numpy as np
from darwinn_formats.brief import brief
from darwinn_formats.darwinn import Executable

from darwinn_sim import chip
from darwinn_sim.device.chip import DEFAULT_WORK_LIMIT, Chip, Contents
from darwinn_sim.device.run import ProgramRun
from darwinn_sim.errors import IncompleteProgram, UninitialisedRead
from darwinn_sim.host.buffers import Request, batches_of, layer_bytes
from darwinn_sim.host.dma_trace import Transfer
from darwinn_sim.host.driver import Driver
from darwinn_sim.host.interface import HostInterface
from darwinn_sim.host.memory import HostMemory
from darwinn_sim.host.output_check import (
    Elements,
    differing_output,
    fill_any,
    known_outputs,
    unknown_output,
)
from darwinn_sim.isa import grading
from darwinn_sim.isa.builder import frame
from darwinn_sim.isa.grading import Assumption
from darwinn_sim.kernel import state, unwritten
from darwinn_sim.machine import completion, schedule
from darwinn_sim.machine.builds import Build
from darwinn_sim.machine.completeness import awaits_chunk
from darwinn_sim.machine.completion import Completion
from darwinn_sim.machine.examine import StopPoint, Tap, TappedBytes
from darwinn_sim.machine.hazards import CheckedPrograms, Hazard, Hazards
from darwinn_sim.machine.lowering import LoweredProgram, lower, require_grid
from darwinn_sim.machine.observer import Noting, Progress, Wanted

_WORK_OF_A_TURN = 1 << 24
"""The driver does nothing while the chip computes, but for reports of progress and looks at the
clock: half a second."""

_CACHED_PROGRAMS = 8


@brief
@dataclass(frozen=True)
class RunResult:
    """What a run gave.

    ``outputs`` holds the bytes of each output layer in device order (empty if the run was stopped
    early), ``transfers`` the DMA trace in issue order, ``interrupts`` the host interrupts in order,
    ``tapped`` what the taps copied, ``statistics`` counts of what was executed. ``incomplete``: it
    stopped where a further chunk is awaited. ``hazards``: what has been found since power-up.
    ``known``, of a run on marks: a 1 for each byte of an output whose mark is of the first half.
    """

    outputs: dict[str, bytes]
    transfers: list[Transfer]
    interrupts: list[int]
    tapped: list[TappedBytes] = field(default_factory=list)
    statistics: dict[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    stopped: bool = False
    incomplete: bool = False
    hazards: tuple[Hazard, ...] = ()
    known: Mapping[str, bytes] = field(default_factory=dict)


@cache
def compile_kernels(*, hazards: bool = False) -> None:
    """Compile what runs call, or load it from the cache, so that no run that is timed has to.

    ``hazards``: the build that looks for them.
    """
    build = Build.of(hazards=hazards, numbered=False)
    core = build.new_core()
    core["halted"] = 1
    nothing = lower([frame(b"")])
    schedule.run(core[0], state.new_tiles(), nothing.tables, build.new_seen())


class AnyInput(NamedTuple):
    """Runs for any input (``units.any_function``): the seed of all inputs, and the ``contents``
    that memories have before anything is written there: 0 zeros, 1 ones, otherwise of a seed."""

    inputs: int
    contents: int


class ChipEngine(Protocol):
    """What executes programs: the kernels of the model, or another implementation of the chip."""

    def power_up(self, memory: HostMemory) -> HostInterface:
        """Begin with a chip as after power-up; its interface to the host with that memory."""

    def run_of(self, device: Chip, program: LoweredProgram, wanted: Wanted) -> ProgramRun:
        """A run of a program that was submitted."""


class ModelEngine:
    """The kernels of the model, behind a host interface of the kind ``host``."""

    def __init__(self, host: Callable[[HostMemory], HostInterface] = HostInterface) -> None:
        self._host = host

    def power_up(self, memory: HostMemory) -> HostInterface:
        """A host interface with nothing in flight; the tiles are the accelerator's."""
        return self._host(memory)

    def run_of(self, device: Chip, program: LoweredProgram, wanted: Wanted) -> ProgramRun:
        """A run on the accelerator's tiles."""
        return ProgramRun(device, program, wanted)


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
        schedule: seed of a random legal order of the units, in which every program runs
            (``machine.random_schedule``); None: the fixed one.
        hazards: look for accesses to memories that nothing orders; what a run has of them is in its
            result (``machine.hazards``). Kernels of their own are compiled for it, once.
        numbered: value numbers go with all bytes (``numbering``).
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
        schedule: int | None = None,
        hazards: bool = False,
        numbered: bool = False,
        assumptions: bool = True,
        engine: ChipEngine | None = None,
    ) -> None:
        self.engine = engine or ModelEngine()
        self.strict = strict
        self.assumptions = assumptions
        self.seed = seed
        self.dma_only = dma_only
        self.work_limit = work_limit
        self.schedule = schedule
        self.hazards = hazards
        self.numbered = numbered
        self.any_input: AnyInput | None = None
        """From the next power-up on runs are for any input."""
        self.unwritten: Hazard | None = None
        """While hazards are looked for in strict mode: the read that has ended the last run."""
        self.completion = False
        """With ``hazards``, from the next power-up on: ask whether the programs end in every order
        of the units (``machine.completion``). What is learnt too late is not learnt then, so that
        there may be hazards which are none."""
        self._programs: dict[tuple[bytes, ...], LoweredProgram] = {}
        self._assumed: dict[bytes, tuple[Assumption, ...]] = {}
        self.power_ups = 0
        """How often the chip was powered up: its memories are lost when this grows."""
        self.runs = 0
        """How many programs it has been given to run."""
        self.preloads = 0
        """How often :meth:`preload_wide` has changed its memories."""
        self.power_up()

    def power_up(self) -> None:
        """Power the chip up: its memories are lost. It runs in the order of ``schedule`` then."""
        self.power_ups += 1
        self._deferred: tuple[Executable, Mapping[str, bytes], int] | None = None
        self._memory = HostMemory(strict=self.strict)
        if self.any_input is not None:
            self._memory.follow()
        self.host = self.engine.power_up(self._memory)
        seed = self.seed if self.any_input is None else self.any_input.contents
        self._driver = Driver(self.host, self._memory, seed=seed)
        self._driver.open()
        self._checked = CheckedPrograms()
        self._chip = Chip(
            self.host,
            strict=self.strict,
            dma_only=self.dma_only,
            seed=self.seed,
            random=np.random.default_rng(self.seed),
            work_limit=self.work_limit,
            work_of_a_turn=_WORK_OF_A_TURN,
            schedule=self.schedule,
            hazards=self.hazards,
            numbered=self.numbered,
        )
        if self.any_input is not None:
            self._inputs = np.random.default_rng(self.any_input.inputs)
            contents = self.any_input.contents
            random = np.random.default_rng(contents) if contents > 1 else None
            if contents:
                unwritten.change(self._chip.tiles, self._chip.core_array, random)
            self._chip.core["any_input"] = 1
        self._origin: str | None = None
        if self.completion:
            self._chip.core["clocks"]["sparing"] = 1

    @property
    def chip(self) -> Chip:
        """The chip, as all runs have left it."""
        if self._deferred is not None:
            (executable, inputs, number), self._deferred = self._deferred, None
            self.runs -= 1  # it has been counted
            self.run(executable, inputs, number=number)
        return self._chip

    def defer(self, executable: Executable, inputs: Mapping[str, bytes], number: int = 0) -> None:
        """Take a program for run, whose outputs are known already (``darwinn_sim.lifting``).

        The run is made up for when somebody looks at the chip, or runs something else on it. Of
        several the last one is: what the program does before does not matter.
        """
        self.runs += 1
        self._deferred = executable, inputs, number

    def follow(self, kind: type[np.bool_ | np.uint64] = np.bool_) -> None:
        """Have memory of the host say which of its bytes are known, as ``Region.follow``."""
        self._memory.follow(kind)

    def preload_wide(self, tile: int, row: int, data: bytes) -> None:
        """Put ``data`` into wide memory of ``tile`` from ``row`` on, as if a program had.

        It stays until a program overwrites it or the chip is powered up anew (see :meth:`run`).

        Raises:
            ValueError: there is no such tile, or the bytes are not within its wide memory.
        """
        first, last = row * chip.ROW_BYTES, row * chip.ROW_BYTES + len(data)
        if not 0 <= tile < chip.TILES or not 0 <= first < last <= chip.WIDE_ROWS * chip.ROW_BYTES:
            raise ValueError(f"{len(data)} bytes from row {row} on do not fit wide memory")
        self.preloads += 1
        self.chip.tiles[tile]["wide"].view(np.uint8)[first:last] = np.frombuffer(data, np.uint8)
        self.chip.tiles[tile]["wide_written"].view(np.uint8)[first:last] = 1

    def found_hazards(self) -> Hazards:
        """What was found since the chip was powered up, if that was asked for."""
        return self._checked.hazards(self.chip.core) if self.chip.hazards else Hazards()

    def found_completion(self) -> Completion:
        """Whether what has run since power-up ends in every order; only with ``completion``."""
        return completion.found(self._checked, self.chip.core, self._origin)

    def _check(self, program: LoweredProgram, number: int) -> None:
        if self.chip.hazards:
            self._checked.begin(self.chip.core, program, number)

    @property
    def liftable(self) -> bool:
        """Whether programs may be lifted (``darwinn_sim.lifting``): nothing is asked for that needs
        a run of each input."""
        looked_at = self.strict or self.dma_only or self.hazards or self.any_input is not None
        plain = not looked_at and self.schedule is None
        return plain and isinstance(self.engine, ModelEngine)

    @property
    def assumed(self) -> tuple[Assumption, ...]:
        """What the programs that were loaded so far assume."""
        return grading.merged(self._assumed.values())

    def load(self, executable: Executable) -> LoweredProgram:
        """Decode and lower ``executable``; later runs of it use the result.

        Raises:
            FormatError: it has no instructions, or is for a chip with another grid.
            UnsupportedInstruction: something in it is not implemented.
            DecodeError: its bitstreams are no instruction streams.
        """
        require_grid(executable)
        chunks = tuple(bytes(part.bitstream) for part in executable.instruction_bitstreams)
        if chunks not in self._programs:
            self._keep(chunks, lower(chunks, dma_only=self.dma_only, assumptions=self.assumptions))
        return self._programs[chunks]

    def take(self, program: LoweredProgram) -> None:
        """Have runs of its executable use ``program``, which has been lowered as :meth:`load` does;
        each run links it in place.
        """
        self._keep(program.streams, program)

    def _keep(self, chunks: tuple[bytes, ...], program: LoweredProgram) -> None:
        while len(self._programs) >= _CACHED_PROGRAMS:
            del self._programs[next(iter(self._programs))]
        self._programs[chunks] = program
        self._note(chunks, program.assumptions)

    def _note(self, chunks: Sequence[bytes], assumptions: tuple[Assumption, ...]) -> None:
        """Remember what a program assumes after the program itself has been dropped."""
        if assumptions:
            digests = b"".join(sha256(chunk).digest() for chunk in chunks)
            self._assumed[digests] = assumptions

    def run(
        self,
        executable: Executable,
        inputs: Mapping[str, bytes],
        *,
        until: StopPoint | None = None,
        taps: Sequence[Tap] = (),
        noting: Noting | None = None,
        program: LoweredProgram | None = None,
        progress: Progress | None = None,
        as_far_as_it_goes: bool = False,
        number: int = 0,
    ) -> RunResult:
        """Run ``executable`` from its instruction fetch to its last interrupt.

        After an error, or a stop before the end, the chip is powered up anew: its memories are
        lost, cached parameters too.

        Args:
            executable: what to run.
            inputs: bytes of each input layer in device order.
            until: stop here instead of at the end.
            taps: what to copy out of the chip.
            noting: takes what is noted of a run on marks (``units.marks``).
            program: executed in place of the executable's own, which it is made from.
            progress: called now and then.
            as_far_as_it_goes: a program that waits for a further chunk stops there; otherwise that
                is an error.
            number: which executable of its file it is; hazards name it so.

        Raises:
            UnsupportedInstruction: before anything runs.
            IncompleteProgram: it waits for a further chunk.
            Deadlock: nothing can go on; names the waiting units and flags.
            SimulationError: a fault of memory, page table, descriptor or program.
        """
        self.runs += 1
        wanted = Wanted(until, taps, progress, noting)
        self._check(program or self.load(executable), number)
        run = self.engine.run_of(self.chip, program or self.load(executable), wanted)
        if noting is not None:
            # Shadows are a part of marks, and go through the memory of the host too.
            self._memory.follow()
        request = self._driver.prepare(executable, inputs)
        if self.any_input is not None:
            fill_any(request, self._inputs)
        before = self.chip.contents() if self.strict else None
        try:
            result, unknown = self._execute(run, request, as_far_as_it_goes)
            if unknown is not None and before is not None:
                text = self._doubt(unknown, run.origin(), before, executable, inputs, result)
                result = replace(result, warnings=(text,))
        except UninitialisedRead as error:
            if self.chip.hazards:
                self.unwritten = self._checked.unwritten(self.chip.core, str(error))
            self.power_up()
            raise
        except BaseException:
            # The chip hangs as it is: whoever wants to go on needs a new one.
            self.power_up()
            raise
        return result

    def walk(
        self, executable: Executable, fill: Callable[[Request], None], noting: Noting | None
    ) -> dict[str, bytes]:
        """Run ``executable`` on identities: ``fill`` puts them into the buffers of the request,
        ``noting`` takes what is noted of them; without it they are data like any other. Returns the
        outputs; errors are as of :meth:`run`.
        """
        run = self.engine.run_of(self.chip, self.load(executable), Wanted(noting=noting))
        batches = batches_of(executable)
        zeros = {each.name: bytes(layer_bytes(each) * batches) for each in executable.input_layers}
        request = self._driver.prepare(executable, zeros)
        try:
            fill(request)
            self.host.forget()
            self._driver.submit(request)
            self.chip.execute(run)
            if self._is_incomplete(run.program):
                raise IncompleteProgram(len(run.program.chunks))
            return self._driver.finish(request)
        except BaseException:
            self.power_up()
            raise

    def _execute(
        self, run: ProgramRun, request: Request, as_far_as_it_goes: bool
    ) -> tuple[RunResult, Elements | None]:
        """What a run gave, and the elements of outputs that may follow from unwritten memory."""
        # The history of earlier runs would grow without end.
        self.host.forget()
        self._driver.submit(request)
        program = run.program
        stopped = self.chip.execute(run)
        self._checked.end(run.host_order)
        if self.completion and self.chip.core["uninitialised"] and self._origin is None:
            self._origin = run.origin()
        tapped = run.observer.collect(self.chip.tiles)
        transfers = list(self.host.transfers)
        incomplete = not stopped and self._is_incomplete(program)
        if incomplete and not as_far_as_it_goes:
            raise IncompleteProgram(len(program.chunks))
        stopped |= incomplete
        unknown = None
        known = known_outputs(request) if run.observer.wanted.noting is not None else {}
        if not stopped and self._driver.poll():
            unknown = unknown_output(request)
        if unknown is not None and not self.strict and self.any_input is None:
            self.chip.core["uninitialised"] += unknown.number
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
            self.found_hazards().found,
            known,
        )
        return result, unknown

    def _doubt(
        self,
        unknown: Elements,
        origin: str,
        before: Contents,
        executable: Executable,
        inputs: Mapping[str, bytes],
        result: RunResult,
    ) -> str:
        """Strict mode: run again with other bytes wherever nothing had written, twice.

        Elements that then differ are made of unwritten memory: ``UninitialisedRead``. If there are
        none, a warning is returned.
        """
        after = self.chip.contents()
        for random in (None, np.random.default_rng(self.seed)):
            self.chip.restore(before)
            unwritten.change(self.chip.tiles, self.chip.core_array, random)
            # Only the bytes are wanted, and the check of all operands takes long.
            self.chip.core["strict"] = 0
            run = self.engine.run_of(self.chip, self.load(executable), Wanted())
            again, _ = self._execute(run, self._driver.prepare(executable, inputs), False)
            differing = differing_output(executable, result.outputs, again.outputs)
            if differing is not None:
                self.chip.restore(after)
                raise UninitialisedRead(
                    f"elements of output {differing.name!r}{origin}",
                    differing.first,
                    differing.number,
                )
        self.chip.restore(after)
        return (
            f"{unknown.number} elements of output {unknown.name!r} are computed from memory that "
            f"nothing has written{origin}; with other bytes there they are the same"
        )

    def _is_incomplete(self, program: LoweredProgram) -> bool:
        return awaits_chunk(program.chunks) and not self._driver.poll()

    def _finish(self, request: Request, stopped: bool) -> dict[str, bytes]:
        if stopped:
            self.power_up()
            return {}
        return self._driver.finish(request)

    def _warnings(self, statistics: Mapping[str, int]) -> tuple[str, ...]:
        count = statistics["uninitialised_reads"]
        if not count or self.strict:
            return ()
        return (f"{count} uses of memory that nothing has written (--strict stops at the first)",)
