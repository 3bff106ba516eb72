"""Bytes in another order of pixels: other shapes of the same bytes, and stacks of images.

All tiles have the sources as a whole, so each finds there what it needs, and copies it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.isa.builder import Values

from darwinn_testbench.compiler.assembler import walk
from darwinn_testbench.compiler.parameters import UNIT_BYTES
from darwinn_testbench.compiler.program import ALL_TILES
from darwinn_testbench.compiler.stages.compute import Part, Sums
from darwinn_testbench.compiler.stages.operations import (
    Filled,
    Image,
    OutputStage,
    Repeated,
    Reshaped,
    Stacked,
    Transposed,
)
from darwinn_testbench.compiler.stages.parts import Computation, emitting_all
from darwinn_testbench.compiler.stages.phases import Areas, Phase, Piece
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.ring import ALL_LOOPS
from darwinn_testbench.compiler.stages.rows import AS_IS, GROUP, Rows, identity
from darwinn_testbench.compiler.stages.storage import TILES, Interval, Storage, common, length
from darwinn_testbench.compiler.stages.writer import merged, write

_MOST = 64
"""Computations for a tile, at most."""


def _sums(
    stage: OutputStage,
    row: int,
    *,
    taps: int = 1,
    groups: int = 1,
    zero_point: int = 0,
    lanes: int = GROUP,
) -> Sums:
    """Words by themselves, or of ``taps`` others, with a row of weights for each."""
    return Sums(stage, zero_point, 0, taps, groups, GROUP, lanes, GROUP, row, 0, [(taps, 1)])


# --- another shape ------------------------------------------------------------------------------


def reshape_phases(operation: Reshaped, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """The phase of another shape.

    Raises:
        ValueError: it would take too many instructions, or pixels are cut in a way that has none.
    """
    source, result = operation.source, operation.result
    if result.pixels * result.channels < GROUP:
        raise ValueError("a shape of less than a word")
    if _is_dense(source) or source.channels % result.channels == 0:
        return _regrouped(operation, placement, areas)
    if result.is_vector:
        return _flattened(operation, placement, areas)
    if source.channels == 1:
        return _collected(operation, placement, areas)
    raise ValueError("pixels of another shape")


def _is_dense(image: Image) -> bool:
    """Whether its bytes follow one another without padding."""
    return image.is_vector or image.channels == image.pitch


@dataclass(frozen=True)
class _Run:
    """Pixels of a result, from ``first`` on, and the bytes of the source that they come from.

    There are ``columns`` of them ``step`` bytes apart, and that ``rows`` times, ``row_step`` bytes
    apart. The last word of a single one would end ``beyond`` bytes behind the source, if any. Rows
    of the result are ``write_step`` bytes apart; by default they follow one another.
    """

    first: int
    columns: int
    rows: int
    address: int
    step: int
    row_step: int = 0
    beyond: int = 0
    write_step: int | None = None


def _regrouped(operation: Reshaped, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """Pixels of the result whose bytes follow one another in the source."""
    source, result = operation.source, operation.result
    copy, target = placement.copies[source.index], placement.of(result)
    over = -result.channels % GROUP
    shifted = [_shifted(beyond, GROUP - over) for beyond in range(1, over + 1)]
    weights = np.concatenate([identity(), *shifted])
    row, _ = areas.take(len(weights))
    whole = result.channels // GROUP
    by_kind: dict[tuple[int, int], dict[int, Part]] = {}
    for tile in TILES:
        counts: Counter[int] = Counter()
        for place, run in _united(_tile_runs(source, target, tile)):
            part = _part(run, copy.base, place, target)
            by_kind.setdefault((run.beyond, counts[run.beyond]), {})[tile] = part
            counts[run.beyond] += 1
        if max(counts.values(), default=0) > _MOST:
            raise ValueError("a shape of too many rows")
    found: list[Computation] = []
    for (beyond, _), parts in by_kind.items():
        if not beyond:
            found.append((_sums(AS_IS, row, groups=result.pitch // GROUP), parts))
            continue
        if whole:
            found.append((_sums(AS_IS, row, groups=whole), parts))
        # The last word would end behind the source: it is read from where it ends with it.
        moved = {
            tile: _moved(part, whole * GROUP - beyond, whole * GROUP)
            for tile, part in parts.items()
        }
        found.append((_sums(AS_IS, row + beyond, lanes=GROUP - over), moved))
    yield Phase(operation.number, "shape", emitting_all(found), [Piece(ALL_TILES, row, weights)])


def _shifted(first: int, count: int) -> Rows:
    """One row that takes ``count`` bytes from ``first`` on."""
    row = np.zeros((1, UNIT_BYTES), np.uint8)
    lanes = np.arange(count)
    row.reshape(-1, WORD_BYTES)[lanes, lanes + first] = 1
    return row


def _tile_runs(source: Image, target: Storage, tile: int) -> Iterator[tuple[int, _Run]]:
    """What a tile needs, and where in narrow memory it puts it."""
    image = target.image
    (top, end), (left, right) = target.own(tile)
    if not target.own_pixels(tile):
        return
    # A column of pixels is a row, as far as bytes are concerned.
    if image.width == 1:
        lines = [(top, end, target.address(tile, top, 0))]
    else:
        lines = [
            (y * image.width + left, y * image.width + right, target.address(tile, y, left))
            for y in range(top, end)
        ]
    for first, behind, address in lines:
        for run in _runs(source, image, (first, behind)):
            yield address + (run.first - first) * _pixel_step(target), run


def _united(runs: Iterable[tuple[int, _Run]]) -> Iterator[tuple[int, _Run]]:
    """The same with rows that lie at equal distances, in the source and in the result, as one."""
    first: tuple[int, _Run] | None = None
    for place, run in runs:
        if first is None:
            first = place, run
            continue
        start, known = first
        steps = run.address - known.address, place - start
        alike = (known.columns, known.step, 1, 0) == (run.columns, run.step, run.rows, run.beyond)
        single = known.rows == 1 and not known.beyond
        further = known.rows > 1 and known.write_step is not None
        if alike and single:
            united = replace(known, rows=2, row_step=steps[0], write_step=steps[1])
            first = start, united
        elif alike and further and steps == (known.rows * known.row_step, _written(known)):
            first = start, replace(known, rows=known.rows + 1)
        else:
            yield first
            first = place, run
    if first is not None:
        yield first


def _written(run: _Run) -> int:
    """Bytes from the first row of a run to the one behind its last row."""
    return run.rows * (run.write_step or 0)


def _pixel_step(target: Storage) -> int:
    """Bytes from a pixel to the next one in the order of rows."""
    return target.row_pitch if target.image.width == 1 else target.image.pitch


def _runs(source: Image, image: Image, pixels: Interval) -> Iterator[_Run]:
    """Some pixels of a result, as runs at equal distances in the source."""
    size, (first, end) = image.channels, pixels
    over = -size % GROUP
    # The words of the last ones would end behind the source: each is a run by itself.
    begin = min(max(image.pixels - -(-over // size), first), end)
    if not _is_dense(source):
        yield from _runs_of_pixels(source, size, (first, begin))
    elif begin > first:
        yield _Run(first, begin - first, 1, first * size, size)
    for last in range(begin, end):
        if _is_dense(source):
            address = last * size
            beyond = address + size + over - image.pixels * size
        else:
            pixel, part = divmod(last, source.channels // size)
            address, beyond = pixel * source.pitch + part * size, over
        yield _Run(last, 1, 1, address, 0, beyond=beyond)


def _runs_of_pixels(source: Image, size: int, pixels: Interval) -> Iterator[_Run]:
    """The same where each pixel of the source becomes several."""
    first, end = pixels
    times = source.channels // size
    while first < end:
        pixel, part = divmod(first, times)
        rows = (end - first) // times if not part else 0
        columns = times if rows else min(times - part, end - first)
        address = pixel * source.pitch + part * size
        yield _Run(first, columns, max(rows, 1), address, size, source.pitch)
        first += columns * max(rows, 1)


def _part(run: _Run, base: int, place: int, target: Storage) -> Part:
    step = _pixel_step(target)
    return Part(
        base + run.address,
        place,
        run.rows,
        run.columns,
        [],
        (run.step, run.row_step),
        (step, run.columns * step if run.write_step is None else run.write_step),
    )


def _moved(part: Part, source: int, result: int) -> Part:
    return Part(
        part.source + source,
        part.result + result,
        part.rows,
        part.columns,
        part.read,
        part.next_read,
        part.next_write,
    )


def _flattened(operation: Reshaped, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """Pixels that are no whole words become a vector: a word has bytes of several of them."""
    source = operation.source
    base = placement.copies[source.index].base
    target = placement.copies[operation.result.index].base
    channels = source.channels
    period = channels // math.gcd(channels, GROUP)
    if period > _MOST:
        raise ValueError("a shape of too many words")
    elements = source.pixels * channels
    whole = elements // GROUP
    rows: list[Rows] = []
    found: list[Computation] = []
    row, _ = areas.take((period + 1) * GROUP)
    words = [(word, -(-(whole - word) // period), GROUP) for word in range(min(period, whole))]
    if elements % GROUP:
        words.append((whole, 1, elements % GROUP))
    for word, count, lanes in words:
        addresses, weights = _bytes_of_word(source, word, lanes)
        distance = addresses[1] - addresses[0] if len(addresses) > 1 else 0
        part = Part(
            base + addresses[0],
            target + word * GROUP,
            1,
            count,
            [(len(addresses), distance)],
            (period * GROUP // channels * source.pitch, 0),
            (period * GROUP, 0),
        )
        sums = _sums(AS_IS, row + len(rows), taps=len(addresses), lanes=lanes)
        found.append((sums, dict.fromkeys(TILES, part)))
        rows += weights
    piece = Piece(ALL_TILES, row, np.concatenate(rows))
    yield Phase(operation.number, "shape", emitting_all(found), [piece])


def _collected(operation: Reshaped, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """Pixels of one channel become channels."""
    image = operation.result
    copy, target = placement.copies[operation.source.index], placement.of(image)
    step = operation.source.pitch
    steps = image.width * image.channels * step, image.channels * step, step
    row, _ = areas.take(GROUP)
    spans = (0, image.height), (0, image.width)
    found = list(_of_four_pixels(copy, target, steps, spans, 0, row))
    weights = np.concatenate([_lane_of(0, tap) for tap in range(GROUP)])
    piece = Piece(ALL_TILES, row, weights)
    yield Phase(operation.number, "shape", emitting_all(found), [piece])


def _bytes_of_word(source: Image, word: int, lanes: int) -> tuple[list[int], list[Rows]]:
    """Where the bytes of a word are: an address for each pixel that has some, and weights."""
    addresses: dict[int, int] = {}
    weights: dict[int, Rows] = {}
    for lane in range(lanes):
        pixel, channel = divmod(word * GROUP + lane, source.channels)
        first = min(channel, source.pitch - GROUP)
        addresses.setdefault(pixel, pixel * source.pitch + first)
        row = weights.setdefault(pixel, np.zeros((1, UNIT_BYTES), np.uint8))
        offset = pixel * source.pitch + channel - addresses[pixel]
        row.reshape(-1, WORD_BYTES)[lane, offset] = 1
    return list(addresses.values()), list(weights.values())


# --- other orders of axes -----------------------------------------------------------------------


def transpose_phases(operation: Transposed, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """Axes in another order: channels stay whole words, or words have bytes of four pixels."""
    copy, target = placement.copies[operation.source.index], placement.of(operation.result)
    image = operation.result
    source_steps = copy.row_pitch, operation.source.pitch, 1
    steps = tuple(source_steps[axis] for axis in operation.order)
    sizes = image.height, image.width, image.channels
    kept = operation.order[2] == _CHANNELS
    weights: list[Rows] = []
    found: list[Computation] = []
    row, _ = areas.take(GROUP * GROUP)
    if kept:
        weights.append(identity())
        parts = _moved_axes(copy, target, steps, (0, sizes[0]), (0, sizes[1]), [])
        found.append((_sums(AS_IS, row, groups=image.pitch // GROUP), parts))
    else:
        # The channels of the source, which are rows or columns now, are bytes of a word.
        place = operation.order.index(_CHANNELS)
        for first, end, lane in _words_within(operation.source):
            spans = [(0, sizes[0]), (0, sizes[1])]
            spans[place] = (first, end)
            found += _of_four_pixels(copy, target, steps, spans, lane, row + len(weights))
            weights += [_lane_of(lane, tap) for tap in range(GROUP)]
    piece = Piece(ALL_TILES, row, np.concatenate(weights))
    yield Phase(operation.number, "transpose", emitting_all(found), [piece])


_CHANNELS = 2
"""The axis of channels."""


def _of_four_pixels(
    copy: Storage,
    target: Storage,
    steps: Sequence[int],
    spans: Sequence[Interval],
    lane: int,
    row: int,
) -> Iterator[Computation]:
    """Words of a byte of each of four pixels, that is byte ``lane`` of what is read there.

    ``steps`` are bytes of the source from row to row, column to column and channel to channel of
    the result, ``spans`` its rows and columns, and from ``row`` on are weights for four taps.
    """
    groups, rest = divmod(target.image.channels, GROUP)
    for taps, count, word in ((GROUP, groups, 0), (rest, 1, groups)):
        if not (taps and count):
            continue
        parts = _moved_axes(copy, target, steps, spans[0], spans[1], [(taps, steps[2])])
        offset = word * GROUP
        moved = {
            tile: _moved(part, offset * steps[2] - lane, offset) for tile, part in parts.items()
        }
        sums = _sums(AS_IS, row, taps=taps, groups=count, lanes=taps)
        yield replace(sums, read_block=GROUP * steps[2]), moved


def _words_within(source: Image) -> Iterator[tuple[int, int, int]]:
    """Channels whose byte begins a word that does not go beyond the pixel, and each of the others
    with its place in the last word."""
    last = source.pitch - GROUP
    yield 0, min(last + 1, source.channels), 0
    for channel in range(last + 1, source.channels):
        yield channel, channel + 1, channel - last


def _lane_of(byte: int, tap: int) -> Rows:
    """A row that brings a byte of a word to one lane."""
    row = np.zeros((1, UNIT_BYTES), np.uint8)
    row.reshape(-1, WORD_BYTES)[tap, byte] = 1
    return row


def _moved_axes(
    copy: Storage,
    target: Storage,
    steps: Sequence[int],
    rows: Interval,
    columns: Interval,
    read: Sequence[tuple[int, int]],
) -> dict[int, Part]:
    """What each tile reads of some rows and columns of its own, at ``steps`` in the source."""
    parts = {}
    for tile in TILES:
        own = target.own(tile)
        (top, end), (left, right) = common(own[0], rows), common(own[1], columns)
        if end <= top or right <= left:
            continue
        parts[tile] = Part(
            copy.base + top * steps[0] + left * steps[1],
            target.address(tile, top, left),
            end - top,
            right - left,
            read,
            (steps[1], steps[0]),
            (target.image.pitch, target.row_pitch),
        )
    return parts


# --- repeated and constant images ---------------------------------------------------------------


def repeat_phases(operation: Repeated, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """A row, a column or a channel again and again."""
    source, image = operation.source, operation.result
    copy, target = placement.copies[source.index], placement.of(image)
    steps = (
        copy.row_pitch if source.height > 1 else 0,
        source.pitch if source.width > 1 else 0,
    )
    parts = _moved_axes(copy, target, steps, (0, image.height), (0, image.width), [])
    single = source.channels == 1 < image.channels
    weights = np.concatenate([_lane_of(0, lane) for lane in range(GROUP)]) if single else identity()
    if single:
        weights = weights.max(axis=0, keepdims=True)
    row, _ = areas.take(1)
    sums = _sums(AS_IS, row, groups=image.pitch // GROUP)
    sums = replace(sums, read_block=0 if single else GROUP)
    piece = Piece(ALL_TILES, row, weights)
    yield Phase(operation.number, "repetition", emitting_all([(sums, parts)]), [piece])


def fill_phases(operation: Filled, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """The bytes of a constant come as parameters, to each tile its own."""
    target = placement.of(operation.result)
    image = operation.result
    values = np.zeros((image.height, image.width, image.pitch), np.uint8)
    values[:, :, : image.channels] = operation.values
    spreads: dict[int, Values] = {}
    pieces: dict[bytes, Piece] = {}
    sizes = [target.own_pixels(tile) * image.pitch for tile in TILES]
    row, alone = areas.take(-(-max(sizes) // chip.ROW_BYTES))
    for tile in TILES:
        if not sizes[tile]:
            continue
        (top, end), (left, right) = target.own(tile)
        flat = values[top:end, left:right].reshape(-1)
        rows = np.zeros((-(-flat.size // chip.ROW_BYTES), chip.ROW_BYTES), np.uint8)
        rows.reshape(-1)[: flat.size] = flat
        piece = Piece(1 << tile, row, rows)
        before = pieces.get(piece.key)
        pieces[piece.key] = replace(piece, tiles=piece.tiles | (before.tiles if before else 0))
        line = (right - left) * image.pitch // WORD_BYTES
        spreads[tile] = merged(
            walk("WideToNarrow", "wide_read", row, [(len(rows), 1)]),
            walk(
                "WideToNarrow",
                "narrow_write",
                target.word(tile, top, left),
                [(line, 1), (end - top, target.row_pitch // WORD_BYTES)],
            ),
            {"row_loop": ALL_LOOPS},
        )
    yield Phase(
        operation.number,
        "constant",
        lambda program: write(program, "WideToNarrow", spreads),
        list(pieces.values()),
        alone=alone,
    )


# --- stacks -------------------------------------------------------------------------------------


def stack_phases(operation: Stacked, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """Each part copied to its rows or columns, with its own output stage."""
    target = placement.of(operation.result)
    row, _ = areas.take(1)
    found: list[Computation] = []
    offset = 0
    for image, stage in zip(operation.sources, operation.stages, strict=True):
        copy = placement.copies[image.index]
        size = image.width if operation.beside else image.height
        parts = {}
        for tile in TILES:
            own = list(target.own(tile))
            axis = int(operation.beside)
            own[axis] = common(own[axis], (offset, offset + size))
            (top, end), (left, right) = own
            if not (length(own[0]) and length(own[1])):
                continue
            down, across = (0, offset) if operation.beside else (offset, 0)
            parts[tile] = Part(
                copy.address(tile, top - down, left - across),
                target.address(tile, top, left),
                end - top,
                right - left,
                [],
                (image.pitch, copy.row_pitch),
                (target.image.pitch, target.row_pitch),
            )
        sums = _sums(stage, row, groups=image.pitch // GROUP, zero_point=image.zero_point)
        found.append((sums, parts))
        offset += size
    yield Phase(operation.number, "stack", emitting_all(found), [Piece(ALL_TILES, row, identity())])
