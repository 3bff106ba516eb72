"""Operations of each channel alone as phases: pools, means, copies, depthwise convolutions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.isa.codes import TileFlag

from darwinn_testbench.compiler.assembler import Assembler, Watcher, signal, wait, walk
from darwinn_testbench.compiler.program import ALL_TILES
from darwinn_testbench.compiler.stages.compute import HEAD_ROWS, Part, Sums, cycles_of
from darwinn_testbench.compiler.stages.needs import is_shared_out, needs_whole
from darwinn_testbench.compiler.stages.one_pixel import Vector, met_by_one, tell
from darwinn_testbench.compiler.stages.operations import (
    BorderAverage,
    Channelwise,
    OutputStage,
    Reach,
)
from darwinn_testbench.compiler.stages.parts import emitting, emitting_all, parts_of
from darwinn_testbench.compiler.stages.phases import Areas, Phase, Piece
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.ring import Share, gather
from darwinn_testbench.compiler.stages.rows import (
    GROUP,
    group_rows,
    identity,
    packed,
)
from darwinn_testbench.compiler.stages.storage import TILES, Interval


def channelwise_phases(
    operation: Channelwise, placement: Placement, areas: Areas
) -> Iterator[Phase]:
    """The phases of an operation of each channel alone."""
    if is_shared_out(operation):
        return _shared_reduction(operation, placement, areas)
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


def border_average_phases(
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
    pitch = source.image.pitch

    def start(first: int) -> int:
        (top, _), (left, _) = met_by_one(operation)
        return source.address(0, top, left) + first * GROUP

    yield from _reduced(operation, placement, areas, start, (pitch, source.row_pitch))


def _reduced(
    operation: Channelwise,
    placement: Placement,
    areas: Areas,
    start: Callable[[int], int],
    steps: tuple[int, int],
) -> Iterator[Phase]:
    """The sums of each tile's channels, and the results to all tiles.

    ``start`` says where the window begins of groups of channels from a certain one on; ``steps``
    are bytes from pixel to pixel and from row to row.
    """
    result = placement.copies[operation.result.index]
    row, _ = areas.take(1)
    by_size: dict[int, dict[int, Part]] = {}
    shares = dict(enumerate(shares_of(operation)))
    vector = Vector(
        {tile: result.base + first * GROUP for tile, (first, _) in shares.items()},
        {tile: count * GROUP for tile, (_, count) in shares.items()},
    )
    for tile, (first, count) in shares.items():
        by_size.setdefault(count, {})[tile] = Part(
            start(first),
            vector.made(tile),
            1,
            1,
            [(operation.columns.kernel, steps[0]), (operation.rows.kernel, steps[1])],
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
    yield tell(operation.number, vector, areas)


def shares_of(operation: Channelwise) -> list[tuple[int, int]]:
    """The groups of channels of each tile that has some: the first one, and how many."""
    groups = operation.result.pitch // GROUP
    share = -(-groups // chip.TILES)
    return [(first, min(share, groups - first)) for first in range(0, groups, share)]


def _shared_reduction(
    operation: Channelwise, placement: Placement, areas: Areas
) -> Iterator[Phase]:
    """The same of an image too large for all tiles: each gets its own channels of all pixels."""
    source = placement.of(operation.source)
    scratch = placement.scratch[operation.result.index]
    width = source.image.width
    pixel, line = source.image.pitch // WORD_BYTES, source.row_pitch // WORD_BYTES
    shared = shares_of(operation)
    share = shared[0][1]
    for target, (first, count) in enumerate(shared):
        shares = []
        for tile in TILES:
            (top, end), (left, right) = source.own(tile)
            if not source.own_pixels(tile):
                continue
            shares.append(
                Share(
                    tile,
                    source.word(tile, top, left) + first,
                    [(count, 1), (right - left, pixel), (end - top, line)],
                    scratch // WORD_BYTES + (top * width + left) * share,
                    [(count, 1), (right - left, share), (end - top, width * share)],
                )
            )
        row, alone = areas.reuse(sum(each.rows for each in shares))
        yield Phase(
            operation.number,
            "channels to their tiles",
            partial(gather, shares=shares, first_row=row, targets=1 << target),
            uses_ring=True,
            alone=alone,
        )
    (top, _), (left, _) = met_by_one(operation)
    begin = scratch + (top * width + left) * share * GROUP
    steps = share * GROUP, width * share * GROUP
    yield from _reduced(operation, placement, areas, lambda _: begin, steps)


def shared_bytes(operation: Channelwise) -> int:
    """Bytes of narrow memory for a tile's channels of all pixels."""
    return operation.source.pixels * shares_of(operation)[0][1] * GROUP


