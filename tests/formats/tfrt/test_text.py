"""The text form: what it means, that it survives bytes and back, and how it is refused."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from darwinn_formats import tfrt
from darwinn_formats.errors import FormatError
from darwinn_formats.tfrt.model import UnknownLocation
from darwinn_formats.tfrt.text import syntax
from hypothesis import given
from hypothesis import strategies as st

MODULE = """
// Every form of an operation, attribute, location and type.
module attributes {tfrt.cost_threshold = 10 : i64} {
func.func private @native_add(%a: i32, i32) -> i32 attributes {tfrt.native}
func.func @sum(%c: !tfrt.chain, %x: i32) -> (!tfrt.chain, i32) {
  %two = tfrt.add.i32 %x, %x
  tfrt.return %c, %two : !tfrt.chain, i32
}
func.func @"odd name"(%i: i32, %x: i32) -> i32 { tfrt.return %x : i32 }
func.func @range(%s: i32, %e: i32) { tfrt.return }
func.func @body(%x: i32) -> (i32, i1) {
  %f = tfrt.constant.i1 false
  %g = tfrt.mul.i32 %x, %x
  tfrt.return %g, %f : i32, i1
}
func.func @main.all() -> (!tfrt.chain, i32) attributes {tfrt.cost_threshold = 3 : i64} {
  %ch = tfrt.new.chain
  %t = tfrt.constant.i1 true
  %i = tfrt.constant.i32 -5
  %l = tfrt.constant.i64 0x10
  %u = tfrt.constant.ui64 18446744073709551615
  %h = tfrt.constant.f16 1.5
  %b = tfrt.constant.bf16 0x7FC0
  %f = tfrt.constant.f32 0.1
  %d = tfrt.constant.f64 -1.0e-300
  %z = tfrt.constant.complex64 1.0, -2.0
  %m = tfrt.merge.chains %ch, %i : !tfrt.chain, i32
  %p:2 = tfrt.div.i32 %i, %i
  %q, %r = tfrt.call @sum(%ch, %p#1) : (!tfrt.chain, i32) -> (!tfrt.chain, i32)
  %1 = tfrt.if %t, %i, %p#0 : (i32, i32) -> i32 {
    tfrt.return %i : i32
  } else {
    tfrt.return %p#0 : i32
  }
  tfrt.if %t : () -> () { tfrt.return }
  %2:2 = tfrt.cond %t @sum @sum (%ch, %i) : (!tfrt.chain, i32) -> (!tfrt.chain, i32)
  %3 = tfrt.case %i [@"odd name", @"odd name"] (%i, %i) : (i32, i32) -> (i32)
  %4 = tfrt.while %t @body(%i) parallel_iterations(4) : (i32) -> (i32)
  %5:2 = tfrt.repeat.i32 %i, %ch, %p#0 : !tfrt.chain, i32 {
    %x = tfrt.print.i32 %p#0, %ch
    tfrt.return %x, %p#0 : !tfrt.chain, i32
  }
  tfrt.repeat.i32 %i { tfrt.return }
  %6:2 = tfrt.once @sum(%ch, %i) : (!tfrt.chain, i32) -> (!tfrt.chain, i32)
  %7 = tfrt.parallel_for.i32 %i to %1 fixed %i, %ch : !tfrt.chain {
    %start = tfrt.new.chain
    tfrt.return %start : !tfrt.chain
  }
  %8 = tfrt.parallel_call.i32 %i to %i fixed %i @range()
  %9 = tfrt_test.do.async %i, %ch : (i32, !tfrt.chain) -> (i32) {
    %n = tfrt_test.do.async %i : (i32) -> (i32) { tfrt.return %i : i32 }
    tfrt.return %n : i32
  }
  %10 = tfrt_test.benchmark "b\\22\\n"(%i : i32) duration_secs = 1, max_count = 2 {
    %x = tfrt.minus.i32 %i, %i
    tfrt.return %x : i32
  }
  %11:3 = tfrt_test.count3.i32 %i
  %12 = tfrt_test.test_cost %i {id = 0 : i64, _tfrt_cost = 1 : i64} : i32
  %13 = tfrt_dht.create_uninitialized_tensor.f32.2 [2 : i64, 3 : i64]
  %14 = tfrt_dht.create_uninitialized_tensor.bool.0 []
  %15 = tfrt_dht.fill_tensor_with_constant.f32 %13, %ch 1.5 : f32
  %16, %17 = coo.convert_dht_to_coo.f32.2 %13, %15
  %18 = ts.build_shape [1 : i64]
  %19 = ts.as_fixed_rank_shape.1 %18
  %20:4 = "tfrt_test.flat" () {value = [["s", [1 : i32, 0 : i32]], [1.0 : f32]]} : ()
      -> (!tfrt.string, i32, i32, f32) loc(#later)
  "own.op"(%i, %i) ({ ^bb0(%x: i32): tfrt.return %x : i32 }, { tfrt.return }) {
    a = 1, b = true, c = "text", d = [@sum, @body], e = @native_add, f = f32, g = [i1, i64],
    h = dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>, i = dense<7> : tensor<3xui8>,
    j = #corert.shape<1x?x3>, k = #corert.shape<*>, l = [1, "x", [2.5, 3.5]], m = [],
    n = #bef.func<"fn">, o = #bef.symbol<1, ["a", "b"], "\\00unit">, p = 255 : ui8,
    q = dense<"0x0000803F00000040"> : tensor<1xcomplex<f32>>, r = 0x7FF0000000000000 : f64,
    "s s" = -1 : i8
  } : (i32, i32) -> () loc(callsite("f" at fused["file.py":3:4, #later, unknown]))
  tfrt.return %q, %r : !tfrt.chain, i32
} loc("named"("here.mlir":7:8))
}
#later = loc("defined" at_end)
""".replace(" at_end)", ")")


def test_text_bytes_text_bytes_are_the_same() -> None:
    data = tfrt.dump(tfrt.from_text(MODULE, "m.mlir"))
    text = tfrt.to_text(tfrt.load(data), exact=True)
    assert tfrt.dump(tfrt.from_text(text)) == data
    assert tfrt.to_text(tfrt.load(tfrt.dump(tfrt.from_text(text))), exact=True) == text


def test_text_as_the_original_prints_it_is_read_as_the_same() -> None:
    text = tfrt.to_text(tfrt.from_text(MODULE, "m.mlir"))
    assert "loc(" not in text
    assert tfrt.to_text(tfrt.load(tfrt.dump(tfrt.from_text(text)))) == text


def test_what_is_read_equals_what_was_converted() -> None:
    file = tfrt.from_text(MODULE, "m.mlir")
    assert tfrt.load(tfrt.dump(file)) == file


def without_locations(module: syntax.Module) -> syntax.Module:
    """The same module with unknown locations."""

    def block(of: syntax.Block) -> syntax.Block:
        return replace(
            of,
            operations=tuple(
                replace(
                    operation,
                    regions=tuple(map(block, operation.regions)),
                    location=UnknownLocation(),
                )
                for operation in of.operations
            ),
        )

    functions = tuple(
        replace(
            function,
            block=None if function.block is None else block(function.block),
            location=UnknownLocation(),
        )
        for function in module.functions
    )
    return replace(module, functions=functions)


def test_a_parsed_module_survives_printing() -> None:
    module = tfrt.parse(MODULE, "m.mlir")
    assert tfrt.parse(tfrt.print_module(module)) == module
    plain = without_locations(module)
    again = tfrt.parse(tfrt.print_module(plain, locations=False))
    assert without_locations(again) == plain


def test_operations_that_name_no_location_are_where_they_stand() -> None:
    file = tfrt.from_text("func.func @f() {\n  %c = tfrt.new.chain\n  tfrt.return\n}", "x.mlir")
    body = file.functions[0].body
    assert body is not None
    assert body.location == tfrt.FileLineColumn("x.mlir", 1, 1)
    assert body.kernels[0].location == tfrt.FileLineColumn("x.mlir", 2, 8)


def test_tables_are_in_the_order_of_the_walk() -> None:
    """Regions before their operation, arguments in the order of their names."""
    file = tfrt.from_text(
        """func.func @outer(%x: i64) {
          "a.one"(%x) ({ "b.inner"() {z = 1 : i32} : () -> f32 tfrt.return })
            {zz = 2 : i32, fn = @outer, aa = 3 : i8, _tfrt_cost = 9 : i64} : (i64) -> ()
          tfrt.return
        }"""
    )
    assert file.kernel_names == ("b.inner", "a.one")
    assert file.types == ("f32", "i32", "i8", "i64")
    assert [f.name for f in file.functions] == ["", "outer"]
    assert [a.value for a in file.attributes if isinstance(a, tfrt.Scalar)] == [1, 3, 2]
    assert file.strings == tuple(
        sorted(["", "a.one", "aa", "b.inner", "f32", "i32", "i64", "i8", "outer", "z", "zz"])
    )
    body = file.functions[1].body
    assert body is not None
    kernel = body.kernels[0]
    assert kernel.attribute_names == ("aa", "zz")
    assert kernel.functions == (1, 0)


def test_the_last_use_of_a_value_comes_first_and_the_return_counts() -> None:
    body = _body(
        """%a = "k"() : () -> i32
        "use"(%a, %a) : (i32, i32) -> ()
        "use"(%a) : (i32) -> ()
        tfrt.return %a : i32""",
        "i32",
    )
    assert body.registers[0].uses == 4
    assert body.kernels[0].used_by == ((3, 2, 2),)
    assert body.entry_used_by == ((1,),)
    assert [kernel.ready_count for kernel in body.kernels] == [0, 2, 1]


def _body(operations: str, results: str = "", attributes: str = "") -> tfrt.Body:
    text = f"func.func @f() -> ({results}) attributes {{{attributes}}} {{\n{operations}\n}}"
    body = tfrt.from_text(text).functions[0].body
    assert body is not None
    return body


def _streams(body: tfrt.Body) -> list[int]:
    return [body.entry_stream, *(kernel.stream for kernel in body.kernels)]


CHAIN = """%a = "k"() : () -> i32
%b = "k"(%a) : (i32) -> i32
%c = "k"(%a) : (i32) -> i32
"""


def test_streams_follow_the_return() -> None:
    # Last first: the return opens 0, %c opens 1, %b joins the return; %a and the root follow it.
    assert _streams(_body(CHAIN + "tfrt.return %b : i32", "i32")) == [0, 0, 0, 1]


def test_streams_follow_the_most_expensive_child_elsewhere() -> None:
    text = """%a = "k"() : () -> i32
    %b = "k"(%a) : (i32) -> i32
    %c = "k"(%a) : (i32) -> i32
    %d = "k"(%c) : (i32) -> i32
    tfrt.return"""
    # %d opens 1, %b opens 2; the branch over %c costs more, so %a joins it.
    assert _streams(_body(text)) == [0, 1, 2, 1, 1]


def test_cheap_streams_are_merged_up_to_the_threshold() -> None:
    cheap = "{id = 0 : i64, _tfrt_cost = 1 : i64}"
    text = f"""%a = "k"() : () -> i32
    %b = tfrt_test.test_cost %a {cheap}
    %c = tfrt_test.test_cost %a {cheap}
    tfrt.return"""
    assert _streams(_body(text)) == [0, 2, 2, 1]
    # %c opens 1, %b opens 2; both cost less than 10, so 1 becomes part of 2, where %a joins them.
    assert _streams(_body(text, attributes="tfrt.cost_threshold = 10 : i64")) == [0, 2, 2, 2]


def test_streams_that_the_text_does_not_imply_are_kept() -> None:
    """Costs are not in a file, so that its streams have to be written in words of our own."""
    file = tfrt.from_text(
        """module attributes {tfrt.cost_threshold = 100 : i64} { func.func @f(%c: i1) {
          %a = "k"() : () -> i32
          tfrt.if %c, %a : (i32) -> () {
            tfrt_test.test_cost %a {id = 0 : i64, _tfrt_cost = 1 : i64}
            tfrt_test.test_cost %a {id = 0 : i64, _tfrt_cost = 1 : i64}
            tfrt.return
          }
          tfrt_test.test_cost %a {id = 0 : i64, _tfrt_cost = 1 : i64}
          tfrt_test.test_cost %a {id = 0 : i64, _tfrt_cost = 1 : i64}
          tfrt.return
        } }"""
    )
    written = tfrt.to_text(file, exact=True)
    assert written.count("_bef_streams") == 2
    assert "_bef" not in tfrt.to_text(file)
    assert tfrt.dump(tfrt.from_text(written)) == tfrt.dump(file)


def test_an_option_of_streams_that_is_not_implemented_is_refused() -> None:
    option = "tfrt.merge_inter_dependent_streams = true"
    with pytest.raises(tfrt.TextError, match="is not supported"):
        _body("tfrt.return", attributes=option)
    _body("tfrt.return", attributes=option.replace("true", "false"))


def test_table_entries_that_nothing_refers_to_are_kept() -> None:
    file = tfrt.from_text('func.func @f() { "k"() {a = [@f, @f]} : () -> () tfrt.return }')
    assert "a" in file.strings
    assert tfrt.dump(tfrt.from_text(tfrt.to_text(file, exact=True))) == tfrt.dump(file)


@given(st.sampled_from([*tfrt.DType][:15]), st.binary(min_size=16, max_size=16))
def test_every_number_survives(dtype: tfrt.DType, data: bytes) -> None:
    from darwinn_formats.tfrt.encoding import DTYPES, SCALARS
    from darwinn_formats.tfrt.text.attribute_text import print_attribute

    size = DTYPES[dtype].size
    if dtype in SCALARS:
        bits = bytes([data[0] & 1]) if dtype is tfrt.DType.I1 else data[:size]
        text = print_attribute(tfrt.Scalar(dtype, bits))
        module = f'func.func @f() {{ "k"() {{a = {text}}} : () -> () tfrt.return }}'
        assert tfrt.from_text(module).attributes == (tfrt.Scalar(dtype, bits),)


@given(st.binary())
def test_every_string_survives(data: bytes) -> None:
    from darwinn_formats.tfrt.text.lexer import quote, unescape

    assert unescape(quote(data)) == data


ERRORS = [
    ("func.func @f() { tfrt.return", 1, 29, "an operation is expected, not 'the end'"),
    ("func.func @f() {\n  %a = tfrt.new.chain\n}", 2, 8, "need to have a tfrt.return"),
    ("func.func @f() {\n  tfrt.return %a : i32 }", 2, 15, "%a is not a value of this block"),
    ("func.func @f() { tfrt.return }\nfunc.func @f() { tfrt.return }", 2, 31, "there twice"),
    ("func.func @f() { %a = tfrt.new.chain\n%a = tfrt.new.chain tfrt.return }", 2, 1, "twice"),
    ("func.func @f() -> i32 { tfrt.return }", 1, 25, "has 0 operands, but enclosing function"),
    ("func.func @f()", 1, 11, "external functions are not allowed"),
    ("func.func @f() attributes {tfrt.native} { tfrt.return }", 1, 11, "has no body"),
    ("func.func @f() { my.op tfrt.return }", 1, 18, "in its generic form"),
    ("func.func @f() {\n tfrt.call @g() : () -> () tfrt.return }", 2, 2, "'g' does not reference"),
    ("func.func @f() { tfrt.return tfrt.return }", 1, 30, "the last operation"),
    ("func.func @f() { %a = tfrt.constant.i32 1.5 tfrt.return }", 1, 41, "is not an integer"),
    ("func.func @f() { %a = tfrt.constant.i32 4294967296 tfrt.return }", 1, 41, "does not fit"),
    ("func.func @f() { %a = tfrt.constant.f32 1 tfrt.return }", 1, 41, "needs a decimal point"),
    ('func.func @f() { "k"() {a = 1 : !x.y} : () -> () tfrt.return }', 1, 31, "cannot be of type"),
    ('func.func @f() { "k"() {a} : () -> () tfrt.return }', 1, 18, "which has no value"),
    ('func.func @f() { "k"() {a = !x.y} : () -> () tfrt.return }', 1, 29, "cannot encode the 'a'"),
    ('func.func @f() { "k"() {a = 1, a = 2} : () -> () tfrt.return }', 1, 32, "is there twice"),
    ('func.func @f() { "k"() : (i32) -> () tfrt.return }', 1, 26, "0 operands present"),
    ('func.func @f() { "k() : () -> () }', 1, 18, "a string that does not end"),
    ("func.func @f() { ~ }", 1, 18, "'~' starts no token"),
    ('func.func @f() { %a, %b = "k"() : () -> i32 tfrt.return }', 1, 18, "has 1 results"),
    ('func.func @f() { %a:2 = "k"() : () -> (i32, i32) tfrt.return %a : i32 }', 1, 62, "which one"),
    ('func.func @f() { "k"() {a = #no.such<1>} : () -> () tfrt.return }', 1, 29, "is not known"),
    ('func.func @f() { "k"() : () -> () loc(#x) tfrt.return }', 1, 39, "#x is not defined"),
    ("func.func @f() { tfrt.return }\n#a = loc(#a)", 2, 10, "is defined by itself"),
    (
        "func.func @f(%a: i32) -> i32 attributes {tfrt.sync} { tfrt.return %a : i32 }",
        1,
        55,
        "an argument in",
    ),
    ("garbage", 1, 1, "a function is expected"),
    ("func.func @f(%a: tensor<2xi32) { tfrt.return }", 1, 18, "the type does not end"),
    ("func.func @f() { tfrt.if : () -> () { tfrt.return } }", 1, 26, "at least 1 operands"),
]


@pytest.mark.parametrize("sizes", ["9999999999", "100000x100000x100000"])
def test_a_tensor_of_one_number_is_bounded(sizes: str) -> None:
    tensor = f"dense<0> : tensor<{sizes}xi32>"
    text = f'func.func @f() {{\n"x.y"() {{v = {tensor}}} : () -> ()\ntfrt.return}}'
    with pytest.raises(FormatError, match=r"dense tensor in line 2: \d+ bytes are more than the"):
        tfrt.from_text(text)


@pytest.mark.parametrize(("text", "line", "column", "reason"), ERRORS)
def test_errors_name_line_and_column(text: str, line: int, column: int, reason: str) -> None:
    with pytest.raises(tfrt.TextError, match=reason) as caught:
        tfrt.from_text(text, "t.mlir")
    assert (caught.value.line, caught.value.column) == (line, column), caught.value
    assert str(caught.value).startswith(f"t.mlir:{line}:{column}: ")


@given(st.integers(0, len(MODULE)), st.text(max_size=3))
def test_damaged_text_is_refused_or_read(position: int, inserted: str) -> None:
    text = MODULE[:position] + inserted + MODULE[position + 3 :]
    with contextlib.suppress(tfrt.TextError, tfrt.FormatError):
        tfrt.dump(tfrt.from_text(text))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5000,
        'func.func @f() { "k"() {a = ' + "[" * 5000,
        "func.func @f() { tfrt.return } loc(" + "callsite(" * 5000,
        'func.func @f() { "k"() (' + '{ "k"() (' * 5000,
    ],
)
def test_nesting_is_bounded(text: str) -> None:
    with pytest.raises(tfrt.TextError):
        tfrt.from_text(text)
