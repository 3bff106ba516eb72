"""A run on identities: what the scalar core computes from data, in place of results."""

from __future__ import annotations

import numpy as np

from darwinn_sim.isa.codes import AluOperation
from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.units import identities, scalar_alu
from darwinn_sim.units.identities import Notes


@inner
def note(
    core: state.Core,
    register: int,
    operation: int,
    a: np.uint32,
    a_written: np.uint32,
    b: np.uint32,
    b_written: np.uint32,
    notes: Notes,
) -> None:
    """A register has got the result of an operation on data: in a run on identities, of its bytes
    those have new ones that are neither known nor an operand's as they are.
    """
    if not identities.is_on(notes):
        return
    # A byte that is an identity has no known bits.
    known = state.bits_of(state.bytes_of(core.registers_written[register]))
    core.registers_written[register] = known
    kept = known | scalar_alu.moved_bytes(operation, a, a_written, b, b_written)
    if kept == state.ALL_BITS:
        return
    if operation == AluOperation.TO_FLOAT or operation == AluOperation.TO_INTEGER:
        a = np.uint32(0)
    identities.begin_block(notes)
    walk = notes.walk[0]
    if walk.operations < len(notes.operations):
        entry = notes.operations[walk.operations]
        entry.operation = operation
        entry.operands[0] = a
        entry.operands[1] = b
        entry.identity = walk.identity
    walk.operations += 1
    made = identities.next_identities(walk, 4)
    core.registers[register] = (core.registers[register] & kept) | (made & ~kept)
