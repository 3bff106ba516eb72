"""One case for each kernel on numbers, texts, counters, resources and shapes.

Each is a name, operations that may use the chain ``%ch``, and the lines that they print.
"""

from __future__ import annotations

Case = tuple[str, str, list[str]]


def _binary(kernel: str, element: str, first: str, second: str, result: str) -> str:
    return f"""%a = tfrt.constant.{element} {first}
    %b = tfrt.constant.{element} {second}
    %c = "{kernel}.{element}"(%a, %b) : ({element}, {element}) -> {result}
    tfrt.print.{result} %c, %ch"""


ARITHMETIC: list[Case] = [
    (f"{name}.{element}", _binary(f"tfrt.{name}", element, first, second, result), [line])
    for name, element, first, second, result, line in [
        ("add", "i32", "2147483647", "1", "i32", "int32 = -2147483648"),
        ("add", "i64", "9223372036854775807", "1", "i64", "int64 = -9223372036854775808"),
        ("minus", "i32", "-2147483648", "1", "i32", "int32 = 2147483647"),
        ("minus", "i64", "5", "7", "i64", "int64 = -2"),
        ("mul", "i32", "65536", "65537", "i32", "int32 = 65536"),
        ("mul", "i64", "-3", "7", "i64", "int64 = -21"),
        ("add", "f32", "16777216.0", "1.0", "f32", "f32 = 16777216.000000"),
        ("add", "f64", "16777216.0", "1.0", "f64", "f64 = 16777217.000000"),
        ("multiply", "f32", "0.1", "3.0", "f32", "f32 = 0.300000"),
        ("multiply", "f64", "1.0e300", "1.0e300", "f64", "f64 = inf"),
        ("minimum", "f32", "2.0", "-1.0", "f32", "f32 = -1.000000"),
        ("minimum", "f64", "2.0", "3.0", "f64", "f64 = 2.000000"),
        ("div", "f32", "1.0", "3.0", "f32", "f32 = 0.333333"),
        ("div", "f64", "156.0", "100.0", "f64", "f64 = 1.560000"),
        ("equal", "i32", "3", "3", "i1", "int1 = 1"),
        ("equal", "i64", "3", "4", "i1", "int1 = 0"),
        ("lessequal", "i32", "3", "3", "i1", "int1 = 1"),
        ("lessequal", "i64", "4", "3", "i1", "int1 = 0"),
        ("and", "i1", "1", "0", "i1", "int1 = 0"),
    ]
]

CONSTANTS: list[Case] = [
    (f"constant.{element}", f"%a = tfrt.constant.{element} {value}\n{then}", lines)
    for element, value, then, lines in [
        ("i1", "true", "tfrt.print.i1 %a, %ch", ["int1 = 1"]),
        ("i1", "0", "tfrt.print.i1 %a, %ch", ["int1 = 0"]),
        ("i32", "-42", "tfrt.print.i32 %a, %ch", ["int32 = -42"]),
        ("i64", "9223372036854775807", "tfrt.print.i64 %a, %ch", ["int64 = 9223372036854775807"]),
        ("ui32", "4294967295", "", []),
        ("ui64", "18446744073709551615", "", []),
        ("f16", "1.0", "tfrt.print.f16 %a, %ch", ["f16 = 15360"]),
        ("bf16", "1.0", "", []),
        ("f32", "0.1", "tfrt.print.f32 %a, %ch", ["f32 = 0.100000"]),
        ("f32", "0xFFC00000", "tfrt.print.f32 %a, %ch", ["f32 = -nan"]),
        ("f64", "-0.0", "tfrt.print.f64 %a, %ch", ["f64 = -0.000000"]),
        (
            "complex64",
            "1.5, -2.0",
            "tfrt.print.complex64 %a, %ch",
            ["complex64 = 1.500000+-2.000000i"],
        ),
        (
            "complex128",
            "0.0, 3.0",
            "tfrt.print.complex128 %a, %ch",
            ["complex128 = 0.000000+3.000000i"],
        ),
    ]
]


def _print(value: str, element: str = "i32") -> str:
    return f"tfrt.print.{element} {value}, %ch"


def _chained(*values: str) -> str:
    """Print i32 values one after another: without chains their order is up to the executor."""
    last = "%ch"
    lines = []
    for number, value in enumerate(values):
        lines.append(f"%printed{number} = tfrt.print.i32 {value}, {last}")
        last = f"%printed{number}"
    return "\n".join(lines)


