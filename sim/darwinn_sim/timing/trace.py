"""What the scalar core hands over in a whole run, in order: instructions, fences, descriptors.

The core runs alone: what tiles would send to scalar memory comes from a generator. No known program
lets its control flow depend on that, so the trace is that of any input. It comes block by block,
since a program that loops long enough would fill any memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from darwinn_formats.limits import Clock

from darwinn_sim.errors import ChipFault, NotEnded
from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import entry
from darwinn_sim.kernel.state import Handover
from darwinn_sim.kernel.structure import Records
from darwinn_sim.machine import core_alone
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.timing.state import Step
from darwinn_sim.units import scalar_core
from darwinn_sim.units.tables import Tables

MAX_BUNDLES = 1 << 28
"""Bundles after which a program is called endless."""

MAX_DESCRIPTORS = 1 << 18
"""The same of descriptors: as many as the functional model lets a run issue by default."""

BLOCK = 1 << 12
"""Steps of a block, at most."""

TURN = 1 << 20
"""Bundles between two looks at the clock, at most."""

_BLOCK_FULL = scalar_core.NEXT
_BESIDE = 2
"""Steps of a chunk beside those of its bundles: its load, and one that was not reached."""


def blocks(program: LoweredProgram, *, again: bool = False) -> Iterator[Records[Step]]:
    """The steps of a whole run, the same each time.

    ``again``: they have been looked through once, so they need no clock.

    Raises:
        ChipFault: the program leaves its chunk, or nests too many loops.
        NotEnded: it does not end, or takes more seconds or memory than is allowed.
    """
    core_array = state.new_core()
    core = core_array[0]
    core["random"] = 1
    clock: Clock | None = None
    descriptors = gap = 0
    for number, start in enumerate(program.starts):
        core["pc"], core["halted"], core["loop_depth"] = program.entries[number], 0, 0
        core["end_pc"] = start + program.chunks[number].bundles
        # A short program has few steps, unless it has loops: then blocks grow.
        room = min(BLOCK, program.chunks[number].bundles + _BESIDE)
        first = 1
        reason = _BLOCK_FULL
        while reason in (_BLOCK_FULL, scalar_core.SPENT):
            block = Step.zeros(room)
            if first:
                block[0]["kind"], block[0]["target"] = Handover.CHUNK, number
            core["work_limit"] = min(MAX_BUNDLES, int(core["work"]) + TURN)
            used, reason = _record(core, program.tables, block[first:])
            # What came before the turn ended belongs to the step that was not reached in it.
            block[first]["gap"] += gap
            used += first
            gap = int(block[used]["gap"]) if reason == scalar_core.SPENT else 0
            first = 0
            handed_over = int((block["kind"][:used] == Handover.DESCRIPTOR).sum())
            descriptors += handed_over
            if used:
                yield block[:used]
            if reason == _BLOCK_FULL:
                room = min(BLOCK, 2 * room)
            if core["work"] >= MAX_BUNDLES or core["bundles"] > MAX_BUNDLES:
                raise NotEnded(f"{MAX_BUNDLES} bundles", _standing(core, program))
            if descriptors > MAX_DESCRIPTORS:
                raise NotEnded(f"{MAX_DESCRIPTORS} descriptors", _standing(core, program))
            if clock is None:
                # Not before the first block, for which kernels may have to be compiled.
                clock = Clock()
            if handed_over:
                clock.seen()
            if not again and (passed := clock.passed()):
                raise NotEnded(passed, _standing(core, program))
        if reason == scalar_core.FAULT:
            memory, text = state.FAULT_REASONS[int(core["fault"])]
            chunk, pc = program.locate(int(core["fault_pc"]))
            raise ChipFault(memory, text, chunk, pc, -1, int(core["fault_address"]))


def _standing(core: state.Core, program: LoweredProgram) -> tuple[str, ...]:
    chunk, pc = program.locate(int(core["pc"]))
    return (f"scalar core at chunk {chunk}, pc {pc}",)


@entry
def _record(core: state.Core, tables: Tables, block: Records[Step]) -> tuple[int, int]:
    """Execute and fill ``block``; return (steps, why it ended: a reason of ``scalar_core``)."""
    for used in range(len(block)):
        step = block[used]
        bundles = core.bundles
        reason = scalar_core.run(core, tables, scalar_core.NOWHERE)
        step.gap = core.bundles - bundles
        if reason == scalar_core.HALTED:
            # Behind the interrupt that the halt has raised.
            step.kind = Handover.HALT
            step.instruction = core.handed.instruction
            step.target = -1
            return used + 1, reason
        if reason != scalar_core.HANDS_OVER:
            return used, reason
        step.kind = core.handed.kind
        step.instruction = core.handed.instruction
        step.row = core.handed.row
        step.target = core.handed.target
        step.base = core.handed.base
        step.address = core.handed.address
        step.size = core.handed.size
        core_alone.answer(core, tables)
        bundles = core.bundles
        if scalar_core.pass_on(core, tables) == scalar_core.FAULT:
            return used, scalar_core.FAULT
        step.length = core.bundles - bundles
        if step.kind == Handover.HALT:
            return used + 1, scalar_core.HALTED
    return len(block), _BLOCK_FULL
