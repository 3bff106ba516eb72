"""The instruction table: every opcode of Beagle, its fields and what they mean.

Decoder, encoder, disassembler, generated documentation and RTL constants derive from
``INSTRUCTIONS``; nothing else in the tree contains a bit offset. Where a fact comes from, and how
sure it is, stands beside it (docs/isa.md is generated from here).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from darwinn_sim.isa.fields import (
    Field,
    Instruction,
    Traversal,
    interleave,
    loop_selector_width,
    place,
)

_HEADER = place(
    (
        Field("gate", 1, "flag", "execute only when predicate `predicate` equals `polarity`"),
        Field("predicate", 3, "uint", "predicate register of the gate"),
        Field("polarity", 1, "flag", "value the predicate must have"),
        Field("trace", 1, "flag", "trace request", "low"),
        Field("opcode", 6, "uint", "operation"),
    )
)

_TILE_HEADER = place(
    (
        *_HEADER,
        Field("tiles", 16, "tiles", "tiles that execute the instruction (tile = 4 * row + column)"),
        Field("base_register", 5, "register", "scalar register that replaces a base address"),
        Field("tiles_register", 5, "register", "scalar register that supplies the tile set"),
        Field("tiles_override", 1, "flag", "take the tile set from `tiles_register`"),
        Field("register_sources", 7, "mask", "further register operands", "open"),
        Field("tag", 16, "uint", "serial number of the tile instruction in its stream"),
    )
)


def _end(fields: Sequence[Field]) -> int:
    return max(field.end for field in fields)


class _Layout:
    """Collects the parts of one instruction in the order in which they are encoded."""

    def __init__(self, header: Sequence[Field]) -> None:
        self.fields: list[Field] = list(header)
        self.traversals: list[Traversal] = []
        self.producers: list[str] = []
        self.watchers = 0

    def plain(self, *fields: Field) -> _Layout:
        self.fields += place(fields, _end(self.fields))
        return self

    def at(self, offset: int, *fields: Field) -> _Layout:
        self.fields += place(fields, offset)
        return self

    def traversal(
        self,
        name: str,
        unit: str,
        *,
        loops: int,
        base: int,
        counter: int,
        prologue: bool = False,
    ) -> _Layout:
        selector = loop_selector_width(loops)
        prefix = f"{name}_"
        self.plain(Field(prefix + "base", base, "uint", f"first address, in {unit}"))
        self.fields += interleave(
            loops,
            (
                Field(
                    prefix + "stride",
                    counter + 1,
                    "int",
                    "normalised stride of each loop, innermost first: the step of the loop minus "
                    "the sum of step * limit of the inner unmasked loops",
                ),
                Field(prefix + "limit", counter, "uint", "iterations of each loop, minus 1"),
            ),
            _end(self.fields),
        )
        self.plain(
            Field(prefix + "mask", loops, "mask", "loops that move the address"),
            Field(prefix + "double_loop", selector, "uint", "loop that toggles the double buffer"),
            Field(
                prefix + "double_offset",
                counter,
                "uint",
                "distance of the second buffer; 0: single buffer",
            ),
            Field(prefix + "double_start", 1, "flag", "start in the second buffer"),
            Field(
                prefix + "alternate_limit",
                counter,
                "uint",
                "limit of loop 0 (loop 1 of a transposing narrow-to-wide) on the last pass of "
                "`alternate_loop`",
            ),
            Field(
                prefix + "alternate_loop", selector, "uint", "loop of the alternate limit; 0: none"
            ),
            Field(
                prefix + "alternate_reset",
                counter,
                "int",
                "step * (limit - alternate limit): what the alternate limit saves",
            ),
        )
        if prologue:
            self.plain(
                Field(prefix + "prologue_enable", 1, "flag", "a prologue precedes the loops"),
                Field(
                    prefix + "prologue_loop",
                    selector,
                    "uint",
                    "the prologue runs at each start of the group of loops 0 to this one",
                ),
                Field(prefix + "prologue_base", base, "uint", "first address of the prologue"),
                Field(prefix + "prologue_inner_limit", counter, "uint", "elements, minus 1"),
                Field(
                    prefix + "prologue_outer_limit",
                    counter,
                    "uint",
                    "last address that the prologue base steps to before it wraps",
                    "medium",
                ),
                Field(
                    prefix + "prologue_outer_stride",
                    counter,
                    "uint",
                    "step of the prologue base between its runs",
                    "medium",
                ),
            )
        self.traversals.append(Traversal(name, loops, prologue, unit))
        return self

    def producer(self, name: str, loops: int, meaning: str) -> _Layout:
        self.plain(
            Field(f"{name}_increment", 1, "flag", f"{meaning}: on"),
            Field(
                f"{name}_depth",
                loops.bit_length(),
                "uint",
                f"{meaning}: once per iteration of the loops from this one outwards",
            ),
        )
        self.producers.append(name)
        return self

    def watcher(self, count: int, loops: int, *, flag: int = 5, side: bool = True) -> _Layout:
        members = [
            Field("watcher_flag", flag, "uint", "sync flag that is watched"),
            Field("watcher_depth", loop_selector_width(loops), "uint", "loop depth of the wait"),
            Field("watcher_expected", 16, "int", "value the flag must have reached"),
            Field("watcher_stride", 16, "uint", "added to the expected value at each wait"),
            Field("watcher_valid", 1, "flag", "the watcher is on"),
        ]
        if side:
            members.append(
                Field("watcher_side", 1, "flag", "traversal that waits: 0 the first, 1 the second")
            )
        self.fields += interleave(count, members, _end(self.fields))
        self.watchers = count
        return self

    def build(self, opcode: int, name: str, bundles: int, unit: str, summary: str) -> Instruction:
        fields = tuple(sorted(self.fields, key=lambda field: field.offset))
        return Instruction(
            opcode,
            name,
            bundles,
            unit,
            summary,
            fields,
            tuple(self.traversals),
            tuple(self.producers),
            self.watchers,
        )


def _reserved(name: str, width: int, meaning: str = "always 0 in every known program") -> Field:
    return Field(name, width, "uint", meaning, "open")


def _tensor_common() -> _Layout:
    layout = _Layout(_TILE_HEADER)
    layout.plain(
        Field("main_limit", 14, "uint", "main loops: iterations minus 1", count=8, pitch=14),
        Field("main_alternate_limit", 14, "uint", "limit of main loop 0 on the last pass of ..."),
        Field("main_alternate_loop", 3, "uint", "... this main loop; 0: none"),
    )
    layout.traversal("narrow_read", "bytes of narrow memory", loops=8, base=18, counter=18)
    layout.traversal("narrow_write", "bytes of narrow memory", loops=8, base=18, counter=18)
    granule = "granules of wide memory (row * 4 + byte plane)"
    layout.traversal("parameter_read", granule, loops=8, base=14, counter=14)
    layout.traversal("partial_sum", granule, loops=8, base=14, counter=14)
    layout.producer("narrow_write_producer", 8, "increment flag 0 (activation write)")
    layout.producer("parameter_read_producer", 8, "increment flag 1 (parameter read)")
    layout.producer("partial_sum_producer", 8, "increment flag 2 (partial sum write)")
    layout.watcher(6, 8, side=False)
    layout.plain(
        _reserved("hiccup", 18),
        _reserved("partial_sum_wrap", 1),
        Field("zero_activation_power_save", 1, "flag", "no effect on results", "medium"),
        Field(
            "partial_sum_read",
            2,
            "uint",
            "3: start from 0, keep the sum in the accumulator, write none; 1: start from 0 at the "
            "first pass of the reduction loops, otherwise from the int32 row in wide memory, and "
            "write the sum back at the end of each run",
        ),
        Field("activation_16bit", 1, "flag", "activations are unsigned 16 bit, little-endian"),
        Field("parameter_16bit", 1, "flag", "parameters are two byte planes, low plane first"),
        _reserved("reserved_1848", 1),
        Field("mac_disable", 4, "mask", "0: all products; 14: byte 0 only; 12: bytes 0 and 1"),
        Field("load_parameter_zero_point", 1, "flag", "zero points of each lane from wide memory"),
        Field("parameter_zero_point", 16, "uint", "parameter zero point"),
        Field("activation_zero_point", 16, "uint", "activation zero point"),
        Field("zero_point_limit", 12, "uint", "last zero-point row"),
        Field("zero_point_stride", 12, "uint", "rows between zero points of output blocks"),
        Field("zero_point_base", 12, "uint", "first zero-point row"),
        _reserved("alternate_base", 1, "use an alternate base address"),
        Field("output_block_loop", 3, "uint", "loops from here outwards enumerate lane blocks"),
        Field("reduction_loops", 8, "mask", "main loops that are summed over"),
        Field("last_block_lanes", 6, "uint", "valid lanes of the last block, minus 1"),
        Field("block_lanes", 6, "uint", "valid lanes of the other blocks, minus 1"),
        Field(
            "function",
            3,
            "mask",
            "bit 0: coefficient table; bit 1: range reduction by powers of 4; bit 2: 16-bit output",
        ),
        Field("output_scale", 32, "float32", "factor of the int32 sum"),
    )
    return layout


def _tensor(opcode: int, name: str, summary: str) -> Instruction:
    layout = _tensor_common().plain(
        Field("high_clip", 32, "float32", "upper bound before the offset; inf: raw copy"),
        Field("low_clip", 32, "float32", "lower bound before the offset"),
        Field("immediate_bias", 32, "int", "added to the sum when `apply_bias` is 0"),
        Field("output_zero_point", 16, "uint", "added after rounding"),
        Field("apply_bias", 1, "flag", "int32 biases of each lane from the scale/bias buffer"),
        Field("use_scales", 1, "flag", "float32 scales of each lane from the scale/bias buffer"),
        Field("symmetric_function", 1, "flag", "the table is evaluated at the absolute value"),
        Field("odd_function", 1, "flag", "the sign of the argument is restored"),
    )
    return layout.build(opcode, name, 17, "tensor_unit", summary)


def _interpolate() -> Instruction:
    layout = _tensor_common()
    layout.at(
        1981,
        Field("x_loop", 3, "uint", "main loop that walks the output columns"),
        Field("x_start", 8, "int", "first position, 1/128 pixel"),
        Field("x_step", 16, "uint", "step, 1/128 pixel"),
    )
    layout.at(
        2013,
        Field("y_loop", 3, "uint", "main loop that walks the output rows"),
        Field("y_start", 8, "int", "first position, 1/128 pixel"),
        Field("y_step", 16, "uint", "step, 1/128 pixel"),
    )
    layout.at(2045, Field("x_pitch", 18, "uint", "bytes between columns"))
    layout.at(2077, Field("y_pitch", 16, "uint", "bytes between rows"))
    layout.at(
        2093,
        Field("apply_bias", 1, "flag", "as in TensorMac"),
        Field("use_scales", 1, "flag", "as in TensorMac"),
        Field("symmetric_function", 1, "flag", "as in TensorMac"),
        Field("odd_function", 1, "flag", "as in TensorMac"),
    )
    return layout.build(
        5,
        "TensorInterpolate",
        17,
        "tensor_unit",
        "Bilinear interpolation: the sum of 2 x 2 taps weighted by position, scaled by 2^-14.",
    )


def _ring_consumer(opcode: int, channel: str) -> Instruction:
    return (
        _Layout(_TILE_HEADER)
        .traversal("wide_write", "rows of wide memory", loops=4, base=16, counter=16, prologue=True)
        .plain(Field("base_override", 1, "flag", "base from `base_register`"))
        .producer("producer", 4, f"increment flag {14 if channel == 'A' else 15}")
        .watcher(3, 4)
        .plain(_reserved("destination", 1))
        .build(
            opcode,
            f"RingConsumer{channel}",
            4,
            "ring_bus",
            f"Writes the rows that arrive on ring channel {channel} to wide memory.",
        )
    )


def _mesh(opcode: int, name: str, outbound: str, inbound: str) -> Instruction:
    return (
        _Layout(_TILE_HEADER)
        .traversal("narrow_read", "words of narrow memory", loops=4, base=16, counter=16)
        .traversal("narrow_write", "words of narrow memory", loops=4, base=16, counter=16)
        .plain(Field("base_override", 1, "flag", "base from `base_register`"))
        .producer("read_producer", 4, f"increment the outbound-{outbound} flag")
        .producer("write_producer", 4, f"increment the inbound-{inbound} flag")
        .watcher(6, 4)
        .plain(
            Field("immediate_valid", 1, "flag", "write `immediate` instead of received words"),
            Field("immediate", 32, "uint", "constant word"),
        )
        .build(
            opcode,
            name,
            6,
            "mesh_bus",
            f"Sends narrow words to the {outbound} neighbour (4 x 4 torus) and writes those that "
            f"arrive from the {inbound}. A side whose first stride and limits are 0 is off.",
        )
    )


def _scalar_traversal(layout: _Layout, unit: str, width: int, *, prologue: bool = False) -> _Layout:
    return layout.traversal(
        "buffer",
        unit,
        loops=3,
        base=width,
        counter=width,
        prologue=prologue,
    )


def _instructions() -> Iterable[Instruction]:
    yield _Layout(_HEADER).build(0, "NoOp", 1, "scalar_core", "Does nothing; never seen.")
    yield _tensor(
        1,
        "TensorMac",
        "Multiply-accumulate of narrow-memory activations with wide-memory parameters in 64 lanes, "
        "then scale, clip and offset.",
    )
    yield _tensor(2, "TensorMax", "Maximum over raw wide-memory bytes (or 16-bit halves).")
    yield _tensor(3, "TensorSum", "Sum over raw wide-memory bytes (or 16-bit halves).")
    yield _interpolate()
    yield (
        _Layout(_TILE_HEADER)
        .traversal("wide_read", "rows of wide memory", loops=4, base=16, counter=16, prologue=True)
        .plain(Field("base_override", 1, "flag", "base from `base_register`"))
        .producer("row_producer", 4, "increment flag 16 (ring write) of this tile")
        .producer(
            "token_producer", 4, "increment flag 17 or 18 of all tiles and scalar flag 5 or 6"
        )
        .watcher(3, 4)
        .plain(
            Field("consumer_b", 1, "flag", "ring channel: 0 A, 1 B"),
            Field("targets", 17, "tiles", "destinations: bit t tile t, bit 16 the scalar core"),
        )
        .build(16, "RingProducer", 4, "ring_bus", "Sends rows of wide memory over the ring bus.")
    )
    yield _ring_consumer(17, "A")
    yield _ring_consumer(18, "B")
    yield (
        _Layout(_TILE_HEADER)
        .traversal("narrow_read", "words of narrow memory", loops=6, base=16, counter=16)
        .traversal("wide_write", "rows of wide memory", loops=4, base=16, counter=16)
        .plain(Field("base_override", 1, "flag", "narrow base from `base_register`"))
        .producer("producer", 4, "increment flag 13 (narrow-to-wide write)")
        .watcher(6, 8)
        .plain(
            Field("transpose", 1, "flag", "transpose each 4 x 4 block of bytes"),
            Field("transpose_16bit", 1, "flag", "transpose each 2 x 2 block of 16-bit halves"),
            Field("row_loop", 3, "uint", "a row is closed at each iteration of this loop"),
        )
        .build(19, "NarrowToWide", 7, "narrow_to_wide", "Packs narrow words into wide rows.")
    )
    yield (
        _Layout(_TILE_HEADER)
        .traversal("wide_read", "rows of wide memory", loops=4, base=16, counter=16)
        .traversal(
            "narrow_write", "words of narrow memory", loops=6, base=16, counter=16, prologue=True
        )
        .plain(Field("base_override", 1, "flag", "base from `base_register`"))
        .producer("producer", 6, "increment flag 11 (narrow write) or 12 (scale/bias)")
        .watcher(6, 8)
        .plain(
            Field("scale_bias", 1, "flag", "write the scale/bias buffer, two words a step"),
            _reserved("transpose", 1),
            _reserved("double_operand", 1),
            Field("row_loop", 3, "uint", "a new row is read at each iteration of this loop"),
        )
        .build(
            20,
            "WideToNarrow",
            7,
            "wide_to_narrow",
            "Spreads wide rows over narrow memory, or loads the scale/bias buffer.",
        )
    )
    yield _mesh(21, "MeshSouth", "south", "north")
    yield _mesh(22, "MeshWest", "west", "east")
    yield _mesh(23, "MeshNorth", "north", "south")
    yield _mesh(24, "MeshEast", "east", "west")
    yield (
        _Layout(_TILE_HEADER)
        .plain(
            Field(
                "coefficient",
                32,
                "float32",
                "eight segments of five polynomial coefficients, constant term first",
                count=40,
                pitch=32,
            ),
            Field("lower_bound", 32, "float32", "lower bounds of segments 1 to 7", count=7),
            Field("degree", 2, "uint", "degree of the polynomials", "low"),
        )
        .build(25, "CoefficientTable", 13, "tensor_unit", "Loads the function table of a tile.")
    )
    yield (
        _Layout(_HEADER)
        .plain(
            Field("tiles", 16, "tiles", "tiles that execute the fence"),
            Field("tag", 16, "uint", "serial number of the tile instruction in its stream"),
            Field("reset_flags", 19, "mask", "sync flags to load"),
            Field("reset_value", 16, "uint", "value loaded into them"),
            Field("wait_idle", 10, "mask", "tile units that must be idle"),
            _reserved("producer_count_valid", 2),
            _reserved("producer_count", 16),
            Field("increment", 1, "flag", "add 1 to the tile's fence counter"),
            _reserved("halt", 1),
            Field("narrow_sleep", 1, "flag", "narrow memory may sleep: no effect", "medium"),
            Field("wide_sleep", 1, "flag", "wide memory may sleep: no effect", "medium"),
        )
        .build(26, "TileFence", 1, "sync", "Holds a tile's later instructions back.")
    )
    yield (
        _Layout(_HEADER)
        .plain(
            Field(
                "load_op", 2, "uint", "load slot: 0 none, 1 direct, 2 indirect, 3 post-increment"
            ),
            Field("load_register", 5, "register", "register that is loaded"),
            Field("load_address", 13, "uint", "word address, or register and increment"),
            Field(
                "store_op",
                4,
                "uint",
                "store slot: 0 none, 1 direct, 2 indirect, 3 post-increment, 4 push to the host "
                "output, 5 descriptor word, 6 issue the descriptor",
            ),
            Field("store_address", 13, "uint", "word address, register, or descriptor word"),
            Field("store_register", 5, "register", "register that is stored"),
            Field("alu_op", 5, "uint", "ALU slot"),
            Field("alu_immediate", 1, "flag", "operand b is the immediate"),
            Field("alu_destination", 5, "register", "register, or predicate of a comparison"),
            Field("alu_a", 5, "register", "operand a"),
            Field("alu_b", 32, "uint", "operand b: immediate, or register number"),
            Field("function_op", 3, "uint", "transcendental slot: 2 reciprocal, 3 exp2", "medium"),
            Field("function_destination", 5, "register", "destination"),
            Field("function_source", 5, "register", "operand"),
        )
        .build(
            32,
            "Scalar",
            1,
            "scalar_core",
            "Scalar bundle: every slot reads the registers as they were before the bundle.",
        )
    )
    yield (
        _Layout(_HEADER)
        .plain(
            _reserved("goto_halt", 1),
            _reserved("interrupt", 1),
            Field("chunk_end", 2, "uint", "1: end of a chunk that is not the last", "low"),
            Field("program_end", 1, "flag", "end of the last chunk", "medium"),
        )
        .build(33, "Halt", 1, "scalar_core", "Ends the chunk.")
    )
    yield (
        _Layout(_HEADER)
        .plain(
            Field("conditional", 1, "flag", "branch only when the predicate has the polarity"),
            Field("branch_predicate", 3, "uint", "predicate register"),
            Field("branch_polarity", 1, "flag", "value of the predicate that branches"),
            Field("offset", 15, "int", "bundles from this bundle to the target"),
            _reserved("reserved_32", 1),
            Field("relative", 1, "flag", "the offset is relative"),
        )
        .build(34, "Branch", 1, "scalar_core", "Branches, without delay slots.")
    )
    yield (
        _Layout(_HEADER)
        .plain(
            Field("count", 16, "uint", "times the body runs"),
            Field("body", 8, "uint", "bundles of the body that follows"),
        )
        .build(35, "Loop", 1, "scalar_core", "Hardware loop.")
    )
    yield (
        _Layout(_HEADER)
        .plain(
            Field("reset_tile_fences", 20, "tiles", "tile fence counters to clear"),
            Field("reset_flags", 9, "mask", "scalar sync flags to load"),
            Field("reset_value", 16, "uint", "value loaded into them"),
            Field("tile_fence_count", 16, "uint", "value that tile fence counters must reach"),
            Field("tile_fence_valid", 20, "tiles", "tiles whose counter is awaited"),
            Field("expected", 16, "uint", "awaited values of the scalar sync flags", count=9),
            Field("expected_valid", 9, "mask", "scalar sync flags that are awaited"),
            Field("wait_idle", 5, "mask", "scalar units that must be idle"),
        )
        .build(36, "ScalarFence", 2, "sync", "Holds the scalar core back.")
    )
    yield (
        _scalar_traversal(
            _Layout(_HEADER).plain(Field("fifo", 1, "uint", "0 parameters, 1 activations")),
            "units (64 bytes of parameters, 8 bytes of activations)",
            15,
        )
        .producer("producer", 3, "increment scalar flag 0 (activations) or 1 (parameters)")
        .watcher(1, 3, flag=4, side=False)
        .build(37, "PopInput", 2, "host_interface", "Moves input from the host into a buffer.")
    )
    yield (
        _scalar_traversal(
            _Layout(_HEADER).plain(
                Field("fifo", 2, "uint", "0 parameters, 1 activations, 2 scalar memory")
            ),
            "units (64 bytes of parameters, 8 of activations, 4 of scalar memory)",
            20,
            prologue=True,
        )
        .producer("token_producer", 3, "increment flag 17 or 18 of all tiles per 64 words")
        .producer("producer", 3, "increment scalar flag 2, 3 or 4")
        .watcher(2, 3, flag=4, side=False)
        .plain(
            Field("sync_increment", 16, "uint", "increment of the flag", "medium"),
            Field("consumer_b", 1, "flag", "ring channel: 0 A, 1 B"),
            Field("targets", 17, "tiles", "destination tiles"),
            _reserved("tiles_register", 1),
            _reserved("base_register", 1),
            _reserved("counter_register", 6),
            Field("row_words", 6, "uint", "words of a ring row, minus 1"),
        )
        .build(38, "RingInfeed", 4, "ring_bus", "Sends a buffer to the tiles over the ring bus.")
    )
    yield (
        _scalar_traversal(
            _Layout(_HEADER), "8-byte units to the host, 4-byte words of scalar memory", 15
        )
        .producer("producer", 3, "increment scalar flag 7")
        .watcher(1, 3, flag=4, side=False)
        .plain(
            _reserved("base_register", 1),
            _reserved("counter_register", 6),
            Field("row_words", 6, "uint", "words of a ring row, minus 1"),
            Field("to_host", 1, "flag", "1 to the host output, 0 to scalar memory"),
        )
        .build(39, "RingOutfeed", 2, "ring_bus", "Takes rows from the ring bus.")
    )
    yield (
        _Layout(_HEADER)
        .plain(Field("interrupt", 2, "uint", "host interrupt", "low"))
        .build(40, "Interrupt", 1, "scalar_core", "Never seen; known from a later generation.")
    )
    yield (
        _Layout(_HEADER)
        .plain(
            Field("start_pc", 14, "uint", "program memory address"),
            Field("bundles", 15, "uint", "bundles that follow and are loaded"),
        )
        .build(62, "LoadProgram", 1, "scalar_core", "First bundle of a chunk.")
    )
    yield (
        _Layout(_HEADER)
        .plain(
            Field("start_pc", 14, "uint", "program memory address"),
            Field("load_pc", 1, "flag", "start at `start_pc`"),
        )
        .build(63, "Execute", 1, "scalar_core", "Last bundle of a chunk: starts the program.")
    )


INSTRUCTIONS: dict[int, Instruction] = {entry.opcode: entry for entry in _instructions()}
"""Every instruction by opcode."""

BY_NAME: dict[str, Instruction] = {entry.name: entry for entry in INSTRUCTIONS.values()}
"""Every instruction by name."""
