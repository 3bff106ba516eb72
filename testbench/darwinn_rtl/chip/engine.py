"""Executables on the RTL: the model's scalar core, with all units that move data in SystemVerilog.

The scalar core executes its own instructions in the kernels of the model. Each instruction of a
unit or tile, and each descriptor, goes to the RTL in program order; scalar fences wait there.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_formats.errors import Unavailable
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.device.chip import Chip
from darwinn_sim.device.run import ProgramRun, Turn
from darwinn_sim.errors import NotEnded, UnsupportedInstruction
from darwinn_sim.host.interface import HostInterface
from darwinn_sim.host.memory import HostMemory
from darwinn_sim.isa.fields import BUNDLE_BYTES
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS
from darwinn_sim.kernel import state
from darwinn_sim.kernel.state import Handover
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.machine.observer import Wanted
from darwinn_sim.units import scalar_core
from darwinn_sim.units.tensor_cells import INTERPOLATE

from darwinn_rtl import toolchain
from darwinn_rtl.build import Design, SimulationFailed
from darwinn_rtl.chip import player
from darwinn_rtl.chip.host import RtlHost
from darwinn_rtl.chip.player import ChipPlayer
from darwinn_rtl.chip.recording import RecordingPlayer

_STALLED = 2
"""Cycles that a cycle of a chip takes at the most on average, if it is held back at random."""

_MESH = ("MeshSouth", "MeshWest", "MeshNorth", "MeshEast")


class RtlRun(ProgramRun):
    """One run of a program whose units are RTL."""

    def __init__(
        self,
        host: RtlHost,
        device: Chip,
        program: LoweredProgram,
        wanted: Wanted,
        *,
        recognised: bool = False,
    ) -> None:
        if wanted.until or wanted.taps or wanted.noting:
            raise Unavailable("the RTL engine has neither stop points nor taps")
        super().__init__(device, program, wanted, recognised=recognised)
        self._host = host
        self._player = host.player
        self._player.quiet = quiet_cycles(program)
        self._begin = self._cycles = 0
        self._rows = self._player.rows

    def end(self) -> None:
        """Let the RTL forget the host's memory."""
        self._player.unmap_all()

    def take(self, chunk: bytes) -> None:
        """Begin with the next chunk; time counts from the first."""
        if not self.chunks_taken:
            self._begin = self._host.chunk_cycle
        super().take(chunk)

    def waiting(self) -> tuple[str, ...]:
        """Nothing: work that is left when the core halts ends, or the RTL reports the units that
        are stuck."""
        return ()

    def turn(self) -> Turn:
        """Run the scalar core up to the next item for the RTL."""
        reason = self._run_core()
        self._host.take_events()
        if reason == scalar_core.SPENT:
            raise NotEnded(f"{self.device.work_limit} steps", self._doing())
        if reason == scalar_core.HANDS_OVER:
            self._take()
            reason = scalar_core.pass_on(self.core, self.program.tables)
        if reason == scalar_core.FAULT:
            raise self._fault()
        if reason != scalar_core.HALTED:
            return Turn.GOES_ON
        if not self.awaits_chunk:
            self._player.settle()
            self._cycles = self._player.cycle - self._begin
            self._host.check()
        return Turn.HALTED

    def _run_core(self) -> int:
        """Let the scalar core continue: it sees scalar memory as the units left it, and they as the
        core left it."""
        core = self.core
        core["work_limit"] = self.device.work_limit
        core["memory"][:] = self._player.scalar_memory
        core["memory_written"][:] = state.ALL_BITS
        reason = scalar_core.run(core, self.program.tables, scalar_core.NOWHERE)
        self._player.scalar_memory[:] = core["memory"]
        return reason

    def _take(self) -> None:
        """Give the RTL the item that the scalar core hands over."""
        handed = self.core["handed"]
        kind = Handover(int(handed["kind"]))
        if kind is Handover.DESCRIPTOR:
            self._issue()
        elif kind is Handover.PUSH:
            self._player.push(int(handed["word"]))
        elif kind is not Handover.HALT:
            tiles = int(handed["target"]) if kind is Handover.DISPATCH else 0
            self._hand_over(int(handed["instruction"]), tiles, int(handed["base"]))
        if kind is Handover.FENCE and handed["target"]:
            self._host.fence()

    def _hand_over(self, instruction: int, tiles: int, base: int) -> None:
        """Give an instruction to its unit, or to tiles; a base of -1 leaves its own."""
        tables = self.program.tables
        pc = int(tables.pc[instruction])
        chunk, begin = self.program.locate(pc)
        end = begin + scalar_core.following(tables, pc) - pc
        self._player.hand_over(
            f"{INSTRUCTIONS[int(tables.opcode[instruction])].name} of chunk {chunk}, pc {begin}",
            self._host.chunk[BUNDLE_BYTES * begin : BUNDLE_BYTES * end],
            tiles,
            None if base < 0 else base,
        )

    def statistics(self) -> dict[str, int]:
        """Counts of the run; ``rtl_cycles`` is the time in the RTL, from the fetch of the first
        chunk until the chip is idle."""
        return {
            "scalar_bundles": int(self.core["steps"]),
            "ring_rows": self._player.rows - self._rows,
            "rtl_cycles": self._cycles,
            "uninitialised_reads": 0,
        }


