"""Rows of parameters, as wide memory has them: a word for each lane.

A row of weights has four bytes for each lane, one for each input of an iteration. Lanes and inputs
that do not exist have weights that equal the zero point, and so add nothing.
"""

from __future__ import annotations

import numpy as np
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from numpy.typing import NDArray

from darwinn_testbench.compiler.parameters import UNIT_BYTES, round_up
from darwinn_testbench.compiler.stages.operations import OutputStage

Rows = NDArray[np.uint8]
"""uint8, shape (rows, bytes of a row)."""

GROUP = WORD_BYTES
"""Channels of a block of a channelwise operation."""
_GROUP_BYTES = GROUP * WORD_BYTES

AS_IS = OutputStage(
    np.ones(1, np.float32), np.zeros(1, np.int32), np.float32(0), np.float32(255), 0
)
"""The stage of bytes that come out as they are."""


def lane_rows(weights: NDArray[np.uint8], zero_point: int, stage: OutputStage) -> list[Rows]:
    """Rows of each block of 64 outputs: scales and biases if they differ, then weights.

    ``weights`` are (outputs, taps, 4).
    """
    outputs, taps, _ = weights.shape
    factors, bias = _of_channels(stage, outputs)
    blocks = []
    for first in range(0, outputs, chip.LANES):
        own = slice(first, min(first + chip.LANES, outputs))
        lanes = round_up((own.stop - first) * WORD_BYTES, UNIT_BYTES) // WORD_BYTES
        body = np.full((taps, lanes, WORD_BYTES), zero_point, np.uint8)
        body[:, : own.stop - first] = weights[own].swapaxes(0, 1)
        heads = _heads(factors[own], bias[own], lanes) if not stage.is_uniform else []
        blocks.append(np.concatenate([*heads, body.reshape(taps, lanes * WORD_BYTES)]))
    return blocks


def head_rows(stage: OutputStage, outputs: int) -> list[Rows]:
    """The scales and biases of each block of 64 outputs, of which no weights are known."""
    every = np.zeros((outputs, 0, WORD_BYTES), np.uint8)
    return lane_rows(every, 0, stage)


def group_rows(weights: NDArray[np.uint8], zero_point: int, stage: OutputStage) -> list[Rows]:
    """Rows of each block of four channels of a channelwise operation, of 4 words each.

    ``weights`` are (taps, channels); off the diagonal they equal the zero point.
    """
    taps, channels = weights.shape
    factors, bias = _of_channels(stage, channels)
    blocks = []
    for first in range(0, channels, GROUP):
        own = slice(first, min(first + GROUP, channels))
        body = np.full((taps, GROUP, WORD_BYTES), zero_point, np.uint8)
        lanes = np.arange(own.stop - first)
        body[:, lanes, lanes] = weights[:, own]
        heads = _heads(factors[own], bias[own], GROUP)
        blocks.append(np.concatenate([*heads, body.reshape(taps, -1)]))
    return blocks


def packed(blocks: list[Rows]) -> Rows:
    """Rows of 4 words one after another in full rows."""
    flat = np.concatenate(blocks).reshape(-1)
    padded = np.zeros(round_up(flat.size, chip.ROW_BYTES), np.uint8)
    padded[: flat.size] = flat
    return padded.reshape(-1, chip.ROW_BYTES)


def identity(weight: int = 1) -> Rows:
    """One row that takes four inputs as they are, or times a weight: it is on the diagonal, the
    zero point is 0."""
    row = np.zeros((1, UNIT_BYTES), np.uint8)
    row.reshape(-1, WORD_BYTES, WORD_BYTES)[0, np.arange(GROUP), np.arange(GROUP)] = weight
    return row


def spread_out() -> Rows:
    """One row that makes of four inputs 16 bytes: a 4 x 4 matrix with them on the diagonal.

    Off it the sum is 0, which becomes the zero point.
    """
    row = np.zeros((1, UNIT_BYTES), np.uint8)
    lanes = row.reshape(-1, WORD_BYTES)
    for channel in range(GROUP):
        lanes[(GROUP + 1) * channel, channel] = 1
    return row


def one_hot(weights: tuple[int, ...], zero_point: int = 0) -> Rows:
    """Rows of 16-bit weights: two for each operand, of which each gives two lanes its product."""
    rows = np.full((2 * len(weights), UNIT_BYTES // 2), zero_point, np.uint16)
    for operand, weight in enumerate(weights):
        for lane in range(GROUP):
            rows[2 * operand + lane // 2, 2 * lane + lane % 2] = zero_point + weight
    return rows.view(np.uint8)


def _of_channels(
    stage: OutputStage, channels: int
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    return np.broadcast_to(stage.factors, channels), np.broadcast_to(stage.bias, channels)


def _heads(factors: NDArray[np.float32], bias: NDArray[np.int32], lanes: int) -> list[Rows]:
    scales, biases = np.zeros((1, lanes), np.float32), np.zeros((1, lanes), np.int32)
    scales[0, : len(factors)] = factors
    biases[0, : len(bias)] = bias
    return [scales.view(np.uint8), biases.view(np.uint8)]
