"""What each operator becomes on the chip: one description for each kind of operation.

Where a result has several pixels, each tile computes its own ones and needs all parameters, so they
are broadcast. Where it has one, each tile computes some of its channels from the whole source; the
tiles then tell each other what they have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import cast

import numpy as np
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.isa.builder import Values
from darwinn_sim.isa.codes import TileFlag
from numpy.typing import NDArray

from darwinn_testbench.compiler.assembler import Assembler, Watcher, signal, wait, walk
from darwinn_testbench.compiler.program import ALL_TILES, tile_set
from darwinn_testbench.compiler.stages.channels import (
    joined_bytes,
    joined_phases,
    slice_phases,
)
from darwinn_testbench.compiler.stages.compute import HEAD_ROWS, Part, Sums
from darwinn_testbench.compiler.stages.exchange import exchanges
from darwinn_testbench.compiler.stages.operations import (
    AnyOperation,
    BorderAverage,
    Channelwise,
    Convolution,
    Enlarged,
    Filled,
    Greatest,
    Interpolated,
    Joined,
    OutputStage,
    Product,
    Reach,
    Repeated,
    Reshaped,
    Slice,
    Softmax,
    Stacked,
    Taps,
    Transposed,
    TransposedConvolution,
    WeightedSum,
    sources_of,
)
from darwinn_testbench.compiler.stages.parts import copying, emitting, emitting_all, parts_of
from darwinn_testbench.compiler.stages.phases import Areas, Phase, Piece
from darwinn_testbench.compiler.stages.placement import Placement, needs_whole
from darwinn_testbench.compiler.stages.ring import Share, gather
from darwinn_testbench.compiler.stages.rows import (
    GROUP,
    group_rows,
    identity,
    lane_rows,
    one_hot,
    packed,
    spread_out,
)
from darwinn_testbench.compiler.stages.shapes import (
    fill_phases,
    repeat_phases,
    reshape_phases,
    stack_phases,
    transpose_phases,
)
from darwinn_testbench.compiler.stages.softmax import softmax_bytes, softmax_phases
from darwinn_testbench.compiler.stages.storage import TILES, Interval, Storage, common, length
from darwinn_testbench.compiler.stages.writer import merged, write


class TooLargeError(Exception):
    """What of an operator exceeds a limit of the chip."""


def phases_of(operation: AnyOperation, placement: Placement, areas: Areas) -> list[Phase]:
    """The phases of an operation.

    Raises:
        TooLargeError: it exceeds a limit of the chip.
    """
    describe = cast(
        "Callable[[AnyOperation, Placement, Areas], Iterator[Phase]]",
        _MAPPINGS[type(operation)],
    )
    try:
        _refuse_single_pixel(operation)
        return list(describe(operation, placement, areas))
    except ValueError as reason:
        raise TooLargeError(str(reason)) from None


def _refuse_single_pixel(operation: AnyOperation) -> None:
    """Refuse what makes an image of one pixel, which has no edges that could be filled."""
    single = all(each.is_vector for each in sources_of(operation))
    if isinstance(operation, Reshaped | Transposed | Repeated | Filled | Stacked):
        return
    if single and not operation.result.is_vector:
        raise ValueError("an image of several pixels made of one")


def spread_phases(number: int, index: int, placement: Placement, areas: Areas) -> list[Phase]:
    """Fill the windows of an image, and make the copy that some operator needs of it."""
    storage = placement.parts.get(index)
    if storage is None:
        return []
    phases = [Phase(number, "edges", step, on_mesh=True) for step in exchanges(storage)]
    copy = placement.copies.get(index)
    if copy is not None:
        phases.append(_copy(number, storage, copy, areas))
    return phases


def _copy(number: int, storage: Storage, copy: Storage, areas: Areas) -> Phase:
    """Send all parts of an image to all tiles."""
    shares = []
    for tile in TILES:
        if not storage.own_pixels(tile):
            continue
        (top, end), (left, right) = storage.own(tile)
        words = (right - left) * storage.image.pitch // WORD_BYTES
        shares.append(
            Share(
                tile,
                storage.word(tile, top, left),
                [(words, 1), (end - top, storage.row_pitch // WORD_BYTES)],
                copy.word(tile, top, left),
                [(words, 1), (end - top, copy.row_pitch // WORD_BYTES)],
            )
        )
    rows = sum(share.rows for share in shares)
    try:
        first, alone = areas.reuse(rows)
    except ValueError as reason:
        raise TooLargeError(str(reason)) from None
    return Phase(
        number,
        "copy to all tiles",
        lambda program: gather(program, shares, first),
        uses_ring=True,
        alone=alone,
    )


# --- convolutions -------------------------------------------------------------------------------


def _convolution(operation: Convolution, placement: Placement, areas: Areas) -> Iterator[Phase]:
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


def _transposed_convolution(
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
            _of_phase(own, offset, spacing.stride)
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
    (top, own_rows), (left, own_columns) = _met(operation)
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
        yield _tell(operation.number, starts, widths, areas)


def _met(operation: Convolution | Channelwise) -> tuple[tuple[int, slice], tuple[int, slice]]:
    """First row and column that the only result meets of its source, and which weights they meet.

    Raises:
        ValueError: the window is dilated.
    """
    found = []
    for reach, size in (
        (operation.rows, operation.source.height),
        (operation.columns, operation.source.width),
    ):
        if reach.dilation > 1:
            raise ValueError("a dilated window over a whole image")
        first = reach.first(0)
        begin, end = common(reach.inputs(0, 1), (0, size))
        found.append((begin, slice(begin - first, end - first)))
    return found[0], found[1]


def _tell(number: int, starts: dict[int, int], sizes: dict[int, int], areas: Areas) -> Phase:
    """Have tiles send the bytes that they have of a vector to all tiles, at the same place."""
    shares = []
    for tile in sorted(starts):
        word, words = starts[tile] // WORD_BYTES, sizes[tile] // WORD_BYTES
        shares.append(Share(tile, word, [(words, 1)], word, [(words, 1)]))
    first, alone = areas.reuse(sum(share.rows for share in shares))
    return Phase(
        number,
        "results to all tiles",
        lambda program: gather(program, shares, first),
        uses_ring=True,
        alone=alone,
    )


# --- channel by channel -------------------------------------------------------------------------


def _channelwise(operation: Channelwise, placement: Placement, areas: Areas) -> Iterator[Phase]:
    if operation.weights is None and operation.stage.is_uniform:
        if needs_whole(operation) and not _is_copy(operation):
            return _reduction(operation, placement, areas)
        return _pool(operation, placement, areas)
    return _depthwise(operation, placement, areas)


def _is_copy(operation: Channelwise) -> bool:
    return operation.source.is_vector


def _pool(operation: Channelwise, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """Weights of 1 for each of four channels a step: one row of parameters for all."""
    source, result = placement.of(operation.source), placement.of(operation.result)
    row, _ = areas.take(1)
    sums = _ones(operation, result.image.pitch // GROUP, row)
    parts = parts_of(operation.rows, operation.columns, source, result, [])
    yield Phase(
        operation.number,
        "pool",
        emitting(sums, parts),
        [Piece(ALL_TILES, row, identity())],
    )


def _border_average(
    operation: BorderAverage, placement: Placement, areas: Areas
) -> Iterator[Phase]:
    """A pool for all results with the same numbers of rows and columns in their windows."""
    source, result = placement.of(operation.source), placement.of(operation.result)
    by_count: dict[int, dict[int, list[Part]]] = {}
    for tile in TILES:
        own_rows, own_columns = result.own(tile)
        for top, end in _equal_runs(operation.row_counts, own_rows):
            for left, right in _equal_runs(operation.column_counts, own_columns):
                count = operation.row_counts[top] * operation.column_counts[left]
                part = Part(
                    source.address(tile, operation.rows.first(top), operation.columns.first(left)),
                    result.address(tile, top, left),
                    end - top,
                    right - left,
                    [
                        (operation.columns.kernel, source.image.pitch),
                        (operation.rows.kernel, source.row_pitch),
                    ],
                    (
                        operation.columns.stride * source.image.pitch,
                        operation.rows.stride * source.row_pitch,
                    ),
                    (result.image.pitch, result.row_pitch),
                )
                by_count.setdefault(count, {}).setdefault(tile, []).append(part)
    rows = np.concatenate([identity(operation.shares[count][0]) for count in by_count])
    first, _ = areas.take(len(rows))
    found: list[tuple[Sums, dict[int, Part]]] = []
    for row, (count, by_tile) in enumerate(by_count.items(), first):
        stage = operation.shares[count][1]
        sums = replace(_ones(operation, result.image.pitch // GROUP, row), stage=stage)
        for number in range(max(map(len, by_tile.values()))):
            parts = {tile: each[number] for tile, each in by_tile.items() if number < len(each)}
            found.append((sums, parts))
    yield Phase(
        operation.number,
        "pool over the border",
        emitting_all(found),
        [Piece(ALL_TILES, first, rows)],
    )


def _equal_runs(counts: Sequence[int], own: Interval) -> Iterator[Interval]:
    """An interval in pieces within which counts are the same."""
    first = own[0]
    for index in range(*own):
        if index + 1 == own[1] or counts[index + 1] != counts[first]:
            yield first, index + 1
            first = index + 1


def _ones(operation: Channelwise, groups: int, row: int) -> Sums:
    taps = operation.rows.kernel * operation.columns.kernel
    return Sums(
        operation.stage,
        operation.source.zero_point,
        0,
        taps,
        groups,
        GROUP,
        GROUP,
        GROUP,
        row,
        0,
        [(taps, 0)],
    )


def _reduction(operation: Channelwise, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """One pixel of a whole image: each tile takes a share of the channels."""
    source = placement.copies[operation.source.index]
    result = placement.copies[operation.result.index]
    groups = result.image.pitch // GROUP
    share = -(-groups // chip.TILES)
    (top, _), (left, _) = _met(operation)
    start = source.base + top * source.row_pitch + left * source.image.pitch
    row, _ = areas.take(1)
    by_size: dict[int, dict[int, Part]] = {}
    for tile in TILES:
        first = tile * share
        count = min(share, groups - first)
        if count <= 0:
            continue
        by_size.setdefault(count, {})[tile] = Part(
            start + first * GROUP,
            result.base + first * GROUP,
            1,
            1,
            [
                (operation.columns.kernel, source.image.pitch),
                (operation.rows.kernel, source.row_pitch),
            ],
            (0, 0),
            (0, 0),
        )
    computations = [(_ones(operation, count, row), parts) for count, parts in by_size.items()]
    yield Phase(
        operation.number,
        "reduction",
        emitting_all(computations),
        [Piece(ALL_TILES, row, identity())],
    )
    sizes = {tile: count * GROUP for count, parts in by_size.items() for tile in parts}
    starts = {tile: result.base + tile * share * GROUP for tile in sizes}
    yield _tell(operation.number, starts, sizes, areas)


def scratch_bytes(operation: AnyOperation, areas: Areas) -> int:
    """Bytes of narrow memory that an operation needs to unpack its parameters."""
    if isinstance(operation, Product):
        return min((areas.half_rows - 1) * _DIAGONAL, _PRODUCT_BYTES)
    if isinstance(operation, Joined | Slice):
        return joined_bytes(operation)
    if isinstance(operation, Softmax):
        return softmax_bytes(operation)
    if not isinstance(operation, Channelwise) or operation.weights is None:
        return 0
    taps = operation.rows.kernel * operation.columns.kernel
    groups = min(_groups_at_once(taps, areas), operation.source.pitch // GROUP)
    small = groups * (taps + HEAD_ROWS)
    return -(-small * GROUP // chip.ROW_WORDS) * chip.ROW_BYTES


_PRODUCT_BYTES = 1 << 13
"""Bytes of weights that a product makes at a time, at most."""


def _groups_at_once(taps: int, areas: Areas) -> int:
    each, packed_in = taps + HEAD_ROWS, chip.ROW_WORDS // GROUP
    # The packed rows are beside those that they become.
    return (areas.half_rows - 1) * packed_in // (each * (packed_in + 1))


def _depthwise(operation: Channelwise, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """Four channels a step. Their rows have 4 words: they come in packed and are spread first."""
    assert operation.weights is not None
    source, result = placement.of(operation.source), placement.of(operation.result)
    weights, window = operation.weights, (operation.rows, operation.columns)
    if needs_whole(operation):
        source = placement.copies[operation.source.index]
        (top, own_rows), (left, own_columns) = _met(operation)
        weights = weights[own_rows, own_columns]
        window = (Reach(len(weights), 1, 1, -top), Reach(weights.shape[1], 1, 1, -left))
    height, width, channels = weights.shape
    taps = height * width
    blocks = group_rows(
        weights.reshape(taps, channels), operation.weight_zero_point, operation.stage
    )
    each, at_once = taps + HEAD_ROWS, _groups_at_once(taps, areas)
    if not at_once:
        raise ValueError(f"a window of {taps} elements")
    scratch = placement.scratch[operation.number] // WORD_BYTES
    for first in range(0, len(blocks), at_once):
        chunk = blocks[first : first + at_once]
        rows = packed(chunk)
        row, alone = areas.take(len(rows) + len(chunk) * each, each + 1)
        yield Phase(
            operation.number,
            "unpacking",
            _unpacking(row, len(rows), scratch, row + len(rows), len(chunk) * each),
            [Piece(ALL_TILES, row, rows)],
            alone=alone,
            early=True,
        )
        sums = Sums(
            _each_channel(operation.stage, channels),
            operation.source.zero_point,
            operation.weight_zero_point,
            taps,
            len(chunk),
            GROUP,
            GROUP,
            GROUP,
            row + len(rows),
            each,
            [(taps, 1)],
        )
        channel = first * GROUP
        parts = parts_of(
            *window,
            source,
            result,
            [],
            channel=channel,
            source_channel=channel,
        )
        yield Phase(operation.number, "depthwise", emitting(sums, parts))


def _each_channel(stage: OutputStage, channels: int) -> OutputStage:
    """A stage that has factors and biases for each channel, even if there is but one."""
    factors = np.broadcast_to(stage.factors, max(channels, 2))
    bias = np.broadcast_to(stage.bias, max(channels, 2))
    return OutputStage(factors, bias, stage.low, stage.high, stage.zero_point)


def _unpacking(
    row: int, rows: int, scratch: int, target: int, small_rows: int
) -> Callable[[Assembler], None]:
    """Spread full rows over narrow memory, and gather rows of four words from there."""

    def emit(program: Assembler) -> None:
        program.tile(
            "WideToNarrow",
            ALL_TILES,
            walk("WideToNarrow", "wide_read", row, [(rows, 1)]),
            walk(
                "WideToNarrow",
                "narrow_write",
                scratch,
                [(chip.ROW_WORDS, 1), (rows, chip.ROW_WORDS)],
            ),
            signal(depth=1),
            row_loop=1,
        )
        # The words of a full row are there when it has been counted.
        per_row = chip.ROW_WORDS // GROUP
        whole, rest = divmod(small_rows, per_row)
        done = 0
        for count, number in ((per_row, whole), (rest, 1)):
            if not count or not number:
                continue
            program.tile(
                "NarrowToWide",
                ALL_TILES,
                walk(
                    "NarrowToWide",
                    "narrow_read",
                    scratch + done * chip.ROW_WORDS,
                    [(GROUP, 1), (count, GROUP), (number, chip.ROW_WORDS)],
                ),
                walk(
                    "NarrowToWide",
                    "wide_write",
                    target + done * per_row,
                    [(count, 1), (number, per_row)],
                ),
                wait(
                    "NarrowToWide",
                    Watcher(TileFlag.WIDE_TO_NARROW_WRITE, depth=2, expected=done + 1),
                ),
                row_loop=1,
            )
            done += number

    return emit


# --- element by element -------------------------------------------------------------------------


def _with_wide_weights(
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


def _weighted_sum(operation: WeightedSum, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """Both operands one after another, two channels a step, times 16-bit weights."""
    left, right = (placement.of(each) for each in operation.sources)
    result = placement.of(operation.result)
    zero_point = max(0, -min(operation.weights))
    rows = one_hot(operation.weights, zero_point)
    row, _ = areas.take(len(rows))
    sums = _with_wide_weights(operation.stage, result, row, len(rows), zero_point)
    parts = {}
    for tile in TILES:
        if not result.own_pixels(tile):
            continue
        (top, _), (first, _) = result.own(tile)
        height, width = result.computed(tile)
        start = left.address(tile, top, first)
        distance = right.address(tile, top, first) - start
        parts[tile] = Part(
            start,
            result.address(tile, top, first),
            height,
            width,
            [(2, 2), (2, distance)],
            (left.image.pitch, left.row_pitch),
            (result.image.pitch, result.row_pitch),
        )
    yield Phase(
        operation.number,
        "sum",
        emitting(sums, parts),
        [Piece(ALL_TILES, row, rows)],
    )


def _enlarged(operation: Enlarged, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """A copy for each place that a pixel has among those that come of it."""
    source, result = placement.of(operation.source), placement.of(operation.result)
    row, _ = areas.take(1)
    times = operation.times
    sums = copying(operation.stage, operation.source, result.image.pitch // GROUP, row)
    computations = []
    for down, across in np.ndindex(times, times):
        parts = {}
        for tile in TILES:
            rows, columns = (
                _of_phase(own, offset, times)
                for own, offset in zip(result.own(tile), (down, across), strict=True)
            )
            if not (length(rows) and length(columns)):
                continue
            parts[tile] = Part(
                source.address(tile, rows[0], columns[0]),
                result.address(tile, rows[0] * times + down, columns[0] * times + across),
                length(rows),
                length(columns),
                [],
                (source.image.pitch, source.row_pitch),
                (times * result.image.pitch, times * result.row_pitch),
            )
        computations.append((sums, parts))
    yield Phase(
        operation.number,
        "enlargement",
        emitting_all(computations),
        [Piece(ALL_TILES, row, identity())],
    )


def _of_phase(own: Interval, offset: int, times: int) -> Interval:
    """The pixels of the source of which results ``times * pixel + offset`` are within ``own``."""
    return -(-(own[0] - offset) // times), -(-(own[1] - offset) // times)


@dataclass(frozen=True)
class _Run:
    """Results at equal distances whose taps have the same weights, at equal distances, too.

    ``taps`` are one or two, ``weights`` of 128.
    """

    first: int
    count: int
    step: int
    source: int
    source_step: int
    weights: tuple[int, ...]


def _runs(taps: Taps, own: Interval) -> list[_Run]:
    """The results of an interval as runs: of those with the same weights each is a distance on."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for index in range(*own):
        single = taps.first[index] == taps.second[index] or not taps.weights[index]
        weight = taps.weights[index]
        weights: tuple[int, ...] = (_PIXEL,) if single else (_PIXEL - weight, weight)
        groups.setdefault(weights, []).append(index)
    runs = []
    for weights, members in groups.items():
        start = 0
        while start < len(members):
            end = _end_of_run(taps, members, start)
            chosen = members[start:end]
            first, second = chosen[0], chosen[1] if len(chosen) > 1 else chosen[0] + 1
            step = taps.first[second] - taps.first[first] if len(chosen) > 1 else 0
            runs.append(_Run(first, len(chosen), second - first, taps.first[first], step, weights))
            start = end
    return runs


