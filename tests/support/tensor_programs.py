"""Whole programs of one random tensor instruction, on a tile: an input goes in, results come out.

What the instruction takes is either the input, again and again, or a constant that lies in wide
memory before the run: activations and parameters by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from darwinn_formats.darwinn import Executable, Layer, OutputLayer
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_testbench.compiler.assembler import Assembler, signal, walk
from darwinn_testbench.compiler.program import (
    barrier,
    begin,
    end,
    request_input,
    send_input,
    send_output,
)
from hypothesis import strategies as st
from slow_model import tensor_unit as slow
from tensor_stimulus import NARROW_MIDDLE, PARAMETER_GRANULES, scale_bias
from unit_bench import sufficient
from unit_cases import tensor_unit

TILE = 6
ROWS = 8
"""Rows of wide memory that the input is."""
INPUT_BYTES = ROWS * chip.ROW_BYTES
INPUT_ROW = 2040
CONSTANT_ROW = INPUT_ROW + ROWS
SCALE_ROW = CONSTANT_ROW + ROWS
_PARAMETER_ROWS = PARAMETER_GRANULES // 4 + 2
RESULT_WORD = NARROW_MIDDLE // chip.WORD_BYTES


@dataclass(frozen=True)
class TensorProgram:
    """An instruction ``operation`` with a coefficient table; ``moves``: its activations are the
    input; ``data``: its parameters are; ``computed``: not the input itself, but what another
    instruction has made of it; ``seed``: of what wide memory holds.
    """

    operation: str
    fields: dict[str, Any]
    table: dict[str, Any]
    moves: bool
    data: bool
    computed: bool
    seed: int

    @property
    def words(self) -> int:
        """Words of results, and one that nothing writes if the number is odd."""
        return self._written + self._written % 2

    @property
    def _written(self) -> int:
        size = slow.output_bytes(self.fields)
        return sum(-(-size * lanes // 4) for lanes in slow.output_lanes(self.fields))

    def executable(self) -> Executable:
        """The program, with an input and an output layer."""
        program = Assembler()
        begin(program)
        request_input(program, "image", INPUT_BYTES)
        take(program, INPUT_ROW)
        barrier(program)
        if self.computed:
            _complement(program)
        if self.data:
            _spread(program)
        fill(program, INPUT_ROW if self.moves else CONSTANT_ROW, 0, RESULT_WORD)
        fill(program, CONSTANT_ROW, RESULT_WORD, self.words)
        program.tile(
            "WideToNarrow",
            1 << TILE,
            walk("WideToNarrow", "wide_read", SCALE_ROW, [(4, 1)]),
            walk("WideToNarrow", "narrow_write", 0, [(chip.ROW_WORDS // 2, 1), (4, 32)]),
            scale_bias=1,
            row_loop=1,
        )
        barrier(program)
        program.tile("CoefficientTable", 1 << TILE, self.table)
        for flag, value in sorted(self._flags().items()):
            program.tile(
                "TileFence",
                1 << TILE,
                wait_idle=(1 << chip.TILE_UNITS) - 1,
                reset_flags=1 << flag,
                reset_value=value & 0xFFFF,
            )
        program.tile(self.operation, 1 << TILE, self.fields, self._results())
        barrier(program)
        send_output(program, "results", RESULT_WORD, {TILE: self.words})
        end(program)
        return Executable(
            instruction_bitstreams=(program.chunk(),),
            batch_size=1,
            input_layers=(Layer(name="image", size_bytes=INPUT_BYTES),),
            output_layers=(
                Layer(name="results", size_bytes=4 * self.words, any_layer=OutputLayer()),
            ),
        )

    def chip(self) -> Accelerator:
        """A chip with what the program finds in wide memory."""
        random = np.random.default_rng(self.seed)
        accelerator = Accelerator(seed=self.seed)
        accelerator.preload_wide(TILE, 0, random.bytes(INPUT_ROW * chip.ROW_BYTES))
        accelerator.preload_wide(TILE, CONSTANT_ROW, random.bytes(ROWS * chip.ROW_BYTES))
        accelerator.preload_wide(TILE, SCALE_ROW, scale_bias(self.seed).tobytes())
        return accelerator

    def _results(self) -> dict[str, Any]:
        """They are written one after another."""
        loops = [(self._written, chip.WORD_BYTES)]
        return dict(walk(self.operation, "narrow_write", NARROW_MIDDLE, loops))

    def _flags(self) -> dict[int, int]:
        iterations = len(slow.main_elements(self.fields))
        return sufficient(self.fields, iterations, chip.TILE_FLAGS)


def _complement(program: Assembler) -> None:
    """Put into the place of the input, in any order, what its bytes lack to 255."""
    planes = INPUT_BYTES // chip.LANES
    program.tile(
        "TensorSum",
        1 << TILE,
        walk("TensorSum", "parameter_read", 4 * INPUT_ROW, [(planes, 1)]),
        walk("TensorSum", "narrow_write", 0, [(INPUT_BYTES // chip.WORD_BYTES, chip.WORD_BYTES)]),
        walk("TensorSum", "partial_sum", 0, [(planes, 4)]),
        {"main_limit": [planes - 1] + [0] * 7, "mac_disable": 14, "partial_sum_read": 3},
        {"block_lanes": 63, "last_block_lanes": 63, "output_block_loop": 1},
        {"output_scale": -1.0, "low_clip": -255.0, "high_clip": 0.0, "output_zero_point": 255},
    )
    barrier(program)
    pack(program, INPUT_ROW, 1)


def _spread(program: Assembler) -> None:
    """Write the input to all rows of wide memory from which parameters are taken."""
    fill(program, INPUT_ROW, 0, INPUT_BYTES // chip.WORD_BYTES)
    barrier(program)
    pack(program, 0, -(-_PARAMETER_ROWS // ROWS))


def pack(program: Assembler, row: int, times: int, word: int = 0) -> None:
    """Write narrow memory from ``word`` on to wide memory from ``row`` on, so many times."""
    program.tile(
        "NarrowToWide",
        1 << TILE,
        walk("NarrowToWide", "narrow_read", word, [(chip.ROW_WORDS, 1), (ROWS, 64), (times, 0)]),
        walk("NarrowToWide", "wide_write", row, [(ROWS, 1), (times, ROWS)]),
        row_loop=1,
    )
    barrier(program)


def take(program: Assembler, row: int) -> None:
    """Write the input to wide memory from ``row`` on."""
    program.tile(
        "RingConsumerA",
        1 << TILE,
        walk("RingConsumerA", "wide_write", row, [(ROWS, 1)]),
        signal(),
    )
    send_input(program, 0, INPUT_BYTES, 1 << TILE)


def fill(program: Assembler, row: int, word: int, words: int) -> None:
    """Write rows of wide memory to ``words`` words of narrow memory, again and again."""
    rows = -(-words // chip.ROW_WORDS)
    rounds = -(-rows // ROWS)
    last = rows - (rounds - 1) * ROWS
    program.tile(
        "WideToNarrow",
        1 << TILE,
        walk("WideToNarrow", "wide_read", row, [(ROWS, 1), (rounds, 0)], last=last),
        walk("WideToNarrow", "narrow_write", word, [(words, 1)]),
        row_loop=1,
    )


SOURCES = {
    slow.MAC: ((True, False), (False, True), (True, True), (False, False)),
    slow.MAXIMUM: ((False, True), (False, False)),
    slow.SUM: ((False, True), (False, False)),
    slow.INTERPOLATE: ((True, False), (False, True)),
}
"""``moves`` and ``data`` of the programs of an instruction."""


def reads_sums_back(fields: dict[str, Any]) -> bool:
    """Whether sums are put aside in wide memory, and gone on from later."""
    ends = slow.run_ends(fields)
    starts = [True, *ends[:-1]]
    return fields["partial_sum_read"] == 1 and any(
        start and not slow.reduction_edges(fields, element.index)[0]
        for start, element in zip(starts, slow.main_elements(fields), strict=True)
    )


@st.composite
def programs(draw: Any, operation: str) -> list[TensorProgram]:
    """Programs of an instruction that gives at least a word, one for each of its sources.

    Half of them have nothing that is another one for each lane, for where parameters are data.
    """
    again = operation == slow.MAC and draw(st.booleans())
    fields, table, _ = draw(
        tensor_unit.cases(operation).filter(
            lambda case: (
                sum(slow.output_lanes(case[0])) > 0 and (not again or reads_sums_back(case[0]))
            )
        )
    )
    # Of the watchers one is left, if there is one of this flag: it chooses half of the scales.
    watched = [
        flag == slow.SCALE_FLAG and valid
        for flag, valid in zip(fields["watcher_flag"], fields["watcher_valid"], strict=True)
    ]
    first = watched.index(1) if 1 in watched else -1
    fields |= {"watcher_valid": [int(k == first) for k in range(len(watched))]}
    if operation in (slow.MAXIMUM, slow.SUM) or (operation == slow.MAC and draw(st.booleans())):
        fields |= {"use_scales": 0, "apply_bias": 0, "load_parameter_zero_point": 0}
        fields |= {"zero_point_base": 0, "zero_point_stride": 0, "zero_point_limit": 0}
        fields |= {"output_scale": draw(st.sampled_from([1.0, 2.0**-7, 2.0**-16]))}
    seed = draw(st.integers(0, 9))
    computed = draw(st.booleans())
    return [
        TensorProgram(operation, fields, table, moves, data, computed, seed)
        for moves, data in SOURCES[operation]
    ]
