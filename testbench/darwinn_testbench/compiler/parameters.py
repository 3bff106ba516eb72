"""The parameter blob: weights, biases and scales in the order in which the chip takes them.

A tile reads parameters from its wide memory, whose rows hold 64 lanes of 4 bytes: lane = output,
byte = input. So a row of weights carries 4 inputs of up to 64 outputs. In the blob a row is only as
long as its lanes need, rounded up to the 64 bytes that the parameter buffer moves at a time. The
layouts are those of the public models (docs/chip-facts.md, "Parameters").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from numpy.typing import NDArray

from darwinn_testbench.compiler.network import Convolution, DenseLayer, Quantisation

INPUTS_PER_ROW = 4
UNIT_BYTES = chip.PARAMETER_UNIT_BYTES
"""Bytes that the parameter buffer moves at a time."""
OUTFEED_LANES = 8
"""Outputs leave the chip 8 bytes at a time, so lanes are computed in multiples of 8."""
SIGN_OFFSET = 1 << 7
"""The chip computes with unsigned bytes: signed values and zero points are held with this added."""

SCALE_ROW, BIAS_ROW, ZERO_POINT_ROW, DENSE_WEIGHT_ROW = range(4)
"""Rows of a dense block: scales, biases and zero points of its outputs, then the weights."""


@dataclass(frozen=True, eq=False)
class Block:
    """Rows that one tile caches.

    Attributes:
        tile: the tile.
        row: the first row of its wide memory that they take.
        lanes: outputs that they are for, padding included.
        rows: uint8, shape (rows, bytes of a row).
    """

    tile: int
    row: int
    lanes: int
    rows: NDArray[np.uint8]

    @property
    def row_words(self) -> int:
        """Words of a row as it is sent over the ring."""
        return int(self.rows.shape[1]) // WORD_BYTES

    @property
    def units(self) -> int:
        """Units of the parameter buffer that the block takes."""
        return self.rows.size // UNIT_BYTES


def blob(blocks: Iterable[Block]) -> bytes:
    """The parameters of an executable: its blocks, one after another."""
    return b"".join(block.rows.tobytes() for block in blocks)


def round_up(value: int, multiple: int) -> int:
    """The least multiple of ``multiple`` that is not below ``value``."""
    return -(-value // multiple) * multiple


def output_factors(
    source: Quantisation, weight_scales: NDArray[np.float32], output: Quantisation
) -> NDArray[np.float32]:
    """Factor from an int32 sum to the output's steps, in float32 and in the compiler's order."""
    inverse = np.float32(1) / np.float32(output.scale)
    factors: NDArray[np.float32] = source.scale * weight_scales * inverse
    return factors.astype(np.float32)


def dense_bounds(layer: DenseLayer) -> tuple[np.float32, np.float32]:
    """Lowest and highest output of a dense layer, in steps from the zero point."""
    zero_point = layer.output.zero_point
    low = 0 if layer.relu else -128 - zero_point
    return np.float32(low), np.float32(127 - zero_point)


def convolution_bounds(network: Convolution) -> tuple[np.float32, np.float32]:
    """Lowest and highest output of a convolution, in steps from the zero point."""
    zero_point = network.output.zero_point + sign_offset(network)
    low, high = np.float32(-zero_point), np.float32(255 - zero_point)
    if not network.relu6:
        return low, high
    six = np.float32(6) * (np.float32(1) / network.output.scale)
    return np.float32(0), min(six, high)


def dense_blocks(layer: DenseLayer, source: Quantisation, row: int, inputs: int) -> list[Block]:
    """The blocks of a dense layer: 64 outputs a tile, from tile 0.

    Args:
        layer: the layer.
        source: quantisation of its input.
        row: first row in wide memory, the same on all tiles.
        inputs: bytes of the input vector as the tiles hold it, padding included.

    Raises:
        ValueError: more outputs than the tiles have lanes.
    """
    if layer.outputs > chip.TILES * chip.LANES:
        raise ValueError(
            f"{layer.outputs} outputs of a dense layer: the {chip.TILES} tiles compute at most "
            f"{chip.TILES * chip.LANES}"
        )
    factors = output_factors(source, layer.weight_scales, layer.output)
    # int8 weights are held unsigned, so that their zero point becomes 128; so does the padding.
    weights = np.full((layer.outputs, round_up(inputs, INPUTS_PER_ROW)), SIGN_OFFSET, np.uint8)
    weights[:, : layer.inputs] = layer.weights.view(np.uint8) ^ SIGN_OFFSET
    blocks = []
    for tile, first in enumerate(range(0, layer.outputs, chip.LANES)):
        own = slice(first, first + chip.LANES)
        head = [factors[own], layer.bias[own], np.full(len(factors[own]), SIGN_OFFSET, np.int32)]
        lanes = round_up(len(factors[own]), OUTFEED_LANES)
        blocks.append(Block(tile, row, lanes, _rows(head, weights[own], SIGN_OFFSET)))
    return blocks


def convolution_block(network: Convolution, tile: int, row: int) -> Block:
    """The block of a convolution: a row of biases, then rows in the order ky, kx, inputs / 4.

    Raises:
        ValueError: more outputs than a tile has lanes, or inputs that fill no whole words.
    """
    if network.outputs > chip.LANES:
        raise ValueError(
            f"{network.outputs} outputs of a convolution: the sample computes at most "
            f"{chip.LANES}, one block of lanes"
        )
    if network.inputs % INPUTS_PER_ROW:
        raise ValueError(
            f"{network.inputs} channels of an image: the sample takes a multiple of "
            f"{INPUTS_PER_ROW}, since pixels of other sizes have to be packed first"
        )
    offset = sign_offset(network)
    weights = (network.weights.view(np.uint8) ^ np.uint8(offset)).reshape(network.outputs, -1)
    lanes = round_up(network.outputs, OUTFEED_LANES)
    zero_point = network.weight.zero_point + offset
    return Block(tile, row, lanes, _rows([network.bias], weights, zero_point))


def sign_offset(network: Convolution) -> int:
    """What is added to values and zero points of a convolution on the chip."""
    return SIGN_OFFSET if network.is_signed else 0


def _rows(
    head: Sequence[NDArray[Any]], weights: NDArray[np.uint8], zero_point: int
) -> NDArray[np.uint8]:
    """Rows of 4-byte values, one of ``head`` each, and of ``weights`` (outputs, inputs).

    Lanes without an output get weights that equal the zero point, and so add nothing.
    """
    outputs, inputs = weights.shape
    lanes = round_up(outputs * INPUTS_PER_ROW, UNIT_BYTES) // INPUTS_PER_ROW
    first = np.zeros((len(head), lanes), np.uint32)
    for row, values in zip(first, head, strict=True):
        row[: len(values)] = values.view(np.uint32)
    padded = np.full((lanes, inputs), zero_point, np.uint8)
    padded[:outputs] = weights
    # (lane, input / 4, byte) to (input / 4, lane, byte)
    body = padded.reshape(lanes, -1, INPUTS_PER_ROW).swapaxes(0, 1)
    return np.concatenate([first.view(np.uint8), body.reshape(len(body), -1)])
