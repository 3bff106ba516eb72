"""Layers with weights for all channels as phases.

Where a result has several pixels, each tile computes its own ones and needs all parameters, so they
are broadcast. Where it has one, each tile computes some of its channels from the whole source; the
tiles then tell each other what they have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from numpy.typing import NDArray

from darwinn_testbench.compiler.program import ALL_TILES
from darwinn_testbench.compiler.stages.compute import HEAD_ROWS, Aside, Part, Sums, cycles_of
from darwinn_testbench.compiler.stages.needs import needs_whole
from darwinn_testbench.compiler.stages.one_pixel import Vector, met_by_one, tell
from darwinn_testbench.compiler.stages.operations import (
    Convolution,
    OutputStage,
    TransposedConvolution,
)
from darwinn_testbench.compiler.stages.parts import emitting, emitting_all, parts_of
from darwinn_testbench.compiler.stages.phases import Areas, Phase, Piece
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.resizing import at_stride
from darwinn_testbench.compiler.stages.rows import AS_IS, GROUP, Rows, lane_rows
from darwinn_testbench.compiler.stages.storage import TILES, Storage, length


def convolution_phases(
    operation: Convolution, placement: Placement, areas: Areas
) -> Iterator[Phase]:
    """The phases of a convolution, or of a dense layer."""
    if needs_whole(operation):
        return _dense(operation, placement, areas)
    return _image_convolution(operation, placement, areas)


def _image_convolution(
    operation: Convolution, placement: Placement, areas: Areas
) -> Iterator[Phase]:
    """Each tile computes its own pixels, 64 channels at a time, as many as have room."""
    source, result = placement.of(operation.source), placement.of(operation.result)
    weights = _padded_inputs(operation.weights, operation.weight_zero_point, source)
    outputs, height, width, depth = weights.shape
    taps = height * width * depth // GROUP
    blocks = lane_rows(
        weights.reshape(outputs, taps, GROUP), operation.weight_zero_point, operation.stage
    )
    each = len(blocks[0])
    if each > areas.rows:
        yield from _convolution_in_parts(operation, weights, (source, result), areas)
        return
    pixel = [(depth // GROUP, GROUP)]
    parts = parts_of(operation.rows, operation.columns, source, result, pixel)
    least = min(each, _least_in_parts(_most_pixels(parts)))
    yield from _by_blocks(operation, "convolution", blocks, (outputs, taps, least), parts, areas)


def _by_blocks(
    operation: Convolution | TransposedConvolution,
    name: str,
    blocks: Sequence[Rows],
    sizes: tuple[int, int, int],
    parts: dict[int, Part],
    areas: Areas,
) -> Iterator[Phase]:
    """As many blocks of 64 channels at a time as have room; ``parts`` are those of the first.

    ``sizes``: outputs, words of a window, and rows with which it could do in another way.
    """
    outputs, taps, least = sizes
    each = len(blocks[0])
    at_once = max(1, areas.half_rows // each)
    for first in range(0, len(blocks), at_once):
        chunk = blocks[first : first + at_once]
        row, alone = areas.take(len(chunk) * each, least)
        lanes = [_lanes(outputs, first + k) for k in range(len(chunk))]
        sums = replace(
            _sums(operation, operation.stage, taps, row, each),
            blocks=len(chunk),
            lanes=lanes[0],
            last_lanes=lanes[-1],
        )
        moved = {
            tile: replace(part, result=part.result + first * chip.LANES)
            for tile, part in parts.items()
        }
        yield Phase(
            operation.number,
            name,
            emitting(sums, moved),
            [Piece(ALL_TILES, row + k * each, block) for k, block in enumerate(chunk)],
            alone=alone,
            cycles=cycles_of(sums, moved),
        )


def _sums(
    operation: Convolution | TransposedConvolution,
    stage: OutputStage,
    taps: int,
    row: int,
    each: int,
) -> Sums:
    """The sums of one block of 64 channels, whose ``each`` rows of parameters begin at ``row``."""
    zero_points = operation.source.zero_point, operation.weight_zero_point
    return Sums(stage, *zero_points, taps, 1, chip.LANES, chip.LANES, 0, row, each, [(taps, 1)])


# --- more parameters than wide memory has room for ----------------------------------------------


_Box = tuple[slice, slice, slice]
"""Rows, columns and channels of a window."""


def _boxes(shape: tuple[int, int, int], limit: int) -> list[_Box]:
    """A window in parts of at most ``limit`` words."""
    height, width, depth = shape
    words = depth // GROUP
    rows = max(1, min(height, limit // (words * width)))
    columns = width if words * width <= limit else max(1, limit // words)
    channels = min(words, limit) * GROUP
    return [
        (
            slice(top, min(top + rows, height)),
            slice(left, min(left + columns, width)),
            slice(first, min(first + channels, depth)),
        )
        for top in range(0, height, rows)
        for left in range(0, width, columns)
        for first in range(0, depth, channels)
    ]


def _read_of(box: _Box, pitch: int, row_pitch: int) -> tuple[int, list[tuple[int, int]]]:
    """Where a part of a window begins, from the window's first byte on, and the loops over it."""
    top, left, channels = box
    return top.start * row_pitch + left.start * pitch + channels.start, [
        ((channels.stop - channels.start) // GROUP, GROUP),
        (left.stop - left.start, pitch),
        (top.stop - top.start, row_pitch),
    ]


_LEAST_ROWS = 128
"""Rows of an area beside sums that are put aside, at least."""


def _least_in_parts(pixels: int) -> int:
    """Rows of both areas, at least, with sums of so many pixels put aside."""
    return 2 * (2 * pixels + _LEAST_ROWS)


def _most_pixels(parts: Mapping[int, Part]) -> int:
    return max((part.rows * part.columns for part in parts.values()), default=0)


def _steps(
    operation: Convolution, weights: NDArray[np.uint8], pixels: int, areas: Areas
) -> Iterator[tuple[_Box, list[Rows], Sums]]:
    """Parts of a window one after another: rows of each block of lanes, and their sums.

    The sums of a part go on from those of the parts before. They are at the end of the area that
    the last part has, since what comes in next takes the other one.
    """
    limit = areas.half_rows - 2 * pixels - HEAD_ROWS
    if limit < 1:
        raise ValueError(f"sums of {pixels} pixels put aside")
    boxes = _boxes((weights.shape[1], weights.shape[2], weights.shape[3]), limit)
    found = []
    for number, box in enumerate(boxes):
        chosen = weights[:, *box]
        taps = chosen[0].size // GROUP
        stage = operation.stage if number == len(boxes) - 1 else AS_IS
        lanes = chosen.reshape(len(weights), taps, GROUP)
        blocks = lane_rows(lanes, operation.weight_zero_point, stage)
        row, _ = areas.take(len(blocks[0]), _least_in_parts(pixels))
        found.append((box, blocks, stage, taps, row))
    aside = found[-1][-1] + areas.half_rows - 2 * pixels
    for number, (box, blocks, stage, taps, row) in enumerate(found):
        yield (
            box,
            blocks,
            replace(
                _sums(operation, stage, taps, row, len(blocks[0])),
                aside=Aside(aside, pixels, number > 0),
            ),
        )


def _convolution_in_parts(
    operation: Convolution,
    weights: NDArray[np.uint8],
    storages: tuple[Storage, Storage],
    areas: Areas,
) -> Iterator[Phase]:
    """64 channels at a time, and of these a part of the window at a time."""
    source, result = storages
    pitch = operation.columns.dilation * source.image.pitch
    row_pitch = operation.rows.dilation * source.row_pitch
    for first in range(0, len(weights), chip.LANES):
        parts = parts_of(operation.rows, operation.columns, source, result, [], channel=first)
        pixels = _most_pixels(parts)
        lanes = _lanes(len(weights), first // chip.LANES)
        chosen = weights[first : first + chip.LANES]
        own = replace(operation, stage=_of_some(operation.stage, first, chip.LANES))
        for box, (rows,), sums in _steps(own, chosen, pixels, areas):
            offset, read = _read_of(box, pitch, row_pitch)
            moved = {
                tile: replace(part, source=part.source + offset, read=read)
                for tile, part in parts.items()
            }
            yield Phase(
                operation.number,
                "part of a convolution",
                emitting(replace(sums, lanes=lanes, last_lanes=lanes), moved),
                [Piece(ALL_TILES, sums.row, rows)],
            )


def _of_some(stage: OutputStage, first: int, count: int) -> OutputStage:
    """A stage with what is of some channels."""
    own = slice(first, first + count)
    factors, bias = stage.factors, stage.bias
    return replace(
        stage,
        factors=factors if len(factors) == 1 else factors[own],
        bias=bias if len(bias) == 1 else bias[own],
    )


def _dense_in_parts(
    operation: Convolution,
    weights: NDArray[np.uint8],
    corner: tuple[int, int],
    storages: tuple[Storage, Storage],
    areas: Areas,
) -> Iterator[Phase]:
    """Each tile its 64 channels, a part of the source at a time."""
    source, result = storages
    pitch, row_pitch = source.image.pitch, source.row_pitch
    at_once = chip.TILES * chip.LANES
    for begin in range(0, len(weights), at_once):
        chosen = weights[begin : begin + at_once]
        widths = {tile: _lanes(len(chosen), tile) for tile in range(-(-len(chosen) // chip.LANES))}
        starts = {tile: result.base + begin + tile * chip.LANES for tile in widths}
        vector = Vector(starts, widths)
        stage = _of_some(operation.stage, begin, at_once)
        for box, blocks, sums in _steps(replace(operation, stage=stage), chosen, 1, areas):
            offset, read = _read_of(box, pitch, row_pitch)
            by_lanes: dict[int, dict[int, Part]] = {}
            for tile, lanes in widths.items():
                address = source.address(tile, *corner) + offset
                part = Part(address, vector.made(tile), 1, 1, read, (0, 0), (0, 0))
                by_lanes.setdefault(lanes, {})[tile] = part
            yield Phase(
                operation.number,
                "part of a dense layer",
                emitting_all(
                    [
                        (replace(sums, lanes=lanes, last_lanes=lanes), parts)
                        for lanes, parts in by_lanes.items()
                    ]
                ),
                [Piece(1 << tile, sums.row, block) for tile, block in enumerate(blocks)],
            )
        yield tell(operation.number, vector, areas)


def transposed_convolution_phases(
    operation: TransposedConvolution, placement: Placement, areas: Areas
) -> Iterator[Phase]:
    """Results at equal distances meet the same weights: a convolution for each set of them."""
    if operation.result.is_vector:
        raise ValueError("a transposed convolution with one result")
    source, result = placement.of(operation.source), placement.of(operation.result)
    weights = _padded_inputs(operation.weights, operation.weight_zero_point, source)
    for down, across in np.ndindex(operation.rows.stride, operation.columns.stride):
        found = [
            spacing.taps(offset)[::-1]
            for spacing, offset in ((operation.rows, down), (operation.columns, across))
        ]
        if all(found):
            chosen = weights[:, found[0]][:, :, found[1]]
        else:
            # Nothing but the bias.
            chosen = np.full_like(weights[:, :1, :1], operation.weight_zero_point)
        yield from _results_at(operation, chosen, (down, across), (source, result), areas)


def _results_at(
    operation: TransposedConvolution,
    weights: NDArray[np.uint8],
    offsets: tuple[int, int],
    storages: tuple[Storage, Storage],
    areas: Areas,
) -> Iterator[Phase]:
    """The results of which the rows and columns are ``offsets`` and so many strides on."""
    source, result = storages
    outputs, height, width, depth = weights.shape
    taps = height * width * depth // GROUP
    blocks = lane_rows(
        weights.reshape(outputs, taps, GROUP), operation.weight_zero_point, operation.stage
    )
    pitch, row_pitch = source.image.pitch, source.row_pitch
    down, across = operation.rows, operation.columns
    parts = {}
    for tile in TILES:
        rows, columns = (
            at_stride(own, offset, spacing.stride)
            for own, offset, spacing in zip(result.own(tile), offsets, (down, across), strict=True)
        )
        if not (length(rows) and length(columns)):
            continue
        top = rows[0] * down.stride + offsets[0]
        left = columns[0] * across.stride + offsets[1]
        parts[tile] = Part(
            source.address(tile, down.first(top), across.first(left)),
            result.address(tile, top, left),
            length(rows),
            length(columns),
            [(depth // GROUP, GROUP), (width, pitch), (height, row_pitch)],
            (pitch, row_pitch),
            (across.stride * result.image.pitch, down.stride * result.row_pitch),
        )
    yield from _by_blocks(
        operation, "transposed convolution", blocks, (outputs, taps, len(blocks[0])), parts, areas
    )


def _padded_inputs(
    weights: NDArray[np.uint8], zero_point: int, source: Storage
) -> NDArray[np.uint8]:
    """Weights of as many channels as a pixel of the source has in memory."""
    missing = source.image.pitch - weights.shape[3]
    return np.pad(weights, [(0, 0)] * 3 + [(0, missing)], constant_values=zero_point)


def _lanes(outputs: int, block: int) -> int:
    """Lanes of a block: whole words, so that padding of pixels is written, too."""
    left = min(chip.LANES, outputs - block * chip.LANES)
    return -(-left // WORD_BYTES) * WORD_BYTES


def _dense(operation: Convolution, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """Each tile computes 64 channels of the only pixel from the whole source."""
    source = placement.copies[operation.source.index]
    result = placement.copies[operation.result.index]
    weights = _padded_inputs(operation.weights, operation.weight_zero_point, source)
    (top, own_rows), (left, own_columns) = met_by_one(operation)
    met = weights[:, own_rows][:, :, own_columns]
    if met.size:
        weights = met
    else:
        # It meets zero points alone: nothing but the bias.
        top = left = 0
        weights = np.full_like(weights[:, :1, :1], operation.weight_zero_point)
    outputs, height, width, depth = weights.shape
    taps = height * width * depth // GROUP
    blocks = lane_rows(
        weights.reshape(outputs, taps, GROUP), operation.weight_zero_point, operation.stage
    )
    each = len(blocks[0])
    together = each * -(-len(blocks) // chip.TILES)
    if each > areas.rows and not areas.has_room(together):
        areas.to_settle.append(together)
        yield from _dense_in_parts(operation, weights, (top, left), (source, result), areas)
        return
    for first in range(0, len(blocks), chip.TILES):
        chunk = blocks[first : first + chip.TILES]
        settled = areas.settle(each)
        row, alone = (
            areas.take(each, min(each, _LEAST_ROWS)) if settled is None else (settled, False)
        )
        widths = {tile: _lanes(outputs, first + tile) for tile in range(len(chunk))}
        starts = {tile: result.base + (first + tile) * chip.LANES for tile in widths}
        vector = Vector(starts, widths)
        by_lanes: dict[int, dict[int, Part]] = {}
        for tile, lanes in widths.items():
            part = Part(
                source.address(tile, top, left),
                vector.made(tile),
                1,
                1,
                [(width * depth // GROUP, GROUP), (height, source.row_pitch)],
                (0, 0),
                (0, 0),
            )
            by_lanes.setdefault(lanes, {})[tile] = part
        computations = [
            (
                replace(
                    _sums(operation, operation.stage, taps, row, each),
                    lanes=lanes,
                    last_lanes=lanes,
                ),
                parts,
            )
            for lanes, parts in by_lanes.items()
        ]
        pieces = [Piece(1 << tile, row, block) for tile, block in enumerate(chunk)]
        if settled is not None:
            areas.reside(pieces)
        yield Phase(
            operation.number,
            "dense",
            emitting_all(computations),
            [] if settled is not None else pieces,
            alone=alone,
        )
        yield tell(operation.number, vector, areas)
