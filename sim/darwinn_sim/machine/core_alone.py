"""The scalar core without the units: whatever it hands over is answered here, at once.

So its DMA can be looked at whatever the units do. What tiles would send to scalar memory comes from
a generator, ``core.random``.
"""

from __future__ import annotations

import numpy as np

from darwinn_sim import chip
from darwinn_sim.isa.codes import ScalarUnit
from darwinn_sim.kernel import state, traversal
from darwinn_sim.kernel.compiled import compiled, entry
from darwinn_sim.kernel.state import Handover
from darwinn_sim.units import scalar_core
from darwinn_sim.units.tables import Tables


@entry
def run(core: state.Core, tables: Tables, stop_pc: int) -> int:
    """Run until the core needs the host or has halted; a reason of ``scalar_core``."""
    while True:
        reason = scalar_core.run(core, tables, stop_pc)
        if reason != scalar_core.HANDS_OVER:
            return reason
        answer(core, tables)
        reason = scalar_core.pass_on(core, tables)
        if reason != scalar_core.NEXT:
            return reason


@compiled
def answer(core: state.Core, tables: Tables) -> None:
    """Do what the core needs done of what it hands over: words for its memory."""
    handed = core.handed
    if handed.kind != Handover.UNIT or handed.target != ScalarUnit.RING_OUTFEED:
        return
    parameters = tables.outfeed[handed.row]
    write = core.units[ScalarUnit.RING_OUTFEED].first
    if parameters.to_host:
        return
    traversal.start(write, parameters.buffer)
    while not write.done:
        address = traversal.address(write, parameters.buffer) % chip.SCALAR_MEMORY_WORDS
        # xorshift64
        value = core.random
        value ^= value << np.uint64(13)
        value ^= value >> np.uint64(7)
        value ^= value << np.uint64(17)
        core.random = value
        core.memory[address] = np.uint32(value & np.uint64(0xFFFFFFFF))
        core.memory_written[address] = state.ALL_BITS
        core.work += 1
        if state.paused(core):
            # Arbitrary data: where a hostile program asks for endless amounts, some is enough.
            return
        traversal.step(write, parameters.buffer)