class RtlEngine:
    """A chip in RTL (``accelerator.ChipEngine``).

    Args are those of :class:`RtlAccelerator`; it raises ``SimulationFailed`` at power-up.
    """

    def __init__(
        self,
        seed: int,
        design: Design,
        waves: Path | None,
        stall_seed: int | None,
        record: Path | None,
    ) -> None:
        self.design = design
        self._seed, self._waves, self._stall_seed = seed, waves, stall_seed
        self._record = record
        self._host: RtlHost | None = None
        self._player: ChipPlayer | None = None

    @property
    def player(self) -> ChipPlayer:
        """The chip, once it has power."""
        assert self._player is not None
        return self._player

    def power_up(self, memory: HostMemory) -> HostInterface:
        """Begin with a chip as after power-up."""
        self.close()
        if self._record is not None:
            self._player = RecordingPlayer(self._record, self._seed, self.design)
        else:
            self._player = ChipPlayer(
                self._seed, self.design, waves=self._waves, stall_seed=self._stall_seed
            )
        self._host = RtlHost(memory, self._player)
        return self._host

    def run_of(self, device: Chip, program: LoweredProgram, wanted: Wanted) -> ProgramRun:
        """A run on the RTL; raises ``Unavailable`` for stop points and taps."""
        assert self._host is not None
        return RtlRun(self._host, device, program, wanted)

    def close(self) -> None:
        """Give the chip back; its waves are complete then."""
        if self._player is not None:
            self._player.close()


class RtlAccelerator(Accelerator):
    """A chip in RTL with the model's driver: takes the place of ``Accelerator``.

    Args:
        seed: contents of destinations before a run, and of everything that reset leaves as it is.
        design: how the chip is built; None is the whole chip.
        waves: file for the waves of the chip, an FST; a file of groups for GTKWave comes with it.
        stall_seed: hold host memory, ring and units back at random, by this seed.
        record: folder for a recording of all that is done to the chip (``recording.py``); it has
            neither waves nor stalls.

    Raises:
        Unavailable: something that building it needs is not installed, or it cannot be built.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        design: Design | None = None,
        waves: Path | None = None,
        stall_seed: int | None = None,
        record: Path | None = None,
    ) -> None:
        missing = toolchain.missing(waves=waves is not None)
        if missing:
            raise Unavailable("the RTL engine needs: " + "; ".join(missing))
        stalls = stall_seed is not None
        built = design or player.design(waves=waves is not None, stalls=stalls)
        self.rtl = RtlEngine(seed, built, waves, stall_seed, record)
        try:
            super().__init__(seed=seed, engine=self.rtl)
        except SimulationFailed as error:
            raise Unavailable(f"the RTL engine: {error}") from error

    def close(self) -> None:
        """Give the chip back; its waves are complete then."""
        self.rtl.close()

    def load(self, executable: Executable) -> LoweredProgram:
        """Decode and lower ``executable``; see ``Accelerator.load``.

        Raises ``UnsupportedInstruction`` as well for assumed values that the RTL does not execute,
        and for what needs tiles that this build lacks.
        """
        program = super().load(executable)
        check_assumptions(program)
        tiles = self.rtl.design.parameters["Tiles"]
        if tiles < chip.TILES:
            check_tiles(program, tiles)
        return program

    def preload_wide(self, tile: int, row: int, data: bytes) -> None:
        """Not available: memories of the RTL are filled by programs alone."""
        raise Unavailable("the RTL engine lets programs alone fill wide memory")


def quiet_cycles(program: LoweredProgram) -> int:
    """Cycles that one tensor instruction of a program can take without a change that shows from
    outside: an iteration takes one, and that of an interpolation one for each four lanes."""
    plan, opcodes = program.tables.tensor_plan, program.tables.tensor["opcode"]
    cycles = np.where(opcodes == INTERPOLATE, chip.LANES // chip.WORD_BYTES, 1)
    longest = int((plan.place["iterations"] * cycles).max(initial=0))
    return _STALLED * longest


def check_assumptions(program: LoweredProgram) -> None:
    """Refuse assumed values that the SystemVerilog does not execute as the model does."""
    for each in program.assumptions:
        if not each.rtl:
            raise UnsupportedInstruction(
                BY_NAME[each.instruction].opcode,
                each.chunk,
                each.pc,
                each.field,
                each.value,
                f"the RTL lacks what the model assumes: {each.rule}",
            )


def check_tiles(program: LoweredProgram, tiles: int) -> None:
    """Refuse instructions that move data on tiles from number ``tiles`` on; fences there count as
    reached."""
    absent = (1 << chip.TILES) - (1 << tiles)
    for number, chunk in enumerate(program.chunks):
        for opcode, columns in chunk.columns.items():
            name = INSTRUCTIONS[opcode].name
            if name == "TileFence":
                continue
            for field in {"tiles", "targets"} & columns.keys():
                used = columns[field] & absent != 0
                used |= name in _MESH
                if used.any():
                    row = int(np.flatnonzero(used)[0])
                    pc = int(chunk.pc[chunk.opcode == opcode][row])
                    raise UnsupportedInstruction(
                        BY_NAME[name].opcode, number, pc, field, int(columns[field][row])
                    )
