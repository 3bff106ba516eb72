"""Value numbers beside values: a number that two bytes have says that they are the same function.

A program is run on numbers, and on random inputs and random contents of all memories that an
inference writes before; programs that differ in a field are held against each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.errors import SimulationError
from darwinn_sim.kernel.field import CONSTANTS
from darwinn_sim.kernel.numbering import Made
from darwinn_sim.kernel.structure import Records
from darwinn_sim.lifting.walk import NotLifted
from darwinn_sim.numbering import run
from darwinn_sim.numbering.run import Elements
from numpy.typing import NDArray

CORE_MEMORIES = ("memory", "registers", "activations", "parameters")
TILE_MEMORIES = ("narrow", "scale_bias")


class Ignored:
    """Takes results, and keeps none."""

    def take(self, made: Records[Made]) -> None:
        """Nothing."""

    def forget(self) -> None:
        """Nothing."""


@dataclass
class Traces:
    """The values of each number, one for each input: ``known``. What :meth:`contradictions` gives
    of a program are the bytes of its output that have a number of others, and other values."""

    inputs: list[dict[str, bytes]]
    numbers: Mapping[str, Elements]
    known: dict[int, bytes] = field(default_factory=dict)

    def contradictions(self, accelerator: Accelerator, executable: Executable) -> list[int] | None:
        """Places in the outputs, one after another; None of a program that has no numbers."""
        zeros = {name: bytes(len(each)) for name, each in self.inputs[0].items()}
        try:
            accelerator.run(executable, zeros)
            numbered = run.number_program(accelerator, executable, self.numbers, Ignored())
            values = _values(accelerator, executable, self.inputs)
        except (NotLifted, SimulationError):
            return None
        found = np.concatenate([numbered.outputs[name] for name in sorted(numbered.outputs)])
        return [
            place
            for place, (number, trace) in enumerate(zip(found.tolist(), values, strict=True))
            if self.known.setdefault(number, _constant(number, trace)) != trace
        ]


def _constant(number: int, trace: bytes) -> bytes:
    return bytes([number]) * len(trace) if number < CONSTANTS else trace


def _values(
    accelerator: Accelerator, executable: Executable, inputs: list[dict[str, bytes]]
) -> list[bytes]:
    """Of each byte of the outputs its values, with buffers at the same addresses: a changed program
    may take a set of tiles from an address."""
    before = run._before(accelerator, executable)
    found = []
    for number, each in enumerate(inputs):
        accelerator._driver._random = np.random.default_rng(0)
        device = accelerator.chip
        device.tiles[:] = before.tiles
        for name in TILE_MEMORIES:
            _scramble(device.tiles, name, number)
        _scramble(device.tiles, "wide", number, before.stale)
        for name in CORE_MEMORIES:
            _scramble(device.core_array, name, number)
        outputs = accelerator.run(executable, each).outputs
        found.append(b"".join(outputs[name] for name in sorted(outputs)))
    return [bytes(each) for each in np.array([list(each) for each in found], np.uint8).T]


_PERIOD = 262_147
"""Words after which contents repeat: a prime, so that no two tiles hold the same."""


@cache
def _words(name: str, number: int) -> NDArray[np.uint32]:
    return np.random.default_rng([number, *name.encode()]).integers(
        1 << 32, size=_PERIOD, dtype=np.uint32
    )


def _scramble(memories: np.ndarray, name: str, number: int, where: Any = True) -> None:
    """Give one of ``memories`` contents of its own for each number."""
    memory = memories[name]
    words = np.resize(_words(name, number), memory.nbytes // 4)
    np.copyto(memory, words.view(memory.dtype).reshape(memory.shape), where=where)
