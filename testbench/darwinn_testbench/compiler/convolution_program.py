"""The program of a convolution: every tile computes a part of the image.

    host -> parts of the image on the tiles -> (edges of the neighbours, weights) -> compute -> host

The image is cut into a grid of equal parts, one for each tile, stored with a border as wide as the
kernel reaches. Neighbours exchange the pixels of the border over the mesh; at the edge of the image
it is filled with zero points. The weights are kept by one tile and broadcast when they are needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.isa.builder import Values
from darwinn_sim.isa.codes import PartialSumMode, RingChannel, TileFlag
from darwinn_sim.isa.table import BY_NAME

from darwinn_testbench.compiler.assembler import (
    Assembler,
    Loops,
    Watcher,
    signal,
    skip_first,
    wait,
    walk,
)
from darwinn_testbench.compiler.network import Convolution
from darwinn_testbench.compiler.parameters import (
    INPUTS_PER_ROW,
    Block,
    convolution_block,
    convolution_bounds,
    output_factors,
    round_up,
    sign_offset,
)
from darwinn_testbench.compiler.program import (
    PACKED_ROW,
    barrier,
    consume_rows,
    request_input,
    send_input,
    send_output,
    spread_rows,
    tile_set,
)

KEEPER = min(5, chip.TILES - 1)
"""The tile that keeps the weights; any other would do."""

_IMAGE_BYTES = 1 << 16
"""Sync flags count the words of a band in 16 bits, of which the sign is one."""
_MAIN_ITERATIONS = 1 << BY_NAME["TensorMac"].field("main_limit").width
_BROADCAST_ROW = (chip.WIDE_ROWS - 80) // 2
"""Row of wide memory of each tile at which the broadcast parameters begin; the tile that keeps
them has them below."""
_WEIGHT_ROWS = _BROADCAST_ROW * 9 // 10
"""Rows of parameters for which there is room below, and between there and the received rows."""
_WAITING_ROWS = PACKED_ROW - (_BROADCAST_ROW + 1 + _WEIGHT_ROWS)
"""Rows of the image for which there is room behind them."""

_BIAS_STEP = chip.ROW_WORDS
_PART_WORD = 0
_MAIN_LOOPS = 8


@dataclass(frozen=True, eq=False)
class Placement:
    """A convolution with its place on the chip.

    Attributes:
        network: the convolution.
        rows, columns: of the grid of tiles in use.
        block: its parameters on the tile that keeps them.
    """

    network: Convolution
    rows: int
    columns: int
    block: Block

    @property
    def height(self) -> int:
        """Height of a part, in pixels."""
        return self.network.height // self.rows

    @property
    def width(self) -> int:
        """Width of a part, in pixels."""
        return self.network.width // self.columns

    @property
    def border(self) -> int:
        """Pixels of border on each side."""
        return self.network.kernel // 2

    @property
    def input_zero_point(self) -> int:
        """Zero point of the image as the chip holds it."""
        return self.network.input.zero_point + sign_offset(self.network)

    @property
    def pixel(self) -> int:
        """Words of a pixel of the image."""
        return self.network.inputs // INPUTS_PER_ROW

    @property
    def pitch(self) -> int:
        """Words from row to row of a part, border included."""
        return (self.width + 2 * self.border) * self.pixel

    @property
    def input_bytes(self) -> int:
        """Bytes of the image as the host sends it, padding included."""
        size = self.network.height * self.network.width * self.network.inputs
        return round_up(size, chip.ACTIVATION_UNIT_BYTES)

    @property
    def band_bytes(self) -> int:
        """Bytes of the rows of the image that one row of tiles gets."""
        return self.input_bytes // self.rows

    @property
    def skipped(self) -> list[int]:
        """Words of a band before those of each column of tiles."""
        return [column * self.width * self.pixel for column in range(self.columns)]

    @property
    def places(self) -> int:
        """Rows of wide memory in which the image arrives, in turn.

        Skipped words are not counted by the flag that frees the places of rows, so there must be
        places for as many rows as they fill.
        """
        return 2 + self.skipped[-1] // chip.ROW_WORDS

    @property
    def result(self) -> int:
        """Word of narrow memory at which a tile leaves its results.

        It is behind the part, and behind what is written beyond it while the image comes in.
        """
        rows = self.height + 2 * self.border
        image_row = self.network.width * self.pixel
        return _PART_WORD + rows * self.pitch + image_row

    @property
    def result_words(self) -> int:
        """Words of the results of one tile."""
        return self.height * self.width * self.block.lanes // WORD_BYTES

    def word(self, y: int, x: int) -> int:
        """Word of narrow memory of a pixel of the part; the border has negative y and x too."""
        return _PART_WORD + (y + self.border) * self.pitch + (x + self.border) * self.pixel

    def tile(self, row: int, column: int) -> int:
        """Number of a tile of the grid."""
        return chip.GRID_COLUMNS * row + column

    @property
    def tiles(self) -> tuple[int, ...]:
        """The tiles in use, in the order in which they send their results."""
        return tuple(
            self.tile(row, column) for row in range(self.rows) for column in range(self.columns)
        )


def place(network: Convolution) -> Placement:
    """Put a convolution on the chip: the largest grid whose parts are equal and not too small.

    A part must be at least as large as the border, since borders come from direct neighbours, and
    the bands of the image must begin at units of the activation buffer.

    Raises:
        ValueError: the convolution is larger than what the sample can place.
    """
    block = convolution_block(network, KEEPER, 0)
    image_row = network.width * network.inputs
    border = network.kernel // 2
    rows = max(
        rows
        for rows in _divisors(network.height, border, chip.GRID_ROWS)
        if rows == 1 or network.height // rows * image_row % chip.ACTIVATION_UNIT_BYTES == 0
    )
    placement = Placement(
        network, rows, max(_divisors(network.width, border, chip.GRID_COLUMNS)), block
    )
    _check_size(placement)
    return placement


def _divisors(size: int, border: int, most: int) -> Iterator[int]:
    """Into how many equal parts of at least ``border``, ``most`` of them, a side can be cut."""
    yield 1
    for parts in range(2, most + 1):
        if size % parts == 0 and size // parts >= border:
            yield parts


def _check_size(placement: Placement) -> None:
    checks = (
        ("bytes of an image", placement.input_bytes, _IMAGE_BYTES),
        ("pixels of a part", placement.height * placement.width, _MAIN_ITERATIONS),
        ("rows of weights", len(placement.block.rows), _WEIGHT_ROWS),
        ("rows of the image that wait", placement.places, _WAITING_ROWS),
        ("bytes of narrow memory", narrow_bytes(placement), chip.NARROW_BYTES),
    )
    for what, size, limit in checks:
        if size > limit:
            raise ValueError(f"{size} {what}: the sample places at most {limit}")


def infer(program: Assembler, placement: Placement, source: str, result: str) -> None:
    """Write the inference: ``source`` and ``result`` are the names of input and output layer."""
    _receive_image(program, placement, source)
    if placement.border:
        _exchange_borders(program, placement)
    _compute(program, placement)
    words = dict.fromkeys(placement.tiles, placement.result_words)
    send_output(program, result, placement.result, words)


def _receive_image(program: Assembler, placement: Placement, name: str) -> None:
    """Bring to every tile its part of the image.

    The image comes row after row. All tiles of a row of the grid get the whole band, and each picks
    its columns. It cannot drop words, so it lets the unwanted ones be overwritten: those before its
    columns are written to the place of the first pixel, as a prologue; after that every row of the
    image is written from where the row of the part begins, and runs on over the end of it, where
    the next rows come later, and the border in the end. The last row ends with the band.
    """
    image_row = placement.network.width * placement.pixel
    words = placement.band_bytes // WORD_BYTES
    request_input(program, name, placement.input_bytes)
    rows = consume_rows(
        program,
        tile_set(placement.tiles),
        -(-words // chip.ROW_WORDS),
        chip.ROW_WORDS,
        placement.places,
    )
    for column, skip in enumerate(placement.skipped):
        spread_rows(
            program,
            _column(placement, column),
            rows,
            placement.word(0, 0),
            [(image_row, 1), (placement.height, placement.pitch)],
            row_loop=2,
            last=image_row - skip if skip else 0,
            skipped=skip,
        )
    for row in range(placement.rows):
        targets = _row(placement, row)
        send_input(program, row * placement.band_bytes, placement.band_bytes, targets)
    barrier(program)


def _row(placement: Placement, row: int) -> int:
    return tile_set(placement.tile(row, column) for column in range(placement.columns))


def _column(placement: Placement, column: int) -> int:
    return tile_set(placement.tile(row, column) for row in range(placement.rows))


# --- borders ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Link:
    """What goes over one of the four mesh links: from word ``source`` to ``target``, by ``loops``.

    ``flag`` counts what arrives, where somebody waits for it.
    """

    instruction: str
    source: int
    target: int
    loops: Loops
    flag: TileFlag | None = None


def _exchange_borders(program: Assembler, placement: Placement) -> None:
    """Fill the borders: first above and below, then left and right with the corners.

    A corner belongs to the tile diagonally opposite, which no link reaches. It comes in two steps,
    so the second exchange waits until the first has arrived.
    """
    vertical = _vertical_links(placement)
    rows = [_row(placement, row) for row in range(placement.rows)]
    columns = [_column(placement, column) for column in range(placement.columns)]
    for link, groups in zip(vertical, (rows, rows[::-1]), strict=True):
        _send_along(program, placement, link, groups, ())
    arrived = tuple(
        Watcher(link.flag, depth=2, expected=1) for link in vertical if link.flag is not None
    )
    for link, groups in zip(_horizontal_links(placement), (columns, columns[::-1]), strict=True):
        _send_along(program, placement, link, groups, arrived)
    barrier(program)


def _vertical_links(placement: Placement) -> tuple[_Link, _Link]:
    """To the north go the first rows of a part, to the south the last ones."""
    border, height = placement.border, placement.height
    loops = [(placement.width * placement.pixel, 1), (border, placement.pitch)]
    word = placement.word
    return (
        _Link("MeshNorth", word(0, 0), word(height, 0), loops, TileFlag.MESH_INBOUND_FROM_SOUTH),
        _Link(
            "MeshSouth",
            word(height - border, 0),
            word(-border, 0),
            loops,
            TileFlag.MESH_INBOUND_FROM_NORTH,
        ),
    )


def _horizontal_links(placement: Placement) -> tuple[_Link, _Link]:
    """To the west go the first columns of a part, with the rows above and below it; likewise."""
    border, width = placement.border, placement.width
    loops = [(border * placement.pixel, 1), (placement.height + 2 * border, placement.pitch)]
    word = placement.word
    return (
        _Link("MeshWest", word(-border, 0), word(-border, width), loops),
        _Link("MeshEast", word(-border, width - border), word(-border, -border), loops),
    )


def _send_along(
    program: Assembler,
    placement: Placement,
    link: _Link,
    groups: list[int],
    before: tuple[Watcher, ...],
) -> None:
    """Have all tiles send over a link, and receive what its other end sends.

    ``groups`` are the sets of tiles in the direction of the link, the first at the edge of the
    image: it sends nothing. The last one receives nothing; it writes zero points instead.
    """
    name = link.instruction
    send = walk(name, "narrow_read", link.source, link.loops)
    receive = walk(name, "narrow_write", link.target, link.loops)
    zero_points = {
        "immediate_valid": 1,
        "immediate": int.from_bytes(bytes([placement.input_zero_point]) * WORD_BYTES),
    }
    for number, tiles in enumerate(groups):
        sends = number > 0
        at_end = number == len(groups) - 1
        program.tile(
            name,
            tiles,
            send if sends else {},
            wait(name, *before) if sends else {},
            receive,
            zero_points if at_end else {},
            {} if link.flag is None else signal("write_producer", depth=2),
        )


# --- arithmetic ---------------------------------------------------------------------------------


def _compute(program: Assembler, placement: Placement) -> None:
    """Broadcast bias and weights on ring channel B, and multiply.

    Nothing waits at a fence here: the tensor unit begins when the last row of weights has come.
    """
    tiles = tile_set(placement.tiles)
    rows, lanes = len(placement.block.rows), placement.block.lanes
    bias, weights = _BROADCAST_ROW, _BROADCAST_ROW + 1
    program.tile(
        "RingConsumerB",
        tiles,
        walk("RingConsumerB", "wide_write", weights, [(rows - 1, 1)]),
        skip_first("wide_write", bias, 1, loop=0),
        signal(depth=1),
    )
    program.tile(
        "WideToNarrow",
        tiles,
        walk("WideToNarrow", "wide_read", bias, [(1, 0)]),
        walk("WideToNarrow", "narrow_write", _BIAS_STEP, [(lanes // 2, 1)]),
        signal(depth=1),
        # The consumer signals once for all its rows, of which the bias is the first.
        wait("WideToNarrow", Watcher(TileFlag.RING_BUS_READ_B, depth=1, expected=1)),
        scale_bias=1,
        row_loop=1,
    )
    _multiply(program, tiles, placement, weights)
    turn = program.take_turns(RingChannel.B, rows)
    program.tile(
        "RingProducer",
        1 << placement.block.tile,
        walk("RingProducer", "wide_read", placement.block.row, [(rows, 1)]),
        # On this channel every row counts as a turn.
        signal("token_producer", depth=0),
        wait("RingProducer", Watcher(TileFlag.RING_PRODUCER_B, depth=1, expected=turn)),
        targets=tiles,
        consumer_b=1,
    )
    barrier(program)


def _multiply(program: Assembler, tiles: int, placement: Placement, weights: int) -> None:
    """Slide the kernel over the part.

    Main loop 0 sums over the kernel: in each iteration 4 channels of a pixel meet a row of weights.
    Loop 1 goes through the pixels of the result. What is read has loops of its own: the pixels of a
    kernel row lie side by side, so their words are one loop.
    """
    network, pitch = placement.network, WORD_BYTES * placement.pitch
    kernel_row = network.kernel * placement.pixel
    taps = network.kernel * kernel_row
    pixels = placement.height * placement.width
    lanes = placement.block.lanes
    window = [
        (kernel_row, WORD_BYTES),
        (network.kernel, pitch),
        (placement.width, WORD_BYTES * placement.pixel),
        (placement.height, pitch),
    ]
    corner = WORD_BYTES * placement.word(-placement.border, -placement.border)
    program.tile(
        "TensorMac",
        tiles,
        walk("TensorMac", "narrow_read", corner, window),
        walk(
            "TensorMac",
            "narrow_write",
            WORD_BYTES * placement.result,
            [(lanes // WORD_BYTES, WORD_BYTES), (pixels, lanes)],
        ),
        # The same rows of weights for each pixel: 4 byte planes a row.
        walk("TensorMac", "parameter_read", 4 * weights, [(taps, 4), (pixels, 0)]),
        # A sum is complete when this address changes, which double buffering does for each pixel.
        walk("TensorMac", "partial_sum", 0, [(taps, 0), (pixels, 0)], double=(1, 4)),
        wait(
            "TensorMac",
            Watcher(TileFlag.RING_BUS_READ_B, depth=2, expected=1),
            Watcher(TileFlag.WIDE_TO_SCALING, depth=2, expected=1),
        ),
        {"main_limit": [taps - 1, pixels - 1] + [0] * (_MAIN_LOOPS - 2)},
        _output_stage(placement),
        partial_sum_read=PartialSumMode.ACCUMULATOR,
        zero_activation_power_save=1,
        activation_zero_point=placement.input_zero_point,
        parameter_zero_point=network.weight.zero_point + sign_offset(network),
        output_block_loop=2,
        reduction_loops=1 << 0,
        block_lanes=lanes - 1,
        last_block_lanes=lanes - 1,
    )


def _output_stage(placement: Placement) -> Values:
    """Bias, scale and clip: one scale for all lanes, the bounds in steps from the zero point."""
    network = placement.network
    scale = output_factors(network.input, np.array([network.weight.scale]), network.output)
    low, high = convolution_bounds(network)
    return {
        "apply_bias": 1,
        "output_scale": float(scale[0]),
        "low_clip": float(low),
        "high_clip": float(high),
        "output_zero_point": network.output.zero_point + sign_offset(network),
    }


def narrow_bytes(placement: Placement) -> int:
    """Bytes of narrow memory that a tile uses."""
    return WORD_BYTES * (placement.result + placement.result_words)
