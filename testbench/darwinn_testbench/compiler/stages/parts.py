"""What each tile computes of an image, and computations that several kinds of operations share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from darwinn_testbench.compiler.assembler import Assembler
from darwinn_testbench.compiler.stages.compute import Part, Sums, compute
from darwinn_testbench.compiler.stages.operations import Image, OutputStage, Reach
from darwinn_testbench.compiler.stages.rows import GROUP
from darwinn_testbench.compiler.stages.storage import TILES, Storage


def parts_of(
    rows: Reach,
    columns: Reach,
    source: Storage,
    result: Storage,
    pixel: Sequence[tuple[int, int]],
    *,
    channel: int = 0,
    source_channel: int = 0,
) -> dict[int, Part]:
    """What each tile computes of an image: ``pixel`` are the loops within a pixel of the source."""
    pitch, row_pitch = source.image.pitch, source.row_pitch
    parts = {}
    for tile in TILES:
        if not result.own_pixels(tile):
            continue
        (top, _), (left, _) = result.own(tile)
        height, width = result.computed(tile)
        parts[tile] = Part(
            source.address(tile, rows.first(top), columns.first(left)) + source_channel,
            result.address(tile, top, left) + channel,
            height,
            width,
            [
                *pixel,
                (columns.kernel, columns.dilation * pitch),
                (rows.kernel, rows.dilation * row_pitch),
            ],
            (columns.stride * pitch, rows.stride * row_pitch),
            (result.image.pitch, result.row_pitch),
        )
    return parts


def emitting(sums: Sums, parts: dict[int, Part]) -> Callable[[Assembler], None]:
    """What writes a computation."""
    return lambda program: compute(program, sums, parts)


def emitting_all(
    computations: Sequence[tuple[Sums, dict[int, Part]]],
) -> Callable[[Assembler], None]:
    """What writes several, one after another."""

    def emit(program: Assembler) -> None:
        for sums, parts in computations:
            compute(program, sums, parts)

    return emit


def copying(stage: OutputStage, image: Image, groups: int, row: int) -> Sums:
    """Each word by itself, with weights of 1."""
    return Sums(stage, image.zero_point, 0, 1, groups, GROUP, GROUP, GROUP, row, 0, [(1, 0)])