def _groups_at_once(taps: int, areas: Areas) -> int:
    # The packed rows are beside those that they become.
    return areas.half_rows // (_SMALL_ROWS + 1) * _SMALL_ROWS // (taps + HEAD_ROWS)


_SMALL_ROWS = chip.ROW_WORDS // GROUP
"""Rows of four words in a full row."""


def _rows_of(small_rows: int) -> int:
    """Rows that packed ones take, with those that they become."""
    return -(-small_rows // _SMALL_ROWS) * (1 + _SMALL_ROWS)


def _depthwise(operation: Channelwise, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """Four channels a step. Their rows have 4 words: they come in packed and are spread first."""
    assert operation.weights is not None
    source, result = placement.of(operation.source), placement.of(operation.result)
    weights, window = operation.weights, (operation.rows, operation.columns)
    if needs_whole(operation):
        source = placement.copies[operation.source.index]
        (top, own_rows), (left, own_columns) = met_by_one(operation)
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
    scratch = placement.scratch[operation.result.index] // WORD_BYTES
    for first in range(0, len(blocks), at_once):
        chunk = blocks[first : first + at_once]
        rows = packed(chunk)
        row, alone = areas.take(_rows_of(len(rows) * _SMALL_ROWS), 2 * _rows_of(each))
        yield Phase(
            operation.number,
            "unpacking",
            _unpacking(row, len(rows), scratch, row + len(rows)),
            [Piece(ALL_TILES, row, rows)],
            alone=alone,
            early=True,
            cycles=len(rows) * chip.ROW_WORDS,
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
        yield Phase(
            operation.number, "depthwise", emitting(sums, parts), cycles=cycles_of(sums, parts)
        )


def _each_channel(stage: OutputStage, channels: int) -> OutputStage:
    """A stage that has factors and biases for each channel, even if there is but one."""
    factors = np.broadcast_to(stage.factors, max(channels, 2))
    bias = np.broadcast_to(stage.bias, max(channels, 2))
    return OutputStage(factors, bias, stage.low, stage.high, stage.zero_point)


def _unpacking(row: int, rows: int, scratch: int, target: int) -> Callable[[Assembler], None]:
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
        program.tile(
            "NarrowToWide",
            ALL_TILES,
            walk(
                "NarrowToWide",
                "narrow_read",
                scratch,
                [(GROUP, 1), (per_row, GROUP), (rows, chip.ROW_WORDS)],
            ),
            walk("NarrowToWide", "wide_write", target, [(per_row, 1), (rows, per_row)]),
            wait("NarrowToWide", Watcher(TileFlag.WIDE_TO_NARROW_WRITE, depth=2, expected=1)),
            row_loop=1,
        )

    return emit


def depthwise_bytes(operation: Channelwise, areas: Areas) -> int:
    """Bytes of narrow memory that a channelwise operation needs: to unpack its parameters, or for
    channels of a large image."""
    if is_shared_out(operation):
        return shared_bytes(operation)
    if operation.weights is None:
        return 0
    taps = operation.rows.kernel * operation.columns.kernel
    groups = min(_groups_at_once(taps, areas), operation.source.pitch // GROUP)
    small = groups * (taps + HEAD_ROWS)
    return -(-small * GROUP // chip.ROW_WORDS) * chip.ROW_BYTES
