"""Printing as the original's converter and printer do: values, types, forms, regions, modules."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from darwinn_formats import tfrt
from darwinn_formats.tfrt.encoding import COMPLEX, DTYPES, SCALARS, DType
from darwinn_formats.tfrt.text.attribute_text import print_attribute
from darwinn_formats.tfrt.text.numbers import number_text
from hypothesis import given
from hypothesis import strategies as st


def printed(text: str, **asked: bool) -> str:
    """The text of a file that a text was converted to."""
    return tfrt.to_text(tfrt.load(tfrt.dump(tfrt.from_text(text, "own.mlir"))), **asked)


def lines(operations: str, head: str = "@f()") -> list[str]:
    """Lines between those of a function, without their margin."""
    text = printed(f"func.func {head} {{\n{operations}\ntfrt.return\n}}")
    return [line.removeprefix("    ") for line in text.splitlines()[2:-3]]


def attribute(text: str) -> str:
    """How an attribute of an operation is printed."""
    (line,) = lines(f'"k"() {{a = {text}}} : () -> ()')
    return line.removeprefix('"k"() {a = ').removesuffix("} : () -> ()")


# --- numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("0.0 : f32", "0.000000e+00 : f32"),
        ("-0.0 : f64", "-0.000000e+00 : f64"),
        ("0.1 : f32", "1.000000e-01 : f32"),
        ("123456.0 : f32", "1.234560e+05 : f32"),
        # More digits than six: all that the type can have, without zeros at their end.
        ("3.1415927 : f32", "3.14159274 : f32"),
        ("0.33333333333333331 : f64", "0.33333333333333331 : f64"),
        ("-1.2345678e-9 : f32", "-1.23456778E-9 : f32"),
        # The cut leaves a 9 where rounding would give the short form.
        ("0.0001 : f32", "9.99999974E-5 : f32"),
        ("0.001 : f32", "1.000000e-03 : f32"),
        ("0.001234567 : f64", "0.001234567 : f64"),
        # Digits without a decimal point would be read as an integer.
        ("16777216.0 : f32", "0x4B800000 : f32"),
        ("0x7FC00000 : f32", "0x7FC00000 : f32"),
        ("0xFF800000 : f32", "0xFF800000 : f32"),
        ("0x7C00 : f16", "0x7C00 : f16"),
        # Half up, though the neighbours are as near.
        ("0.5078125 : bf16", "5.078130e-01 : bf16"),
        # Cut, not rounded, where cutting leaves six digits.
        ("8585216.0 : bf16", "8.585210e+06 : bf16"),
        ("true", "true"),
        ("1 : i1", "true"),
        ("18446744073709551615 : ui64", "18446744073709551615 : ui64"),
        ("-1 : i8", "-1 : i8"),
        ("255 : i8", "-1 : i8"),
        ("7", "7 : i64"),
        ("7.0", "7.000000e+00 : f64"),
    ],
)
def test_numbers_are_spelled_as_there(given_text: str, expected: str) -> None:
    assert attribute(given_text) == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_finite_number_is_near_its_short_text_or_all_of_its_long_one(value: float) -> None:
    text = number_text(tfrt.Scalar.of(DType.F64, value))
    if "e" in text:
        # Six digits that say everything.
        mantissa, exponent = f"{value:.5e}".split("e")
        assert text == f"{mantissa}0e{exponent}"
        assert float(text) == value
    elif not text.startswith("0x"):
        assert float(text) == value
        exact = Decimal(value)
        assert abs(Decimal(text) - exact) <= Decimal(1).scaleb(exact.adjusted() - 16)
    else:
        assert value == int(value)


def test_lists_leave_out_the_types_that_bare_numbers_have() -> None:
    assert attribute("[1, 2 : i64]") == "[1, 2]"
    assert attribute("[1.5, 2.5]") == "[1.500000e+00, 2.500000e+00]"
    assert attribute("[0x7FF0000000000000 : f64]") == "[0x7FF0000000000000 : f64]"
    assert attribute('[1, [2.0, 3.0], "x", [4 : i32]]') == (
        '[1, [2.000000e+00, 3.000000e+00], "x", [4 : i32]]'
    )
    assert attribute("[i1, complex<f32>]") == "[i1, complex<f32>]"


def test_strings_and_names_are_escaped_as_there() -> None:
    assert attribute(r'"a\\b\"c\0Ad"') == r'"a\\b\22c\0Ad"'
    assert lines('"k"() {"$x" = 1, "a b" = 2, x.y$ = 3} : () -> ()') == [
        '"k"() {"$x" = 1 : i64, "a b" = 2 : i64, x.y$ = 3 : i64} : () -> ()'
    ]


# --- dense tensors ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>", "dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>"),
        ("dense<[5, 5, 5]> : tensor<3xui8>", "dense<5> : tensor<3xui8>"),
        ("dense<[]> : tensor<0xf32>", "dense<> : tensor<0xf32>"),
        ("dense<> : tensor<2x0xf64>", "dense<> : tensor<2x0xf64>"),
        ("dense<3> : tensor<i16>", "dense<3> : tensor<i16>"),
        ("dense<[true, false]> : tensor<2xi1>", "dense<[true, false]> : tensor<2xi1>"),
        ("dense<[0x7F800000, 1.0]> : tensor<2xf32>", "dense<[0x7F800000, 1.000000e+00]> : "
         "tensor<2xf32>"),
        ("dense<(1.5, -2.0)> : tensor<2xcomplex<f64>>", "dense<(1.500000e+00,-2.000000e+00)> : "
         "tensor<2xcomplex<f64>>"),
        ("dense<[(0.0,1.0), (2.0,3.0)]> : tensor<2xcomplex<f32>>",
         "dense<[(0.000000e+00,1.000000e+00), (2.000000e+00,3.000000e+00)]> : "
         "tensor<2xcomplex<f32>>"),
    ],
)  # fmt: skip
def test_dense_tensors_are_spelled_as_there(given_text: str, expected: str) -> None:
    assert attribute(given_text) == expected


def test_many_different_elements_are_hexadecimal() -> None:
    numbers = [*range(101)]
    text = attribute(f"dense<{numbers}> : tensor<101xi16>")
    data = np.array(numbers, "<i2").tobytes()
    assert text == f'dense<"0x{data.hex().upper()}"> : tensor<101xi16>'
    assert attribute(f"dense<{numbers[:100]}> : tensor<100xi16>") == (
        f"dense<{numbers[:100]}> : tensor<100xi16>"
    )
    # Bits of i1 lie eight in a byte.
    bits = ", ".join("true" if number == 9 else "false" for number in numbers)
    text = attribute(f"dense<[{bits}]> : tensor<101xi1>")
    assert text == f'dense<"0x0002{"00" * 11}"> : tensor<101xi1>'
    assert attribute(text) == text


@given(st.sampled_from(sorted({*SCALARS, *COMPLEX})), st.integers(0, 120), st.data())
def test_every_dense_tensor_survives(dtype: DType, count: int, data: st.DataObject) -> None:
    size = count * DTYPES[dtype].size
    content = data.draw(st.binary(min_size=size, max_size=size))
    if dtype is DType.I1:
        content = bytes(byte & 1 for byte in content)
    dense = tfrt.Dense(dtype, (count, 1), content)
    module = f'func.func @f() {{ "k"() {{a = {print_attribute(dense)}}} : () -> () tfrt.return }}'
    assert tfrt.from_text(module).attributes == (dense,)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("dense<(1.0, 2.0)> : tensor<1xf32>", "in parentheses is not of type f32"),
        ("dense<1.0> : tensor<1xcomplex<f32>>", r"needs elements like \(1.0, 2.0\)"),
        ("dense<(1.0)> : tensor<1xcomplex<f32>>", "in parentheses is not of type"),
        ("dense<true> : tensor<1xi8>", "true is not of type i8"),
        ("dense<1> : tensor<1xf32>", "needs a decimal point"),
        ("dense<[1, 2]> : tensor<3xi8>", "not 3 elements"),
        ("dense<300> : tensor<1xui8>", "does not fit"),
    ],
)
def test_elements_of_another_type_are_refused(text: str, reason: str) -> None:
    with pytest.raises(tfrt.TextError, match=reason):
        attribute(text)


# --- operations ------------------------------------------------------------------------------

FORMS = [
    "%0 = tfrt.new.chain",
    "%1 = tfrt.constant.i1 true",
    "%2 = tfrt.constant.i32 5 {own = 1 : i64}",
    "%3 = tfrt.constant.complex64 1.000000e+00, -5.000000e-01",
    "%4 = tfrt.merge.chains %0, %2 : !tfrt.chain, i32",
    "%5 = tfrt.call @own(%0, %2) : (!tfrt.chain, i32) -> !tfrt.chain",
    "%6 = tfrt.cond %1 @own @own(%0, %2) : (!tfrt.chain, i32) -> (!tfrt.chain)",
    "%7 = tfrt.case %2 [@own, @own](%0, %2) : (!tfrt.chain, i32) -> (!tfrt.chain)",
    "%8 = tfrt.while %1 @again(%2) parallel_iterations(1) : (i32) -> (i32)",
    "%9 = tfrt.once @own(%0, %2) {a = 2 : i64} : (!tfrt.chain, i32) -> (!tfrt.chain)",
    "%10 = tfrt_dht.create_uninitialized_tensor.f32.2 [2, 3]",
    "%11 = tfrt_dht.fill_tensor_with_constant.f32 %10, %0 1.500000e+00 : f32",
    "%12 = tfrt_dht.set_tensor_with_constant_values.complex64 %10, %0 [1.000000e+00 : f32]",
    '%13 = tfrt_test.get_string {value = "own"}',
    "%14 = ts.build_shape [1, 2]",
    # What the original does not define has the generic form there.
    '%15 = "tfrt.minus.i32"(%2, %2) : (i32, i32) -> i32',
    '%16:2 = "tfrt.div.f32"(%2, %2) : (i32, i32) -> (i32, i32)',
    '%17 = "tfrt_dht.create_uninitialized_tensor.f64.1"() {shape = [2]} : () -> !t.tensor',
    '%18 = "tfrt_dht.create_uninitialized_tensor.f32.5"() {shape = [2]} : () -> !t.tensor',
    "%19 = corert.const_dense_tensor dense<1> : tensor<2xi32>",
    '%20 = corert.get_op_handler %0 "cpu"',
    "%21:2 = corert.cond %19 @two @two(%0, %19) : (!corert.tensorhandle) -> (!corert.tensorhandle)",
    '%22 = corert.executeop(%20) "own.op"(%19) {b = 1 : i32, a = "x"} : 1',
    '%23:3 = corert.executeop.seq(%20, %0) "own.op"(%19, %22) : 2',
    'corert.executeop(%20) "own.op"()',
    "tfrt_test.sync_benchmark @quiet(%0 : !tfrt.chain, %2 : i32) duration_secs = 1, max_count = 2, "
    "num_warmup_runs = 3",
]
CALLED = """
func.func @own(%c: !tfrt.chain, %x: i32) -> !tfrt.chain { tfrt.return %c : !tfrt.chain }
func.func @quiet(%c: !tfrt.chain, %x: i32) attributes {tfrt.sync} { tfrt.return }
func.func @again(%x: i32) -> (i32, i1) { %t = tfrt.constant.i1 1 tfrt.return %x, %t : i32, i1 }
func.func @two(%c: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  tfrt.return %c, %x : !tfrt.chain, !corert.tensorhandle
}
"""


def test_forms_are_those_of_the_definitions() -> None:
    body = "\n".join(FORMS)
    text = printed(f"{CALLED}func.func @f() {{\n{body}\ntfrt.return\n}}")
    shown = text.partition("@f() {\n")[2].splitlines()
    assert [line.strip() for line in shown[: len(FORMS)]] == FORMS


def test_a_chain_that_a_type_leaves_out_is_understood() -> None:
    short = "%a, %b = tfrt.case %i [@two] (%c, %x) : (i32) -> (i32)"
    text = printed(
        f"""func.func @two(%c: !tfrt.chain, %x: i32) -> (!tfrt.chain, i32) {{
          tfrt.return %c, %x : !tfrt.chain, i32
        }}
        func.func @f(%c: !tfrt.chain, %x: i32, %i: i32) {{ {short} tfrt.return }}"""
    )
    assert "tfrt.case %arg2 [@two](%arg0, %arg1) : (!tfrt.chain, i32) -> (!tfrt.chain, i32)" in text


def test_settings_come_in_any_order_and_are_printed_in_one() -> None:
    text = """%x = tfrt.constant.i32 1
    %b = tfrt_test.benchmark "own"(%x : i32) max_count = 2, duration_secs = 1 {
      tfrt.return %x : i32
    }"""
    assert lines(text)[1] == (
        '%1 = tfrt_test.benchmark "own"(%0 : i32) duration_secs = 1, max_count = 2, '
        "num_warmup_runs = 1 {"
    )


def test_functions_of_kernels_without_a_form_are_callees() -> None:
    text = """func.func private @n(i32) -> (i32, i32) attributes {tfrt.native}
    func.func @f(%a: i32) {
      "own.call"(%a) {what = @n} : (i32) -> ()
      "own.choose"(%a) {x = @n, y = @f} : (i32) -> ()
      tfrt.return
    }"""
    shown = printed(text)
    assert "func.func private @n(i32) -> (i32, i32) attributes {tfrt.native}\n" in shown
    assert '"own.call"(%arg0) {callee = @n} : (i32) -> ()' in shown
    assert '"own.choose"(%arg0) {callee = @n, callee1 = @f} : (i32) -> ()' in shown


def test_regions_beside_each_other_have_the_same_names() -> None:
    text = """%a, %b = tfrt.div.i32 %x, %x
    %r = tfrt.if %t, %b : (i32) -> i32 {
      %c = tfrt.add.i32 %b, %b
      tfrt.return %c : i32
    } else {
      "own.op"(%b) ({ ^bb0(%y: i32): %d = tfrt.mul.i32 %y, %y tfrt.return %d : i32 },
                    { tfrt.return }) : (i32) -> ()
      tfrt.return %b : i32
    }"""
    assert lines(text, "@f(%x: i32, %t: i1)") == [
        "%0:2 = tfrt.div.i32 %arg0, %arg0",
        "%1 = tfrt.if %arg1, %0#1 : (i32) -> (i32) {",
        "  %2 = tfrt.add.i32 %0#1, %0#1",
        "  tfrt.return %2 : i32",
        "} else {",
        # Arguments of regions are counted on, though they have the names of operands.
        '  "own.op"(%0#1) ({',
        "  ^bb0(%arg3: i32):",
        "    %2 = tfrt.mul.i32 %arg3, %arg3",
        "    tfrt.return %2 : i32",
        "  }, {",
        "    tfrt.return",
        "  }) : (i32) -> ()",
        "  tfrt.return %0#1 : i32",
        "}",
    ]


def test_locations_are_printed_if_asked_for() -> None:
    text = 'func.func @f() { %c = tfrt.new.chain loc("own":1:2) tfrt.return }'
    assert "loc(" not in printed(text)
    assert '%0 = tfrt.new.chain loc("own":1:2)\n' in printed(text, locations=True)


def test_the_generic_form_of_everything() -> None:
    text = """func.func private @n(i32) attributes {tfrt.native}
    func.func @f(%a: i32) -> i32 attributes {tfrt.sync} {
      %b = tfrt.add.i32 %a, %a
      tfrt.return %b : i32
    }"""
    assert (
        printed(text, generic=True)
        == """"builtin.module"() ({
  "func.func"() <{function_type = (i32) -> (), sym_name = "n", sym_visibility = "private"}> ({
  }) {tfrt.native} : () -> ()
  "func.func"() <{function_type = (i32) -> i32, sym_name = "f"}> ({
  ^bb0(%arg0: i32):
    %0 = "tfrt.add.i32"(%arg0, %arg0) : (i32, i32) -> i32
    "tfrt.return"(%0) : (i32) -> ()
  }) {tfrt.sync} : () -> ()
}) : () -> ()
"""
    )


# --- compiled modules ------------------------------------------------------------------------

WITH_MODULES = """
module @first attributes {tfrt.compiled, own.level = 2 : i64} {
  // Anything may be here: }; it is not read.
  func @main(%x: memref<?xf32, affine_map<(d0) -> (d0 + 1)>>) -> () { return }
}
module @second attributes {tfrt.compiled} { }
func.func @f() {
  "own.launch"() {a = @first::@main, b = @first::@other::@deep} : () -> ()
  "own.launch"() {a = @second::@main} : () -> ()
  "own.launch"() {a = @first::@main} : () -> ()
  tfrt.return
}
""".replace(" }; it", " it")


def test_compiled_modules_are_carried_as_they_are() -> None:
    file = tfrt.load(tfrt.dump(tfrt.from_text(WITH_MODULES)))
    symbols = [entry for entry in file.attributes if isinstance(entry, tfrt.Symbol)]
    first = WITH_MODULES.split("\nmodule @second")[0].strip().encode()
    assert symbols == [
        tfrt.Symbol(0, b"first", (b"main",), first),
        tfrt.Symbol(1, b"first", (b"other", b"deep"), first),
        tfrt.Symbol(2, b"second", (b"main",), b"module @second attributes {tfrt.compiled} { }"),
    ]
    text = tfrt.to_text(file)
    # The original puts each one before all others.
    assert text.index("module @second") < text.index("module @first")
    assert text.count("@first::@main") == 2
    assert text.count("affine_map<(d0) -> (d0 + 1)>") == 1
    again = tfrt.from_text(text)
    assert set(again.attributes) == set(symbols)
    assert tfrt.to_text(again) == text


def test_a_generic_compiled_module_is_shown_with_its_name() -> None:
    """As the original stores it."""
    unit = b"""\"builtin.module"() <{sym_name = "k"}> ({
  "func.func"() <{function_type = () -> (), sym_name = "main"}> ({
    "func.return"() : () -> ()
  }) : () -> ()
}) {tfrt.compiled} : () -> ()
"""
    symbol = f'#bef.symbol<0, ["k", "main"], {_quoted(unit)}>'
    text = printed(f'func.func @f() {{ "k"() {{a = {symbol}}} : () -> () tfrt.return }}')
    assert text.startswith(
        """module {
  module @k attributes {tfrt.compiled} {
    "func.func"() <{function_type = () -> (), sym_name = "main"}> ({
      "func.return"() : () -> ()
    }) : () -> ()
  }
  func.func @f() {
    "k"() {a = @k::@main} : () -> ()
"""
    )


@pytest.mark.parametrize("unit", [b"", b"\0\xff", b"module @k {", b"module {}", b'"own.op"() : ()'])
def test_units_that_are_no_module_are_written_as_bytes(unit: bytes) -> None:
    symbol = f'#bef.symbol<0, ["k", "main"], {_quoted(unit)}>'
    text = printed(f'func.func @f() {{ "k"() {{a = {symbol}}} : () -> () tfrt.return }}')
    assert symbol in text


def _quoted(data: bytes) -> str:
    return (
        '"' + "".join(f"\\{byte:02X}" if byte in b'"\0\xff\n' else chr(byte) for byte in data) + '"'
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('func.func @f() { "k"() {a = @no::@such} : () -> () tfrt.return }', "no compiled module"),
        ("module { module @k {} }", "has the attribute tfrt.compiled"),
        ("module @k attributes {tfrt.compiled} {", "the braces do not end"),
        ("module attributes {tfrt.compiled} {}", "it has no name"),
        ("module @k attributes {tfrt.compiled} {}\n" * 2, "'k' is there twice"),
        (
            'func.func @f() { "k"() {a = [@k::@m]} : () -> () tfrt.return }',
            "cannot encode the 'a' attribute",
        ),
    ],
)
def test_modules_that_cannot_be_are_refused(text: str, reason: str) -> None:
    with pytest.raises(tfrt.TextError, match=reason):
        tfrt.from_text(text)


def test_what_is_finite_reads_back_whatever_the_width() -> None:
    for dtype in (DType.F16, DType.BF16):
        for bits in range(0, 1 << 16, 7):
            scalar = tfrt.Scalar(dtype, bits.to_bytes(2, "little"))
            text = number_text(scalar)
            if not text.startswith("0x"):
                assert math.isfinite(float(text))
                assert tfrt.Scalar.of(dtype, float(text)) == scalar
