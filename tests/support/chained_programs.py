"""Programs of a few products on a tile, each of which may go on from what others have made.

Of an instruction may be computed: its activations, its parameters, its biases, the sums that it
goes on from; these may be those that an earlier one has put aside, or any other bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from darwinn_formats.darwinn import Executable, Layer, OutputLayer
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_testbench.compiler.assembler import Assembler, walk
from darwinn_testbench.compiler.program import barrier, begin, end, request_input, send_output
from hypothesis import strategies as st
from stimulus import near_edges
from tensor_programs import (
    CONSTANT_ROW,
    INPUT_BYTES,
    INPUT_ROW,
    RESULT_WORD,
    ROWS,
    SCALE_ROW,
    TILE,
    fill,
    pack,
    take,
)
from tensor_stimulus import scale_bias, tables

MAC = "TensorMac"
FRESH, AGAIN, LAST, WHOLE = 1, 0, 2, 3
"""Modes of partial sums: begun and put aside; gone on from and put aside; gone on from; neither."""

PLACES, STEPS = 3, 5
"""Positions of a step, and steps of a program, at the most."""
_SUM_ROW, _MADE_ROW = 1000, 1100
_RESULT_WORDS = STEPS * PLACES * chip.LANES // 2
_ALIKE = 2
"""Tables, and halves of the rows of constants, that a program has."""


@dataclass(frozen=True)
class Step:
    """A TensorMac. ``fields``: those of the instruction but for where it reads sums and writes;
    ``mode``; ``sums``: the row that its first place goes on from, or puts aside; ``places``;
    ``biases``: a row of wide memory, of two, that is loaded before, or None; ``table``; ``packs``:
    before it the results so far are copied to wide memory.
    """

    fields: dict[str, Any]
    mode: int
    sums: int
    places: int
    biases: int | None
    table: int
    packs: bool

    @property
    def words(self) -> int:
        """Words of its results."""
        size = 2 if self.fields["function"] & 4 else 1
        return self.places * -(-size * self.lanes // chip.WORD_BYTES)

    @property
    def of_data(self) -> bool:
        """Its parameters are computed: nothing goes on from its sums."""
        return bool(self.fields["parameter_read_base"] >= 4 * _MADE_ROW)

    @property
    def lanes(self) -> int:
        return int(self.fields["block_lanes"]) + 1


@dataclass(frozen=True)
class Chain:
    """Steps on a chip whose wide memory follows from ``seed``."""

    steps: list[Step]
    tables: list[dict[str, Any]]
    seed: int

    def executable(self) -> Executable:
        """The program, with an input layer and one output layer of all results."""
        program = Assembler()
        begin(program)
        request_input(program, "image", INPUT_BYTES)
        take(program, INPUT_ROW)
        barrier(program)
        words = INPUT_BYTES // chip.WORD_BYTES
        fill(program, INPUT_ROW, 0, words)
        barrier(program)
        fill(program, CONSTANT_ROW, words, words)
        fill(program, CONSTANT_ROW, RESULT_WORD, _RESULT_WORDS)
        barrier(program)
        _load(program, SCALE_ROW, 4, 0)
        written = 0
        for step in self.steps:
            if step.packs:
                pack(program, _MADE_ROW, 1, RESULT_WORD)
            if step.biases is not None:
                _load(program, step.biases, 2, 2)
            program.tile("CoefficientTable", 1 << TILE, self.tables[step.table])
            sums = [(1 + step.fields["main_limit"][0], 0), (step.places, 4)]
            place = chip.WORD_BYTES * (RESULT_WORD + written)
            program.tile(
                MAC,
                1 << TILE,
                step.fields,
                walk(MAC, "partial_sum", 4 * step.sums, sums),
                walk(MAC, "narrow_write", place, [(step.words, chip.WORD_BYTES)]),
                partial_sum_read=step.mode,
            )
            barrier(program)
            written += step.words
        even = written + written % 2
        send_output(program, "results", RESULT_WORD, {TILE: even})
        end(program)
        return Executable(
            instruction_bitstreams=(program.chunk(),),
            batch_size=1,
            input_layers=(Layer(name="image", size_bytes=INPUT_BYTES),),
            output_layers=(Layer(name="results", size_bytes=4 * even, any_layer=OutputLayer()),),
        )

    def chip(self) -> Accelerator:
        """A chip with what the program finds in wide memory."""
        random = np.random.default_rng(self.seed)
        accelerator = Accelerator(seed=self.seed)
        accelerator.preload_wide(TILE, 0, random.bytes(4 * chip.ROW_BYTES))
        accelerator.preload_wide(TILE, CONSTANT_ROW, random.bytes(ROWS * chip.ROW_BYTES))
        accelerator.preload_wide(TILE, SCALE_ROW, scale_bias(self.seed).tobytes())
        return accelerator


def _load(program: Assembler, row: int, rows: int, first: int) -> None:
    """Load rows of wide memory into the scale/bias buffer, from its row ``first`` on."""
    half = chip.ROW_WORDS // 2
    program.tile(
        "WideToNarrow",
        1 << TILE,
        walk("WideToNarrow", "wide_read", row, [(rows, 1)]),
        walk("WideToNarrow", "narrow_write", half * first, [(half, 1), (rows, half)]),
        scale_bias=1,
        row_loop=1,
    )
    barrier(program)


@st.composite
def chains(draw: Any) -> Chain:
    """Chains that end in results."""
    steps: list[Step] = []
    for number in range(draw(st.integers(2, STEPS))):
        known = [step for step in steps if step.mode in (FRESH, AGAIN) and not step.of_data]
        modes = [FRESH, FRESH, WHOLE, *((AGAIN, AGAIN, AGAIN, LAST) if known else (LAST,))]
        mode = draw(st.sampled_from(modes))
        lanes = draw(st.sampled_from([1, 5, 64, 64, 64]))
        places = draw(st.integers(1, PLACES))
        sums = _SUM_ROW + PLACES * number
        if mode in (AGAIN, LAST):
            from_step = draw(st.sampled_from([None, *known, *known, *known]))
            if from_step is None:
                sums = draw(st.sampled_from([INPUT_ROW, *([_MADE_ROW] if known else [])]))
                mode = LAST
            else:
                sums, places = from_step.sums, min(places, from_step.places)
                lanes = draw(st.sampled_from([from_step.lanes, *range(1, from_step.lanes, 4)]))
        packs = bool(steps) and (sums == _MADE_ROW or draw(st.booleans()))
        made = [_MADE_ROW] * (packs or any(step.packs for step in steps))
        biases = draw(st.sampled_from([None, None, SCALE_ROW + 2, INPUT_ROW, *made]))
        # Of data there are no stages with anything else that is computed.
        data = mode in (FRESH, WHOLE) and biases is None and draw(st.booleans())
        row = draw(st.sampled_from([INPUT_ROW, *made])) if data else 0
        fields = draw(_products(lanes, places, row))
        fields["apply_bias"] = int(biases is not None)
        table = draw(st.integers(0, _ALIKE - 1))
        steps.append(Step(fields, mode, sums, places, biases, table, packs))
    return Chain(steps, [draw(tables()) for _ in range(_ALIKE)], draw(st.integers(0, 9)))


@st.composite
def _products(draw: Any, lanes: int, places: int, row: int) -> dict[str, Any]:
    """Fields of a TensorMac of ``lanes``, each at ``places``; parameters are from ``row`` on."""
    count = draw(st.integers(1, 3))
    wide = {name: draw(st.integers(0, 1)) for name in ("activation_16bit", "parameter_16bit")}
    granule = draw(st.sampled_from([0, 4, 8, 1, 2, 3, 6]))
    reads = draw(st.sampled_from([0, 3, INPUT_BYTES + 8, 4 * RESULT_WORD]))
    loops = [(count, draw(st.sampled_from([4, 1]))), (places, draw(st.sampled_from([0, 12])))]
    function = draw(st.sampled_from([0, 0, 0, 1, 4, 5]))
    zero = draw(near_edges(0, 255))
    clips = (-8.0, 8.0) if function & 1 else (-float(zero), float(255 - zero))
    raw = not function & 1 and draw(st.booleans())
    return {
        "main_limit": [count - 1, places - 1] + [0] * 6,
        "reduction_loops": 1,
        "output_block_loop": 2,
        "block_lanes": lanes - 1,
        "last_block_lanes": lanes - 1,
        **wide,
        "mac_disable": draw(st.sampled_from([[0, 12, 14], [0, 12], [0]][sum(wide.values())])),
        "activation_zero_point": draw(near_edges(0, 255)),
        "parameter_zero_point": draw(near_edges(0, 255)),
        "function": function,
        "output_zero_point": zero,
        "low_clip": float("-inf") if raw else clips[0],
        "high_clip": float("inf") if raw else clips[1],
        "output_scale": draw(st.sampled_from([1.0, 2.0**-8, 2.0**-12, 2.0**-24])),
        "use_scales": 0 if row else draw(st.integers(0, 1)),
        "immediate_bias": draw(near_edges(-1000, 1000)),
        **walk(MAC, "narrow_read", reads, loops),
        **walk(
            MAC,
            "parameter_read",
            4 * row + granule,
            [(count, draw(st.sampled_from([0, 4])))],
        ),
    }
