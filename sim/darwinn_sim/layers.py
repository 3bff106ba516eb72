"""Layers of a program: groups of tensor instructions that compute one operation of the network.

An executable does not name its layers. But tensor instructions that follow each other on different
tiles with the same output stage (operation, zero points, scale, clips and offset) are the parts of
one operation, and a second instruction on the same tile begins the next one. An operation that is
done in several passes, in bands of the image or of the channels, gives a layer for each pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.program import LoweredProgram

TENSOR_NAMES = ("TensorMac", "TensorMax", "TensorSum", "TensorInterpolate")
_OPCODES = tuple(BY_NAME[name].opcode for name in TENSOR_NAMES)

_OUTPUT_STAGE = (
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
)


@dataclass(frozen=True, slots=True)
class Layer:
    """Tensor instructions of a program that compute one result, each on tiles of its own.

    ``instructions`` are their indices through all chunks, in ascending order; ``first`` and
    ``last`` are the ends. ``executions`` is how often tiles execute one of them; ``tiles`` is the
    set of tiles (bit t: tile t) that do; ``copies`` says that bytes are moved,
    not computed. ``output_stage`` is the same for layers that compute alike, such as the passes of
    one operation; ``output_zero_point`` is the zero point of the results, which are unsigned (None
    where none is added: copies and interpolations), and ``output_16bit`` their size.
    """

    number: int
    instructions: tuple[int, ...]
    executions: int
    tiles: int
    copies: bool
    output_stage: tuple[float, ...]
    output_zero_point: int | None
    output_16bit: bool

    @property
    def first(self) -> int:
        """Index of the first instruction."""
        return self.instructions[0]

    @property
    def last(self) -> int:
        """Index of the last instruction."""
        return self.instructions[-1]


def find(program: LoweredProgram) -> tuple[Layer, ...]:
    """The layers of ``program``, in program order."""
    return tuple(_layer(program, number, group) for number, group in enumerate(_groups(program)))


def _groups(program: LoweredProgram) -> Iterator[list[int]]:
    tables = program.tables
    group: list[int] = []
    tiles = 0
    for instruction in np.flatnonzero(np.isin(tables.opcode, _OPCODES)).tolist():
        targets = int(tables.dispatch[instruction]["tiles"])
        if group and (
            tiles & targets or _stage(program, group[-1]) != _stage(program, instruction)
        ):
            yield group
            group, tiles = [], 0
        group.append(instruction)
        tiles |= targets
    if group:
        yield group


def _parameters(program: LoweredProgram, instruction: int) -> NDArray[np.void]:
    tables = program.tables
    parameters: NDArray[np.void] = tables.tensor[int(tables.row[instruction])]
    return parameters


def _stage(program: LoweredProgram, instruction: int) -> tuple[float, ...]:
    parameters = _parameters(program, instruction)
    return tuple(parameters[name].item() for name in _OUTPUT_STAGE)


def _executions(dispatch: NDArray[np.void]) -> int:
    """Tiles that an instruction goes to; where a register names them, programs name one."""
    return 1 if dispatch["tiles_override"] else int(dispatch["tiles"]).bit_count()


def _layer(program: LoweredProgram, number: int, group: Sequence[int]) -> Layer:
    tables = program.tables
    parameters = _parameters(program, group[-1])
    copies = bool(parameters["raw"])
    unshifted = copies or parameters["operation"] == BY_NAME["TensorInterpolate"].opcode
    return Layer(
        number=number,
        instructions=tuple(group),
        executions=sum(_executions(tables.dispatch[instruction]) for instruction in group),
        tiles=int(np.bitwise_or.reduce(tables.dispatch["tiles"][group])),
        copies=copies,
        output_stage=_stage(program, group[-1]),
        output_zero_point=None if unshifted else int(parameters["offset"]),
        output_16bit=bool(parameters["output_16bit"]),
    )