def _end_of_run(taps: Taps, members: Sequence[int], start: int) -> int:
    """How far results are at equal distances, and their taps as well."""
    end = start + 1
    while end < len(members):
        distances = {
            (after - before, taps.first[after] - taps.first[before])
            for before, after in zip(members[start:end], members[start + 1 : end + 1], strict=True)
        }
        if len(distances) > 1:
            break
        end += 1
    return end


_PIXEL = 128


def _interpolated(operation: Interpolated, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """Up to four taps with 16-bit weights: a computation for each set of weights."""
    source, result = placement.of(operation.source), placement.of(operation.result)
    computations: dict[tuple[tuple[int, ...], tuple[int, ...]], list[dict[int, Part]]] = {}
    for tile in TILES:
        own_rows, own_columns = result.own(tile)
        seen: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
        for down, across in product(
            _runs(operation.rows, own_rows), _runs(operation.columns, own_columns)
        ):
            key = down.weights, across.weights
            several = computations.setdefault(key, [])
            if seen[key] == len(several):
                several.append({})
            several[seen[key]][tile] = Part(
                source.address(tile, down.source, across.source),
                result.address(tile, down.first, across.first),
                down.count,
                across.count,
                [
                    (2, 2),
                    (len(across.weights), source.image.pitch),
                    (len(down.weights), source.row_pitch),
                ],
                (across.source_step * source.image.pitch, down.source_step * source.row_pitch),
                (across.step * result.image.pitch, down.step * result.row_pitch),
            )
            seen[key] += 1
    for (down_weights, across_weights), several in computations.items():
        weights = tuple(a * b for a in down_weights for b in across_weights)
        rows = one_hot(weights)
        row, _ = areas.take(len(rows))
        sums = _with_wide_weights(operation.stage, result, row, len(rows))
        yield Phase(
            operation.number,
            "interpolation",
            emitting_all([(sums, parts) for parts in several]),
            [Piece(ALL_TILES, row, rows)],
        )


# --- products -----------------------------------------------------------------------------------

_DIAGONAL = GROUP * GROUP
"""Bytes of the weights of four channels: each on the diagonal, zero points off it."""


def _product(operation: Product, placement: Placement, areas: Areas) -> Iterator[Phase]:
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
    scratch = placement.scratch[operation.number]
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
    return placement.scratch_sizes[operation.number] // _DIAGONAL


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
    copy = OutputStage(
        np.ones(1, np.float32),
        np.zeros(1, np.int32),
        np.float32(-zero),
        np.float32(255 - zero),
        zero,
    )
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


# --- maxima -------------------------------------------------------------------------------------

_SQUARE = 2
"""Pixels on each side of what goes into one row: four bytes of a lane."""


def _greatest(operation: Greatest, placement: Placement, areas: Areas) -> Iterator[Phase]:
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
        # Loops of a traversal: the square, the channels, and two more of the four that there are.
        for number, (line_number, down) in enumerate(np.ndindex(rows, squares[0])):
            corner = source.word(
                tile,
                operation.rows.first(top + line_number) + down * _further(operation.rows.kernel),
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
                        ],
                    ),
                    walk(
                        "NarrowToWide",
                        "wide_write",
                        spread + line_number * columns * each + down * squares[1],
                        [(squares[1], 1), (columns, each)],
                    ),
                    {"row_loop": 3, "transpose": 1},
                )
            )
            del number
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


_MAPPINGS = {
    Convolution: _convolution,
    Channelwise: _channelwise,
    BorderAverage: _border_average,
    WeightedSum: _weighted_sum,
    Joined: joined_phases,
    Product: _product,
    Slice: slice_phases,
    Enlarged: _enlarged,
    Greatest: _greatest,
    Interpolated: _interpolated,
    Softmax: softmax_phases,
    TransposedConvolution: _transposed_convolution,
    Reshaped: reshape_phases,
    Transposed: transpose_phases,
    Repeated: repeat_phases,
    Filled: fill_phases,
    Stacked: stack_phases,
}
