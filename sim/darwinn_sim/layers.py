"""Layers of a program: groups of tensor instructions that compute one operation of the network.

An executable does not name its layers. But one operation has one output stage, so tensor
instructions that follow each other with the same operation, zero points, scale, clips and offset
belong together: parts for different tiles, or bands of one image.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.program import LoweredProgram

TENSOR_NAMES = ("TensorMac", "TensorMax", "TensorSum", "TensorInterpolate")
_OPCODES = tuple(BY_NAME[name].opcode for name in TENSOR_NAMES)

_SIGNATURE = (
    "operation",
    "activation_16bit",
    "parameter_16bit",
    "activation_zero_point",
    "parameter_zero_point",
    "scale",
    "high_clip",
    "low_clip",
    "offset",
    "bias",
    "apply_bias",
    "use_scales",
    "table",
    "output_16bit",
    "reduction_loops",
)


@dataclass(frozen=True, slots=True)
class Layer:
    """Instructions ``first`` to ``last`` of a program (indices through all chunks).

    ``end_pc`` is the program counter after the last of them; ``tiles`` is the set of tiles (bit t:
    tile t) that execute any of them; ``copies`` says that bytes are moved, not computed.
    """

    number: int
    first: int
    last: int
    end_pc: int
    tiles: int
    copies: bool


def find(program: LoweredProgram) -> tuple[Layer, ...]:
    """The layers of ``program``, in program order."""
    return tuple(
        _layer(program, number, group) for number, group in enumerate(_groups(program))
    )


def _groups(program: LoweredProgram) -> Iterator[list[int]]:
    tables = program.tables
    group: list[int] = []
    tiles = 0
    for instruction in np.flatnonzero(np.isin(tables.opcode, _OPCODES)).tolist():
        targets = int(tables.dispatch[instruction]["tiles"])
        if group and not _belongs(program, group[-1], instruction, tiles & targets):
            yield group
            group, tiles = [], 0
        group.append(instruction)
        tiles |= targets
    if group:
        yield group


def _belongs(program: LoweredProgram, last: int, instruction: int, overlap: int) -> bool:
    """Whether an instruction continues the layer of the one before it.

    Copies all have the same output stage, so a second one on the same tile starts a new layer.
    """
    before, after = _parameters(program, last), _parameters(program, instruction)
    same = all(before[name] == after[name] for name in _SIGNATURE)
    return same and not (overlap and before["raw"])


def _parameters(program: LoweredProgram, instruction: int) -> NDArray[np.void]:
    tables = program.tables
    parameters: NDArray[np.void] = tables.tensor[int(tables.row[instruction])]
    return parameters


def _layer(program: LoweredProgram, number: int, group: list[int]) -> Layer:
    tables = program.tables
    last = group[-1]
    end = int(tables.pc[last]) + BY_NAME[TENSOR_NAMES[0]].bundles
    tiles = int(np.bitwise_or.reduce(tables.dispatch["tiles"][group]))
    copies = bool(_parameters(program, last)["raw"])
    return Layer(number, group[0], last, end, tiles, copies)