_STRING = '"tfrt_test.get_string"() {value = "%s"} : () -> !tfrt.string'
_PRINT_STRING = '"tfrt_test.print_string"(%s, %s) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain'

NUMBERS: list[Case] = [
    (
        "div.i32 towards zero",
        "%a = tfrt.constant.i32 -7\n%b = tfrt.constant.i32 2\n"
        "%q, %r = tfrt.div.i32 %a, %b\n" + _chained("%q", "%r"),
        ["int32 = -3", "int32 = -1"],
    ),
    (
        "div.i64",
        "%a = tfrt.constant.i64 7\n%b = tfrt.constant.i64 -2\n%q, %r = tfrt.div.i64 %a, %b\n"
        "%c = tfrt.print.i64 %q, %ch\ntfrt.print.i64 %r, %c",
        ["int64 = -3", "int64 = 1"],
    ),
    (
        "casts of i64",
        "%a = tfrt.constant.i64 16777217\n%f = tfrt.cast.i64_to_f32 %a\n"
        "%d = tfrt.cast.i64_to_f64 %a\n%c = tfrt.print.f32 %f, %ch\ntfrt.print.f64 %d, %c",
        ["f32 = 16777216.000000", "f64 = 16777217.000000"],
    ),
    (
        "casts to i64 truncate",
        "%a = tfrt.constant.f32 -2.75\n%b = tfrt.constant.f64 2.75\n%x = tfrt.cast.f32_to_i64 %a\n"
        "%y = tfrt.cast.f64_to_i64 %b\n%c = tfrt.print.i64 %x, %ch\ntfrt.print.i64 %y, %c",
        ["int64 = -2", "int64 = 2"],
    ),
    (
        "count3",
        "%a = tfrt.constant.i32 43\n%x, %y, %z = tfrt_test.count3.i32 %a\n"
        + _chained("%x", "%y", "%z"),
        ["int32 = 44", "int32 = 45", "int32 = 46"],
    ),
    (
        "count3.i64",
        "%a = tfrt.constant.i64 1\n%x:3 = tfrt_test.count3.i64 %a\n" + _print("%x#2", "i64"),
        ["int64 = 4"],
    ),
    (
        "an operand too many only orders",
        "%a = tfrt.constant.i32 1\n%b = tfrt.print.i32 %a, %ch\n"
        '%c = "tfrt.lessequal.i32"(%a, %a, %b) : (i32, i32, !tfrt.chain) -> i1\n'
        + _print("%c", "i1"),
        ["int32 = 1", "int1 = 1"],
    ),
    (
        "merge.chains and as_chain",
        "%a = tfrt.constant.i32 1\n%b = tfrt.merge.chains %ch, %a : !tfrt.chain, i32\n"
        '%c = "tfrt_test.as_chain"(%a, %b) : (i32, !tfrt.chain) -> !tfrt.chain\n'
        "tfrt.print.i32 %a, %c",
        ["int32 = 1"],
    ),
    (
        "copy.with_delay",
        '%a = tfrt.constant.i32 46\n%b = "tfrt_test.copy.with_delay.i32"(%a) : (i32) -> i32\n'
        '%l = tfrt.constant.i64 7\n%m = "tfrt_test.copy.with_delay.i64"(%l) : (i64) -> i64\n'
        "%c = tfrt.print.i32 %b, %ch\ntfrt.print.i64 %m, %c",
        ["int32 = 46", "int64 = 7"],
    ),
    (
        "values that are forwarded",
        "%a = tfrt.constant.i32 1\n%b = tfrt.constant.i32 2\n"
        '%i = "tfrt_test.identity"(%ch, %a) : (!tfrt.chain, i32) -> i32\n'
        '%m:2 = "tfrt_test.multi_arg_result"(%b, %a) : (i32, i32) -> (i32, i32)\n'
        '%s:2 = "tfrt_test.share_to_two"(%b) : (i32) -> (i32, i32)\n'
        '%n = "tfrt_test.make_indirect"(%a) : (i32) -> i32\n'
        + _chained("%i", "%m#0", "%m#1", "%s#0", "%s#1", "%n"),
        [f"int32 = {value}" for value in (1, 2, 1, 2, 2, 1)],
    ),
]

