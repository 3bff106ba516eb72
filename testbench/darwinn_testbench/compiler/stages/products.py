"""Operations of two images element by element as phases: sums and products."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from darwinn_sim.chip import WORD_BYTES

from darwinn_testbench.compiler.assembler import Assembler, walk
from darwinn_testbench.compiler.program import ALL_TILES, tile_set
from darwinn_testbench.compiler.stages.compute import Part, Sums
from darwinn_testbench.compiler.stages.operands import unchanged
from darwinn_testbench.compiler.stages.operations import (
    OutputStage,
    Product,
    WeightedSum,
)
from darwinn_testbench.compiler.stages.parts import emitting, emitting_all
from darwinn_testbench.compiler.stages.phases import Areas, Phase, Piece
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.rows import (
    GROUP,
    one_hot,
    spread_out,
)
from darwinn_testbench.compiler.stages.storage import TILES, Storage, length


def with_wide_weights(
    stage: OutputStage, result: Storage, row: int, rows: int, zero_point: int = 0
) -> Sums:
    """Two channels a step, times 16-bit weights: those of a step are a row of ``rows``."""
    return Sums(
        stage,
        0,
        zero_point,
        rows,
        result.image.pitch // GROUP,
        GROUP,
        GROUP,
        GROUP,
        row,
        0,
        [(rows, 1)],
        wide_weights=True,
    )


def weighted_sum_phases(
    operation: WeightedSum, placement: Placement, areas: Areas
) -> Iterator[Phase]:
    """Both operands one after another, two channels a step, times 16-bit weights."""
    left, right = (placement.of(each) for each in operation.sources)
    result = placement.of(operation.result)
    zero_point = max(0, -min(operation.weights))
    rows = one_hot(operation.weights, zero_point)
    row, _ = areas.take(len(rows))
    sums = with_wide_weights(operation.stage, result, row, len(rows), zero_point)
    yield Phase(
        operation.number,
        "sum",
        emitting_all([(sums, parts) for parts in _parts_of_sum(left, right, result)]),
        [Piece(ALL_TILES, row, rows)],
    )


def _parts_of_sum(left: Storage, right: Storage, result: Storage) -> Iterator[dict[int, Part]]:
    """What each tile computes of a sum: all rows at once, where both operands have the same pitch.

    One loop goes from operand to operand, so elsewhere each row has an instruction of its own.
    """
    alike = left.row_pitch == right.row_pitch
    steps = max(1 if alike else result.computed(tile)[0] for tile in TILES)
    for step in range(steps):
        parts = {}
        for tile in TILES:
            height, width = result.computed(tile)
            if not result.own_pixels(tile) or step >= height:
                continue
            (top, _), (first, _) = result.own(tile)
            start = left.address(tile, top + step, first)
            distance = right.address(tile, top + step, first) - start
            parts[tile] = Part(
                start,
                result.address(tile, top + step, first),
                height if alike else 1,
                width,
                [(2, 2), (2, distance)],
                (left.image.pitch, left.row_pitch),
                (result.image.pitch, result.row_pitch),
            )
        yield parts


_PRODUCT_BYTES = 1 << 13
"""Bytes of weights that a product makes at a time, at most."""


_DIAGONAL = GROUP * GROUP
"""Bytes of the weights of four channels: each on the diagonal, zero points off it."""


def product_phases(operation: Product, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """The second operand becomes weights of the first: a row of them for each four elements."""
    first, second = operation.sources
    left, right = placement.of(first), placement.of(second)
    result = placement.of(operation.result)
    once = second.is_vector and not first.is_vector
    groups = result.image.pitch // GROUP
    rows, columns = (max(map(length, axis.own)) for axis in (result.rows, result.columns))
    if not rows * columns:
        return
    pixels = 1 if once else rows * columns
    limit = min(areas.half_rows - 1, _scratch_rows(operation, placement))
    groups_at_once = min(groups, limit // pixels) or 1
    rows_at_once = rows if once or groups_at_once * pixels <= limit else limit // columns
    if not rows_at_once:
        raise ValueError("a row of an image is too long for a product")
    scratch = placement.scratch[operation.result.index]
    for group in range(0, groups, groups_at_once):
        count = min(groups_at_once, groups - group)
        for top in range(0, rows, rows_at_once):
            row, _ = areas.take(1 + count * (1 if once else rows_at_once * columns), columns + 1)
            yield from _product_part(
                operation,
                (left, right, result),
                (group, count),
                (top, rows_at_once),
                once=once,
                scratch=scratch,
                row=row,
                spread=row + 1,
            )


def _scratch_rows(operation: Product, placement: Placement) -> int:
    return placement.scratch_sizes[operation.result.index] // _DIAGONAL


def _product_part(
    operation: Product,
    storages: tuple[Storage, Storage, Storage],
    channels: tuple[int, int],
    band: tuple[int, int],
    *,
    once: bool,
    scratch: int,
    row: int,
    spread: int,
) -> Iterator[Phase]:
    """Some channels of some rows: make weights, pack them into rows, multiply."""
    left, right, result = storages
    group, count = channels
    zero = right.image.zero_point
    copy = unchanged(right.image)
    weights, products = {}, {}
    small: dict[int, list[int]] = {}
    for tile in TILES:
        own_rows, (start, end) = result.own(tile)
        top = own_rows[0] + band[0]
        rows, columns = min(band[1], own_rows[1] - top), end - start
        if rows <= 0 or columns <= 0:
            continue
        height, width = (1, 1) if once else (rows, columns)
        at = (0, 0) if once else (top, start)
        weights[tile] = Part(
            right.address(tile, *at) + group * GROUP,
            scratch,
            height,
            width,
            [],
            (right.image.pitch, right.row_pitch),
            (_DIAGONAL, width * _DIAGONAL),
            write_block=height * width * _DIAGONAL,
        )
        small.setdefault(height * width * count, []).append(tile)
        steps = (0, 0, 1) if once else (1, columns, rows * columns)
        products[tile] = Part(
            left.address(tile, top, start) + group * GROUP,
            result.address(tile, top, start) + group * GROUP,
            rows,
            columns,
            [],
            (left.image.pitch, left.row_pitch),
            (result.image.pitch, result.row_pitch),
            parameter_steps=steps,
        )
    if not products:
        return
    diagonal = Sums(copy, zero, 0, 1, count, _DIAGONAL, _DIAGONAL, GROUP, row, 0, [(1, 0)])
    yield Phase(
        operation.number,
        "weights of a product",
        emitting(diagonal, weights),
        [Piece(ALL_TILES, row, spread_out())],
    )
    yield Phase(operation.number, "rows of a product", _packing(small, scratch, spread))
    sums = Sums(
        operation.stage,
        left.image.zero_point,
        zero,
        1,
        count,
        GROUP,
        GROUP,
        GROUP,
        spread,
        1,
        [(1, 0)],
    )
    yield Phase(operation.number, "product", emitting(sums, products))


def _packing(small: dict[int, list[int]], scratch: int, spread: int) -> Callable[[Assembler], None]:
    """Gather rows of four words."""

    def emit(program: Assembler) -> None:
        for rows, tiles in small.items():
            program.tile(
                "NarrowToWide",
                tile_set(tiles),
                walk(
                    "NarrowToWide",
                    "narrow_read",
                    scratch // WORD_BYTES,
                    [(GROUP, 1), (rows, GROUP)],
                ),
                walk("NarrowToWide", "wide_write", spread, [(rows, 1)]),
                row_loop=1,
            )

    return emit


def product_bytes(areas: Areas) -> int:
    """Bytes of narrow memory that a product needs for its weights."""
    return min((areas.half_rows - 1) * _DIAGONAL, _PRODUCT_BYTES)
