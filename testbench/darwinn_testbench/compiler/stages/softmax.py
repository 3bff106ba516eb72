"""A softmax as phases: steps of 16 bits, as programs on the tiles compute it (docs/chip-facts.md).

A vector is on all tiles, so each tile computes all steps for itself, and none has to tell another
what it found. The greatest value is subtracted from each, the exponentials come from a table, a
second table makes the reciprocal root of their sum, and its square is multiplied with each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from darwinn_reference.tflite.softmax import EXPONENTIAL_UNIT, SHARE_FACTOR, SQUARE_LIMIT
from darwinn_sim.chip import WORD_BYTES

from darwinn_testbench.compiler.assembler import Assembler
from darwinn_testbench.compiler.program import ALL_TILES
from darwinn_testbench.compiler.stages.compute import Sums
from darwinn_testbench.compiler.stages.operations import FunctionTable, OutputStage, Softmax
from darwinn_testbench.compiler.stages.phases import Areas, Phase, Piece
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.rows import AS_IS, GROUP, Rows
from darwinn_testbench.compiler.stages.tables import FUNCTIONS, table_of
from darwinn_testbench.compiler.stages.vectors import on_all_tiles, pack_rows

HIGHEST = 255
SIZE = 2
"""Bytes of a number of 16 bits."""
SPREAD_LANES = 8 * GROUP
_DIAGONAL = (GROUP + 1) * 2
"""Lanes of 16 bits from one element of the diagonal of 4 x 4 words to the next one."""


class Weights:
    """Rows of constant weights, and how many there are.

    ``COPY`` takes four bytes as they are. ``ADD`` and ``SUBTRACT`` have weights of 1 and -1 for a
    zero point of 1. ``PAIR`` adds two numbers of 16 bits in each lane. ``SPREAD`` brings one to the
    diagonal.
    """

    COPY, ADD, SUBTRACT, PAIR, SPREAD, ROWS = range(6)


def weights() -> Rows:
    """The constant rows, a lane for each word."""
    rows = np.zeros((Weights.ROWS, SPREAD_LANES, WORD_BYTES), np.uint8)
    channels = np.arange(GROUP)
    rows[Weights.COPY, channels, channels] = 1
    rows[Weights.ADD : Weights.SUBTRACT + 1] = 1
    rows[Weights.ADD, channels, channels] = 2
    rows[Weights.SUBTRACT, channels, channels] = 0
    rows[Weights.PAIR, :GROUP, :2] = 1
    rows[Weights.SPREAD, channels * _DIAGONAL, 0] = 1
    return rows.reshape(Weights.ROWS, -1)


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
    def _last(self) -> int:
        """Channels in the last word."""
        return (self.operation.source.channels - 1) % GROUP + 1

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
        stage = AS_IS
        self._compute(program, stage, start, self.places.tail, blocks=self._tail_words, cut=True)
        self._compute(program, plain(0, 0), start, self.places.root - WORD_BYTES, blocks=1)

    def rows(self, program: Assembler) -> None:
        """Four words become a row: four lanes with four bytes each to compare."""
        full, tail = self._full_rows, self.source
        if full:
            pack_rows(
                program, self.source, [(GROUP, 1), (full, GROUP)], self.free, full, turned=True
            )
        if self._tail_words:
            cut = self._last < GROUP
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
        self._compute(
            program,
            AS_IS,
            self.places.greatest + GROUP,
            self.places.repeated,
            step=0,
        )

    # --- the steps of the softmax ---------------------------------------------------------------

    def subtract(self, program: Assembler) -> None:
        """255 less the difference to the greatest."""
        self._compute(
            program,
            stage_with(self.operation.factor, -HIGHEST, 0, zero_point=HIGHEST),
            self.source,
            self.places.differences,
            row=Weights.ADD,
            read=[(2, self.places.repeated - self.source)],
            weight_zero_point=1,
            cut=True,
        )

    def exponentials(self, program: Assembler) -> None:
        """The exponential of each difference, 65535 times: behind the last one there are zeros."""
        table, function = table_of("exponential"), FUNCTIONS["exponential"]
        ends = function.first, function.last
        self._compute(
            program,
            stage_with(self.operation.scale, *ends, table=table, wide=True),
            self.places.differences,
            self.places.powers,
            zero_point=HIGHEST,
            cut=True,
        )

    def sum(self, program: Assembler) -> None:
        """46340 by the root of the sum of all, in four lanes."""
        table = table_of("inverse root")
        pairs = -(-self.operation.source.channels // 2)
        self._compute(
            program,
            stage_with(EXPONENTIAL_UNIT, -np.inf, np.inf, table=table, wide=True),
            self.places.powers,
            self.places.root,
            row=Weights.PAIR,
            read=[(pairs, 2 * SIZE)],
            row_step=0,
            blocks=1,
            wide_values=True,
        )

    def row_of_root(self, program: Assembler) -> None:
        """The root in each of four lanes."""
        pack_rows(program, self.places.root, [(GROUP, 0)], self.free, 1)

    def multiply(self, program: Assembler) -> None:
        """The square of the root, in 1 / 32768."""
        self._compute(
            program,
            stage_with(EXPONENTIAL_UNIT, 0, SQUARE_LIMIT, wide=True),
            self.places.root,
            self.places.square,
            row=Weights.ROWS,
            blocks=1,
            wide_values=True,
            wide_weights=True,
        )

    def spread_out(self, program: Assembler) -> None:
        """The square on the diagonal of 4 x 4 words, and zeros off it."""
        self._compute(
            program,
            stage_with(np.float32(1), -np.inf, np.inf, wide=True),
            self.places.square,
            self.places.spread,
            row=Weights.SPREAD,
            blocks=1,
            lanes=SPREAD_LANES,
            wide_values=True,
        )

    def rows_of_square(self, program: Assembler) -> None:
        """A row for each of four channels: the square in its lane."""
        loops = [(GROUP, 1), (GROUP, GROUP)]
        pack_rows(program, self.places.spread, loops, self.free, GROUP)

    def shares(self, program: Assembler) -> None:
        """Each exponential times the square: 256 times the share."""
        self._compute(
            program,
            stage_with(SHARE_FACTOR, 0, HIGHEST),
            self.places.powers,
            self.result,
            row=Weights.ROWS,
            read=[(GROUP, SIZE)],
            step=GROUP * SIZE,
            wide_values=True,
            wide_weights=True,
            cut=True,
        )

    # --- instructions ---------------------------------------------------------------------------

    def _greatest(self, program: Assembler, rows: int, target: int) -> None:
        stage = AS_IS
        sums = Sums(stage, 0, 0, rows, 1, GROUP, GROUP, 0, self.free, 0, [(rows, 1)], maximum=True)
        on_all_tiles(program, sums, self.source, target, [])

    def _compute(
        self,
        program: Assembler,
        stage: OutputStage,
        source: int,
        target: int,
        *,
        row: int = Weights.COPY,
        read: Sequence[tuple[int, int]] = ((1, 0),),
        row_step: int = 1,
        step: int = GROUP,
        blocks: int = 0,
        lanes: int = GROUP,
        zero_point: int = 0,
        weight_zero_point: int = 0,
        wide_values: bool = False,
        wide_weights: bool = False,
        cut: bool = False,
    ) -> None:
        """Sums with weights from row ``row`` of those of the softmax on.

        ``read`` and ``row_step`` are those of a sum; ``step`` is the distance from block to block,
        ``cut`` whether the last one ends with the last channel.
        """
        (taps, _), *_ = read
        sums = Sums(
            stage,
            zero_point,
            weight_zero_point,
            taps,
            blocks or self.places.groups,
            lanes,
            self._last if cut else lanes,
            step,
            self.row + row,
            0,
            [(taps, row_step)],
            wide_weights=wide_weights,
            wide_values=wide_values,
        )
        on_all_tiles(program, sums, source, target, read)


def plain(low: float, high: float) -> OutputStage:
    """Bytes as they are."""
    return stage_with(np.float32(1), low, high)


def stage_with(
    factor: np.float32,
    low: float,
    high: float,
    *,
    zero_point: int = 0,
    table: FunctionTable | None = None,
    wide: bool = False,
) -> OutputStage:
    """A stage that is the same for all channels, without a bias."""
    return OutputStage(
        np.array([factor], np.float32),
        np.zeros(1, np.int32),
        np.float32(low),
        np.float32(high),
        zero_point,
        table,
        wide,
    )
