"""L2 normalisation of a vector as phases, as programs on the tiles compute it (docs/chip-facts.md).

A vector is on all tiles, so each tile computes all steps for itself. The vector becomes weights of
itself, a table makes the reciprocal root of the sum of squares, and that becomes weights of the
vector.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from darwinn_sim.chip import WORD_BYTES

from darwinn_testbench.compiler.assembler import Assembler
from darwinn_testbench.compiler.program import ALL_TILES
from darwinn_testbench.compiler.stages.compute import Sums
from darwinn_testbench.compiler.stages.operations import OutputStage, UnitVector
from darwinn_testbench.compiler.stages.phases import Areas, Phase, Piece
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.rows import GROUP, Rows, one_hot
from darwinn_testbench.compiler.stages.vectors import on_all_tiles, pack_rows

_SIZE = 2
"""Bytes of a number of 16 bits."""
_ROWS = 2
"""Rows of 16-bit weights that multiply a word: two channels a step."""
_LANES = _ROWS * GROUP * WORD_BYTES // _SIZE
"""Numbers of these rows."""
_ROOT_BYTES = GROUP * _SIZE


def unit_vector_bytes() -> int:
    """Bytes of narrow memory for the root, and for the rows that are made of it."""
    return _ROOT_BYTES + _LANES * _SIZE


def _spread() -> Rows:
    """One row that brings a number to all places that are weights of the vector."""
    row = np.zeros((1, _LANES, WORD_BYTES), np.uint8)
    places = one_hot((1,)).view(np.uint16)[:, : _LANES // _ROWS]
    row[0, places.reshape(-1) == 1, 0] = 1
    return row.reshape(1, -1)


def unit_vector_phases(
    operation: UnitVector, placement: Placement, areas: Areas
) -> Iterator[Phase]:
    """The phases of an L2 normalisation."""
    source = placement.copies[operation.source.index].base
    result = placement.copies[operation.result.index].base
    root = placement.scratch[operation.result.index]
    groups = operation.source.pitch // GROUP
    row, alone = areas.take(1 + max(groups, _ROWS))
    free = row + 1
    zero = operation.source.zero_point
    squares = Sums(operation.root, zero, zero, groups, 1, GROUP, GROUP, 0, free, 0, [(groups, 1)])
    as_it_is = OutputStage(
        np.ones(1, np.float32),
        np.zeros(1, np.int32),
        np.float32(-np.inf),
        np.float32(np.inf),
        0,
        wide=True,
    )
    spread = Sums(as_it_is, 0, 0, 1, 1, _LANES, _LANES, 0, row, 0, [(1, 1)], wide_values=True)
    products = Sums(
        operation.stage,
        zero,
        0,
        _ROWS,
        groups,
        GROUP,
        GROUP,
        GROUP,
        free,
        0,
        [(_ROWS, 1)],
        wide_weights=True,
    )

    def rows_of_vector(program: Assembler) -> None:
        pack_rows(program, source, [(GROUP, 0), (groups, 1)], free, groups)

    def rows_of_root(program: Assembler) -> None:
        loops = [(GROUP, 1), (_ROWS, GROUP)]
        pack_rows(program, root + _ROOT_BYTES, loops, free, _ROWS)

    load = [Piece(ALL_TILES, row, _spread())]
    for what, emit in (
        ("rows of the vector", rows_of_vector),
        ("root", lambda p: on_all_tiles(p, squares, source, root, [(groups, GROUP)])),
        ("weights", lambda p: on_all_tiles(p, spread, root, root + _ROOT_BYTES, [(1, 0)])),
        ("rows of the root", rows_of_root),
        ("products", lambda p: on_all_tiles(p, products, source, result, [(_ROWS, _SIZE)])),
    ):
        yield Phase(operation.number, f"unit vector: {what}", emit, load, alone=alone)
        load = []
