"""A run on identities: what the scalar core computes from data, in place of results."""

from __future__ import annotations

import numpy as np

from darwinn_sim.isa.codes import AluOperation
from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.hooks import either
from darwinn_sim.units import identities, scalar_alu
from darwinn_sim.units.identities import Notes
from darwinn_sim.units.observation import Notebook


@inner
def _take(seen: Notebook, core: state.Core) -> None:
    for k in range(core.computed):
        _note(core, core.results[k], seen.notes)
    core.computed = 0


take = either("notes", _take, None)
"""``take(seen, core)``: note what the last bundle has computed from data."""


@inner
def _note(core: state.Core, result: state.Computed, notes: Notes) -> None:
    """Of the bytes of a result those get new identities that are neither known nor an operand's as
    they are.
    """
    register = result.register
    # A byte that is an identity has no known bits.
    known = state.bits_of(state.bytes_of(core.registers_written[register]))
    core.registers_written[register] = known
    kept = known | scalar_alu.moved_bytes(
        result.operation, result.a, result.a_written, result.b, result.b_written
    )
    if kept == state.ALL_BITS:
        return
    identities.begin_block(notes)
    walk = notes.walk[0]
    if walk.operations < len(notes.operations):
        entry = notes.operations[walk.operations]
        entry.operation = result.operation
        entry.operands[0] = result.a
        entry.operands[1] = result.b
        if result.operation == AluOperation.TO_FLOAT or result.operation == AluOperation.TO_INTEGER:
            entry.operands[0] = np.uint32(0)
        entry.identity = walk.identity
    walk.operations += 1
    word = core.registers[register] & kept
    identities.next_identities(walk, 4, core.registers[register : register + 1])
    core.registers[register] = word | (core.registers[register] & ~kept)
