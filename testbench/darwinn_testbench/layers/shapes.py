"""Shapes, windows and strides of a layer, from the addresses that its instructions walk.

A tensor instruction is nested loops over addresses: which of them are positions of an image, which
blocks of channels, and which are summed over stands in it; how far apart things lie says the rest.
Traversals are normalised, so that loops over adjacent memory are merged: where rows of an image
follow each other without a gap, its width comes from the layer that is read, or stays unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from darwinn_sim import chip
from darwinn_sim.analysis.operands import group_operands
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.units import output_stage, tensor_cells
from darwinn_sim.units.tables import Tables
from darwinn_sim.units.tensor_records import Parameters
from numpy.typing import NDArray

Places = NDArray[np.int64]
Shape = tuple[int, int, int]
"""Rows, columns and channels."""

_MOST_STRIDE = 16


@dataclass(frozen=True, eq=False)
class Walk:
    """What one tensor instruction computes on each tile.

    ``reads`` and ``writes`` are byte addresses of the positions in the order of memory: of the
    first activation that is read for each, and of its first result. ``block_reads`` are those of
    the blocks of lanes at one position. ``taps`` are offsets of what is read for one group of
    results, each once, ascending; ``order`` is the place among them of each operand of
    :func:`group_operands`. ``grid``: rows and columns of the positions; None if they lie at equal
    distances, so that the memory does not show them.
    """

    channels: int
    reads: Places
    writes: Places
    block_reads: Places
    taps: Places
    order: Places
    grid: tuple[int, int] | None

    @property
    def positions(self) -> int:
        """How many positions a tile computes."""
        return len(self.writes)


def walk(tables: Tables, row: int) -> Walk | None:
    """The walk of the tensor instruction in ``row``; None if its loops are not regular."""
    instruction, place = tables.tensor[row], tables.tensor_plan.place[row]
    main = instruction["main"]
    sizes = [int(limit) + 1 for limit in main["limit"][: int(main["loops"])]]
    block_loop = int(instruction["output_block_loop"])
    iterations, first = int(place["iterations"]), int(place["iteration"])
    if main["alternate_loop"] or math.prod(sizes) != iterations:
        return None
    kept = [k for k in range(len(sizes)) if not instruction["reduction_loops"] >> k & 1]
    positions = _corners(sizes, [k for k in kept if k < block_loop])
    blocks = _corners(sizes, [k for k in kept if k >= block_loop])
    starts = _first_words(tables, row)
    if len(starts) != len(positions) * len(blocks):
        return None
    operands = tables.tensor_plan.operand[first : first + iterations]
    words = int(place["write"]) + starts[: len(positions)]
    # Some programs compute a position again, into the same place.
    writes, order, _ = _distinct(tables.tensor_plan.write_address[words].astype(np.int64))
    taps, _, inverse = _distinct(group_operands(tables, row))
    lanes = int(instruction["block_lanes"]) + 1
    reads = operands[positions[order]].astype(np.int64)
    if instruction["opcode"] == tensor_cells.INTERPOLATE:
        # What it reads does not lie at equal distances; its loops say where rows end.
        grid = _interpolated(instruction, sizes, [k for k in kept if k < block_loop], len(writes))
    else:
        grid = _grid(writes) or _grid(reads)
    return Walk(
        channels=(len(blocks) - 1) * lanes + int(instruction["last_block_lanes"]) + 1,
        reads=reads,
        writes=writes,
        block_reads=operands[blocks].astype(np.int64),
        taps=taps - taps[0],
        order=inverse,
        grid=grid,
    )


def _distinct(values: Places) -> tuple[Places, Places, Places]:
    """Each value once, ascending, the first place of each, and which of them each place has."""
    if (values[1:] > values[:-1]).all():
        # As most of them are: nothing has to be sorted.
        places = np.arange(len(values))
        return values, places, places
    return np.unique(values, return_index=True, return_inverse=True)


def _interpolated(
    instruction: Parameters, sizes: Sequence[int], loops: Sequence[int], positions: int
) -> tuple[int, int] | None:
    """Rows and columns that an interpolation computes, if they are all of its ``positions``.

    ``loops`` are those of the positions.
    """
    axes = [int(instruction[f"{axis}_loop"]) for axis in ("y", "x")]
    if axes[0] == axes[1] or not set(axes) <= set(loops):
        return None
    rows, columns = (sizes[loop] for loop in axes)
    return (rows, columns) if rows * columns == positions else None


def _corners(sizes: Sequence[int], loops: Iterable[int]) -> Places:
    """Iterations at which all loops but ``loops`` stand at their start, in order."""
    found = np.zeros(1, np.int64)
    for loop in loops:
        if sizes[loop] == 1:
            continue
        step = math.prod(sizes[:loop])
        found = np.add.outer(step * np.arange(sizes[loop]), found).ravel()
    return found


def _first_words(tables: Tables, row: int) -> Places:
    """Number of the first result word of each group of results."""
    place, instruction = tables.tensor_plan.place[row], tables.tensor[row]
    first = int(place["segment"])
    segments = tables.tensor_plan.segment[first : first + int(place["segments"])]
    lanes = segments["lanes"][segments["outputs"] != 0].astype(np.int64)
    words = -(
        -lanes * (2 if instruction["function"] & output_stage.OUTPUT_16BIT else 1) // WORD_BYTES
    )
    first_words: Places = np.cumsum(words) - words
    return first_words


def _grid(addresses: Places) -> tuple[int, int] | None:
    """Rows and columns of ascending addresses whose rows have a gap between them."""
    steps = np.diff(addresses)
    if len(steps) == 0:
        return 1, 1
    (ends,) = np.nonzero(steps != steps[0])
    if not len(ends):
        return None
    columns = int(ends[0]) + 1
    rows, rest = divmod(len(addresses), columns)
    if rest or (np.diff(addresses.reshape(rows, columns), axis=1) != steps[0]).any():
        return None
    return rows, columns


@dataclass(frozen=True, eq=False)
class Placement:
    """A tensor in the tiles.

    ``shape`` is that of the whole; ``heights`` and ``widths`` are the rows and columns that each
    row and column of the grid of tiles holds. ``spread``: it is one position whose channels are
    spread over the tiles instead.
    """

    shape: Shape
    heights: tuple[int, ...]
    widths: tuple[int, ...]
    spread: bool = False


def place_image(walks: Mapping[int, Walk], sources: Iterable[Placement]) -> Placement | None:
    """Where an image lies of which ``walks`` tells each tile's part; None if that is not known.

    Where the memory does not show where rows end, they are as in the one of ``sources`` whose
    positions are spread in the same way.
    """
    channels = {each.channels for each in walks.values()}
    positions = np.zeros((chip.GRID_ROWS, chip.GRID_COLUMNS), np.int64)
    for tile, each in walks.items():
        positions[divmod(tile, chip.GRID_COLUMNS)] = each.positions
    if len(channels) != 1:
        return None
    for heights, widths in _extents(positions, walks, sources):
        if (np.outer(heights, widths) == positions).all():
            shape = (int(heights.sum()), int(widths.sum()), channels.pop())
            return Placement(shape, tuple(heights.tolist()), tuple(widths.tolist()))
    return None


def _extents(
    positions: NDArray[np.int64], walks: Mapping[int, Walk], sources: Iterable[Placement]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Candidates for the rows and columns that the grid's rows and columns hold."""
    for tile in sorted(walks, key=lambda each: -walks[each].positions):
        grid = walks[tile].grid
        if grid is not None:
            row, column = divmod(tile, chip.GRID_COLUMNS)
            # One tile decides: all in its row have its height, all in its column its width.
            yield positions[:, column] // grid[1], positions[row] // grid[0]
            return
    for source in sources:
        if not source.spread:
            yield np.array(source.heights), np.array(source.widths)


