"""Softmaxes of the pixels of an image as phases: the steps of ``softmax_steps``.

Each tile has pixels of its own. The steps keep their results in arrays of narrow memory, pixel
behind pixel, so that one instruction does a step for many pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from darwinn_sim.chip import WORD_BYTES

from darwinn_testbench.compiler.assembler import Assembler, Loops, walk
from darwinn_testbench.compiler.program import ALL_TILES
from darwinn_testbench.compiler.stages import softmax_steps
from darwinn_testbench.compiler.stages.compute import Part
from darwinn_testbench.compiler.stages.operations import Softmax
from darwinn_testbench.compiler.stages.parts import Computation, emitting_all
from darwinn_testbench.compiler.stages.phases import Areas, Phase, Piece
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.rows import AS_IS, GROUP
from darwinn_testbench.compiler.stages.softmax_steps import (
    SIZE,
    SPREAD_LANES,
    Step,
    Weights,
    greatest_of,
    weights,
)
from darwinn_testbench.compiler.stages.storage import TILES, Storage, length
from darwinn_testbench.compiler.stages.writer import merged, write

_MOST_BYTES = 1 << 15
"""Bytes of narrow memory for the steps, at most, unless a pixel needs more."""
_MOST_BLOCKS = 64
"""Parts of an image that are computed one after another, at most."""
_ROW_BYTES = GROUP * GROUP
_ZEROS = Weights.ROWS
"""A further row of constant weights, which are 0."""
_OWN = Weights.ROWS + 1
"""Rows of constant weights: behind them are those that the steps make."""

_Emits = Callable[[Assembler], None]
"""Writes the instructions of a step."""


def softmax_pixels_bytes(operation: Softmax) -> int:
    """Bytes of narrow memory that the steps need."""
    each = _Arrays.of(operation, 0, 1).end
    rows, columns = (-(-side // 4) for side in (operation.source.height, operation.source.width))
    return max(min(_MOST_BYTES, rows * columns * each), each)


def softmax_pixels_phases(
    operation: Softmax, placement: Placement, areas: Areas
) -> Iterator[Phase]:
    """The steps, for as many pixels at a time as there is room for."""
    source, result = placement.of(operation.source), placement.of(operation.result)
    index = operation.result.index
    rows_each = max(_rows(operation), GROUP)
    at_once = min(
        placement.scratch_sizes[index] // _Arrays.of(operation, 0, 1).end,
        (areas.half_rows - _OWN) // rows_each,
    )
    height, width = (max(map(length, axis.own)) for axis in (result.rows, result.columns))
    if not height * width:
        return
    columns = min(width, at_once)
    rows = min(height, at_once // columns) if columns else 0
    if not rows or -(-height // rows) * -(-width // columns) > _MOST_BLOCKS:
        raise ValueError("a softmax of too many elements")
    row, alone = areas.take(_OWN + rows * columns * rows_each)
    arrays = _Arrays.of(operation, placement.scratch[index], rows * columns)
    constant = weights()
    load = [Piece(ALL_TILES, row, np.vstack([constant, np.zeros_like(constant[:1])]))]
    for top in range(0, height, rows):
        for left in range(0, width, columns):
            boxes = _boxes(result, (top, rows), (left, columns))
            steps = _Steps(operation, source, result, arrays, boxes, row, row + _OWN)
            for what, emit in steps.all():
                yield Phase(operation.number, f"softmax: {what}", emit, load, alone=alone)
                load = []


def _rows(operation: Softmax) -> int:
    """Rows of four words that a pixel takes."""
    return -(-operation.source.pitch // _ROW_BYTES)


@dataclass(frozen=True)
class _Array:
    """Bytes of each pixel, from byte ``base`` of narrow memory on."""

    base: int
    size: int

    def behind(self, offset: int) -> _Array:
        """The bytes of each pixel from byte ``offset`` on."""
        return _Array(self.base + offset, self.size)


@dataclass(frozen=True)
class _Arrays:
    """What the steps make of each pixel.

    Attributes:
        values: of the image, with zeros behind the last channel up to a whole row.
        greatest: of each of four channels.
        once: the greatest of all, in four bytes.
        repeated: that once more for each word.
        differences: to the greatest, a byte each.
        powers: the exponentials, 16 bits each.
        root: of the sum, four times.
        square: of that, four times.
        spread: the square on a diagonal.
        end: the first byte behind them.
    """

    values: _Array
    greatest: _Array
    once: _Array
    repeated: _Array
    differences: _Array
    powers: _Array
    root: _Array
    square: _Array
    spread: _Array
    end: int

    @classmethod
    def of(cls, operation: Softmax, base: int, pixels: int) -> _Arrays:
        """The arrays of so many pixels."""
        padded = _rows(operation) * _ROW_BYTES
        sizes = {
            "values": padded,
            "greatest": GROUP,
            "once": GROUP,
            "repeated": padded,
            "differences": padded,
            "powers": padded * SIZE,
            "root": GROUP * SIZE,
            "square": GROUP * SIZE,
            "spread": SPREAD_LANES * SIZE,
        }
        starts = accumulate((size * pixels for size in sizes.values()), initial=base)
        *firsts, end = starts
        arrays = (_Array(first, size) for first, size in zip(firsts, sizes.values(), strict=True))
        return cls(**dict(zip(sizes, arrays, strict=True)), end=end)


@dataclass(frozen=True)
class _Box:
    """Pixels of an image: the first one, and how many rows and columns."""

    top: int
    left: int
    rows: int
    columns: int

    @property
    def pixels(self) -> int:
        return self.rows * self.columns


def _boxes(result: Storage, rows: tuple[int, int], columns: tuple[int, int]) -> Mapping[int, _Box]:
    """What each tile computes of its own pixels: so many from a first row and column on."""
    found = {}
    for tile in TILES:
        (top, bottom), (left, right) = result.own(tile)
        first, start = top + rows[0], left + columns[0]
        height, width = min(rows[1], bottom - first), min(columns[1], right - start)
        if height > 0 and width > 0:
            found[tile] = _Box(first, start, height, width)
    return found


@dataclass(frozen=True)
class _Packing:
    """Arrays of narrow memory become rows of wide memory: ``loops`` are those of a pixel."""

    steps: _Steps
    array: _Array
    loops: Loops
    rows: int
    turned: bool = False

    def __call__(self, program: Assembler) -> None:
        """Write the instructions."""
        by_tile = {}
        for tile, box in self.steps.boxes.items():
            over = (box.pixels, self.array.size // WORD_BYTES)
            by_tile[tile] = merged(
                walk(
                    "NarrowToWide",
                    "narrow_read",
                    self.array.base // WORD_BYTES,
                    [*self.loops, over],
                ),
                walk("NarrowToWide", "wide_write", self.steps.free, [(self.rows * box.pixels, 1)]),
                {"row_loop": 1, "transpose": int(self.turned)},
            )
        write(program, "NarrowToWide", by_tile)


@dataclass(frozen=True)
class _Steps:
    """The steps for some pixels of each tile.

    From ``row`` of wide memory on are the constant weights, from ``free`` on what the steps put
    there.
    """

    operation: Softmax
    source: Storage
    result: Storage
    arrays: _Arrays
    boxes: Mapping[int, _Box]
    row: int
    free: int

    def all(self) -> Iterator[tuple[str, _Emits]]:
        """Each step in a word, and what writes its instructions."""
        a, rows = self.arrays, _rows(self.operation)
        apart = a.repeated.base - a.values.base
        differences = softmax_steps.differences(self.operation, apart)
        exponentials = softmax_steps.exponentials(self.operation)
        root = softmax_steps.root_of_sum(self.operation)
        square = softmax_steps.square(_OWN)
        shares = softmax_steps.shares(_OWN)
        if self._zeros:
            yield "zeros", emitting_all(self._zeros)
        yield "values", self._step(Step(AS_IS, cut=True), self.source, a.values)
        yield "rows of a maximum", _Packing(self, a.values, [(GROUP, 1), (rows, GROUP)], rows, True)
        yield "maxima of four", self._greatest(rows, a.greatest)
        yield "row of four", _Packing(self, a.greatest, [(GROUP, 0)], 1)
        yield "maximum", self._greatest(1, a.once)
        yield "maximum for each word", self._step(softmax_steps.REPEAT, a.once, a.repeated)
        yield "differences", self._step(differences, a.values, a.differences)
        yield "exponentials", self._step(exponentials, a.differences, a.powers)
        yield "sum and root", self._step(root, a.powers, a.root)
        yield "row of the root", _Packing(self, a.root, [(GROUP, 0)], 1)
        yield "square", self._step(square, a.root, a.square, rows=1)
        yield "diagonal", self._step(softmax_steps.diagonal(), a.square, a.spread)
        loops = [*softmax_steps.DIAGONAL_LOOPS]
        yield "rows of the square", _Packing(self, a.spread, loops, GROUP)
        yield "shares", self._step(shares, a.powers, self.result, rows=GROUP)

    @property
    def _zeros(self) -> list[Computation]:
        """Zeros where the values and the exponentials leave room behind the last channel."""
        if not self.operation.source.channels % _ROW_BYTES:
            return []
        a, words = self.arrays, self.operation.source.pitch // GROUP
        last_row = a.values.behind((_rows(self.operation) - 1) * _ROW_BYTES)
        last_powers = a.powers.behind((words - 1) * GROUP * SIZE)
        return [
            self._sums(Step(AS_IS, row=_ZEROS, blocks=blocks, step=0), self.source, target)
            for target, blocks in ((last_row, GROUP), (last_powers, SIZE))
        ]

    def _greatest(self, rows: int, target: _Array) -> _Emits:
        """The greatest of each lane's bytes in some rows of each pixel."""
        sums = greatest_of(rows, self.free)
        return emitting_all([(sums, self._parts(self.arrays.values, target, [], rows))])

    def _step(
        self, step: Step, source: _Array | Storage, target: _Array | Storage, rows: int = 0
    ) -> _Emits:
        return emitting_all([self._sums(step, source, target, rows)])

    def _sums(
        self, step: Step, source: _Array | Storage, target: _Array | Storage, rows: int = 0
    ) -> Computation:
        """A step for each pixel, whose weights are ``rows`` rows further than the last one's."""
        parts = self._parts(source, target, step.read, rows)
        return step.sums(self.operation, self.row), parts

    def _parts(
        self,
        source: _Array | Storage,
        target: _Array | Storage,
        read: Sequence[tuple[int, int]],
        rows: int,
    ) -> dict[int, Part]:
        parts = {}
        for tile, box in self.boxes.items():
            first, next_read = _walked(source, tile, box)
            result, next_write = _walked(target, tile, box)
            steps = (rows, rows * box.columns, 0)
            parts[tile] = Part(
                first,
                result,
                box.rows,
                box.columns,
                read,
                next_read,
                next_write,
                parameter_steps=steps,
            )
        return parts


def _walked(of: _Array | Storage, tile: int, box: _Box) -> tuple[int, tuple[int, int]]:
    """The first byte of the pixels, and the distances from column to column and row to row."""
    if isinstance(of, _Array):
        return of.base, (of.size, of.size * box.columns)
    return of.address(tile, box.top, box.left), (of.image.pitch, of.row_pitch)
