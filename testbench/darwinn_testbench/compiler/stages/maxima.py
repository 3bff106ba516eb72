"""Maxima over windows as phases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.isa.builder import Values

from darwinn_testbench.compiler.assembler import Assembler, walk
from darwinn_testbench.compiler.stages.compute import Part, Sums
from darwinn_testbench.compiler.stages.needs import needs_whole
from darwinn_testbench.compiler.stages.operations import (
    Greatest,
)
from darwinn_testbench.compiler.stages.parts import emitting
from darwinn_testbench.compiler.stages.phases import Areas, Phase
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.rows import (
    GROUP,
)
from darwinn_testbench.compiler.stages.storage import TILES, Storage, length
from darwinn_testbench.compiler.stages.writer import merged, write

_SQUARE = 2
"""Pixels on each side of what goes into one row: four bytes of a lane."""


def greatest_phases(operation: Greatest, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """Squares of 2 x 2 pixels become rows, a lane for each channel with four bytes to compare.

    Squares cover the window, and may overlap.
    """
    source, result = placement.of(operation.source), placement.of(operation.result)
    if needs_whole(operation):
        source = placement.copies[operation.source.index]
        if operation.rows.before or operation.columns.before:
            raise ValueError("a maximum over the border of a whole image")
    squares = [_squares(operation.rows.kernel), _squares(operation.columns.kernel)]
    each = squares[0] * squares[1]
    groups = result.image.pitch // GROUP
    rows, columns = (max(map(length, axis.own)) for axis in (result.rows, result.columns))
    if not rows * columns:
        return
    if each * columns > areas.half_rows:
        raise ValueError("a row of an image is too long for a maximum")
    at_once = min(rows, areas.half_rows // (each * columns))
    for group in range(0, groups, chip.LANES // GROUP):
        count = min(chip.LANES // GROUP, groups - group)
        for top in range(0, rows, at_once):
            first, _ = areas.reuse(at_once * each * columns)
            yield from _greatest_part(
                operation, source, result, (group, count), (top, at_once), squares, first
            )


def _further(kernel: int) -> int:
    """Pixels from square to square: of a window with an odd number of them, squares overlap."""
    return 1 if kernel % _SQUARE else _SQUARE


def _squares(kernel: int) -> int:
    """How many squares cover a side of a window."""
    return max(1, (kernel - 1) if kernel % _SQUARE else kernel // _SQUARE)


def _greatest_part(
    operation: Greatest,
    source: Storage,
    result: Storage,
    channels: tuple[int, int],
    band: tuple[int, int],
    squares: Sequence[int],
    spread: int,
) -> Iterator[Phase]:
    group, count = channels
    each = squares[0] * squares[1]
    gathers: dict[int, list[Values]] = {}
    parts = {}
    pixel, line = source.image.pitch // WORD_BYTES, source.row_pitch // WORD_BYTES
    sides = [min(_SQUARE, reach.kernel) for reach in (operation.rows, operation.columns)]
    for tile in TILES:
        own_rows, (start, end) = result.own(tile)
        top = own_rows[0] + band[0]
        rows, columns = min(band[1], own_rows[1] - top), end - start
        if rows <= 0 or columns <= 0:
            continue
        gathers[tile] = []
        for down in range(squares[0]):
            corner = source.word(
                tile,
                operation.rows.first(top) + down * _further(operation.rows.kernel),
                operation.columns.first(start),
            )
            gathers[tile].append(
                merged(
                    walk(
                        "NarrowToWide",
                        "narrow_read",
                        corner + group,
                        [
                            (_SQUARE, pixel if sides[1] == _SQUARE else 0),
                            (_SQUARE, line if sides[0] == _SQUARE else 0),
                            (count, 1),
                            (squares[1], pixel * _further(operation.columns.kernel)),
                            (columns, operation.columns.stride * pixel),
                            (rows, operation.rows.stride * line),
                        ],
                    ),
                    walk(
                        "NarrowToWide",
                        "wide_write",
                        spread + down * squares[1],
                        [(squares[1], 1), (columns, each), (rows, columns * each)],
                    ),
                    {"row_loop": 3, "transpose": 1},
                )
            )
        parts[tile] = Part(
            source.base,
            result.address(tile, top, start) + group * GROUP,
            rows,
            columns,
            [],
            (0, 0),
            (result.image.pitch, result.row_pitch),
            parameter_steps=(each, columns * each, 0),
        )
    if not parts:
        return

    def gather_rows(program: Assembler) -> None:
        for number in range(max(map(len, gathers.values()))):
            write(
                program,
                "NarrowToWide",
                {tile: found[number] for tile, found in gathers.items() if number < len(found)},
            )

    yield Phase(operation.number, "rows of a maximum", gather_rows)
    lanes = count * GROUP
    sums = Sums(
        operation.stage, 0, 0, each, 1, lanes, lanes, 0, spread, 0, [(each, 1)], maximum=True
    )
    yield Phase(operation.number, "maximum", emitting(sums, parts))