@dataclass(frozen=True)
class Window:
    """What a convolution or a pool takes for one position, rows first; None is not known."""

    kernel: tuple[int, int] | None = None
    stride: tuple[int, int] | None = None
    dilation: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class _Taps:
    """Rows and columns of a window, and how far apart they lie in bytes."""

    rows: int
    columns: int
    row_step: int
    column_step: int


def window(
    walks: Mapping[int, Walk],
    made: Mapping[int, Sequence[NDArray[np.bool_]]],
    *,
    pitch: int,
    each_channel: bool,
    grid: tuple[int, int] | None,
    sizes: tuple[Shape, Shape] | None,
) -> Window:
    """The window of a layer.

    Args:
        walks: what each tile computes.
        made: by tile, which operands of groups of results are no padding (``provenance.Reads``).
        pitch: bytes from one position of the input to the next.
        each_channel: a result takes one word of channels of each tap instead of all.
        grid: rows and columns of the tile with the most positions, or None.
        sizes: shapes of the whole input and output, or None.
    """
    largest = max(walks.values(), key=lambda each: each.positions)
    chosen = _tap_starts(largest, pitch, each_channel)
    taps = None if chosen is None else _rectangle(largest.taps[chosen], _masks(walks, made, chosen))
    if taps is None:
        return Window()
    columns, rest = divmod(taps.column_step, pitch)
    if rest:
        return Window()
    dilation = max(columns, 1) if taps.columns > 1 else 1
    kernel = taps.rows, taps.columns
    row_pitch = taps.row_step // dilation if taps.rows > 1 else 0
    steps = (0, 0) if grid is None else _steps(largest.reads, grid)
    strides = tuple(
        _stride(step, unit, None if sizes is None else (sizes[0][axis], sizes[1][axis]), reach)
        for axis, (step, unit, reach) in enumerate(
            zip(steps, (row_pitch, pitch), ((n - 1) * dilation + 1 for n in kernel), strict=True)
        )
    )
    known = strides[0] is not None and strides[1] is not None
    return Window(
        kernel,
        (strides[0] or 0, strides[1] or 0) if known else None,
        (dilation if taps.rows > 1 else 1, dilation if taps.columns > 1 else 1),
    )


