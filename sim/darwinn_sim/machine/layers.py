"""Layers of a program: groups of tensor instructions that compute one operation of the network.

An executable does not name its layers. But tensor instructions that follow each other on different
tiles with the same output stage (operation, zero points, scale, clips and offset) are the parts of
one operation, and a second instruction on the same tile begins the next one. An operation that is
done in several passes, in bands of the image or of the channels, gives a layer for each pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import NamedTuple

import numpy as np

from darwinn_sim.isa.codec import DecodedChunk
from darwinn_sim.isa.codes import OutputFunction
from darwinn_sim.isa.table import BY_NAME, TENSOR_NAMES

_OPCODES = tuple(BY_NAME[name].opcode for name in TENSOR_NAMES)
_INTERPOLATE = BY_NAME["TensorInterpolate"].opcode

_OUTPUT_STAGE = (
    "activation_16bit",
    "parameter_16bit",
    "activation_zero_point",
    "parameter_zero_point",
    "output_scale",
    "high_clip",
    "low_clip",
    "output_zero_point",
    "immediate_bias",
    "apply_bias",
    "use_scales",
)
_HIGH_CLIP, _ZERO_POINT = map(_OUTPUT_STAGE.index, ("high_clip", "output_zero_point"))
_FROM_TABLE = 1 << OutputFunction.TABLE
_16BIT = 1 << OutputFunction.OUTPUT_16BIT
"""Bits of the field ``function`` that belong to the output stage too."""

_INFINITY = 0x7F800000
"""A float32 as bits, but for its sign."""


@dataclass(frozen=True, slots=True)
class ComputedLayer:
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
    output_stage: tuple[int, ...]
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


def find(chunks: Sequence[DecodedChunk]) -> tuple[ComputedLayer, ...]:
    """The layers of the decoded chunks of an executable, in program order."""
    return tuple(_layer(number, group) for number, group in enumerate(_groups(chunks)))


class _Instruction(NamedTuple):
    """A tensor instruction: ``place`` through all chunks, ``stage`` its opcode and output stage."""

    place: int
    stage: tuple[int, ...]
    tiles: int
    executions: int
    copies: bool
    output_zero_point: int
    output_16bit: bool


def _groups(chunks: Sequence[DecodedChunk]) -> Iterator[list[_Instruction]]:
    group: list[_Instruction] = []
    tiles = 0
    for instruction in _tensor_instructions(chunks):
        if group and (tiles & instruction.tiles or group[-1].stage != instruction.stage):
            yield group
            group, tiles = [], 0
        group.append(instruction)
        tiles |= instruction.tiles
    if group:
        yield group


def _tensor_instructions(chunks: Sequence[DecodedChunk]) -> Iterator[_Instruction]:
    before = 0
    for chunk in chunks:
        own = {
            opcode: _instructions(opcode, before, chunk)
            for opcode in _OPCODES
            if opcode in chunk.columns
        }
        opcodes = chunk.opcode.tolist()
        for opcode in (each for each in opcodes if each in own):
            yield next(own[opcode])
        before += len(chunk)


def _instructions(opcode: int, before: int, chunk: DecodedChunk) -> Iterator[_Instruction]:
    """The instructions of an opcode in a chunk, which begins with instruction ``before``."""
    places = np.flatnonzero(chunk.opcode == opcode).tolist()
    columns = chunk.columns[opcode]

    def values(name: str) -> list[int]:
        """The field of each, 0 where the opcode has none of that name."""
        return columns[name].tolist() if name in columns else [0] * len(places)

    stages = zip(*map(values, _OUTPUT_STAGE), strict=True)
    others = zip(*map(values, ("function", "tiles", "tiles_override")), strict=True)
    for place, stage, (function, tiles, by_register) in zip(places, stages, others, strict=True):
        yield _Instruction(
            place=before + place,
            stage=(opcode, function & (_FROM_TABLE | _16BIT), *stage),
            tiles=tiles,
            # Where a register names the tiles, programs name one.
            executions=1 if by_register else tiles.bit_count(),
            copies=stage[_HIGH_CLIP] & ~(1 << 31) == _INFINITY,
            output_zero_point=stage[_ZERO_POINT],
            output_16bit=bool(function & _16BIT),
        )


def _layer(number: int, group: Sequence[_Instruction]) -> ComputedLayer:
    last = group[-1]
    opcode = last.stage[0]
    return ComputedLayer(
        number=number,
        instructions=tuple(each.place for each in group),
        executions=sum(each.executions for each in group),
        tiles=reduce(or_, (each.tiles for each in group)),
        copies=last.copies,
        output_stage=last.stage,
        output_zero_point=(
            None if last.copies or opcode == _INTERPOLATE else last.output_zero_point
        ),
        output_16bit=last.output_16bit,
    )
