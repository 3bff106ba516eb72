"""The instruction table: every opcode of Beagle, its fields and what they mean.

Decoder, encoder, disassembler, generated documentation and RTL constants derive from
``INSTRUCTIONS``; nothing else in the tree contains a bit offset. Where a fact comes from, and how
sure it is, stands beside it (docs/isa.md is generated from here).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from darwinn_sim.isa.codes import (
    AluOperation,
    InfeedSource,
    InputFifo,
    LoadOperation,
    MacDisable,
    OutputFunction,
    PartialSumMode,
    RingChannel,
    RingTokens,
    ScalarFlag,
    ScalarFunction,
    ScalarUnit,
    StoreOperation,
    TileFlag,
    TileUnit,
)
from darwinn_sim.isa.fields import Field, Instruction, Signal, place
from darwinn_sim.isa.grades import with_grades
from darwinn_sim.isa.layout import SIMULATION, Layout

_DESCRIPTORS = "the descriptors of 170 executables come out exact"
_BYTE_COUNTS = "byte and row counts of 170 executables"
_TENSOR_LAW = "a law over 13,046 tensor instructions"
_PRODUCER_COUNTS = "byte-exact simulation of 9 executables of 2019, with counts from 1 to 10,213"
_ZERO = "always 0 in every known program"
_PUBLIC_NAME = "always 0 in every known program; name from public code"
_NARROW_WORDS = "words of narrow memory"
_NARROW_BYTES = "bytes of narrow memory"
_WIDE_ROWS = "rows of wide memory"
_GRANULES = "granules of wide memory (row * 4 + byte plane)"

HEADER = place(
    (
        Field(
            "gate",
            1,
            "flag",
            "Execute only when the predicate equals the polarity; only scalar bundles are gated.",
            "high",
            _DESCRIPTORS,
        ),
        Field("predicate", 3, "register", "Predicate of the gate.", "high", _DESCRIPTORS),
        Field("polarity", 1, "flag", "Value that the predicate must have.", "high", _DESCRIPTORS),
        Field("trace", 1, "flag", "Trace request.", "low", _PUBLIC_NAME),
        Field("opcode", 6, "uint", "Operation.", "high", "no stream loses its boundaries"),
    )
)
"""Fields of every instruction."""

_TILES = Field(
    "tiles", 16, "tiles", "Tiles that execute it: bit 4 * row + column.", "high", SIMULATION
)
_TAG = Field(
    "tag",
    16,
    "uint",
    "Serial number of the tile instruction in its stream, from 0x8000 in parameter-caching "
    "streams; it has no effect.",
    "high",
    "increases in 203 streams",
)

TILE_HEADER = place(
    (
        *HEADER,
        _TILES,
        Field(
            "base_register",
            5,
            "register",
            "Scalar register that replaces a base address where `base_override` is set.",
            "high",
            "byte-exact simulation of an LSTM, the one program that uses it",
        ),
        Field(
            "tiles_register",
            5,
            "register",
            "Scalar register that supplies the tile set.",
            "high",
            "byte-exact simulation of an LSTM, the one program that uses it",
        ),
        Field(
            "tiles_override",
            1,
            "flag",
            "Take the tile set from `tiles_register`.",
            "high",
            "byte-exact simulation of an LSTM, the one program that uses it",
        ),
        Field("register_sources", 7, "mask", "Perhaps further register operands.", "open", _ZERO),
        _TAG,
    )
)
"""Fields of every instruction for the tiles but the fence, whose header is shorter."""

_BASE_OVERRIDE = Field(
    "base_override",
    1,
    "flag",
    "Take the base address from `base_register`.",
    "open",
    "always 0 in every known program but in NarrowToWide",
)


def _reserved(name: str, width: int, meaning: str, evidence: str = _ZERO) -> Field:
    return Field(name, width, "uint", meaning, "open", evidence)


def _tensor_common() -> Layout:
    """Fields that the four tensor instructions share, up to the output scale."""
    layout = Layout(TILE_HEADER)
    layout.plain(
        Field(
            "main_limit",
            14,
            "uint",
            "Iterations of each main loop, minus 1; innermost loop first.",
            "high",
            SIMULATION,
            count=8,
            pitch=14,
        ),
        Field(
            "main_alternate_limit",
            14,
            "uint",
            "Limit of main loop 0 during the last iteration of the alternate loop.",
            "high",
            _TENSOR_LAW,
        ),
        Field(
            "main_alternate_loop",
            3,
            "uint",
            "Main loop on whose last iteration the alternate limit holds; 0: none.",
            "high",
            _TENSOR_LAW,
        ),
    )
    layout.traversal("narrow_read", _NARROW_BYTES, loops=8, base=18, counter=18)
    layout.traversal("narrow_write", _NARROW_BYTES, loops=8, base=18, counter=18)
    layout.traversal("parameter_read", _GRANULES, loops=8, base=14, counter=14)
    layout.traversal("partial_sum", _GRANULES, loops=8, base=14, counter=14)
    layout.producer("narrow_write_producer", 8, Signal(TileFlag.ACTIVATION_WRITE, "tile"))
    layout.producer("parameter_read_producer", 8, Signal(TileFlag.PARAMETER_READ, "tile"))
    layout.producer("partial_sum_producer", 8, Signal(TileFlag.PARTIAL_SUM_WRITE, "tile"))
    layout.watcher(6, 8, side=False)
    return layout.plain(*_tensor_operands(), *_tensor_lanes())


def _tensor_operands() -> tuple[Field, ...]:
    return (
        _reserved("hiccup", 18, "Perhaps a throttle.", _PUBLIC_NAME),
        _reserved("partial_sum_wrap", 1, "Perhaps partial sums wrap.", _PUBLIC_NAME),
        Field(
            "zero_activation_power_save",
            1,
            "flag",
            "Saves power where activations are 0; no effect on results.",
            "medium",
            "1 in layers, 0 in copies; results do not depend on it",
        ),
        Field(
            "partial_sum_read",
            2,
            "uint",
            "What becomes of the accumulator.",
            "high",
            SIMULATION,
            codes=PartialSumMode,
        ),
        Field(
            "activation_16bit",
            1,
            "flag",
            "Activations are unsigned 16 bit, little-endian, with a 16-bit zero point.",
            "high",
            SIMULATION,
        ),
        Field(
            "parameter_16bit",
            1,
            "flag",
            "Parameters are unsigned 16 bit in two byte planes, the low plane in the granule "
            "before the high one, with a 16-bit zero point.",
            "high",
            SIMULATION,
        ),
        _reserved("reserved_1848", 1, "Unknown."),
        Field(
            "mac_disable",
            4,
            "uint",
            "Multipliers that stand still; the others make the products of a step: 8 x 8 bit one "
            "each, 16 x 8 and 8 x 16 one for two, 16 x 16 one for four. A maximum or sum takes as "
            "many byte planes where the granule begins a row, and one elsewhere.",
            "high",
            SIMULATION,
            codes=MacDisable,
        ),
        Field(
            "load_parameter_zero_point",
            1,
            "flag",
            "Take int32 parameter zero points of each lane from the zero-point rows.",
            "high",
            SIMULATION,
        ),
        Field("parameter_zero_point", 16, "uint", "Parameter zero point.", "high", SIMULATION),
        Field("activation_zero_point", 16, "uint", "Activation zero point.", "high", SIMULATION),
        Field(
            "zero_point_limit",
            12,
            "uint",
            "Last zero-point row before it wraps to the base.",
            "high",
            "byte-exact simulation of one network; elsewhere every zero point is 128",
        ),
        Field(
            "zero_point_stride",
            12,
            "uint",
            "Rows from the zero points of one output block to those of the next.",
            "high",
            "byte-exact simulation of one network; elsewhere every zero point is 128",
        ),
        Field(
            "zero_point_base",
            12,
            "uint",
            "Row of wide memory with the zero points of the first output block.",
            "high",
            "byte-exact simulation of one network; elsewhere every zero point is 128",
        ),
        _reserved("alternate_base", 1, "Perhaps an alternate base address.", _PUBLIC_NAME),
    )


def _tensor_lanes() -> tuple[Field, ...]:
    return (
        Field(
            "output_block_loop",
            3,
            "uint",
            "Main loops from this one outwards that are not summed over enumerate the blocks of "
            "output lanes.",
            "high",
            SIMULATION,
        ),
        Field("reduction_loops", 8, "mask", "Main loops that are summed over.", "high", SIMULATION),
        Field(
            "last_block_lanes",
            6,
            "uint",
            "Valid lanes of the last block, minus 1.",
            "high",
            SIMULATION,
        ),
        Field(
            "block_lanes",
            6,
            "uint",
            "Valid lanes of the other blocks, minus 1.",
            "high",
            SIMULATION,
        ),
        Field("function", 3, "mask", "Output function.", "high", SIMULATION, codes=OutputFunction),
        Field(
            "output_scale",
            32,
            "float32",
            "Factor of the int32 sum; 1 where there are scales of each lane.",
            "high",
            SIMULATION,
        ),
    )


_TENSOR_SWITCHES = (
    Field(
        "apply_bias",
        1,
        "flag",
        "Add int32 biases of each lane, from the scale/bias buffer (steps 64 and up).",
        "high",
        SIMULATION,
    ),
    Field(
        "use_scales",
        1,
        "flag",
        "Multiply by float32 scales of each lane, from the scale/bias buffer (steps 0 and up).",
        "high",
        SIMULATION,
    ),
    Field(
        "symmetric_function",
        1,
        "flag",
        "Evaluate the table at the absolute value.",
        "high",
        "byte-exact simulation of an LSTM",
    ),
    Field(
        "odd_function",
        1,
        "flag",
        "Give the result the sign of the argument.",
        "high",
        "byte-exact simulation of an LSTM",
    ),
)


def _tensor(opcode: int, name: str, summary: str) -> Instruction:
    layout = _tensor_common().plain(
        Field(
            "high_clip",
            32,
            "float32",
            "Upper bound before the offset; inf with 8-bit outputs: the low byte is kept.",
            "high",
            SIMULATION,
        ),
        Field("low_clip", 32, "float32", "Lower bound before the offset.", "high", SIMULATION),
        Field(
            "immediate_bias",
            32,
            "int",
            "Added to the sum when `apply_bias` is 0.",
            "high",
            "byte-exact simulation of additions",
        ),
        Field("output_zero_point", 16, "uint", "Added after rounding.", "high", SIMULATION),
        *_TENSOR_SWITCHES,
    )
    return layout.build(opcode, name, 17, "tensor_unit", summary)


def _axis(axis: str, position: str) -> tuple[Field, ...]:
    """Position of the taps along one axis of an interpolation."""
    evidence = "byte-exact simulation of one network"
    return (
        Field(
            f"{axis}_loop",
            3,
            "uint",
            f"Main loop that walks the output {position}.",
            "high",
            evidence,
        ),
        Field(f"{axis}_start", 8, "int", "First position, in 1/128 pixel.", "high", evidence),
        Field(
            f"{axis}_step",
            16,
            "uint",
            "Step from one output to the next, in 1/128 pixel; the widest values are not seen.",
            "high",
            evidence,
        ),
    )


def _interpolate() -> Instruction:
    evidence = "byte-exact simulation of one network"
    layout = _tensor_common()
    layout.at(1981, *_axis("x", "columns"))
    layout.at(2013, *_axis("y", "rows"))
    layout.at(2045, Field("x_pitch", 18, "uint", "Bytes from column to column.", "high", evidence))
    layout.at(2077, Field("y_pitch", 16, "uint", "Bytes from row to row.", "high", evidence))
    nearest = replace(
        _TENSOR_SWITCHES[0],
        meaning="Take the nearest pixel, at (position + 64) >> 7 on both axes, with weight 1; no "
        "bias is added.",
        evidence="up-sampling of three public networks agrees with the uncompiled model",
        shown_as="nearest_pixel",
    )
    layout.at(2093, nearest, *_TENSOR_SWITCHES[1:])
    return layout.build(
        5,
        "TensorInterpolate",
        17,
        "tensor_unit",
        "Interpolation: the sum of 2 x 2 taps weighted by position, times the scale (2^-14), "
        "rounded; no clip, no offset. Main loops 0 and 1 are the taps. With `apply_bias` the "
        "nearest pixel alone.",
    )


def _coefficient_table() -> Instruction:
    return (
        Layout(TILE_HEADER)
        .plain(
            Field(
                "coefficient",
                32,
                "float32",
                "Eight segments of five polynomial coefficients, constant term first.",
                "high",
                "sigmoid and exponential tables evaluate to the ideal bytes",
                count=40,
                pitch=32,
            ),
            Field(
                "lower_bound",
                32,
                "float32",
                "Lower bounds of segments 1 to 7, increasing.",
                "high",
                "increasing in 6 of 6 distinct tables",
                count=7,
            ),
            Field(
                "degree",
                2,
                "uint",
                "Perhaps the degree of the polynomials.",
                "low",
                "always 3; the width may be 3 bits",
            ),
        )
        .build(
            25,
            "CoefficientTable",
            13,
            "tensor_unit",
            "Loads the function table of a tile: a piecewise polynomial, evaluated in float32.",
        )
    )


def _ring_producer() -> Instruction:
    return (
        Layout(TILE_HEADER)
        .traversal("wide_read", _WIDE_ROWS, loops=4, base=16, counter=16, prologue=True)
        .plain(_BASE_OVERRIDE)
        .producer("row_producer", 4, Signal(TileFlag.RING_BUS_WRITE, "tile"))
        .producer(
            "token_producer",
            4,
            Signal(TileFlag.RING_PRODUCER_A, "all tiles", "consumer_b", 0),
            Signal(TileFlag.RING_PRODUCER_B, "all tiles", "consumer_b", 1),
            Signal(ScalarFlag.RING_PRODUCER_A, "scalar core", "consumer_b", 0),
            Signal(ScalarFlag.RING_PRODUCER_B, "scalar core", "consumer_b", 1),
        )
        .watcher(3, 4, side=True)
        .plain(
            Field("consumer_b", 1, "uint", "Ring channel.", "high", SIMULATION, codes=RingChannel),
            Field(
                "targets",
                17,
                "tiles",
                "Destinations: bit t tile t, bit 16 the ring outfeed. Rows for the outfeed on "
                "channel B count on scalar flag 5 as well.",
                "high",
                _BYTE_COUNTS,
            ),
        )
        .build(16, "RingProducer", 4, "ring_bus", "Sends rows of wide memory over the ring bus.")
    )


def _ring_consumer(opcode: int, channel: RingChannel, flag: TileFlag) -> Instruction:
    return (
        Layout(TILE_HEADER)
        .traversal("wide_write", _WIDE_ROWS, loops=4, base=16, counter=16, prologue=True)
        .plain(_BASE_OVERRIDE)
        .producer("producer", 4, Signal(flag, "tile"))
        .watcher(3, 4, side=True)
        .plain(_reserved("destination", 1, "Perhaps a choice of destination.", _PUBLIC_NAME))
        .build(
            opcode,
            f"RingConsumer{channel.name}",
            4,
            "ring_bus",
            f"Writes the rows that arrive on ring channel {channel.name} to wide memory. The "
            "prologue takes rows ahead of the body, such as biases before weights.",
        )
    )


def _narrow_to_wide() -> Instruction:
    return (
        Layout(TILE_HEADER)
        .traversal("narrow_read", _NARROW_WORDS, loops=6, base=16, counter=16)
        .traversal("wide_write", _WIDE_ROWS, loops=4, base=16, counter=16)
        .plain(
            Field(
                "base_override",
                1,
                "flag",
                "Take the base address of the narrow read from `base_register`.",
                "high",
                "byte-exact simulation of an LSTM, the one program that uses it",
            )
        )
        .producer("producer", 4, Signal(TileFlag.NARROW_TO_WIDE_WRITE, "tile"))
        .watcher(6, 6, side=True)
        .plain(
            Field(
                "transpose",
                1,
                "flag",
                "Transpose each 4 x 4 block of bytes; the alternate limit then holds for loop 1.",
                "high",
                SIMULATION,
            ),
            Field(
                "transpose_16bit",
                1,
                "flag",
                "With `transpose`: transpose each 2 x 2 block of 16-bit halves instead.",
                "high",
                SIMULATION,
            ),
            Field(
                "row_loop",
                3,
                "uint",
                "A row is closed at each iteration of the read loops from this one outwards, and "
                "after 64 words.",
                "high",
                "row counts of 5,939 instructions",
            ),
        )
        .build(19, "NarrowToWide", 7, "narrow_to_wide", "Packs narrow words into wide rows.")
    )


def _wide_to_narrow() -> Instruction:
    return (
        Layout(TILE_HEADER)
        .traversal("wide_read", _WIDE_ROWS, loops=4, base=16, counter=16)
        .traversal("narrow_write", _NARROW_WORDS, loops=6, base=16, counter=16, prologue=True)
        .plain(_BASE_OVERRIDE)
        .producer(
            "producer",
            6,
            Signal(TileFlag.WIDE_TO_NARROW_WRITE, "tile", "scale_bias", 0),
            Signal(TileFlag.WIDE_TO_SCALING, "tile", "scale_bias", 1),
        )
        .watcher(6, 6, side=True)
        .plain(
            Field(
                "scale_bias",
                1,
                "flag",
                "Write the scale/bias buffer, two words a step, instead of narrow memory.",
                "high",
                SIMULATION,
            ),
            _reserved("transpose", 1, "Perhaps as in NarrowToWide.", _PUBLIC_NAME),
            _reserved("double_operand", 1, "Unknown.", _PUBLIC_NAME),
            Field(
                "row_loop",
                3,
                "uint",
                "A new row is read at each iteration of the write loops from this one outwards, "
                "and after 64 words.",
                "high",
                "row counts of 7,730 instructions",
            ),
        )
        .build(
            20,
            "WideToNarrow",
            7,
            "wide_to_narrow",
            "Spreads wide rows over narrow memory, or loads the scale/bias buffer. The prologue "
            "takes the leading words of a row: a tile skips with it what is not its own.",
        )
    )


def _mesh(
    opcode: int, outbound: str, inbound: str, sent: TileFlag, received: TileFlag
) -> Instruction:
    return (
        Layout(TILE_HEADER)
        .traversal("narrow_read", _NARROW_WORDS, loops=4, base=16, counter=16)
        .traversal("narrow_write", _NARROW_WORDS, loops=4, base=16, counter=16)
        .plain(_BASE_OVERRIDE)
        .producer("read_producer", 4, Signal(sent, "tile"))
        .producer("write_producer", 4, Signal(received, "tile"))
        .watcher(6, 4, side=True)
        .plain(
            Field(
                "immediate_valid",
                1,
                "flag",
                "Write the immediate instead of received words; the read side still sends.",
                "high",
                SIMULATION,
            ),
            Field(
                "immediate",
                32,
                "uint",
                "Constant word, such as four zero points for padding.",
                "high",
                SIMULATION,
            ),
        )
        .build(
            opcode,
            f"Mesh{outbound.capitalize()}",
            6,
            "mesh_bus",
            f"Sends narrow words to the {outbound} neighbour (4 x 4 torus) and writes those that "
            f"arrive from the {inbound}. A side whose first stride and limits are 0 is off.",
        )
    )


def _tile_fence() -> Instruction:
    return (
        Layout(HEADER)
        .plain(
            _TILES,
            _TAG,
            Field(
                "reset_flags", 19, "mask", "Sync flags to load.", "high", SIMULATION, codes=TileFlag
            ),
            Field("reset_value", 16, "uint", "Value loaded into them.", "high", SIMULATION),
            Field(
                "wait_idle",
                10,
                "mask",
                "Units of the tile that must be idle first.",
                "high",
                "bits 0 and 5 to 9 follow what precedes; bits 1 to 4 follow opcode order",
                codes=TileUnit,
            ),
            Field(
                "producer_count_valid",
                2,
                "mask",
                "Flags of ring producers that must equal `producer_count` first: neither fewer "
                "tokens nor more.",
                "high",
                _PRODUCER_COUNTS,
                codes=RingTokens,
            ),
            Field(
                "producer_count",
                16,
                "uint",
                "Awaited number of tokens; `reset_flags` names the same flag in every known "
                "program.",
                "high",
                _PRODUCER_COUNTS,
            ),
            Field(
                "increment",
                1,
                "flag",
                "Add 1 to the fence counter of the tile, which scalar fences await.",
                "high",
                "counters agree in 42,176 of 42,176 checks",
            ),
            _reserved("halt", 1, "Perhaps halts the tile.", _PUBLIC_NAME),
            Field(
                "narrow_sleep",
                1,
                "flag",
                "Narrow memory may sleep; no effect on results.",
                "medium",
                "set in the last fence of a program only; name from public code",
            ),
            Field(
                "wide_sleep",
                1,
                "flag",
                "Wide memory may sleep; no effect on results.",
                "medium",
                "set in the last fence of a program only; name from public code",
            ),
        )
        .build(
            26,
            "TileFence",
            1,
            "sync",
            "Holds later instructions of a tile back until its units are idle, then loads flags.",
        )
    )


def _scalar() -> Instruction:
    return (
        Layout(HEADER)
        .plain(
            Field("load_op", 2, "uint", "Load slot.", "high", _DESCRIPTORS, codes=LoadOperation),
            Field("load_register", 5, "register", "Register that is loaded.", "high", _DESCRIPTORS),
            Field(
                "load_address",
                13,
                "uint",
                "Word address, or register number (5 bits) and increment (8 bits).",
                "high",
                _DESCRIPTORS,
            ),
            Field("store_op", 4, "uint", "Store slot.", "high", _DESCRIPTORS, codes=StoreOperation),
            Field(
                "store_address",
                13,
                "uint",
                "Word address, register number and increment, or descriptor word.",
                "high",
                _DESCRIPTORS,
            ),
            Field(
                "store_register", 5, "register", "Register that is stored.", "high", _DESCRIPTORS
            ),
            Field("alu_op", 5, "uint", "ALU slot.", "high", _DESCRIPTORS, codes=AluOperation),
            Field(
                "alu_immediate",
                1,
                "flag",
                "Operand b is the immediate, not a register.",
                "high",
                _DESCRIPTORS,
            ),
            Field(
                "alu_destination",
                5,
                "register",
                "Register that is set, or predicate of a comparison.",
                "high",
                _DESCRIPTORS,
            ),
            Field("alu_a", 5, "register", "Operand a.", "high", _DESCRIPTORS),
            Field(
                "alu_b",
                32,
                "uint",
                "Operand b: immediate, or register number; relocations patch it.",
                "high",
                _DESCRIPTORS,
            ),
            Field(
                "function_op",
                3,
                "uint",
                "Transcendental slot.",
                "high",
                "softmax on the scalar core is byte-exact",
                codes=ScalarFunction,
            ),
            Field(
                "function_destination",
                5,
                "register",
                "Register that is set.",
                "high",
                "softmax on the scalar core is byte-exact",
            ),
            Field(
                "function_source",
                5,
                "register",
                "Operand.",
                "high",
                "softmax on the scalar core is byte-exact",
            ),
        )
        .build(
            32,
            "Scalar",
            1,
            "scalar_core",
            "Scalar bundle: every slot reads the registers as they were before the bundle.",
        )
    )


def _halt() -> Instruction:
    return (
        Layout(HEADER)
        .plain(
            _reserved("goto_halt", 1, "Unknown.", _PUBLIC_NAME),
            _reserved("interrupt", 1, "Unknown.", _PUBLIC_NAME),
            Field(
                "chunk_end",
                2,
                "uint",
                "1 ends a chunk that is not the last.",
                "low",
                "1 in 6 of 10 such chunks, 0 in those of older compilers and in last chunks",
            ),
            Field(
                "program_end",
                1,
                "flag",
                "Ends the last chunk of a program.",
                "medium",
                "1 in the last chunk of 170 executables, 0 in other chunks",
            ),
        )
        .build(
            33,
            "Halt",
            1,
            "scalar_core",
            "Ends the chunk; four empty scalar bundles follow it in every known stream.",
        )
    )


def _branch() -> Instruction:
    evidence = "29 of 29 targets are instruction boundaries"
    return (
        Layout(HEADER)
        .plain(
            Field(
                "conditional",
                1,
                "flag",
                "Branch only when the predicate has the polarity.",
                "high",
                evidence,
            ),
            Field(
                "branch_predicate",
                3,
                "register",
                "Predicate (that of the common header has no part in it).",
                "high",
                evidence,
            ),
            Field(
                "branch_polarity",
                1,
                "flag",
                "Value of the predicate that branches.",
                "high",
                evidence,
            ),
            Field("offset", 15, "int", "Bundles from this bundle to the target.", "high", evidence),
            _reserved("reserved_32", 1, "Unknown."),
            Field(
                "relative",
                1,
                "flag",
                "The offset is relative; an absolute branch is never seen.",
                "high",
                "always 1",
            ),
        )
        .build(34, "Branch", 1, "scalar_core", "Branches, without delay slots.")
    )


def _loop() -> Instruction:
    return (
        Layout(HEADER)
        .plain(
            Field(
                "count",
                16,
                "uint",
                "Times the body runs (not minus 1).",
                "high",
                "byte counts of copy loops",
            ),
            Field(
                "body",
                8,
                "uint",
                "Bundles of the body, which follows.",
                "high",
                "byte counts of copy loops; values above 31 are not seen",
            ),
        )
        .build(35, "Loop", 1, "scalar_core", "Hardware loop over the bundles that follow.")
    )


def _scalar_fence() -> Instruction:
    counters = "counters agree in 42,176 of 42,176 checks"
    return (
        Layout(HEADER)
        .plain(
            Field(
                "reset_tile_fences",
                20,
                "tiles",
                "Fence counters to clear, a bit for each tile; 16 are used.",
                "high",
                counters,
            ),
            Field(
                "reset_flags",
                9,
                "mask",
                "Scalar sync flags to load.",
                "high",
                SIMULATION,
                codes=ScalarFlag,
            ),
            Field("reset_value", 16, "uint", "Value loaded into them.", "high", SIMULATION),
            Field(
                "tile_fence_count",
                16,
                "uint",
                "Value that fence counters must have reached.",
                "high",
                counters,
            ),
            Field(
                "tile_fence_valid",
                20,
                "tiles",
                "Tiles whose fence counter is awaited; 16 are used.",
                "high",
                counters,
            ),
            Field(
                "expected",
                16,
                "uint",
                "Awaited values of the scalar sync flags, compared as signed 16-bit differences.",
                "high",
                "flags 5 and 6 agree in 388 of 388 checks; others are never awaited here",
                count=9,
            ),
            Field(
                "expected_valid",
                9,
                "mask",
                "Scalar sync flags that are awaited.",
                "high",
                "flags 5 and 6 agree in 388 of 388 checks; others are never awaited here",
                codes=ScalarFlag,
            ),
            Field(
                "wait_idle",
                5,
                "mask",
                "Units beside the scalar core that must be idle.",
                "medium",
                "what precedes and follows each bit; bit 4 is open",
                codes=ScalarUnit,
            ),
        )
        .build(
            36,
            "ScalarFence",
            2,
            "sync",
            "Holds the scalar core back until units, tiles and flags are ready. The fence before "
            "scratch is read back, a fence of the DMA hints, awaits unit bit 4 and, of the flags, "
            "6 alone, with any value.",
        )
    )


def _pop_input() -> Instruction:
    return (
        Layout(HEADER)
        .plain(
            Field("fifo", 1, "uint", "Input stream.", "high", _BYTE_COUNTS, codes=InputFifo),
        )
        .traversal(
            "buffer",
            "units of the buffer (64 bytes of parameters, 8 bytes of activations)",
            loops=3,
            base=15,
            counter=15,
        )
        .producer(
            "producer",
            3,
            Signal(ScalarFlag.PARAMETER_POP, "scalar core", "fifo", InputFifo.PARAMETERS),
            Signal(ScalarFlag.AV_POP, "scalar core", "fifo", InputFifo.ACTIVATIONS),
        )
        .watcher(1, 3, flags=ScalarFlag, side=False)
        .build(
            37,
            "PopInput",
            2,
            "host_interface",
            "Moves input from the host into the parameter or the activation buffer.",
        )
    )


def _ring_infeed() -> Instruction:
    source = InfeedSource
    return (
        Layout(HEADER)
        .plain(
            Field("fifo", 2, "uint", "What is read.", "high", _BYTE_COUNTS, codes=InfeedSource),
        )
        .traversal(
            "buffer",
            "units (64 bytes of parameters, 8 bytes of activations, 4 bytes of scalar memory)",
            loops=3,
            base=20,
            counter=20,
            prologue=True,
        )
        .producer(
            "token_producer",
            3,
            Signal(TileFlag.RING_PRODUCER_A, "all tiles", "consumer_b", 0),
            Signal(TileFlag.RING_PRODUCER_B, "all tiles", "consumer_b", 1),
        )
        .producer(
            "producer",
            3,
            Signal(ScalarFlag.PARAMETER_INFEED, "scalar core", "fifo", source.PARAMETERS),
            Signal(ScalarFlag.AV_INFEED, "scalar core", "fifo", source.ACTIVATIONS),
            Signal(ScalarFlag.SCALAR_INFEED, "scalar core", "fifo", source.SCALAR_MEMORY),
        )
        .watcher(2, 3, flags=ScalarFlag, side=False)
        .plain(
            Field(
                "sync_increment",
                16,
                "uint",
                "Increment of the flags.",
                "medium",
                "always 1; name from public code",
            ),
            Field(
                "consumer_b",
                1,
                "uint",
                "Ring channel.",
                "medium",
                "always 0 here; as in RingProducer",
                codes=RingChannel,
            ),
            Field(
                "targets",
                17,
                "tiles",
                "Destination tiles: bit t tile t.",
                "high",
                _BYTE_COUNTS,
            ),
            _reserved("tiles_register", 1, "Perhaps a register operand.", _PUBLIC_NAME),
            _reserved("base_register", 1, "Perhaps a register operand.", _PUBLIC_NAME),
            _reserved("counter_register", 6, "Perhaps a register operand.", _PUBLIC_NAME),
            Field(
                "row_words",
                6,
                "uint",
                "Words of a ring row, minus 1: a row is closed after as many words.",
                "high",
                _BYTE_COUNTS,
            ),
        )
        .build(38, "RingInfeed", 4, "ring_bus", "Sends a buffer to the tiles over the ring bus.")
    )


def _ring_outfeed() -> Instruction:
    return (
        Layout(HEADER)
        .traversal(
            "buffer",
            "units (8 bytes to the host, 4 bytes to scalar memory)",
            loops=3,
            base=15,
            counter=15,
        )
        .producer("producer", 3, Signal(ScalarFlag.RING_OUTFEED, "scalar core"))
        .watcher(1, 3, flags=ScalarFlag, side=False)
        .plain(
            _reserved("base_register", 1, "Perhaps a register operand.", _PUBLIC_NAME),
            _reserved("counter_register", 6, "Perhaps a register operand.", _PUBLIC_NAME),
            Field(
                "row_words",
                6,
                "uint",
                "Words of a ring row, minus 1.",
                "medium",
                "always 63; as in RingInfeed",
            ),
            Field(
                "to_host",
                1,
                "flag",
                "1: to the output stream of the host; 0: to scalar memory.",
                "high",
                _BYTE_COUNTS,
            ),
        )
        .build(
            39,
            "RingOutfeed",
            2,
            "ring_bus",
            "Takes rows from the ring bus: the first units of each row, as many as the traversal "
            "asks for; the rest of the row is dropped.",
        )
    )


def _framing() -> Iterable[Instruction]:
    program_address = Field(
        "start_pc", 14, "uint", "Address in program memory.", "high", "always 0 in 203 chunks"
    )
    yield (
        Layout(HEADER)
        .plain(
            program_address,
            Field(
                "bundles",
                15,
                "uint",
                "Bundles that follow and are loaded: those of the chunk minus 2.",
                "high",
                "203 of 203 chunks",
            ),
        )
        .build(62, "LoadProgram", 1, "scalar_core", "First bundle of a chunk: loads the program.")
    )
    yield (
        Layout(HEADER)
        .plain(
            program_address,
            Field("load_pc", 1, "flag", "Start at `start_pc`.", "high", "always 1 in 203 chunks"),
        )
        .build(63, "Execute", 1, "scalar_core", "Last bundle of a chunk: starts the program.")
    )


def _instructions() -> Iterable[Instruction]:
    yield Layout(HEADER).build(
        0, "NoOp", 1, "scalar_core", "Does nothing; never seen (empty scalar bundles are used)."
    )
    yield _tensor(
        1,
        "TensorMac",
        "Multiply-accumulate of narrow-memory activations with wide-memory parameters in 64 lanes, "
        "then scale, clip and offset.",
    )
    yield _tensor(
        2,
        "TensorMax",
        "Maximum over raw wide-memory bytes (or 16-bit halves), no zero point subtracted.",
    )
    yield _tensor(
        3,
        "TensorSum",
        "Sum over raw wide-memory bytes (or 16-bit halves), no zero point subtracted.",
    )
    yield _interpolate()
    yield _ring_producer()
    yield _ring_consumer(17, RingChannel.A, TileFlag.RING_BUS_READ_A)
    yield _ring_consumer(18, RingChannel.B, TileFlag.RING_BUS_READ_B)
    yield _narrow_to_wide()
    yield _wide_to_narrow()
    flag = TileFlag
    yield _mesh(21, "south", "north", flag.MESH_OUTBOUND_FOR_SOUTH, flag.MESH_INBOUND_FROM_NORTH)
    yield _mesh(22, "west", "east", flag.MESH_OUTBOUND_FOR_WEST, flag.MESH_INBOUND_FROM_EAST)
    yield _mesh(23, "north", "south", flag.MESH_OUTBOUND_FOR_NORTH, flag.MESH_INBOUND_FROM_SOUTH)
    yield _mesh(24, "east", "west", flag.MESH_OUTBOUND_FOR_EAST, flag.MESH_INBOUND_FROM_WEST)
    yield _coefficient_table()
    yield _tile_fence()
    yield _scalar()
    yield _halt()
    yield _branch()
    yield _loop()
    yield _scalar_fence()
    yield _pop_input()
    yield _ring_infeed()
    yield _ring_outfeed()
    yield (
        Layout(HEADER)
        .plain(Field("interrupt", 2, "uint", "Host interrupt.", "low", "never seen"))
        .build(
            40,
            "Interrupt",
            1,
            "scalar_core",
            "Raises a host interrupt; never seen, known from a later generation.",
        )
    )
    yield from _framing()


INSTRUCTIONS: dict[int, Instruction] = {
    entry.opcode: with_grades(entry) for entry in _instructions()
}
"""Every instruction by opcode."""

BY_NAME: dict[str, Instruction] = {entry.name: entry for entry in INSTRUCTIONS.values()}
"""Every instruction by name."""
