"""The steps of a softmax (``darwinn_reference.tflite.softmax``) as sums of the tensor unit: what is
the same for one vector on all tiles and for the pixels of an image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from darwinn_reference.tflite.softmax import EXPONENTIAL_UNIT, SHARE_FACTOR, SQUARE_LIMIT
from darwinn_sim.chip import WORD_BYTES

from darwinn_testbench.compiler.stages.compute import Sums
from darwinn_testbench.compiler.stages.operations import FunctionTable, OutputStage, Softmax
from darwinn_testbench.compiler.stages.rows import AS_IS, GROUP, Rows
from darwinn_testbench.compiler.stages.tables import FUNCTIONS, table_of

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
class Step:
    """Sums with weights from row ``row`` of those of the softmax on.

    ``read`` and ``row_step`` are those of a sum. Each of ``blocks`` (0: one for each word of the
    vector) makes ``lanes`` results; ``step`` is the distance from block to block, ``cut`` whether
    the last one ends with the last channel.
    """

    stage: OutputStage
    row: int = Weights.COPY
    read: Sequence[tuple[int, int]] = ((1, 0),)
    row_step: int = 1
    step: int = GROUP
    blocks: int = 0
    lanes: int = GROUP
    zero_point: int = 0
    weight_zero_point: int = 0
    wide_values: bool = False
    wide_weights: bool = False
    cut: bool = False

    def sums(self, operation: Softmax, first_row: int) -> Sums:
        """The sums; the weights of the softmax begin in row ``first_row`` of wide memory."""
        (taps, _), *_ = self.read
        return Sums(
            self.stage,
            self.zero_point,
            self.weight_zero_point,
            taps,
            self.blocks or operation.source.pitch // GROUP,
            self.lanes,
            last_lanes(operation) if self.cut else self.lanes,
            self.step,
            first_row + self.row,
            0,
            [(taps, self.row_step)],
            wide_weights=self.wide_weights,
            wide_values=self.wide_values,
        )


def last_lanes(operation: Softmax) -> int:
    """Channels in the last word."""
    return (operation.source.channels - 1) % GROUP + 1


def greatest_of(rows: int, row: int) -> Sums:
    """The greatest of each lane's bytes in some rows of wide memory, from ``row`` on."""
    return Sums(AS_IS, 0, 0, rows, 1, GROUP, GROUP, 0, row, 0, [(rows, 1)], maximum=True)


REPEAT = Step(AS_IS, step=0)
"""The same four bytes for each word."""


def differences(operation: Softmax, apart: int) -> Step:
    """255 less the difference to the greatest, which is ``apart`` bytes behind each value."""
    return Step(
        stage_with(operation.factor, -HIGHEST, 0, zero_point=HIGHEST),
        row=Weights.ADD,
        read=[(2, apart)],
        weight_zero_point=1,
        cut=True,
    )


def exponentials(operation: Softmax) -> Step:
    """The exponential of each difference, 65535 times."""
    table, function = table_of("exponential"), FUNCTIONS["exponential"]
    return Step(
        stage_with(operation.scale, function.first, function.last, table=table, wide=True),
        zero_point=HIGHEST,
        cut=True,
    )


def root_of_sum(operation: Softmax) -> Step:
    """46340 by the root of the sum of all, in four lanes."""
    table = table_of("inverse root")
    pairs = -(-operation.source.channels // 2)
    return Step(
        stage_with(EXPONENTIAL_UNIT, -np.inf, np.inf, table=table, wide=True),
        row=Weights.PAIR,
        read=[(pairs, 2 * SIZE)],
        row_step=0,
        blocks=1,
        wide_values=True,
    )


def square(row: int) -> Step:
    """The square of the root, in 1 / 32768; the root is in row ``row`` as well."""
    return Step(
        stage_with(EXPONENTIAL_UNIT, 0, SQUARE_LIMIT, wide=True),
        row=row,
        blocks=1,
        wide_values=True,
        wide_weights=True,
    )


def diagonal() -> Step:
    """The square on the diagonal of 4 x 4 words, and zeros off it."""
    return Step(
        stage_with(np.float32(1), -np.inf, np.inf, wide=True),
        row=Weights.SPREAD,
        blocks=1,
        lanes=SPREAD_LANES,
        wide_values=True,
    )


DIAGONAL_LOOPS = ((GROUP, 1), (GROUP, GROUP))
"""How the diagonal is read: a row for each of four channels, with the square in its lane."""


def shares(row: int) -> Step:
    """256 times each share: an exponential times the square, which is in rows from ``row`` on."""
    return Step(
        stage_with(SHARE_FACTOR, 0, HIGHEST),
        row=row,
        read=[(GROUP, SIZE)],
        step=GROUP * SIZE,
        wide_values=True,
        wide_weights=True,
        cut=True,
    )


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
