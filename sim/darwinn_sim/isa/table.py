"""The instruction table: every opcode of Beagle, its fields and what they mean.

Decoder, encoder, disassembler, generated documentation, the JSON of other tools and RTL constants
derive from ``INSTRUCTIONS``; nothing else in the tree contains a bit offset. A field is a line
(:func:`darwinn_sim.isa.fields.read`): name, width in bits, kind, meaning, in parentheses what names
its values (``codes.py``), and in brackets how sure that is and from what (``evidence.py``). Fields
stand one after another, so only widths are written. Groups that instructions share are in
``layout.py``, values that are not known in ``grades.py``.
"""

from __future__ import annotations

from darwinn_sim.isa.codes import InfeedSource, InputFifo, RingChannel, ScalarFlag, TileFlag
from darwinn_sim.isa.fields import Instruction, Signal, place, read
from darwinn_sim.isa.grades import with_grades
from darwinn_sim.isa.layout import Layout

HEADER = place(
    read("""
    gate      1 flag     Execute only when the predicate equals the polarity; only scalar bundles
                         are gated. [high descriptors]
    predicate 3 register Predicate of the gate. [high descriptors]
    polarity  1 flag     Value that the predicate must have. [high descriptors]
    trace     1 flag     Trace request. [low public_name]
    opcode    6 uint     Operation. [high: no stream loses its boundaries]
    """)
)
"""Fields of every instruction."""

_TILES = """
    tiles 16 tiles Tiles that execute it: bit 4 * row + column. [high simulation]
"""
_TAG = """
    tag 16 uint Serial number of the tile instruction in its stream, from 0x8000 in
                parameter-caching streams; it has no effect. [high: increases in 203 streams]
"""

TILE_HEADER = place(
    (
        *HEADER,
        *read(_TILES),
        *read("""
    base_register    5 register Scalar register that replaces a base address where `base_override`
                                is set. [high lstm_alone]
    tiles_register   5 register Scalar register that supplies the tile set. [high lstm_alone]
    tiles_override   1 flag     Take the tile set from `tiles_register`. [high lstm_alone]
    register_sources 7 mask     Perhaps further register operands. [open zero]
        """),
        *read(_TAG),
    )
)
"""Fields of every instruction for the tiles but the fence, whose header is shorter."""

_NARROW_BYTES = "bytes of narrow memory"
_NARROW_WORDS = "words of narrow memory"
_WIDE_ROWS = "rows of wide memory"
_GRANULES = "granules of wide memory (row * 4 + byte plane)"

_BASE_OVERRIDE = """
    base_override 1 flag Take the base address from `base_register`. [open: always 0 in every known
                         program but in NarrowToWide]
"""