TEXTS: list[Case] = [
    (
        "print_hello",
        '"tfrt_test.print_hello"(%ch) : (!tfrt.chain) -> !tfrt.chain',
        ["hello host executor!"],
    ),
    (
        "strings",
        f"%a = {_STRING % 'bark'}\n%b = {_STRING % 'rarf'}\n"
        '%c = "tfrt_test.append_string"(%a, %b) : (!tfrt.string, !tfrt.string) -> !tfrt.string\n'
        f"%d = {_PRINT_STRING % ('%a', '%ch')}\n{_PRINT_STRING % ('%c', '%d')}",
        ["string = bark", "string = barkrarf"],
    ),
    (
        "print_bool",
        "%t = tfrt.constant.i1 1\n%f = tfrt.constant.i1 0\n"
        '%c = "tfrt_test.print_bool"(%ch, %t) : (!tfrt.chain, i1) -> !tfrt.chain\n'
        '"tfrt_test.print_bool"(%c, %f) : (!tfrt.chain, i1) -> !tfrt.chain',
        ["true", "false"],
    ),
    (
        "flat",
        '%a:4 = "tfrt_test.flat"() {value = [["word", [1 : i32, 0 : i32]], [1.0 : f32]]} : () -> '
        "(!tfrt.string, i32, i32, f32)\n"
        f"%c = {_PRINT_STRING % ('%a#0', '%ch')}\n"
        "%d = tfrt.print.i32 %a#1, %c\n%e = tfrt.print.i32 %a#2, %d\ntfrt.print.f32 %a#3, %e",
        ["string = word", "int32 = 1", "int32 = 0", "f32 = 1.000000"],
    ),
    (
        "values of asynchronous values",
        '%a = "tfrt_test.async_value_get"() : () -> !tfrt.string\n'
        '%b = "tfrt_test.async_value_ref"() : () -> !tfrt.string\n'
        f"%c = {_PRINT_STRING % ('%a', '%ch')}\n{_PRINT_STRING % ('%b', '%c')}",
        [
            "string = base1:base2:final_class:3",
            "string = available:2;unavailable;(3);available:3;unavailable;available:4",
        ],
    ),
    (
        "shared context",
        '%a:2 = "tfrt_test.use_sample_shared_context"(%ch) : (!tfrt.chain) -> '
        "(!tfrt.string, !tfrt.chain)\n"
        '%b:2 = "tfrt_test.use_sample_shared_context"(%a#1) : (!tfrt.chain) -> '
        "(!tfrt.string, !tfrt.chain)\n"
        f"%c = {_PRINT_STRING % ('%a#0', '%ch')}\n{_PRINT_STRING % ('%b#0', '%c')}",
        ["string = sample_shared_context0"] * 2,
    ),
    (
        "test_cost",
        "%a = tfrt.constant.i32 1\n"
        "%b = tfrt_test.test_cost %a {id = 5 : i64, _tfrt_cost = 100 : i64} : i32\n" + _print("%b"),
        ["id: 5", "int32 = 0"],
    ),
    (
        "coordinate",
        "%a = tfrt.constant.i32 2\n%b = tfrt.constant.i32 4\n"
        '%c = "tfrt_tutorial.create_coordinate"(%a, %b) : (i32, i32) -> !my.coordinate\n'
        '"tfrt_tutorial.print_coordinate"(%c, %ch) : (!my.coordinate, !tfrt.chain) -> !tfrt.chain',
        ["(2, 4)"],
    ),
    (
        "debug info",
        "\n".join(
            f'%c{n + 1} = "tfrt_test.print_debug_info"(%c{n}) : (!tfrt.chain) -> !tfrt.chain {loc}'
            for n, loc in enumerate(
                [
                    'loc("Scope/Kernel")',
                    "",
                    'loc(fused["foo", "bar"])',
                    'loc(fused["foo.py":42:314, "bar"])',
                    'loc(callsite("callee" at "bar.py":42:314))',
                    "loc(unknown)",
                ]
            )
        ).replace("%c0)", "%ch)"),
        [
            "Scope/Kernel",
            "Kernel has no debug info",
            "foobar",
            "bar",
            "callee",
            "Kernel has no debug info",
        ],
    ),
    (
        "unique locations",
        "\n".join(
            f'%c{n} = "tfrt_test.unique_loc"() {{name = "{name}"}} : () -> !tfrt.chain loc(unknown)'
            for n, name in enumerate("abc")
        ),
        [],
    ),
]

