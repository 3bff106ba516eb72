"""Instructions of the tensor unit, with the scales and biases that it needs.

A computation is described for each tile by its loops: taps of a sum, columns, rows, and blocks of
lanes, innermost first. Each block may have scales and biases of its own: wide-to-narrow loads them
into one half of their buffer while the tensor unit still works with the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.isa.builder import Values, traversal
from darwinn_sim.isa.codes import OutputFunction, PartialSumMode, TileFlag, WatcherSide

from darwinn_testbench.compiler.assembler import Assembler, Loops, Watcher, signal, wait, walk
from darwinn_testbench.compiler.stages.operations import FunctionTable, OutputStage
from darwinn_testbench.compiler.stages.writer import merged, write

GRANULES = 4
"""Addresses of parameters from row to row."""
HEAD_ROWS = 2
"""Rows of scales and of biases before the weights of a block."""

_BIAS_STEP = chip.ROW_WORDS
_HALF = chip.LANES // 2
_MAIN_LOOPS = 8
_DEGREE_CODE = 3
_BLOCK_DEPTH = 3
"""Main loops within a block: taps, columns, rows."""


@dataclass(frozen=True)
class Part:
    """What one tile computes.

    ``read`` are the loops of a sum, innermost first, in bytes; ``next_read`` and ``next_write`` the
    distances (from column to column, from row to row). The others, if given, take the place of what
    all tiles have in common: bytes from block to block, and rows of parameters from column to
    column, from row to row, and from block to block.
    """

    source: int
    result: int
    rows: int
    columns: int
    read: Loops
    next_read: tuple[int, int]
    next_write: tuple[int, int]
    read_block: int | None = None
    write_block: int | None = None
    parameter_steps: tuple[int, int, int] | None = None


@dataclass(frozen=True)
class Aside:
    """Rows of wide memory for sums that are not complete: one for each pixel of a tile.

    The unit starts from 0 at the first pass of a reduction, whatever is in the rows. So what goes
    on from sums makes two passes: the first one ends in ``pixels`` rows from ``row`` on, of which
    nothing comes. The sums are in the rows behind these.
    """

    row: int
    pixels: int
    goes_on: bool


@dataclass(frozen=True)
class Sums:
    """What all tiles have in common.

    Attributes:
        taps: iterations of a sum.
        blocks: blocks of lanes, of ``lanes`` each and ``last_lanes`` in the last one.
        read_block: bytes from the source of a block to that of the next one.
        row: row of wide memory at which the first block's parameters begin: scales, biases and
            weights, or weights alone if the stage is the same for all channels.
        block_rows: rows from block to block.
        parameters: loops of a sum over the rows of weights, in rows.
        wide_weights: weights have 16 bits.
        wide_values: what is multiplied with them has 16 bits.
        maximum: the greatest of the bytes of the rows, in place of a sum.
        aside: rows of wide memory in which sums are put aside.
    """

    stage: OutputStage
    source_zero_point: int
    weight_zero_point: int
    taps: int
    blocks: int
    lanes: int
    last_lanes: int
    read_block: int
    row: int
    block_rows: int
    parameters: Loops
    wide_weights: bool = False
    wide_values: bool = False
    maximum: bool = False
    aside: Aside | None = None

    @property
    def has_heads(self) -> bool:
        """Whether each block has scales and biases of its own."""
        return not self.stage.is_uniform


def cycles_of(sums: Sums, parts: Mapping[int, Part]) -> int:
    """Cycles of the busiest tile, about."""
    pixels = max((part.rows * part.columns for part in parts.values()), default=0)
    return pixels * sums.taps * sums.blocks


def compute(program: Assembler, sums: Sums, parts: Mapping[int, Part]) -> None:
    """Write a computation on the tiles that have a part in it."""
    if not parts:
        return
    if sums.has_heads:
        write(program, "WideToNarrow", dict.fromkeys(parts, _scales(sums)))
    if sums.stage.table is not None:
        write(program, "CoefficientTable", dict.fromkeys(parts, _table(sums.stage.table)))
    name = "TensorMax" if sums.maximum else "TensorMac"
    write(program, name, {tile: _multiply(name, sums, part) for tile, part in parts.items()})


def _table(table: FunctionTable) -> Values:
    return {
        "coefficient": table.coefficients.reshape(-1).tolist(),
        "lower_bound": table.bounds.tolist(),
        "degree": _DEGREE_CODE,
    }


def _function(stage: OutputStage) -> int:
    """What else the output stage does, as the bits of a field."""
    bits = {
        OutputFunction.TABLE: stage.table is not None,
        OutputFunction.RANGE_REDUCTION: stage.table is not None and stage.table.reduced,
        OutputFunction.OUTPUT_16BIT: stage.wide,
    }
    return sum(1 << bit for bit, given in bits.items() if given)


def _symmetry(table: FunctionTable | None) -> Values:
    """An odd function is evaluated at the absolute value, and gets the sign of the argument."""
    if table is None or not table.odd:
        return {}
    return {"symmetric_function": 1, "odd_function": 1}


def _scales(sums: Sums) -> Values:
    """Load the scales and biases of block after block, each when its half is free."""
    # Block k takes the half of block k - 2, whose results must all have been written.
    free = Watcher(
        TileFlag.ACTIVATION_WRITE, depth=2, expected=-1, stride=1, side=WatcherSide.SECOND
    )
    return merged(
        walk(
            "WideToNarrow", "wide_read", sums.row, [(HEAD_ROWS, 1), (sums.blocks, sums.block_rows)]
        ),
        walk(
            "WideToNarrow",
            "narrow_write",
            0,
            [(-(-sums.lanes // 2), 1), (2, _BIAS_STEP), (sums.blocks, 0)],
            double=(2, _HALF),
        ),
        signal(depth=2),
        wait("WideToNarrow", free),
        {"scale_bias": 1, "row_loop": 1},
    )


def _partial_sums(name: str, sums: Sums, part: Part) -> Values:
    """Where sums are. A sum is complete when this address changes, as it does with each pixel."""
    aside = sums.aside
    if aside is None:
        loops = [(sums.taps, 0), (part.columns, 0), (part.rows, 0), (sums.blocks, 0)]
        return traversal(name, "partial_sum", 0, loops, double=(1, GRANULES))
    pixels = GRANULES * aside.pixels
    passes = 2 if aside.goes_on else 1
    return traversal(
        name,
        "partial_sum",
        GRANULES * aside.row + (0 if aside.goes_on else pixels),
        [
            (sums.taps, 0),
            (part.columns, GRANULES),
            (part.rows, GRANULES * part.columns),
            (passes, pixels),
        ],
    )


def _multiply(name: str, sums: Sums, part: Part) -> Values:
    stage, heads = sums.stage, sums.has_heads
    column, row, block = part.parameter_steps or (0, 0, sums.block_rows)
    read_block = sums.read_block if part.read_block is None else part.read_block
    size = 2 if stage.wide else 1
    write_block = sums.lanes * size if part.write_block is None else part.write_block
    over = [(part.columns, part.next_read[0]), (part.rows, part.next_read[1])]
    # Passes are no blocks.
    depth = _BLOCK_DEPTH if sums.aside is None else _BLOCK_DEPTH + 1
    weights = GRANULES * (sums.row + (HEAD_ROWS if heads else 0))
    words = -(-sums.lanes * size // WORD_BYTES)
    write_loops = [
        (words, WORD_BYTES),
        (part.columns, part.next_write[0]),
        (part.rows, part.next_write[1]),
        (sums.blocks, write_block),
    ]
    last = -(-sums.last_lanes * size // WORD_BYTES)
    outer = sums.blocks
    if sums.aside is not None:
        outer, read_block, block = 2 if sums.aside.goes_on else 1, 0, 0
    # Blocks are whole where there is but one, and where all are alike.
    alternate = (_BLOCK_DEPTH, last) if last != words else (0, 0)
    return merged(
        traversal(
            name,
            "narrow_read",
            part.source,
            [*part.read, *over, (outer, read_block)],
        ),
        traversal(name, "narrow_write", part.result, write_loops, alternate=alternate),
        traversal(
            name,
            "parameter_read",
            weights,
            [
                *((count, GRANULES * step) for count, step in sums.parameters),
                (part.columns, GRANULES * column),
                (part.rows, GRANULES * row),
                (outer, GRANULES * block),
            ],
        ),
        _partial_sums(name, sums, part),
        signal("narrow_write_producer", depth=_BLOCK_DEPTH) if heads else {},
        wait(
            name,
            *([Watcher(TileFlag.WIDE_TO_SCALING, depth=depth, expected=1)] if heads else []),
        ),
        {
            "main_limit": [sums.taps - 1, part.columns - 1, part.rows - 1, outer - 1]
            + [0] * (_MAIN_LOOPS - 4),
            "partial_sum_read": PartialSumMode.WIDE_MEMORY
            if sums.aside
            else PartialSumMode.ACCUMULATOR,
            "zero_activation_power_save": int(not sums.wide_values),
            "activation_zero_point": sums.source_zero_point,
            "parameter_zero_point": sums.weight_zero_point,
            "activation_16bit": int(sums.wide_values),
            "parameter_16bit": int(sums.wide_weights),
            "output_block_loop": depth,
            "reduction_loops": 1 if outer == sums.blocks else 1 | 1 << _BLOCK_DEPTH,
            "block_lanes": sums.lanes - 1,
            "last_block_lanes": sums.last_lanes - 1,
            "low_clip": float(stage.low),
            "high_clip": float(stage.high),
            "output_zero_point": stage.zero_point,
            "function": _function(stage),
            **_symmetry(stage.table),
        },
        {"apply_bias": 1, "use_scales": 1, "output_scale": 1.0}
        if heads
        else {
            "output_scale": float(stage.factors[0]),
            "immediate_bias": int(stage.bias[0]),
        },
    )
