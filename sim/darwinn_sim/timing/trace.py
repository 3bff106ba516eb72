"""What the scalar core executes, from its own kernels: instructions sent, fences, descriptors.

The core runs alone, as in DMA-only mode: what tiles would send to scalar memory comes from a
generator. No known program lets its control flow depend on that, so the trace is that of any input.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.errors import ChipFault, Deadlock
from darwinn_sim.isa.codes import DescriptorTag, ScalarUnit, StoreOperation
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import Record, compiled, inner
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.timing.machine import (
    STEP,
    STEP_CHUNK,
    STEP_DESCRIPTOR,
    STEP_DISPATCH,
    STEP_FENCE,
    STEP_HALT,
    STEP_PUSH,
    STEP_UNIT,
)
from darwinn_sim.units import scalar_core
from darwinn_sim.units.tables import Tables

MAX_BUNDLES = 1 << 28
"""Bundles after which a program is called endless."""

_BLOCK = 1 << 12
_MORE, _HALTED, _FAULT = range(3)
_PLAIN = -1

_SCALAR = BY_NAME["Scalar"].opcode
_HALT = BY_NAME["Halt"].opcode
_FENCE = BY_NAME["ScalarFence"].opcode
_POP = BY_NAME["PopInput"].opcode
_INFEED = BY_NAME["RingInfeed"].opcode
_OUTFEED = BY_NAME["RingOutfeed"].opcode
_TILE_FENCE = BY_NAME["TileFence"].opcode


def record(program: LoweredProgram) -> NDArray[np.void]:
    """The steps of a whole run: an array of ``STEP``.

    Raises:
        ChipFault: the program leaves its chunk, or nests too many loops.
        Deadlock: it does not end.
    """
    core_array, tiles = state.new_core(), state.new_tiles()
    core = core_array[0]
    core["dma_only"] = 1
    core["random"] = 1
    parts: list[NDArray[np.void]] = []
    for number, start in enumerate(program.starts):
        core["pc"], core["halted"], core["loop_depth"] = program.entries[number], 0, 0
        core["end_pc"] = start + program.chunks[number].bundles
        begin = np.zeros(1, STEP)
        begin["kind"], begin["target"] = STEP_CHUNK, number
        parts.append(begin)
        reason = _MORE
        while reason == _MORE:
            block = np.zeros(_BLOCK, STEP)
            used, reason = _record(core, tiles, program.tables, block)
            parts.append(block[:used])
            if core["steps"] > MAX_BUNDLES:
                raise Deadlock((f"the program has not ended after {MAX_BUNDLES} bundles",))
        if reason == _FAULT:
            memory, text = state.FAULT_REASONS[int(core["fault"])]
            chunk, pc = program.locate(int(core["fault_pc"]))
            raise ChipFault(memory, text, chunk, pc, -1, int(core["fault_address"]))
    return np.concatenate(parts)


@compiled
def _record(
    core: Record, tiles: NDArray[np.void], tables: Tables, block: NDArray[np.void]
) -> tuple[int, int]:
    """Execute and fill ``block``; return (steps, why it ended)."""
    used = 0
    while used < len(block):
        if not scalar_core.is_in_program(core, tables):
            return used, _FAULT
        pc = core.pc
        instruction = tables.at[pc]
        step = block[used]
        if core.halted:
            # Behind the interrupt that the halt has raised.
            step.kind = STEP_HALT
            step.instruction = instruction
            step.target = -1
            return used + 1, _HALTED
        kind = _kind(core, tables, instruction)
        if kind != _PLAIN:
            step.kind = kind
            step.instruction = instruction
            step.row = tables.row[instruction]
            step.target = _target(core, tables, instruction, kind)
        scalar_core.execute(core, tiles, tables, instruction)
        length = scalar_core.following(tables, pc) - pc
        core.steps += length
        if core.fault:
            return used, _FAULT
        if kind == _PLAIN:
            step.gap += length
            if step.gap > MAX_BUNDLES:
                return used, _MORE
            continue
        step.length = length
        if kind == STEP_DESCRIPTOR:
            raises = tables.opcode[instruction] != _SCALAR
            step.size = 0 if raises else core.descriptor[2]
            step.target = (
                DescriptorTag.INTERRUPT_0 + core.interrupt if raises else core.descriptor[3]
            )
        used += 1
        if kind == STEP_HALT:
            return used, _HALTED
    return used, _MORE


@inner
def _kind(core: Record, tables: Tables, instruction: int) -> int:
    """The kind of step that an instruction is; ``_PLAIN``: it concerns the core alone."""
    opcode = tables.opcode[instruction]
    if opcode == _SCALAR:
        bundle = tables.scalar[tables.row[instruction]]
        if bundle.gate and core.predicates[bundle.predicate] != bundle.polarity:
            return _PLAIN
        if bundle.store_op == StoreOperation.PUSH:
            return STEP_PUSH
        return STEP_DESCRIPTOR if bundle.store_op == StoreOperation.ISSUE else _PLAIN
    common = tables.dispatch[instruction]
    if common.gate and core.predicates[common.predicate] != common.polarity:
        return _PLAIN
    if common.interrupt >= 0:
        return STEP_DESCRIPTOR
    if opcode == _HALT:
        return STEP_HALT
    if opcode == _FENCE:
        return STEP_FENCE
    if opcode in (_POP, _INFEED, _OUTFEED):
        return STEP_UNIT
    if tables.unit[instruction] >= 0 or opcode == _TILE_FENCE:
        return STEP_DISPATCH
    return _PLAIN


@inner
def _target(core: Record, tables: Tables, instruction: int, kind: int) -> int:
    """The tiles, or the unit of the scalar core, that a step concerns."""
    if kind == STEP_DISPATCH:
        return scalar_core.targets(core, tables.dispatch[instruction])
    if kind != STEP_UNIT:
        return -1
    opcode = tables.opcode[instruction]
    if opcode == _POP:
        fifo = tables.pop[tables.row[instruction]].fifo
        return ScalarUnit.AV_POP if fifo else ScalarUnit.PARAMETER_POP
    return ScalarUnit.RING_INFEED if opcode == _INFEED else ScalarUnit.RING_OUTFEED
