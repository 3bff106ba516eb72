"""Products of two images that are computed, pixel by pixel: the second one becomes weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.isa.builder import Values

from darwinn_testbench.compiler.assembler import Assembler, walk
from darwinn_testbench.compiler.program import ALL_TILES
from darwinn_testbench.compiler.stages.compute import HEAD_ROWS, Sums
from darwinn_testbench.compiler.stages.operations import UNIT, MatrixProduct, OutputStage
from darwinn_testbench.compiler.stages.parts import emitting, parts_of
from darwinn_testbench.compiler.stages.phases import Areas, Phase, Piece
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.rows import GROUP, head_rows
from darwinn_testbench.compiler.stages.storage import TILES, Storage
from darwinn_testbench.compiler.stages.writer import merged, write


def matrix_product_phases(
    operation: MatrixProduct, placement: Placement, areas: Areas
) -> Iterator[Phase]:
    """64 pixels of the second image at a time: each tile packs its copy of them into rows.

    A row has a word of each of them, as rows of weights that come from the host.
    """
    left, right = operation.sources
    source, result = placement.of(left), placement.of(operation.result)
    matrix = placement.copies[right.index]
    taps = left.pitch // GROUP
    stage = _of_each(operation.stage, right.pixels)
    for number, heads in enumerate(head_rows(stage, right.pixels)):
        first = number * chip.LANES
        lanes = min(chip.LANES, right.pixels - first)
        row, alone = areas.take(HEAD_ROWS + taps)
        yield Phase(
            operation.number,
            "rows of a matrix",
            _all_of(
                _packing(matrix, first, lanes, taps, row + HEAD_ROWS),
                _padding(result, first + lanes),
            ),
            [Piece(ALL_TILES, row, heads)],
            alone=alone,
        )
        zero_points = left.zero_point, right.zero_point
        sums = Sums(stage, *zero_points, taps, 1, lanes, lanes, 0, row, 0, [(taps, 1)])
        parts = parts_of(UNIT, UNIT, source, result, [(taps, GROUP)], channel=first)
        yield Phase(operation.number, "product of matrices", emitting(sums, parts), alone=alone)


def _all_of(*steps: Callable[[Assembler], None]) -> Callable[[Assembler], None]:
    """What writes steps that do not depend on each other."""

    def emit(program: Assembler) -> None:
        for step in steps:
            step(program)

    return emit


def _padding(result: Storage, channels: int) -> Callable[[Assembler], None]:
    """Fill the words of a result that end in padding, of which lanes write a part."""
    constant = int.from_bytes(bytes([result.outside]) * WORD_BYTES, "little")
    filling: dict[int, Values] = {}
    for tile in TILES if channels % WORD_BYTES else ():
        if result.own_pixels(tile):
            (top, _), (left, _) = result.own(tile)
            rows, columns = result.computed(tile)
            base = result.word(tile, top, left) + channels // WORD_BYTES
            loops = [
                (columns, result.image.pitch // WORD_BYTES),
                (rows, result.row_pitch // WORD_BYTES),
            ]
            filling[tile] = merged(
                walk(_FILLER, "narrow_write", base, loops),
                {"immediate_valid": 1, "immediate": constant},
            )
    return lambda program: write(program, _FILLER, filling)


_FILLER = "MeshSouth"
"""A unit that writes constants to narrow memory."""


def _of_each(stage: OutputStage, outputs: int) -> OutputStage:
    """A stage with a factor and a bias for each output: their rows are parameters of a phase, which
    has its area of wide memory by them."""
    return replace(
        stage,
        factors=np.broadcast_to(stage.factors, outputs).copy(),
        bias=np.broadcast_to(stage.bias, outputs).copy(),
    )


def _packing(
    matrix: Storage, first: int, pixels: int, taps: int, row: int
) -> Callable[[Assembler], None]:
    """Gather a word of each of some pixels, one row for each word of theirs."""
    base = (matrix.base + first * matrix.image.pitch) // WORD_BYTES
    step = matrix.image.pitch // WORD_BYTES

    def emit(program: Assembler) -> None:
        program.tile(
            "NarrowToWide",
            ALL_TILES,
            walk("NarrowToWide", "narrow_read", base, [(pixels, step), (taps, 1)]),
            walk("NarrowToWide", "wide_write", row, [(taps, 1)]),
            row_loop=1,
        )

    return emit
