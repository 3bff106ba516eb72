"""Programs whose scalar core computes with data: with results of a tile, for outputs of a tile.

A tile sums up the bytes of an input's lanes. Its results go to scalar memory, random bundles
compute with them, and what they leave in registers goes back to the tile, as it is and summed up
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from darwinn_formats.darwinn import Executable, Layer, OutputLayer
from darwinn_sim import chip
from darwinn_sim.isa.builder import Values
from darwinn_sim.isa.codes import AluOperation, InfeedSource, LoadOperation, StoreOperation
from darwinn_testbench.compiler.assembler import Assembler, signal, walk
from darwinn_testbench.compiler.program import (
    OUTFEED,
    barrier,
    begin,
    end,
    pack_rows,
    request_input,
    send_input,
    send_output,
    send_packed,
)
from hypothesis import strategies as st
from slow_model import scalar_core as slow

TILE = 3
ROW, AGAIN_ROW = 5, 6
"""Rows of wide memory: of the input, and of what the scalar core sends back."""


DATA = 100
"""Where in scalar memory results of the tile are."""

DATA_WORDS = chip.LANES // chip.WORD_BYTES
REGISTERS = 24
"""Registers that random bundles compute with: the first half hold data at first."""

_SPARE = REGISTERS

SENT = 200
"""Where in scalar memory the registers go at last, twice, and data behind them: a row in all."""

SENT_WORDS = 2 * REGISTERS + DATA_WORDS
_SUMS = 4 * SENT_WORDS
"""Byte of narrow memory from which on sums of what was sent back are."""

OUTPUT_WORDS = SENT_WORDS + DATA_WORDS
TIMES = 0.25

NUMBERS = (
    *(0, 1, 2, 3, 8, 16, 24, 31, 32, 0xFF, 0xFF00, 0xF0, 0xFFFFFF00, 0xFF00FF, 0xFFFF0000),
    *(0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7F800000, 0xFF800000, 0x7FC00001, 0x12345678),
    *(slow.to_word(value) for value in (1.0, -0.5, 3.25, 1e9)),
)
INTEGER = (*range(AluOperation.ADD, AluOperation.EQUAL), AluOperation.MOVE)
FLOAT = tuple(range(AluOperation.TO_FLOAT, AluOperation.FLOAT_MINIMUM + 1))
FUNCTIONS = tuple(slow.FUNCTIONS)


@dataclass(frozen=True)
class ScalarProgram:
    """Bundles between a tile's sums, and further ones between the sums over what these leave."""

    bundles: Sequence[Values]
    further: Sequence[Sequence[Values]] = ()

    def executable(self, *more: tuple[str, Values]) -> Executable:
        """The program; ``more`` instructions come behind the first bundles."""
        program = Assembler()
        begin(program)
        request_input(program, "image", chip.ROW_BYTES)
        program.tile("RingConsumerA", 1 << TILE, {"wide_write_base": ROW}, signal())
        send_input(program, 0, chip.ROW_BYTES, 1 << TILE)
        barrier(program)
        _sum(program, ROW, 0)
        _take(program, 0)
        for register in range(REGISTERS):
            program.emit("Scalar", _begins(register))
        _compute(program, self.bundles)
        for name, fields in more:
            program.emit(name, fields)
        _send_back(program)
        for bundles in self.further:
            _sum(program, AGAIN_ROW, _SUMS)
            _take(program, _SUMS // chip.WORD_BYTES)
            _compute(program, bundles)
            _send_back(program)
        _sum(program, AGAIN_ROW, _SUMS)
        send_output(program, "results", 0, {TILE: OUTPUT_WORDS})
        end(program)
        return Executable(
            instruction_bitstreams=(program.chunk(),),
            batch_size=1,
            input_layers=(Layer(name="image", size_bytes=chip.ROW_BYTES),),
            output_layers=(
                Layer(name="results", size_bytes=4 * OUTPUT_WORDS, any_layer=OutputLayer()),
            ),
        )


def load(register: int, word: int) -> dict[str, int]:
    """A bundle that loads a word of scalar memory."""
    return {"load_op": LoadOperation.DIRECT, "load_register": register, "load_address": word}


def store(register: int, word: int) -> dict[str, int]:
    """A bundle that stores a register in scalar memory."""
    return {"store_op": StoreOperation.DIRECT, "store_register": register, "store_address": word}


def alu(operation: int, destination: int, a: int, b: int, *, immediate: bool) -> dict[str, int]:
    """A bundle that computes."""
    return {
        "alu_op": operation,
        "alu_destination": destination,
        "alu_a": a,
        "alu_b": b,
        "alu_immediate": int(immediate),
    }


def _begins(register: int) -> Values:
    """What a register holds first: data, or a number."""
    if register < REGISTERS // 2:
        return load(register, DATA + register)
    return alu(AluOperation.MOVE, register, 0, NUMBERS[register - 4], immediate=True)


def _sum(program: Assembler, row: int, place: int) -> None:
    """Sum up the bytes of each lane of a row of wide memory, into narrow memory from a byte on."""
    program.tile(
        "TensorSum",
        1 << TILE,
        walk("TensorSum", "narrow_write", place, [(DATA_WORDS, 4)]),
        {"parameter_read_base": 4 * row, "partial_sum_read": 3, "last_block_lanes": 63},
        {"output_scale": TIMES, "high_clip": 255.0, "low_clip": 0.0},
    )
    barrier(program)


def _take(program: Assembler, word: int) -> None:
    """Take sums out of narrow memory from a word on, into scalar memory."""
    pack_rows(program, 1 << TILE, word, DATA_WORDS)
    program.emit(
        "RingOutfeed",
        walk("RingOutfeed", "buffer", DATA, [(DATA_WORDS, 1)]),
        row_words=chip.ROW_WORDS - 1,
    )
    send_packed(program, TILE, DATA_WORDS, OUTFEED)
    barrier(program)


def _compute(program: Assembler, bundles: Sequence[Values]) -> None:
    for bundle in bundles:
        program.emit("Scalar", bundle)


def _send_back(program: Assembler) -> None:
    """Send registers and data to the tile: into a row, and into narrow memory."""
    for register in range(REGISTERS):
        for place in (SENT, SENT + REGISTERS):
            program.emit("Scalar", store(register, place + register))
    for word in range(DATA_WORDS):
        program.emit("Scalar", load(_SPARE, DATA + word))
        program.emit("Scalar", store(_SPARE, SENT + 2 * REGISTERS + word))
    program.tile("RingConsumerA", 1 << TILE, {"wide_write_base": AGAIN_ROW}, signal())
    program.emit(
        "RingInfeed",
        walk("RingInfeed", "buffer", SENT, [(SENT_WORDS, 1)]),
        fifo=InfeedSource.SCALAR_MEMORY,
        targets=1 << TILE,
        row_words=SENT_WORDS - 1,
    )
    barrier(program)
    program.tile(
        "WideToNarrow",
        1 << TILE,
        {"wide_read_base": AGAIN_ROW},
        walk("WideToNarrow", "narrow_write", 0, [(SENT_WORDS, 1)]),
        row_loop=1,
    )
    barrier(program)


@st.composite
def bundles(draw: Any) -> dict[str, int]:
    """A bundle of any operations but comparisons, with nothing else that decides."""
    register = st.integers(0, REGISTERS - 1)
    fields: dict[str, int] = {}
    if draw(st.integers(0, 7)):
        operation = draw(st.one_of(st.sampled_from(INTEGER), st.sampled_from(FLOAT)))
        immediate = draw(st.booleans())
        number = st.one_of(st.sampled_from(NUMBERS), st.integers(0, (1 << 32) - 1))
        b = draw(number if immediate else register)
        fields |= alu(operation, draw(register), draw(register), b, immediate=immediate)
    if draw(st.integers(0, 3)) == 0:
        fields |= {
            "function_op": draw(st.sampled_from(FUNCTIONS)),
            "function_source": draw(register),
            "function_destination": draw(register),
        }
    word = st.integers(DATA, DATA + DATA_WORDS - 1)
    if draw(st.integers(0, 3)) == 0:
        fields |= load(draw(register), draw(word))
    if draw(st.integers(0, 3)) == 0:
        fields |= store(draw(register), draw(word))
    return fields


def programs(most: int = 30) -> st.SearchStrategy[ScalarProgram]:
    """Programs of up to as many bundles at a time."""
    sizes = st.integers(1, most)
    drawn = sizes.flatmap(lambda size: st.lists(bundles(), min_size=size, max_size=size))
    return st.builds(ScalarProgram, drawn, st.lists(drawn, max_size=2))
