"""Layers with weights for all channels as phases.

Where a result has several pixels, each tile computes its own ones and needs all parameters, so they
are broadcast. Where it has one, each tile computes some of its channels from the whole source; the
tiles then tell each other what they have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from numpy.typing import NDArray

from darwinn_testbench.compiler.program import ALL_TILES
from darwinn_testbench.compiler.stages.compute import Part, Sums
from darwinn_testbench.compiler.stages.one_pixel import met_by_one, tell
from darwinn_testbench.compiler.stages.operations import (
    Convolution,
    TransposedConvolution,
)
from darwinn_testbench.compiler.stages.parts import emitting, emitting_all, parts_of
from darwinn_testbench.compiler.stages.phases import Areas, Phase, Piece
from darwinn_testbench.compiler.stages.placement import Placement, needs_whole
from darwinn_testbench.compiler.stages.resizing import at_stride
from darwinn_testbench.compiler.stages.rows import (
    GROUP,
    lane_rows,
)
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
    at_once = max(1, areas.half_rows // each)
    for first in range(0, len(blocks), at_once):
        chunk = blocks[first : first + at_once]
        row, alone = areas.take(len(chunk) * each, each)
        lanes = [_lanes(outputs, first + k) for k in range(len(chunk))]
        sums = Sums(
            operation.stage,
            operation.source.zero_point,
            operation.weight_zero_point,
            taps,
            len(chunk),
            lanes[0],
            lanes[-1],
            0,
            row,
            each,
            [(taps, 1)],
        )
        parts = parts_of(
            operation.rows,
            operation.columns,
            source,
            result,
            [(depth // GROUP, GROUP)],
            channel=first * chip.LANES,
        )
        yield Phase(
            operation.number,
            "convolution",
            emitting(sums, parts),
            [Piece(ALL_TILES, row + k * each, block) for k, block in enumerate(chunk)],
            alone=alone,
        )


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
    each = len(blocks[0])
    at_once = max(1, areas.half_rows // each)
    for first in range(0, len(blocks), at_once):
        chunk = blocks[first : first + at_once]
        row, alone = areas.take(len(chunk) * each, each)
        lanes = [_lanes(outputs, first + k) for k in range(len(chunk))]
        sums = Sums(
            operation.stage,
            operation.source.zero_point,
            operation.weight_zero_point,
            taps,
            len(chunk),
            lanes[0],
            lanes[-1],
            0,
            row,
            each,
            [(taps, 1)],
        )
        moved = {
            tile: replace(part, result=part.result + first * chip.LANES)
            for tile, part in parts.items()
        }
        yield Phase(
            operation.number,
            "transposed convolution",
            emitting(sums, moved),
            [Piece(ALL_TILES, row + k * each, block) for k, block in enumerate(chunk)],
            alone=alone,
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
    weights = weights[:, own_rows][:, :, own_columns]
    outputs, height, width, depth = weights.shape
    taps = height * width * depth // GROUP
    blocks = lane_rows(
        weights.reshape(outputs, taps, GROUP), operation.weight_zero_point, operation.stage
    )
    each = len(blocks[0])
    for first in range(0, len(blocks), chip.TILES):
        chunk = blocks[first : first + chip.TILES]
        settled = areas.settle(each)
        row, alone = areas.take(each) if settled is None else (settled, False)
        by_lanes: dict[int, dict[int, Part]] = {}
        for tile in range(len(chunk)):
            part = Part(
                source.address(tile, top, left),
                result.base + (first + tile) * chip.LANES,
                1,
                1,
                [(width * depth // GROUP, GROUP), (height, source.row_pitch)],
                (0, 0),
                (0, 0),
            )
            by_lanes.setdefault(_lanes(outputs, first + tile), {})[tile] = part
        computations = [
            (
                Sums(
                    operation.stage,
                    operation.source.zero_point,
                    operation.weight_zero_point,
                    taps,
                    1,
                    lanes,
                    lanes,
                    0,
                    row,
                    each,
                    [(taps, 1)],
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
        widths = {tile: lanes for lanes, parts in by_lanes.items() for tile in parts}
        starts = {tile: result.base + (first + tile) * chip.LANES for tile in widths}
        yield tell(operation.number, starts, widths, areas)
