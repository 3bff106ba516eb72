"""The chip as a device, which belongs to whoever stands at its other end.

A :class:`Chip` is tiles, scalar core, registers and a host interface: ``HostInterface`` (PCIe: the
chip fetches its program and reads and writes memory of the host) or ``UsbInterface`` (the host
pushes everything). :func:`behind_pcie` and :func:`behind_usb` make one. Nobody has to tell it what
it runs: it recognises programs from the chunks that it fetches.

    chip.write(offset, value, width)    the host writes a register: doorbell, power, run control
    chip.read(offset, width)            the host reads one
    chip.advance()                      compute for a moment; False: it waits, see ``chip.waits``
    chip.reset()                        as after power-up, whatever it was doing
    chip.wake                           called after a write that may let it go on

``advance`` raises ``SimulationError`` if the program does what the chip cannot do, once; so does a
write that lets something go on, as the end of a pause of DMA. The fault is told to the host
(``hib_error_status``, fatal interrupt), stands in ``chip.fault``, and lasts until a reset. That a
host has not sent yet what the program waits for is no deadlock. A chip is not for several threads
at once: whoever has threads calls one method at a time (``device.turns``). While the kernels
compute, other threads run.

A driver in the same process that knows what it has submitted says so (:meth:`Chip.expect`), and has
the run observed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from weakref import WeakMethod

import numpy as np
from darwinn_formats.limits import Limits, limits

from darwinn_sim.device.pace import Pace
from darwinn_sim.device.run import ProgramRun, Turn
from darwinn_sim.errors import Deadlock, ProgramFault, SimulationError
from darwinn_sim.host.attachment import Attachment
from darwinn_sim.host.interface import HostInterface
from darwinn_sim.host.memory import BusMemory
from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.host.register_space import RegisterSpace, silent
from darwinn_sim.host.run_controls import scalar_core_runs
from darwinn_sim.host.usb import HostSide, UsbInterface
from darwinn_sim.isa.codec import DecodeError
from darwinn_sim.kernel import state
from darwinn_sim.kernel.structure import Records
from darwinn_sim.machine import diagnosis
from darwinn_sim.machine.builds import Build
from darwinn_sim.machine.completeness import awaits_chunk
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.machine.observer import Wanted
from darwinn_sim.machine.programs import Programs

DEFAULT_WORK_LIMIT = 1 << 33
"""Work of a run before it is called endless: bundles, tensor iterations, words moved, and what
takes about as long. The largest program at hand needs a sixtieth of it; all of it takes minutes."""

WORK_OF_A_TURN = 1 << 20
"""Work between two looks at the host: some hundredths of a second."""

MAX_CHUNKS = 1 << 8
"""Instruction chunks of a program that is recognised; public ones have up to 3."""

MAX_PROGRAM_BYTES = 1 << 24
"""Bytes of the same; public programs have up to 730,000."""


class Waits(Enum):
    """What a chip that does not go on waits for."""

    NOTHING = auto()
    """It goes on."""
    CHUNK = auto()
    """An instruction chunk: of the next program, or the next of this one."""
    BYTES = auto()
    """Bytes that descriptors have asked the host for, or the end of a pause of DMA."""
    HOST = auto()
    """That the host starts the scalar core."""
    OBSERVER = auto()
    """A stop point has been reached."""
    RESET = auto()
    """There has been a fault."""


class Chip:
    """Tiles and scalar core behind ``host``, as after power-up.

    Args:
        host: how it is attached.
        by_usb: by USB: asleep after power-up.
        strict: a use of memory that nothing has written is an error.
        assumptions: execute values whose meaning is assumed.
        dma_only: the tiles do nothing; what they would give comes from ``random``.
        seed: data of the scalar core in DMA-only mode.
        random: the same of the tiles.
        work_limit: work that a program may do before it is called endless.
        work_of_a_turn: between two looks at the host.
        allowed: seconds and memory of a program; None: those that hold where the chip is made.
        schedule: seed of a random legal order of the units; None: the fixed one.
        hazards: look for accesses to memories that nothing orders (``machine.hazards``).
        numbered: value numbers go with all bytes (``numbering``).
        log: told what is unusual about register accesses of the host.
        pace: holds back what tells the host that a program is over.
    """

    def __init__(
        self,
        host: Attachment,
        *,
        by_usb: bool = False,
        strict: bool = False,
        assumptions: bool = True,
        dma_only: bool = False,
        seed: int = 0,
        random: np.random.Generator | None = None,
        work_limit: int = DEFAULT_WORK_LIMIT,
        work_of_a_turn: int = WORK_OF_A_TURN,
        allowed: Limits | None = None,
        schedule: int | None = None,
        hazards: bool = False,
        numbered: bool = False,
        log: Callable[[str], None] = silent,
        pace: Pace | None = None,
    ) -> None:
        self.host = host
        self._pace = pace or Pace()
        host.hold = self._pace.hold
        self.dma_only = dma_only
        self.work_limit = work_limit
        self.work_of_a_turn = work_of_a_turn
        self.limits = allowed or limits()
        self.schedule = schedule
        self.hazards = hazards and not dma_only
        self.numbered = numbered
        self.random = random or np.random.default_rng(seed)
        self.programs = Programs(dma_only=dma_only, assumptions=assumptions)
        """Recognises what is fetched."""
        self.wake: Callable[[], None] = lambda: None
        """Called after a register write that may let the chip go on."""
        self.new_run: Callable[[Chip, LoweredProgram], ProgramRun] = _recognised_run
        """Makes the run of a program that is recognised."""
        self._strict, self._seed = strict, seed
        # Weakly, so that a chip that nobody has any more gives back its memories at once.
        reset = WeakMethod(self._reset_core)
        self._space = RegisterSpace(host.registers, lambda: _call(reset), by_usb=by_usb, log=log)
        self._power_up()

    def _power_up(self) -> None:
        self._pace.clear()
        self.tiles = state.new_tiles()
        self.core_array = Build.of(hazards=self.hazards, numbered=self.numbered).new_core()
        self.core = self.core_array[0]
        # Without tiles, what they would have written is missing everywhere.
        self.core["strict"] = self._strict and not self.dma_only
        # The generator of the kernels has 64 bits; a longer seed differs in its lower ones alone.
        self.core["random"] = np.uint64((self._seed << 1 | 1) & 0xFFFF_FFFF_FFFF_FFFF)
        self.waits = Waits.CHUNK
        self.fault: SimulationError | None = None
        """What has ended the chip's work since the last reset."""
        self.run: ProgramRun | None = None
        """The program that runs, or ran last."""
        self._fetched: list[bytes] = []
        self._expected: ProgramRun | None = None

    # The host's side.

    def read(self, offset: int, width: int) -> int:
        """Host read of a register of ``width`` bits; an unknown one is logged."""
        return self._space.read(offset, width)

    def write(self, offset: int, value: int, width: int) -> None:
        """Host write of a register of ``width`` bits; an unknown one is logged.

        Raises ``SimulationError`` as :meth:`advance`, if the host's memory does not take what a
        pause of DMA held back, or the host no interrupt.
        """
        try:
            self._space.write(offset, value, width)
        except SimulationError as error:
            if self.fault is None:
                self._fail(error)
                raise
        self.wake()

    def reset(self) -> None:
        """As after power-up: memories are lost, nothing is in flight. Lowered programs are kept."""
        self._space.reset()
        self._reset_core()

    def _reset_core(self) -> None:
        self.host.registers.reset()
        self.host.clear()
        self.host.forget()
        self._power_up()

    # Running.

    def expect(self, run: ProgramRun) -> None:
        """The next program to be fetched is that of ``run``."""
        self._expected = run

    def execute(self, run: ProgramRun) -> bool:
        """Run a program as far as the host has queued it; True if the stop point was reached."""
        self.expect(run)
        run.begin()
        try:
            while self.advance():
                pass
        finally:
            run.end()
        return self.waits is Waits.OBSERVER

    def advance(self) -> bool:
        """Compute for a moment; False if the chip waits, for what ``waits`` says.

        Raises ``SimulationError`` for a fault of the program or of the host's memory. After that,
        the chip waits for a reset.
        """
        if self.fault is not None:
            return False
        try:
            self._pace.release()
            self.waits = self._advance()
            if self.waits is not Waits.NOTHING:
                self._pace.let_go()
        except SimulationError as error:
            self._fail(error)
            raise
        return self.waits is Waits.NOTHING

    def _fail(self, error: SimulationError) -> None:
        """End the work, and tell the host, unless what found the fault has told already."""
        self.waits, self.fault = Waits.RESET, error
        # A host that does not take it may be why the work has ended.
        with suppress(SimulationError):
            self._pace.let_go()
        if not self.host.registers.get("hib_error_status"):
            # Nothing is known of a bit for what a program does; this is the nearest.
            with suppress(SimulationError):
                self.host.interrupts.report_error("instruction_queue_invalid")

    def _advance(self) -> Waits:
        if not scalar_core_runs(self.host.registers):
            return Waits.HOST
        run = self.run
        if run is None or run.over:
            return Waits.NOTHING if self._fetch() else Waits.CHUNK
        turn = run.turn()
        if turn is Turn.GOES_ON:
            return Waits.NOTHING
        halted = turn in (Turn.HALTS, Turn.HALTED)
        if (halted and run.awaits_chunk and self._fetch()) or turn is Turn.HALTS:
            return Waits.NOTHING
        if turn is Turn.STOPPED:
            run.over = True
            return Waits.OBSERVER
        return self._standing_still(run, halted)

    def _standing_still(self, run: ProgramRun, halted: bool) -> Waits:
        """Nothing moves: what it waits for; raises ``Deadlock`` if that cannot come."""
        if self.host.awaits_host:
            return Waits.BYTES
        if halted and awaits_chunk(run.taken):
            return Waits.CHUNK
        waiting = run.waiting()
        if waiting or not halted:
            raise Deadlock(waiting)
        if self.host.output_pending or (run.recognised and self.host.owes_output):
            # The next program would wait for it, or have it in its own output. Of one that was
            # announced, the driver finds that it has not ended.
            raise Deadlock(self.host.waiting())
        if left := diagnosis.left_behind(self.core, self.tiles):
            raise Deadlock(left)
        run.over = True
        self._pace.end(run.program, run.chunks_taken)
        return Waits.NOTHING

    def _fetch(self) -> bool:
        """Take the next chunk, of the program that runs or of a new one; False without one."""
        begins = self.run is None or self.run.over
        if begins and self.run is not None and self.run.recognised:
            # Nobody reads the traces of programs that nobody has announced; they would grow.
            self.host.forget()
        chunk = self.host.fetch_chunk()
        if chunk is None:
            return False
        if begins:
            self._pace.begin()
            self.run, self._expected = self._expected, None
            self._fetched.clear()
        if self.run is None or self.run.recognised:
            self._fetched.append(chunk)
            program = self._recognised()
            if self.run is None:
                self.run = self.new_run(self, program)
            self.run.program = program
        self.run.take(chunk)
        return True

    def _recognised(self) -> LoweredProgram:
        """The program of what has been fetched; raises ``ProgramFault`` and as lowering does."""
        if len(self._fetched) > MAX_CHUNKS or sum(map(len, self._fetched)) > MAX_PROGRAM_BYTES:
            limits = f"more than {MAX_CHUNKS} chunks or {MAX_PROGRAM_BYTES} bytes of one program"
            raise ProgramFault(len(self._fetched) - 1, limits)
        try:
            return self.programs.find(self._fetched)
        except DecodeError as error:
            raise ProgramFault(len(self._fetched) - 1, str(error)) from error

    # For who keeps the chip's contents.

    def contents(self) -> Contents:
        """A copy of all that tiles and core hold."""
        return Contents(self.tiles.copy(), self.core_array.copy())

    def restore(self, contents: Contents) -> None:
        """Give tiles and core what they held."""
        self.tiles[:] = contents.tiles
        self.core_array[:] = contents.core


