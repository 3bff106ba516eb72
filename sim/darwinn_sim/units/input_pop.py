"""PopInput: moves the host's input streams into the activation and the parameter buffer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import ScalarFlag
from darwinn_sim.kernel import state, sync, traversal
from darwinn_sim.kernel.compiled import Record, inner


@inner
def advance(core: Record, unit: Record, parameters: Record) -> bool:
    """Move units until the stream is empty, a watcher blocks or the instruction ends."""
    write = unit.buffer
    stream = core.input[parameters.fifo]
    moved = False
    size = chip.ACTIVATION_UNIT_BYTES if parameters.fifo else chip.PARAMETER_UNIT_BYTES
    while not write.done and stream.length >= size:
        if not sync.passes(parameters.watchers, unit.waited, core.flags, write.begins):
            return moved
        address = traversal.address(write, parameters.buffer)
        if parameters.fifo:
            address %= chip.ACTIVATION_UNITS
            _copy(stream, core.activations, core.activations_written, address * size, size)
        else:
            address %= chip.PARAMETER_UNITS
            _copy(stream, core.parameters, core.parameters_written, address * size, size)
        ended = traversal.step(write, parameters.buffer)
        flag = ScalarFlag.AV_POP if parameters.fifo else ScalarFlag.PARAMETER_POP
        core.flags[flag] += sync.produce(parameters.producer, ended)
        moved = True
    if write.done:
        unit.current = state.IDLE
        moved = True
    return moved


@inner
def _copy(
    stream: Record, buffer: NDArray[np.uint8], written: NDArray[np.uint8], base: int, size: int
) -> None:
    for k in range(size):
        slot = (stream.head + k) % chip.HOST_FIFO_BYTES
        buffer[base + k] = stream.data[slot]
        written[base + k] = stream.written[slot]
    stream.head = (stream.head + size) % chip.HOST_FIFO_BYTES
    stream.length -= size
