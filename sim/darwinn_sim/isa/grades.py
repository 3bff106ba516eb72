"""Values of fields that no known program holds: what they are executed as, or why they are refused.

Part of the instruction table: what is not named here is known, which means that real programs hold
it and their results are right. An assumed value follows a rule that its neighbours follow; the rule
is one sentence, because listings, verdicts and docs/isa.md repeat it. A value is refused where no
rule can be given, or more than one is equally natural.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from darwinn_sim.isa.codes import ScalarFlag
from darwinn_sim.isa.fields import Grade, Graded, Instruction

Values = tuple[int, ...] | range
Grades = dict[str, tuple[Graded, ...]]
"""Entries by field."""

_ON = (1,)
_OFF = (0,)


def _assumed(values: Values, rule: str, *, rtl: bool = False, **given: Values) -> Graded:
    """``given`` are other fields and their values; ``name__k`` is repetition k of a field."""
    return Graded(Grade.ASSUMED, values, rule, given=_conditions(given), rtl=rtl)


def _assumed_but(known: Values, rule: str, *, rtl: bool = False, **given: Values) -> Graded:
    return Graded(Grade.ASSUMED, known, rule, others=True, given=_conditions(given), rtl=rtl)


def _assumed_bits(mask: int, rule: str, *, rtl: bool = False) -> Graded:
    return Graded(Grade.ASSUMED, (), rule, mask=mask, rtl=rtl)


def _refused(values: Values, why: str, **given: Values) -> Graded:
    return Graded(Grade.REFUSED, values, why, given=_conditions(given))


def _refused_but(accepted: Values, why: str, **given: Values) -> Graded:
    return Graded(Grade.REFUSED, accepted, why, others=True, given=_conditions(given))


def _refused_bits(mask: int, why: str) -> Graded:
    return Graded(Grade.REFUSED, (), why, mask=mask)


def _conditions(given: Mapping[str, Values]) -> tuple[tuple[str, Values], ...]:
    fields = []
    for name, values in given.items():
        field, _, index = name.partition("__")
        fields.append((f"{field}[{index}]" if index else field, values))
    return tuple(fields)


_EVERY: Grades = {"trace": (_assumed(_ON, "a trace request has no effect on results", rtl=True),)}

_GATED: Grades = {
    "gate": (
        _assumed(_ON, "a predicate gates any instruction as it gates a scalar bundle", rtl=True),
    )
}
_NOT_GATED: Grades = {"gate": (_refused(_ON, "there are no predicates while a program is loaded"),)}

_TILE: Grades = {
    "register_sources": (_refused_but(_OFF, "nobody knows the operand of each bit"),),
    "tiles_override": (
        _assumed(_ON, "the register supplies the tile set, as in RingProducer", rtl=True),
    ),
}
_TILES_OVERRIDE_KNOWN = ("RingProducer", "NarrowToWide")

_SECOND_BUFFER = (_assumed(_ON, "the traversal starts in its second buffer", rtl=True),)

_NO_SUCH_FLAG = "there is no such flag"
_TILE_WATCHERS: Grades = {
    "watcher_flag": (_refused(range(19, 32), _NO_SUCH_FLAG, watcher_valid=_ON),)
}
_SCALAR_WATCHERS: Grades = {
    "watcher_flag": (
        _refused(range(9, 16), _NO_SUCH_FLAG, watcher_valid=_ON),
        _assumed(
            (8,),
            "the watcher waits for flag 8 as for the others; no unit counts it",
            rtl=True,
            watcher_valid=_ON,
        ),
    )
}

_TENSOR: Grades = {
    "hiccup": (
        _assumed_but(
            _OFF, "a throttle has no effect on results; its time is not modelled", rtl=True
        ),
    ),
    "partial_sum_wrap": (
        _assumed(
            _ON,
            "sums wrap modulo 2^32, saturate with their bias, and traversals begin again, as "
            "without the bit",
            rtl=True,
        ),
    ),
    "reserved_1848": (_refused(_ON, "nothing is known of this bit"),),
    "alternate_base": (_refused(_ON, "no field holds another base address"),),
    "partial_sum_producer_increment": (
        _assumed(_ON, "the producer counts on flag 2 as the others do on theirs", rtl=True),
    ),
}

_READS_FIRST = "bit 0 clear: the first pass of a reduction reads the int32 row, too"
_PARTIAL_SUMS = (
    _assumed((0,), f"{_READS_FIRST}; sums go back to the row"),
    _assumed((2,), f"{_READS_FIRST}; bit 1: sums stay in the accumulator and none is written"),
)
_SUMS_LIKE_MAC = (
    *_PARTIAL_SUMS,
    _assumed((1,), "partial sums lie in int32 rows of wide memory, as in TensorMac", rtl=True),
)

_PAIRS = (0, 3, 12, 15)
_HALF = "a part of the multipliers of a 16-bit product stands still"
_MULTIPLIERS = (
    "bit k stills multiplier k, which takes activation k and byte plane k; products of 16-bit "
    "operands have two or four of them"
)
_PLANES = "bit k stills multiplier k, which takes byte plane k; 16-bit values have two of them"
_WITHOUT_TABLE = "without a table there is no range reduction: no effect"
_AS_MAC = "as in TensorMac"

_LINEAR = (0, 2, 4, 6)
_NOTHING = "without a table no function is evaluated: no effect"
_SYMMETRY: Grades = {
    "symmetric_function": (
        _assumed(_ON, _NOTHING, rtl=True, function=_LINEAR),
        _assumed(_ON, "the absolute value of the argument is reduced in range", function=(3, 7)),
        _assumed(
            _ON,
            "the function is even: the result does not get the sign of the argument",
            rtl=True,
            odd_function=_OFF,
        ),
    ),
    "odd_function": (
        _assumed(_ON, _NOTHING, rtl=True, function=_LINEAR),
        _assumed(
            _ON,
            "the value at a negative argument is negated, as with symmetric_function",
            symmetric_function=_OFF,
        ),
    ),
}

_MAC: Grades = {
    "partial_sum_read": _PARTIAL_SUMS,
    "mac_disable": (
        _refused_but((0, 15), _HALF, activation_16bit=_ON, parameter_16bit=_ON),
        _refused_but(_PAIRS, _HALF, activation_16bit=_ON),
        _refused_but(_PAIRS, _HALF, parameter_16bit=_ON),
        _assumed_but((0, 12, 14), _MULTIPLIERS),
    ),
    "function": (_assumed((2, 6), _WITHOUT_TABLE, rtl=True),),
    **_SYMMETRY,
}

_AT_ABSOLUTE = _assumed(_ON, f"the table at the absolute value, {_AS_MAC}", rtl=True)
_SIGN = _assumed(_ON, f"the sign of the argument, {_AS_MAC}", rtl=True)
_STAGE_AS_MAC: Grades = {
    "apply_bias": (_assumed(_ON, f"biases of each lane are added, {_AS_MAC}", rtl=True),),
    "use_scales": (_assumed(_ON, f"scales of each lane, {_AS_MAC}", rtl=True),),
    "symmetric_function": (*_SYMMETRY["symmetric_function"], _AT_ABSOLUTE),
    "odd_function": (*_SYMMETRY["odd_function"], _SIGN),
}

_REDUCTION: Grades = {
    **_STAGE_AS_MAC,
    "activation_16bit": (_assumed(_ON, "there are no activations: no effect"),),
    "load_parameter_zero_point": (_assumed(_ON, "no zero point is subtracted: no effect"),),
    "partial_sum_read": _SUMS_LIKE_MAC,
}

_MAXIMUM: Grades = {
    **_REDUCTION,
    "partial_sum_read": (
        _assumed((0,), f"{_READS_FIRST}, as the least maximum; maxima go back to the row"),
        _assumed((1,), "maxima lie in int32 rows of wide memory as the sums of TensorMac do"),
        _assumed((2,), f"{_READS_FIRST}, as the least maximum; none is written"),
    ),
    "parameter_16bit": (_assumed(_ON, "values are 16 bit, as in TensorSum", rtl=True),),
    "mac_disable": (
        _refused_but(_PAIRS, _HALF, parameter_16bit=_ON),
        _assumed_but((0, 14), _PLANES),
    ),
    "function": (
        _assumed((1, 3, 4, 5, 7), f"the output stage is the same, {_AS_MAC}", rtl=True),
        _assumed((2, 6), _WITHOUT_TABLE, rtl=True),
    ),
}

_SUM: Grades = {
    **_REDUCTION,
    "load_parameter_zero_point": (_assumed(_ON, "the zero point is that of the instruction"),),
    "mac_disable": (
        _refused_but(_PAIRS, _HALF, parameter_16bit=_ON),
        _assumed_but(_OFF, _PLANES),
    ),
    "function": (
        _assumed((0, 1, 3, 4, 5), f"the output stage is the same, {_AS_MAC}", rtl=True),
        _assumed((2, 6), _WITHOUT_TABLE, rtl=True),
    ),
}

_LONGER = range(1, 1 << 14)
_MORE_TAPS = range(2, 1 << 14)
_ONE_PRODUCT = "a step makes one product of a byte and a weight: no effect"
_INTERPOLATE: Grades = {
    "partial_sum_read": _SUMS_LIKE_MAC,
    "activation_16bit": (_refused(_ON, "the assignment of activations to lanes is unknown"),),
    "parameter_16bit": (_assumed(_OFF, _ONE_PRODUCT, rtl=True),),
    "mac_disable": (_assumed_but((12,), _ONE_PRODUCT, rtl=True),),
    "load_parameter_zero_point": (_assumed(_ON, "there are no parameters: no effect"),),
    "function": (
        _assumed((1, 3, 4, 5, 7), f"the output stage is the same, {_AS_MAC}"),
        _assumed((2, 6), _WITHOUT_TABLE),
    ),
    "use_scales": (_assumed(_ON, f"scales of each lane, {_AS_MAC}"),),
    "symmetric_function": (_assumed(_ON, f"the table at the absolute value, {_AS_MAC}"),),
    "odd_function": (_assumed(_ON, f"the sign of the argument, {_AS_MAC}"),),
    "apply_bias": (
        _assumed(
            _ON, "each pass of main loop 0 adds the nearest pixel again", main_limit__0=_LONGER
        ),
        _assumed(
            _ON, "each pass of main loop 1 adds the nearest pixel again", main_limit__1=_LONGER
        ),
        _assumed(
            _OFF, "a main loop 0 of one pass takes the first column alone", main_limit__0=_OFF
        ),
        _assumed(_OFF, "a main loop 1 of one pass takes the first row alone", main_limit__1=_OFF),
        _refused(_OFF, "there are two taps along an axis, no more", main_limit__0=_MORE_TAPS),
        _refused(_OFF, "there are two taps along an axis, no more", main_limit__1=_MORE_TAPS),
    ),
}

_ONE_TRAVERSAL = "the register replaces the base of the only traversal, as in NarrowToWide"
_CONSUMER: Grades = {
    "base_override": (_assumed(_ON, _ONE_TRAVERSAL),),
    "destination": (_refused(_ON, "the only known destination is wide memory"),),
}
_MESH: Grades = {
    "base_override": (
        _assumed(_ON, "the register replaces the base of the narrow read, as in NarrowToWide"),
    )
}
_OPERAND = "a register operand whose number has another width than registers have"
_ABSENT_TILES = 0xF0000
_OUTFEED = 1 << 16

_OWN: Mapping[str, Grades] = {
    "TensorMac": _TENSOR | _MAC,
    "TensorMax": _TENSOR | _MAXIMUM,
    "TensorSum": _TENSOR | _SUM,
    "TensorInterpolate": _TENSOR | _INTERPOLATE,
    "CoefficientTable": {
        "degree": (_assumed_but((3,), "all five coefficients are evaluated, as with 3", rtl=True),),
    },
    "RingProducer": {
        "base_override": (_assumed(_ON, _ONE_TRAVERSAL),),
        "wide_read_prologue_enable": (
            _assumed(_ON, "a prologue precedes the loops, as in RingConsumerA"),
        ),
    },
    "RingConsumerA": _CONSUMER,
    "RingConsumerB": _CONSUMER,
    "NarrowToWide": {
        "transpose_16bit": (
            _assumed(_ON, "without `transpose` no effect", rtl=True, transpose=_OFF),
        ),
    },
    "WideToNarrow": {
        "base_override": (
            _refused(_ON, "it may replace the base of the read or of the narrow side: open"),
        ),
        "transpose": (
            _assumed(
                _ON,
                "each 4 x 4 block of bytes of a row is transposed and the alternate limit of the "
                "write holds for loop 1, as in NarrowToWide",
            ),
        ),
        "double_operand": (_refused(_ON, "only a name is known"),),
    },
    **dict.fromkeys(("MeshSouth", "MeshWest", "MeshNorth", "MeshEast"), _MESH),
    "TileFence": {
        "producer_count_valid": (_assumed((3,), "both flags must equal the count", rtl=True),),
        "halt": (_refused(_ON, "the event that lets a halted tile continue is unknown"),),
    },
    "Scalar": {
        "store_op": (_refused(range(7, 16), "no store slot has this code"),),
        "alu_op": (
            _assumed((8,), "a >> b with the sign shifted in, as public code calls it", rtl=True),
            _assumed((11,), "predicate = (a > b), signed as the other comparisons", rtl=True),
            _assumed((14,), "predicate = (a >= b), unsigned, since 13 is signed", rtl=True),
            _refused(range(23, 32), "no operation has this code"),
        ),
        "function_op": (_refused((1, 4, 5, 6, 7), "no function has this code"),),
    },
    "Halt": {
        "goto_halt": (_refused(_ON, "only a name is known"),),
        "interrupt": (
            _assumed(_ON, "raises the host interrupt whose number is `chunk_end`", rtl=True),
        ),
        "chunk_end": (_assumed((2, 3), "no effect, like value 1", rtl=True),),
    },
    "Branch": {
        "reserved_32": (_refused(_ON, "nothing is known of this bit"),),
        "relative": (
            _assumed(_OFF, "the offset is the target's address in program memory", rtl=True),
        ),
    },
    "Loop": {
        "count": (_assumed(_OFF, "the body runs 0 times", rtl=True),),
        "body": (
            _assumed(_OFF, "a loop without a body has no effect", rtl=True),
            _assumed(range(32, 256), "the field has 8 bits, of which 5 are seen", rtl=True),
        ),
    },
    "ScalarFence": {
        "reset_tile_fences": (
            _assumed_bits(_ABSENT_TILES, "tiles 16 to 19 do not exist: no effect", rtl=True),
        ),
        "tile_fence_valid": (_refused_bits(_ABSENT_TILES, "tiles 16 to 19 do not exist"),),
        "expected_valid": (
            _assumed_bits(0x19F, "the fence waits for all flags as for 5 and 6", rtl=True),
        ),
    },
    "RingInfeed": {
        "fifo": (_refused((3,), "the infeed can read only three memories"),),
        "buffer_prologue_enable": (
            _assumed(_ON, "a prologue precedes the loops, as in RingConsumerA"),
        ),
        "sync_increment": (
            _assumed_but(_ON, "the producer adds this number to the flag", rtl=True),
        ),
        "consumer_b": (_assumed(_ON, "rows go to ring channel B, as in RingProducer", rtl=True),),
        "targets": (_assumed_bits(_OUTFEED, "bit 16 is the ring outfeed, as in RingProducer"),),
        "tiles_register": (_refused(_ON, _OPERAND),),
        "base_register": (_refused(_ON, _OPERAND),),
        "counter_register": (_refused_but(_OFF, _OPERAND),),
    },
    "RingOutfeed": {
        "base_register": (_refused(_ON, _OPERAND),),
        "counter_register": (_refused_but(_OFF, _OPERAND),),
        "row_words": (_assumed_but((63,), "words of a ring row, as in RingInfeed", rtl=True),),
    },
    "NoOp": {"opcode": (_assumed(_OFF, "it has no effect, as its name says", rtl=True),)},
    "Interrupt": {
        "interrupt": (
            _assumed(
                range(4), "raises this host interrupt, as a descriptor of its tag does", rtl=True
            ),
        )
    },
    "LoadProgram": {
        "start_pc": (_assumed_but(_OFF, "the program lies from this address on", rtl=True),),
    },
    "Execute": {
        "start_pc": (_assumed_but(_OFF, "the program starts at this address", rtl=True),),
        "load_pc": (
            _refused(_OFF, "without an address, the place at which the core continues is unknown"),
        ),
    },
}

_FRAMING = ("LoadProgram", "Execute")


def with_grades(instruction: Instruction) -> Instruction:
    """``instruction`` with the grades of its fields."""
    grades: dict[str, tuple[Graded, ...]] = dict(_EVERY)
    if instruction.name in _FRAMING:
        grades.update(_NOT_GATED)
    elif instruction.name != "Scalar":
        grades.update(_GATED)
    if any(field.name == "register_sources" for field in instruction.fields):
        grades.update(_TILE)
    if instruction.name in _TILES_OVERRIDE_KNOWN:
        del grades["tiles_override"]
    for traversal in instruction.traversals:
        grades[f"{traversal.name}_double_start"] = _SECOND_BUFFER
    if instruction.watchers:
        scalar = instruction.field("watcher_flag").codes is ScalarFlag
        grades.update(_SCALAR_WATCHERS if scalar else _TILE_WATCHERS)
    grades.update(_OWN.get(instruction.name, {}))
    fields = tuple(
        replace(field, grades=grades.pop(field.name)) if field.name in grades else field
        for field in instruction.fields
    )
    if grades:
        raise KeyError(f"{instruction.name} has no field {', '.join(grades)}")
    return replace(instruction, fields=fields)