def _tensor_common(opcode: int, name: str) -> Layout:
    """What the four tensor instructions share, up to the output scale."""
    return (
        Layout(opcode, name, 17, "tensor_unit", TILE_HEADER)
        .fields("""
    main_limit           14x8 uint Iterations of each main loop, minus 1; innermost loop first.
                                   [high simulation]
    main_alternate_limit   14 uint Limit of main loop 0 during the last iteration of the alternate
                                   loop. [high tensors]
    main_alternate_loop     3 uint Main loop on whose last iteration the alternate limit holds; 0:
                                   none. [high tensors]
        """)
        .traversal("narrow_read", _NARROW_BYTES, loops=8, base=18, counter=18)
        .traversal("narrow_write", _NARROW_BYTES, loops=8, base=18, counter=18)
        .traversal("parameter_read", _GRANULES, loops=8, base=14, counter=14)
        .traversal("partial_sum", _GRANULES, loops=8, base=14, counter=14)
        .producer("narrow_write_producer", 8, Signal(TileFlag.ACTIVATION_WRITE, "tile"))
        .producer("parameter_read_producer", 8, Signal(TileFlag.PARAMETER_READ, "tile"))
        .producer("partial_sum_producer", 8, Signal(TileFlag.PARTIAL_SUM_WRITE, "tile"))
        .watcher(6, 8, side=False)
        .fields("""
    hiccup                     18 uint Perhaps a throttle. [open public_name]
    partial_sum_wrap            1 uint Perhaps partial sums wrap. [open public_name]
    zero_activation_power_save  1 flag Saves power where activations are 0; no effect on results.
                                       [medium: 1 in layers, 0 in copies; results do not depend on
                                       it]
    partial_sum_read            2 uint What becomes of the accumulator. (PartialSumMode)
                                       [high simulation]
    activation_16bit            1 flag Activations are unsigned 16 bit, little-endian, with a
                                       16-bit zero point. [high simulation]
    parameter_16bit             1 flag Parameters are unsigned 16 bit in two byte planes, the low
                                       plane in the granule before the high one, with a 16-bit zero
                                       point. [high simulation]
    reserved_1848               1 uint Unknown. [open zero]
    mac_disable                 4 uint Multipliers that stand still; the others make the products
                                       of a step: 8 x 8 bit one each, 16 x 8 and 8 x 16 one for
                                       two, 16 x 16 one for four. A maximum or sum takes as many
                                       byte planes where the granule begins a row, and one
                                       elsewhere. (MacDisable) [high simulation]
    load_parameter_zero_point   1 flag Take int32 parameter zero points of each lane from the
                                       zero-point rows. [high simulation]
    parameter_zero_point       16 uint Parameter zero point. [high simulation]
    activation_zero_point      16 uint Activation zero point. [high simulation]
    zero_point_limit           12 uint Last zero-point row before it wraps to the base.
                                       [high zero_points]
    zero_point_stride          12 uint Rows from the zero points of one output block to those of
                                       the next. [high zero_points]
    zero_point_base            12 uint Row of wide memory with the zero points of the first output
                                       block. [high zero_points]
    alternate_base              1 uint Perhaps an alternate base address. [open public_name]
        """)
        .fields("""
    output_block_loop  3 uint    Main loops from this one outwards that are not summed over
                                 enumerate the blocks of output lanes. [high simulation]
    reduction_loops    8 mask    Main loops that are summed over. [high simulation]
    last_block_lanes   6 uint    Valid lanes of the last block, minus 1. [high simulation]
    block_lanes        6 uint    Valid lanes of the other blocks, minus 1. [high simulation]
    function           3 mask    Output function. (OutputFunction) [high simulation]
    output_scale      32 float32 Factor of the int32 sum; 1 where there are scales of each lane.
                                 [high simulation]
        """)
    )


_FUNCTION_SIGNS = """
    use_scales         1 flag Multiply by float32 scales of each lane, from the scale/bias buffer
                              (steps 0 and up). [high simulation]
    symmetric_function 1 flag Evaluate the table at the absolute value. [high lstm]
    odd_function       1 flag Give the result the sign of the argument. [high lstm]
"""


def _tensor(opcode: int, name: str) -> Layout:
    return (
        _tensor_common(opcode, name)
        .fields("""
    high_clip         32 float32 Upper bound before the offset; inf with 8-bit outputs: the low
                                 byte is kept. [high simulation]
    low_clip          32 float32 Lower bound before the offset. [high simulation]
    immediate_bias    32 int     Added to the sum when `apply_bias` is 0. [high additions]
    output_zero_point 16 uint    Added after rounding. [high simulation]
    apply_bias         1 flag    Add int32 biases of each lane, from the scale/bias buffer (steps
                                 64 and up). [high simulation]
        """)
        .fields(_FUNCTION_SIGNS)
    )


def _tensor_interpolate(opcode: int, name: str) -> Layout:
    """Positions and steps are those of the taps along an axis of the output."""
    return (
        _tensor_common(opcode, name)
        .at(1981)
        .fields("""
    x_loop   3 uint Main loop that walks the output columns. [high one_network]
    x_start  8 int  First position, in 1/128 pixel. [high one_network]
    x_step  16 uint Step from one output to the next, in 1/128 pixel; the widest values are not
                    seen. [high one_network]
        """)
        .at(2013)
        .fields("""
    y_loop   3 uint Main loop that walks the output rows. [high one_network]
    y_start  8 int  First position, in 1/128 pixel. [high one_network]
    y_step  16 uint Step from one output to the next, in 1/128 pixel; the widest values are not
                    seen. [high one_network]
        """)
        .at(2045)
        .fields("""
    x_pitch 18 uint Bytes from column to column. [high one_network]
        """)
        .at(2077)
        .fields("""
    y_pitch                  16 uint Bytes from row to row. [high one_network]
    apply_bias/nearest_pixel  1 flag Take the nearest pixel, at (position + 64) >> 7 on both axes,
                                     with weight 1; no bias is added. [high: up-sampling of three
                                     public networks agrees with the uncompiled model]
        """)
        .fields(_FUNCTION_SIGNS)
    )


