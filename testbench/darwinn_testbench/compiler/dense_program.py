"""The program of a dense network: every tile computes 64 outputs of a layer.

    host -> all tiles of layer 0 -> (compute, exchange) for each layer -> host

A tile holds the weights of its outputs (docs/chip-facts.md, "Parameters") and needs all inputs.
So the input is broadcast; and after a layer, each of its tiles sends its outputs to all tiles of
the next one.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.isa.codes import PartialSumMode, TileFlag

from darwinn_testbench.compiler.assembler import Assembler, Watcher, signal, wait, walk
from darwinn_testbench.compiler.network import DenseLayer, DenseNetwork, Quantisation
from darwinn_testbench.compiler.parameters import (
    BIAS_ROW,
    DENSE_WEIGHT_ROW,
    INPUTS_PER_ROW,
    SCALE_ROW,
    SIGN_OFFSET,
    ZERO_POINT_ROW,
    Block,
    dense_blocks,
    dense_bounds,
    round_up,
)
from darwinn_testbench.compiler.program import (
    PACKED_ROW,
    barrier,
    consume_rows,
    pack_rows,
    request_input,
    send_input,
    send_output,
    send_packed,
    spread_rows,
    tile_set,
)

BIAS_STEP = chip.ROW_WORDS
"""Step of the scale/bias buffer, which takes two words a step, at which the biases begin."""

_MAXIMUM_INPUTS = 1024
_RECEIVED_ROWS = 2
_INPUT_WORD = 0
_RESULT_WORD = _MAXIMUM_INPUTS // WORD_BYTES
"""Words of narrow memory at which a layer's input begins, and a tile's own results. The input may
have as many bytes as the 16 tiles of the largest chip compute."""


@dataclass(frozen=True, eq=False)
class PlacedLayer:
    """A layer with its place on the chip.

    ``inputs`` are the bytes of its input as the tiles hold it.
    """

    dense: DenseLayer
    source: Quantisation
    inputs: int
    blocks: tuple[Block, ...]

    @property
    def tiles(self) -> int:
        """The tiles that compute it."""
        return tile_set(block.tile for block in self.blocks)

    @property
    def words(self) -> dict[int, int]:
        """Words of results that each tile has."""
        return {block.tile: block.lanes // WORD_BYTES for block in self.blocks}


def place(network: DenseNetwork) -> tuple[PlacedLayer, ...]:
    """Put a network on the chip.

    Raises:
        ValueError: a layer is larger than what the sample can place.
    """
    layers: list[PlacedLayer] = []
    inputs = round_up(network.layers[0].inputs, chip.ACTIVATION_UNIT_BYTES)
    if inputs > _MAXIMUM_INPUTS:
        raise ValueError(f"{inputs} inputs of a dense layer: at most {_MAXIMUM_INPUTS}")
    source, row = network.input, 0
    for dense in network.layers:
        blocks = tuple(dense_blocks(dense, source, row, inputs))
        layers.append(PlacedLayer(dense, source, inputs, blocks))
        row += len(blocks[0].rows)
        inputs = sum(block.lanes for block in blocks)
        source = dense.output
    if row > PACKED_ROW - _RECEIVED_ROWS:
        raise ValueError(f"the weights take {row} rows of wide memory of {chip.WIDE_ROWS}")
    return tuple(layers)


def infer(program: Assembler, layers: tuple[PlacedLayer, ...], source: str, result: str) -> None:
    """Write the inference: ``source`` and ``result`` are the names of input and output layer."""
    _receive_input(program, layers[0], source)
    for layer, following in itertools.pairwise(layers):
        _compute(program, layer)
        _exchange(program, layer, following)
    _compute(program, layers[-1])
    send_output(program, result, _RESULT_WORD, layers[-1].words)


def _receive_input(program: Assembler, layer: PlacedLayer, name: str) -> None:
    """Bring the whole input vector to the narrow memory of every tile of the first layer."""
    words = layer.inputs // WORD_BYTES
    request_input(program, name, layer.inputs)
    rows = consume_rows(program, layer.tiles, -(-words // chip.ROW_WORDS), chip.ROW_WORDS)
    spread_rows(program, layer.tiles, rows, _INPUT_WORD, [(words, 1)], row_loop=1)
    send_input(program, 0, layer.inputs, layer.tiles)
    barrier(program)


def _compute(program: Assembler, layer: PlacedLayer) -> None:
    """Compute a layer. Tiles whose last block is shorter have instructions of their own."""
    for lanes in sorted({block.lanes for block in layer.blocks}):
        tiles = tile_set(block.tile for block in layer.blocks if block.lanes == lanes)
        _load_scales(program, tiles, layer.blocks[0].row, lanes)
        _multiply(program, tiles, layer, lanes)
    barrier(program)


def _load_scales(program: Assembler, tiles: int, row: int, lanes: int) -> None:
    """Load the scales and biases of the tiles' outputs into the buffer beside the tensor unit."""
    program.tile(
        "WideToNarrow",
        tiles,
        walk("WideToNarrow", "wide_read", row + SCALE_ROW, [(2, BIAS_ROW - SCALE_ROW)]),
        walk("WideToNarrow", "narrow_write", 0, [(lanes // 2, 1), (2, BIAS_STEP)]),
        signal(depth=2),
        scale_bias=1,
        row_loop=1,
    )


def _multiply(program: Assembler, tiles: int, layer: PlacedLayer, lanes: int) -> None:
    """Multiply the input with the weights of the tiles' outputs.

    Each iteration takes 4 inputs from narrow memory and a row of weights from wide memory, and adds
    4 products in each lane. The sum of a lane is complete after the last row; then it gets bias,
    scale, clip, rounding and zero point, and 4 lanes at a time are written as a word.
    """
    row, result = layer.blocks[0].row, layer.dense.output
    steps = -(-layer.inputs // INPUTS_PER_ROW)
    low, high = dense_bounds(layer.dense)
    program.tile(
        "TensorMac",
        tiles,
        walk("TensorMac", "narrow_read", WORD_BYTES * _INPUT_WORD, [(steps, WORD_BYTES)]),
        walk(
            "TensorMac",
            "narrow_write",
            WORD_BYTES * _RESULT_WORD,
            [(lanes // WORD_BYTES, WORD_BYTES)],
        ),
        # Addresses of parameters count byte planes: a row, with all four planes, is 4 of them.
        walk("TensorMac", "parameter_read", 4 * (row + DENSE_WEIGHT_ROW), [(steps, 4)]),
        walk("TensorMac", "partial_sum", 0, [(steps, 0)]),
        # Scales and biases are needed at the end, but the unit asks for them before it starts.
        wait("TensorMac", Watcher(TileFlag.WIDE_TO_SCALING, depth=1, expected=1)),
        {"main_limit": [steps - 1] + [0] * 7},
        partial_sum_read=PartialSumMode.ACCUMULATOR,
        zero_activation_power_save=1,
        activation_zero_point=layer.source.zero_point + SIGN_OFFSET,
        load_parameter_zero_point=1,
        zero_point_base=row + ZERO_POINT_ROW,
        zero_point_stride=1,
        zero_point_limit=row + ZERO_POINT_ROW,
        output_block_loop=1,
        reduction_loops=1 << 0,
        block_lanes=lanes - 1,
        last_block_lanes=lanes - 1,
        output_scale=1.0,
        use_scales=1,
        apply_bias=1,
        low_clip=float(low),
        high_clip=float(high),
        output_zero_point=result.zero_point + SIGN_OFFSET,
    )


def _exchange(program: Assembler, layer: PlacedLayer, following: PlacedLayer) -> None:
    """Send the outputs of every tile to all tiles of the next layer, as its input.

    The senders take turns in the order of the outputs, so that the rows arrive in that order.
    """
    words = list(layer.words.values())
    rows = consume_rows(program, following.tiles, len(words), max(words))
    spread_rows(
        program,
        following.tiles,
        rows,
        _INPUT_WORD,
        [(max(words), 1), (len(words), max(words))],
        row_loop=1,
        last=words[-1],
    )
    for block, count in zip(layer.blocks, words, strict=True):
        pack_rows(program, 1 << block.tile, _RESULT_WORD, count)
        send_packed(program, block.tile, count, following.tiles)
    barrier(program)


def narrow_bytes(layers: tuple[PlacedLayer, ...]) -> int:
    """Bytes of narrow memory that a tile uses."""
    return WORD_BYTES * (_RESULT_WORD + max(max(layer.words.values()) for layer in layers))
