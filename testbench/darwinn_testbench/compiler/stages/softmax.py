"""A softmax as phases: steps of 16 bits, as programs on the tiles compute it (docs/chip-facts.md).

A vector is on all tiles, so each tile computes all steps for itself, and none has to tell another
what it found. The greatest value is subtracted from each, the exponentials come from a table, a
second table makes the reciprocal root of their sum, and its square is multiplied with each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from darwinn_sim.chip import WORD_BYTES

from darwinn_testbench.compiler.assembler import Assembler
from darwinn_testbench.compiler.program import ALL_TILES
from darwinn_testbench.compiler.stages import softmax_steps
from darwinn_testbench.compiler.stages.operations import Softmax
from darwinn_testbench.compiler.stages.phases import Areas, Phase, Piece
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.rows import AS_IS, GROUP
from darwinn_testbench.compiler.stages.softmax_steps import (
    SIZE,
    SPREAD_LANES,
    Step,
    Weights,
    greatest_of,
    last_lanes,
    weights,
)
from darwinn_testbench.compiler.stages.vectors import on_all_tiles, pack_rows


@dataclass(frozen=True)
class _Places:
    """Bytes of narrow memory that the steps need: where each of them begins.

    Attributes:
        groups: words of the vector.
        tail: the last channels, if they are no whole word.
        greatest: the greatest of each of four channels, then the greatest of all in four bytes.
        repeated: that once more for each word of the vector.
        differences: to the greatest, a byte each.
        powers: the exponentials, 16 bits each.
        root: of the sum, and its square, four times each; then the square on a diagonal.
        end: the first byte behind them.
    """

    groups: int
    tail: int
    greatest: int
    repeated: int
    differences: int
    powers: int
    root: int
    square: int
    spread: int
    end: int


def _places(groups: int, base: int = 0) -> _Places:
    """Places for a vector of so many words, from byte ``base`` on."""
    words = groups * GROUP
    sizes = {
        "tail": GROUP * GROUP,
        "greatest": 2 * GROUP,
        "repeated": words,
        "differences": words,
        "powers": words * SIZE,
        "root": GROUP * SIZE,
        "square": GROUP * SIZE,
        "spread": SPREAD_LANES * SIZE,
    }
    starts = accumulate(sizes.values(), initial=base)
    return _Places(groups, **dict(zip((*sizes, "end"), starts, strict=True)))


def softmax_bytes(operation: Softmax) -> int:
    """Bytes of narrow memory that a softmax needs for itself."""
    return _places(operation.source.pitch // GROUP).end


def softmax_phases(operation: Softmax, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """The phases of a softmax."""
    places = _places(operation.source.pitch // GROUP, placement.scratch[operation.result.index])
    rows = -(-places.groups // GROUP)
    row, alone = areas.take(Weights.ROWS + max(rows, GROUP))
    steps = _Steps(
        operation,
        places,
        placement.copies[operation.source.index].base,
        placement.copies[operation.result.index].base,
        row,
        row + Weights.ROWS,
    )
    load = [Piece(ALL_TILES, row, weights())]
    cut = operation.source.channels % GROUP
    for what, emit in (
        *([("last channels", steps.tail)] if cut else []),
        ("rows of a maximum", steps.rows),
        ("maxima of four", steps.maxima),
        ("row of four", steps.row_of_four),
        ("maximum", steps.maximum),
        ("maximum for each word", steps.repeat),
        ("differences", steps.subtract),
        ("exponentials", steps.exponentials),
        ("sum and root", steps.sum),
        ("row of the root", steps.row_of_root),
        ("square", steps.multiply),
        ("diagonal", steps.spread_out),
        ("rows of the square", steps.rows_of_square),
        ("shares", steps.shares),
    ):
        yield Phase(operation.number, f"softmax: {what}", emit, load, alone=alone)
        load = []


@dataclass(frozen=True)
class _Steps:
    """The steps, each as what writes its instructions.

    ``source`` and ``result`` are bytes of narrow memory; from ``row`` of wide memory on are the
    constant weights, from ``free`` on what the steps put there.
    """

    operation: Softmax
    places: _Places
    source: int
    result: int
    row: int
    free: int

    @property
    def _full_rows(self) -> int:
        """Rows of four whole words."""
        return self.operation.source.channels // (GROUP * GROUP)

    @property
    def _tail_words(self) -> int:
        return self.places.groups - self._full_rows * GROUP

    # --- the greatest ---------------------------------------------------------------------------

    def tail(self, program: Assembler) -> None:
        """Copy the last words: behind the last channel there shall be zeros, and so there shall be
        in the last word of the exponentials, of which these write only what they need."""
        start = self.source + self._full_rows * GROUP * GROUP
        copy = Step(AS_IS, blocks=self._tail_words, cut=True)
        self._compute(program, copy, start, self.places.tail)
        zeros = Step(softmax_steps.plain(0, 0), blocks=1)
        self._compute(program, zeros, start, self.places.root - WORD_BYTES)

    def rows(self, program: Assembler) -> None:
        """Four words become a row: four lanes with four bytes each to compare."""
        full, tail = self._full_rows, self.source
        if full:
            pack_rows(
                program, self.source, [(GROUP, 1), (full, GROUP)], self.free, full, turned=True
            )
        if self._tail_words:
            cut = last_lanes(self.operation) < GROUP
            tail = self.places.tail if cut else self.source + full * GROUP * GROUP
            pack_rows(program, tail, [(self._tail_words, 1)], self.free + full, 1, turned=True)

    def maxima(self, program: Assembler) -> None:
        """The greatest of every fourth channel."""
        self._greatest(program, -(-self.places.groups // GROUP), self.places.greatest)

    def row_of_four(self, program: Assembler) -> None:
        """All four of them in each of four lanes."""
        pack_rows(program, self.places.greatest, [(GROUP, 0)], self.free, 1)

    def maximum(self, program: Assembler) -> None:
        """The greatest of them, in four bytes."""
        self._greatest(program, 1, self.places.greatest + GROUP)

    def repeat(self, program: Assembler) -> None:
        """The same for each word of the vector."""
        greatest = self.places.greatest + GROUP
        self._compute(program, softmax_steps.REPEAT, greatest, self.places.repeated)

    # --- the steps of the softmax ---------------------------------------------------------------

    def subtract(self, program: Assembler) -> None:
        """255 less the difference to the greatest."""
        step = softmax_steps.differences(self.operation, self.places.repeated - self.source)
        self._compute(program, step, self.source, self.places.differences)

    def exponentials(self, program: Assembler) -> None:
        """The exponential of each difference: behind the last one there are zeros."""
        step = softmax_steps.exponentials(self.operation)
        self._compute(program, step, self.places.differences, self.places.powers)

    def sum(self, program: Assembler) -> None:
        """The inverse root of the sum of all, in four lanes."""
        step = softmax_steps.root_of_sum(self.operation)
        self._compute(program, step, self.places.powers, self.places.root)

    def row_of_root(self, program: Assembler) -> None:
        """The root in each of four lanes."""
        pack_rows(program, self.places.root, [(GROUP, 0)], self.free, 1)

    def multiply(self, program: Assembler) -> None:
        """The square of the root."""
        step = softmax_steps.square(Weights.ROWS)
        self._compute(program, step, self.places.root, self.places.square)

    def spread_out(self, program: Assembler) -> None:
        """The square on the diagonal of 4 x 4 words, and zeros off it."""
        self._compute(program, softmax_steps.diagonal(), self.places.square, self.places.spread)

    def rows_of_square(self, program: Assembler) -> None:
        """A row for each of four channels: the square in its lane."""
        pack_rows(program, self.places.spread, softmax_steps.DIAGONAL_LOOPS, self.free, GROUP)

    def shares(self, program: Assembler) -> None:
        """Each exponential times the square: 256 times the share."""
        step = softmax_steps.shares(Weights.ROWS)
        self._compute(program, step, self.places.powers, self.result)

    # --- instructions ---------------------------------------------------------------------------

    def _greatest(self, program: Assembler, rows: int, target: int) -> None:
        on_all_tiles(program, greatest_of(rows, self.free), self.source, target, [])

    def _compute(self, program: Assembler, step: Step, source: int, target: int) -> None:
        on_all_tiles(program, step.sums(self.operation, self.row), source, target, step.read)