def _ring_consumer(opcode: int, channel: RingChannel, flag: TileFlag) -> Layout:
    unit = f"ring_consumer_{channel.label}"
    return (
        Layout(opcode, f"RingConsumer{channel.name}", 4, unit, TILE_HEADER)
        .summary(
            f"Writes the rows that arrive on ring channel {channel.name} to wide memory. The "
            "prologue takes rows ahead of the body, such as biases before weights."
        )
        .traversal("wide_write", _WIDE_ROWS, loops=4, base=16, counter=16, prologue=True)
        .fields(_BASE_OVERRIDE)
        .producer("producer", 4, Signal(flag, "tile"))
        .watcher(3, 4, side=True)
        .fields("""
    destination 1 uint Perhaps a choice of destination. [open public_name]
        """)
    )


def _mesh(opcode: int, outbound: str, inbound: str, sent: TileFlag, received: TileFlag) -> Layout:
    return (
        Layout(opcode, f"Mesh{outbound.capitalize()}", 6, f"mesh_{outbound}", TILE_HEADER)
        .summary(
            f"Sends narrow words to the {outbound} neighbour (4 x 4 torus) and writes those that "
            f"arrive from the {inbound}. A side whose first stride and limits are 0 is off."
        )
        .traversal("narrow_read", _NARROW_WORDS, loops=4, base=16, counter=16)
        .traversal("narrow_write", _NARROW_WORDS, loops=4, base=16, counter=16)
        .fields(_BASE_OVERRIDE)
        .producer("read_producer", 4, Signal(sent, "tile"))
        .producer("write_producer", 4, Signal(received, "tile"))
        .watcher(6, 4, side=True)
        .fields("""
    immediate_valid  1 flag Write the immediate instead of received words; the read side still
                            sends. [high simulation]
    immediate       32 uint Constant word, such as four zero points for padding. [high simulation]
        """)
    )