COUNTERS: list[Case] = [
    (
        "counter",
        '%a = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32\n'
        '%b = "tfrt_test.atomic.inc.i32"(%a, %ch) : '
        "(!test.atomic.i32, !tfrt.chain) -> !tfrt.chain\n"
        "%five = tfrt.constant.i32 5\n"
        '%c = "tfrt_test.atomic.add.i32"(%a, %five, %b) : '
        "(!test.atomic.i32, i32, !tfrt.chain) -> !tfrt.chain\n"
        '%d:2 = "tfrt_test.atomic.get.i32"(%a, %c) : (!test.atomic.i32, !tfrt.chain) -> '
        "(i32, !tfrt.chain)\ntfrt.print.i32 %d#0, %d#1",
        ["int32 = 6"],
    ),
    (
        "resource",
        '%a:2 = "tfrt_test.allocate_resource"(%ch) : (!tfrt.chain) -> (!test.r, !tfrt.chain)\n'
        '"tfrt_test.deallocate_resource"(%a#0, %a#1) : (!test.r, !tfrt.chain) -> !tfrt.chain',
        ["Allocated TestResource", "Destroyed TestResource", "tfrt_test.deallocate_resource done"],
    ),
    (
        "resource of a cancelled request",
        '%a:2 = "tfrt_test.allocate_resource"(%ch) : (!tfrt.chain) -> (!test.r, !tfrt.chain)\n'
        '%b:2 = "tfrt_test.cancel"(%a#1) : (!tfrt.chain) -> (i32, !tfrt.chain)\n'
        '"tfrt_test.deallocate_resource"(%a#0, %b#1) : (!test.r, !tfrt.chain) -> !tfrt.chain',
        ["Allocated TestResource", "Destroyed TestResource"],
    ),
    (
        "sleeping",
        '%a = tfrt.constant.i32 1000\n"tfrt_test.usleep"(%a) : (i32) -> ()',
        ["Slept for 1000 microseconds"],
    ),
    (
        "blocking sleep",
        "%a = tfrt.constant.i32 7\n"
        '%b = "tfrt_test.blocking.usleep"(%a) : (i32) -> !tfrt.chain\ntfrt.print.i32 %a, %b',
        ["Slept for 7 microseconds", "int32 = 7"],
    ),
    (
        "thread",
        '%a = "tfrt_test.get_thread_id"(%ch) : (!tfrt.chain) -> i32\n' + _print("%a"),
        ["int32 = 0"],
    ),
]


def _shape(name: str, dims: str) -> str:
    return f"{name} = ts.build_shape [{dims}]"


SHAPES: list[Case] = [
    (
        "shapes",
        "%a = ts.build_shape [1 : i64, 57 : i64, 92 : i64]\n%b = ts.build_shape []\n"
        "%c = ts.print_shape %a, %ch\nts.print_shape %b, %c",
        ["shape = [1, 57, 92]", "shape = []"],
    ),
    (
        "partial shapes",
        "%a = ts.build_partial_shape [-1 : i64, 57 : i64]\n%b = ts.build_unranked_partial_shape\n"
        "%s = ts.build_shape [3 : i64]\n%d = ts.to_partial_shape %s\n%t = ts.to_shape %d\n"
        "%c1 = ts.print_partial_shape %a, %ch\n%c2 = ts.print_partial_shape %b, %c1\n"
        "%c3 = ts.print_partial_shape %d, %c2\nts.print_shape %t, %c3",
        [
            "partial_tensor_shape = [-1, 57]",
            "partial_tensor_shape = Unknown rank",
            "partial_tensor_shape = [3]",
            "shape = [3]",
        ],
    ),
    *(
        (
            f"shape of rank {rank}",
            f"%a = ts.build_shape [{', '.join(['2 : i64'] * rank)}]\n"
            f"%b = ts.as_fixed_rank_shape.{rank} %a\nts.print_fixed_rank_shape.{rank} %b, %ch",
            [f"fixed_rank_shape = [{', '.join(['2'] * rank)}]"],
        )
        for rank in range(8)
    ),
    (
        "questions to shapes",
        "%a = ts.build_shape [2 : i64, 3 : i64]\n%b = ts.build_shape [3 : i64, 2 : i64]\n"
        "%one = tfrt.constant.i32 1\n%e = ts.equal_shape %a, %b\n%f = ts.equal_shape %a, %a\n"
        "%d = ts.get_dimension %a, %one\n%n = ts.get_num_elements %b\n"
        "%c1 = tfrt.print.i1 %e, %ch\n%c2 = tfrt.print.i1 %f, %c1\n"
        "%c3 = tfrt.print.i64 %d, %c2\ntfrt.print.i64 %n, %c3",
        ["int1 = 0", "int1 = 1", "int64 = 3", "int64 = 6"],
    ),
]

CASES: list[Case] = [*ARITHMETIC, *CONSTANTS, *NUMBERS, *TEXTS, *COUNTERS, *SHAPES]