def _call(method: WeakMethod[Callable[[], None]]) -> None:
    """Call a method, if its object is still there."""
    found = method()
    if found is not None:
        found()


def _recognised_run(chip: Chip, program: LoweredProgram) -> ProgramRun:
    return ProgramRun(chip, program, Wanted(), recognised=True)


@dataclass(frozen=True)
class Contents:
    """What a chip holds."""

    tiles: Records[state.Tile]
    core: Records[state.Core]


def behind_usb(
    host: HostSide,
    *,
    allowed: Limits | None = None,
    log: Callable[[str], None] = silent,
    pace: Pace | None = None,
) -> tuple[Chip, UsbInterface]:
    """A chip attached by USB, and what the host pushes to; ``host`` takes outputs and events."""
    interface = UsbInterface(RegisterFile(), host)
    return Chip(interface, by_usb=True, allowed=allowed, log=log, pace=pace), interface


def behind_pcie(
    memory: BusMemory,
    interrupt: Callable[[int], None],
    *,
    allowed: Limits | None = None,
    log: Callable[[str], None] = silent,
    pace: Pace | None = None,
) -> Chip:
    """A chip attached by PCIe: the host's memory, and what takes the vectors of its interrupts."""
    interface = HostInterface(memory, lambda message: interrupt(message.vector))
    return Chip(interface, allowed=allowed, log=log, pace=pace)