_LAYOUTS = (
    Layout(0, "NoOp", 1, "scalar_core", HEADER).summary(
        "Does nothing; never seen (empty scalar bundles are used)."
    ),
    _tensor(1, "TensorMac").summary(
        "Multiply-accumulate of narrow-memory activations with wide-memory parameters in 64 lanes, "
        "then scale, clip and offset."
    ),
    _tensor(2, "TensorMax").summary(
        "Maximum over raw wide-memory bytes (or 16-bit halves), no zero point subtracted."
    ),
    _tensor(3, "TensorSum").summary(
        "Sum over raw wide-memory bytes (or 16-bit halves), no zero point subtracted."
    ),
    _tensor_interpolate(5, "TensorInterpolate").summary(
        "Interpolation: the sum of 2 x 2 taps weighted by position, times the scale (2^-14), "
        "rounded; no clip, no offset. Main loops 0 and 1 are the taps. With `apply_bias` the "
        "nearest pixel alone."
    ),
    Layout(16, "RingProducer", 4, "ring_producer", TILE_HEADER)
    .summary("Sends rows of wide memory over the ring bus.")
    .traversal("wide_read", _WIDE_ROWS, loops=4, base=16, counter=16, prologue=True)
    .fields(_BASE_OVERRIDE)
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
    .fields("""
    consumer_b  1 uint  Ring channel. (RingChannel) [high simulation]
    targets    17 tiles Destinations: bit t tile t, bit 16 the ring outfeed. Rows for the outfeed
                        on channel B count on scalar flag 5 as well. [high byte_counts]
    """),
    _ring_consumer(17, RingChannel.A, TileFlag.RING_BUS_READ_A),
    _ring_consumer(18, RingChannel.B, TileFlag.RING_BUS_READ_B),
    Layout(19, "NarrowToWide", 7, "narrow_to_wide", TILE_HEADER)
    .summary("Packs narrow words into wide rows.")
    .traversal("narrow_read", _NARROW_WORDS, loops=6, base=16, counter=16)
    .traversal("wide_write", _WIDE_ROWS, loops=4, base=16, counter=16)
    .fields("""
    base_override 1 flag Take the base address of the narrow read from `base_register`.
                         [high lstm_alone]
    """)
    .producer("producer", 4, Signal(TileFlag.NARROW_TO_WIDE_WRITE, "tile"))
    .watcher(6, 6, side=True)
    .fields("""
    transpose       1 flag Transpose each 4 x 4 block of bytes; the alternate limit then holds for
                           loop 1. [high simulation]
    transpose_16bit 1 flag With `transpose`: transpose each 2 x 2 block of 16-bit halves instead.
                           [high simulation]
    row_loop        3 uint A row is closed at each iteration of the read loops from this one
                           outwards, and after 64 words. [high: row counts of 5,939 instructions]
    """),
    Layout(20, "WideToNarrow", 7, "wide_to_narrow", TILE_HEADER)
    .summary(
        "Spreads wide rows over narrow memory, or loads the scale/bias buffer. The prologue "
        "takes the leading words of a row: a tile skips with it what is not its own."
    )
    .traversal("wide_read", _WIDE_ROWS, loops=4, base=16, counter=16)
    .traversal("narrow_write", _NARROW_WORDS, loops=6, base=16, counter=16, prologue=True)
    .fields(_BASE_OVERRIDE)
    .producer(
        "producer",
        6,
        Signal(TileFlag.WIDE_TO_NARROW_WRITE, "tile", "scale_bias", 0),
        Signal(TileFlag.WIDE_TO_SCALING, "tile", "scale_bias", 1),
    )
    .watcher(6, 6, side=True)
    .fields("""
    scale_bias     1 flag Write the scale/bias buffer, two words a step, instead of narrow memory.
                          [high simulation]
    transpose      1 uint Perhaps as in NarrowToWide. [open public_name]
    double_operand 1 uint Unknown. [open public_name]
    row_loop       3 uint A new row is read at each iteration of the write loops from this one
                          outwards, and after 64 words. [high: row counts of 7,730 instructions]
    """),
    _mesh(21, "south", "north", TileFlag.MESH_OUTBOUND_FOR_SOUTH, TileFlag.MESH_INBOUND_FROM_NORTH),
    _mesh(22, "west", "east", TileFlag.MESH_OUTBOUND_FOR_WEST, TileFlag.MESH_INBOUND_FROM_EAST),
    _mesh(23, "north", "south", TileFlag.MESH_OUTBOUND_FOR_NORTH, TileFlag.MESH_INBOUND_FROM_SOUTH),
    _mesh(24, "east", "west", TileFlag.MESH_OUTBOUND_FOR_EAST, TileFlag.MESH_INBOUND_FROM_WEST),
    Layout(25, "CoefficientTable", 13, "tensor_unit", TILE_HEADER)
    .summary("Loads the function table of a tile: a piecewise polynomial, evaluated in float32.")
    .fields("""
    coefficient 32x40 float32 Eight segments of five polynomial coefficients, constant term first.
                              [high: sigmoid and exponential tables evaluate to the ideal bytes]
    lower_bound  32x7 float32 Lower bounds of segments 1 to 7, increasing. [high: increasing in 6
                              of 6 distinct tables]
    degree          2 uint    Perhaps the degree of the polynomials. [low: always 3; the width may
                              be 3 bits]
    """),
    Layout(26, "TileFence", 1, "tile_fence", HEADER)
    .summary("Holds later instructions of a tile back until its units are idle, then loads flags.")
    .fields(_TILES)
    .fields(_TAG)
    .fields("""
    reset_flags          19 mask Sync flags to load. (TileFlag) [high simulation]
    reset_value          16 uint Value loaded into them. [high simulation]
    wait_idle            10 mask Units of the tile that must be idle first. (TileUnit) [high: bits
                                 0 and 5 to 9 follow what precedes, bit 5 in 252 of 252 fences;
                                 bits 1 to 3 follow opcode order, bit 4 is what is left]
    producer_count_valid  2 mask Flags of ring producers that must equal `producer_count` first:
                                 neither fewer tokens nor more. (RingTokens) [high token_counts]
    producer_count       16 uint Awaited number of tokens; `reset_flags` names the same flag in
                                 every known program. [high token_counts]
    increment             1 flag Add 1 to the fence counter of the tile, which scalar fences await.
                                 [high counters]
    halt                  1 uint Perhaps halts the tile. [open public_name]
    narrow_sleep          1 flag Narrow memory may sleep; no effect on results. [medium last_fence]
    wide_sleep            1 flag Wide memory may sleep; no effect on results. [medium last_fence]
    """),
    Layout(32, "Scalar", 1, "scalar_core", HEADER)
    .summary("Scalar bundle: every slot reads the registers as they were before the bundle.")
    .fields("""
    load_op               2 uint     Load slot. (LoadOperation) [high descriptors]
    load_register         5 register Register that is loaded. [high descriptors]
    load_address         13 uint     Word address, or register number (5 bits) and increment (8
                                     bits). [high descriptors]
    store_op              4 uint     Store slot. (StoreOperation) [high descriptors]
    store_address        13 uint     Word address, register number and increment, or descriptor
                                     word. [high descriptors]
    store_register        5 register Register that is stored. [high descriptors]
    alu_op                5 uint     ALU slot. (AluOperation) [high descriptors]
    alu_immediate         1 flag     Operand b is the immediate, not a register. [high descriptors]
    alu_destination       5 register Register that is set, or predicate of a comparison.
                                     [high descriptors]
    alu_a                 5 register Operand a. [high descriptors]
    alu_b                32 uint     Operand b: immediate, or register number; relocations patch
                                     it. [high descriptors]
    function_op           3 uint     Transcendental slot. (ScalarFunction) [high softmax]
    function_destination  5 register Register that is set. [high softmax]
    function_source       5 register Operand. [high softmax]
    """),
    Layout(33, "Halt", 1, "scalar_core", HEADER)
    .summary("Ends the chunk; four empty scalar bundles follow it in every known stream.")
    .fields("""
    goto_halt   1 uint Unknown. [open public_name]
    interrupt   1 uint Unknown. [open public_name]
    chunk_end   2 uint 1 ends a chunk that is not the last. [low: 1 in 6 of 10 such chunks, 0 in
                       those of older compilers and in last chunks]
    program_end 1 flag Ends the last chunk of a program. [medium: 1 in the last chunk of 170
                       executables, 0 in other chunks]
    """),
    Layout(34, "Branch", 1, "scalar_core", HEADER)
    .summary("Branches, without delay slots.")
    .fields("""
    conditional       1 flag     Branch only when the predicate has the polarity. [high targets]
    branch_predicate  3 register Predicate (that of the common header has no part in it).
                                 [high targets]
    branch_polarity   1 flag     Value of the predicate that branches. [high targets]
    offset           15 int      Bundles from this bundle to the target. [high targets]
    reserved_32       1 uint     Unknown. [open zero]
    relative          1 flag     The offset is relative; an absolute branch is never seen. [high:
                                 always 1]
    """),
    Layout(35, "Loop", 1, "scalar_core", HEADER)
    .summary("Hardware loop over the bundles that follow.")
    .fields("""
    count 16 uint Times the body runs (not minus 1). [high: byte counts of copy loops]
    body   8 uint Bundles of the body, which follows. [high: byte counts of copy loops; values
                  above 31 are not seen]
    """),
    Layout(36, "ScalarFence", 2, "scalar_fence", HEADER)
    .summary(
        "Holds the scalar core back until units, tiles and flags are ready. The fence before "
        "scratch is read back, a fence of the DMA hints, awaits unit bit 4 and, of the flags, "
        "6 alone, with any value."
    )
    .fields("""
    reset_tile_fences   20 tiles Fence counters to clear, a bit for each tile; 16 are used.
                                 [high counters]
    reset_flags          9 mask  Scalar sync flags to load. (ScalarFlag) [high simulation]
    reset_value         16 uint  Value loaded into them. [high simulation]
    tile_fence_count    16 uint  Value that fence counters must have reached. [high counters]
    tile_fence_valid    20 tiles Tiles whose fence counter is awaited; 16 are used. [high counters]
    expected          16x9 uint  Awaited values of the scalar sync flags, compared as signed 16-bit
                                 differences. [high flags_5_6]
    expected_valid       9 mask  Scalar sync flags that are awaited. (ScalarFlag) [high flags_5_6]
    wait_idle            5 mask  Units beside the scalar core that must be idle. (ScalarUnit)
                                 [medium: what precedes and follows each bit; bit 4 is open: it is
                                 waited for after rows went to the outfeed, and in the DMA fence]
    """),
    Layout(37, "PopInput", 2, "input_pop", HEADER)
    .summary("Moves input from the host into the parameter or the activation buffer.")
    .fields("""
    fifo 1 uint Input stream. (InputFifo) [high byte_counts]
    """)
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
    .watcher(1, 3, flags=ScalarFlag, side=False),
    Layout(38, "RingInfeed", 4, "ring_infeed", HEADER)
    .summary("Sends a buffer to the tiles over the ring bus.")
    .fields("""
    fifo 2 uint What is read. (InfeedSource) [high byte_counts]
    """)
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
        Signal(ScalarFlag.PARAMETER_INFEED, "scalar core", "fifo", InfeedSource.PARAMETERS),
        Signal(ScalarFlag.AV_INFEED, "scalar core", "fifo", InfeedSource.ACTIVATIONS),
        Signal(ScalarFlag.SCALAR_INFEED, "scalar core", "fifo", InfeedSource.SCALAR_MEMORY),
    )
    .watcher(2, 3, flags=ScalarFlag, side=False)
    .fields("""
    sync_increment   16 uint  Increment of the flags. [medium: always 1; name from public code]
    consumer_b        1 uint  Ring channel. (RingChannel) [medium: always 0 here; as in
                              RingProducer]
    targets          17 tiles Destination tiles: bit t tile t. [high byte_counts]
    tiles_register    1 uint  Perhaps a register operand. [open public_name]
    base_register     1 uint  Perhaps a register operand. [open public_name]
    counter_register  6 uint  Perhaps a register operand. [open public_name]
    row_words         6 uint  Words of a ring row, minus 1: a row is closed after as many words.
                              [high byte_counts]
    """),
    Layout(39, "RingOutfeed", 2, "ring_outfeed", HEADER)
    .summary(
        "Takes rows from the ring bus: the first units of each row, as many as the traversal "
        "asks for; the rest of the row is dropped."
    )
    .traversal(
        "buffer",
        "units (8 bytes to the host, 4 bytes to scalar memory)",
        loops=3,
        base=15,
        counter=15,
    )
    .producer("producer", 3, Signal(ScalarFlag.RING_OUTFEED, "scalar core"))
    .watcher(1, 3, flags=ScalarFlag, side=False)
    .fields("""
    base_register    1 uint Perhaps a register operand. [open public_name]
    counter_register 6 uint Perhaps a register operand. [open public_name]
    row_words        6 uint Words of a ring row, minus 1. [medium: always 63; as in RingInfeed]
    to_host          1 flag 1: to the output stream of the host; 0: to scalar memory.
                            [high byte_counts]
    """),
    Layout(40, "Interrupt", 1, "scalar_core", HEADER)
    .summary("Raises a host interrupt; never seen, known from a later generation.")
    .fields("""
    interrupt 2 uint Host interrupt. [low: never seen]
    """),
    Layout(62, "LoadProgram", 1, "scalar_core", HEADER)
    .summary("First bundle of a chunk: loads the program.")
    .fields("""
    start_pc 14 uint Address in program memory. [high chunks]
    bundles  15 uint Bundles that follow and are loaded: those of the chunk minus 2. [high: 203 of
                     203 chunks]
    """),
    Layout(63, "Execute", 1, "scalar_core", HEADER)
    .summary("Last bundle of a chunk: starts the program.")
    .fields("""
    start_pc 14 uint Address in program memory. [high chunks]
    load_pc   1 flag Start at `start_pc`. [high: always 1 in 203 chunks]
    """),
)

INSTRUCTIONS: dict[int, Instruction] = {
    layout.opcode: with_grades(layout.build()) for layout in _LAYOUTS
}
"""Every instruction by opcode."""

BY_NAME: dict[str, Instruction] = {entry.name: entry for entry in INSTRUCTIONS.values()}
"""Every instruction by name."""

TENSOR_NAMES = ("TensorMac", "TensorMax", "TensorSum", "TensorInterpolate")
"""Instructions with which the tensor unit computes."""
