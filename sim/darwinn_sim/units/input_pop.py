"""PopInput: moves the host's input streams into the activation and the parameter buffer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import InputFifo, ScalarFlag, ScalarUnit
from darwinn_sim.kernel import clocks, numbering, order, state, sync, traversal
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.instructions import PopInput


@inner
def unit_bytes(parameters: PopInput) -> int:
    """Bytes of a unit of the buffer that an instruction fills."""
    if parameters.fifo == InputFifo.ACTIVATIONS:
        return chip.ACTIVATION_UNIT_BYTES
    return chip.PARAMETER_UNIT_BYTES


@inner
def flag(parameters: PopInput) -> int:
    """Flag that counts units."""
    if parameters.fifo == InputFifo.ACTIVATIONS:
        return ScalarFlag.AV_POP
    return ScalarFlag.PARAMETER_POP


@inner
def _unit(parameters: PopInput) -> int:
    """The unit beside the core that executes an instruction."""
    if parameters.fifo == InputFifo.ACTIVATIONS:
        return ScalarUnit.AV_POP
    return ScalarUnit.PARAMETER_POP


@inner
def step(unit: sync.Walker, parameters: PopInput) -> int:
    """Take a unit; what the flag grows by."""
    return sync.produce(parameters.producer, traversal.step(unit.first, parameters.buffer))


@inner
def advance(core: state.Core, unit: state.BufferUnit, parameters: PopInput) -> bool:
    """Move units until the stream is empty, a watcher blocks or the instruction ends."""
    write = unit.first
    stream = core.input[parameters.fifo]
    moved = False
    size = unit_bytes(parameters)
    words = size // chip.WORD_BYTES
    thread = clocks.scalar_unit(_unit(parameters))
    while not write.done and stream.length >= size:
        if not sync.passes(parameters.watchers, unit.waited, core.flags, write.begins):
            return moved
        order.passes(
            core,
            thread,
            chip.TILES,
            core.flags,
            parameters.watchers,
            unit.waited,
            write.begins,
            -1,
        )
        order.takes_input(core, thread, parameters.fifo, size)
        address = traversal.address(write, parameters.buffer)
        if parameters.fifo:
            address %= chip.ACTIVATION_UNITS
            order.writes_units(core, thread, clocks.ACTIVATION_BASE + words * address, words)
            numbering.pops(core, parameters.fifo, address * size, size, stream.head)
            _copy(stream, core.activations, core.activations_written, address * size, size)
        else:
            address %= chip.PARAMETER_UNITS
            order.writes_units(core, thread, clocks.PARAMETER_BASE + words * address, words)
            numbering.pops(core, parameters.fifo, address * size, size, stream.head)
            _copy(stream, core.parameters, core.parameters_written, address * size, size)
        arrived = step(unit, parameters)
        order.counts(core, thread, clocks.scalar_flag(flag(parameters)), arrived)
        core.flags[flag(parameters)] += arrived
        moved = True
    if write.done:
        unit.current = state.IDLE
        moved = True
    return moved


@inner
def _copy(
    stream: state.ByteFifo,
    buffer: NDArray[np.uint8],
    written: NDArray[np.uint8],
    base: int,
    size: int,
) -> None:
    for k in range(size):
        slot = (stream.head + k) % chip.HOST_FIFO_BYTES
        buffer[base + k] = stream.data[slot]
        written[base + k] = stream.written[slot]
    stream.head = (stream.head + size) % chip.HOST_FIFO_BYTES
    stream.length -= size