def _tap_starts(walk_: Walk, pitch: int, each_channel: bool) -> Places | None:
    """Indices of the taps at which a position of the input begins; None if they are not whole."""
    if each_channel:
        return np.arange(len(walk_.taps))
    starts: list[int] = []
    expected = 0
    for k, offset in enumerate(walk_.taps.tolist()):
        if not starts or offset >= expected:
            starts.append(k)
            expected = offset + pitch
    lengths = np.diff([*starts, len(walk_.taps)])
    return np.array(starts) if (lengths == lengths[0]).all() else None


def _masks(
    walks: Mapping[int, Walk], made: Mapping[int, Sequence[NDArray[np.bool_]]], chosen: Places
) -> list[NDArray[np.bool_]]:
    """For groups of results at the ends of tiles: which taps are no padding."""
    masks: list[NDArray[np.bool_]] = []
    for tile, flags in made.items():
        order = walks[tile].order
        for each in flags:
            if len(each) == len(order) and int(order.max()) >= int(chosen.max()):
                by_tap = np.zeros(int(order.max()) + 1, np.bool_)
                by_tap[order] = each
                masks.append(by_tap[chosen])
    return masks


def _rectangle(offsets: Places, masks: Sequence[NDArray[np.bool_]]) -> _Taps | None:
    """Offsets of taps as rows and columns; None if they are none, or it is not known which."""
    if len(offsets) == 1:
        return _Taps(1, 1, 0, 0)
    steps = np.diff(offsets)
    (ends,) = np.nonzero(steps != steps[0])
    step = int(steps[0])
    if len(ends):
        columns = int(ends[0]) + 1
        rows, rest = divmod(len(offsets), columns)
        row_step = int(offsets[columns])
        whole = np.add.outer(row_step * np.arange(rows), step * np.arange(columns)).ravel()
        if rest or not np.array_equal(whole, offsets):
            return None
        return _Taps(rows, columns, row_step, step)
    # Rows follow each other without a gap: padding shows where they end.
    shown = [mask for mask in masks if not mask.all()]
    counts = [n for n in range(1, len(offsets) + 1) if len(offsets) % n == 0]
    found = [n for n in counts if all(_is_rectangle(mask.reshape(n, -1)) for mask in shown)]
    if not shown or len(found) != 1:
        return None
    columns = len(offsets) // found[0]
    return _Taps(found[0], columns, step * columns, step)


def _is_rectangle(mask: NDArray[np.bool_]) -> bool:
    """Whether what is set is a rectangle without holes, at a place where padding leaves one."""
    rows, columns = mask.any(axis=1), mask.any(axis=0)
    if not rows.any() or (np.outer(rows, columns) != mask).any():
        return False
    return all(np.count_nonzero(np.diff(np.flatnonzero(each)) > 1) == 0 for each in (rows, columns))


def _steps(reads: Places, grid: tuple[int, int]) -> tuple[int, int]:
    """Bytes from one row, and from one column, of positions to the next; 0 if there is one."""
    rows, columns = grid
    down = int(reads[columns] - reads[0]) if rows > 1 else 0
    across = int(reads[1] - reads[0]) if columns > 1 else 0
    return down, across


def _stride(step: int, unit: int, sizes: tuple[int, int] | None, reach: int) -> int | None:
    """Stride along an axis: from the addresses, or the only one that gives the output's size."""
    if step and unit:
        stride, rest = divmod(step, unit)
        return None if rest else stride
    if sizes is None:
        return None
    given, wanted = sizes
    fitting = [
        stride
        for stride in range(1, _MOST_STRIDE)
        if wanted in (-(-given // stride), (given - reach) // stride + 1)
    ]
    return fitting[0] if len(fitting) == 1 or given == wanted else None
