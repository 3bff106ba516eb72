"""What the original's verifiers and its converter refuse, in their words, where they report it."""

from __future__ import annotations

import pytest
from darwinn_formats import tfrt

CALLED = """
func.func @two(%a: i32, %b: f32) -> (i32, f32) { tfrt.return %a, %b : i32, f32 }
func.func @range(%s: i32, %e: i32, %x: f32) -> !tfrt.chain {
  %c = tfrt.new.chain
  tfrt.return %c : !tfrt.chain
}
func.func @quiet(%a: i32) attributes {tfrt.sync} { tfrt.return }
func.func @loud(%a: i32) -> i32 attributes {tfrt.sync} {
  %b = tfrt.add.i32 %a, %a
  tfrt.return %b : i32
}
"""
HEAD = "func.func @f(%t: i1, %i: i32, %j: i32, %x: f32, %c: !tfrt.chain, %h: !corert.ophandler) {\n"
OPERATIONS = [
    # Definitions.
    (
        '"tfrt.add.i32"(%i, %x) : (i32, f32) -> i32',
        "operand #1 must be 32-bit signless integer, but",
    ),
    ('"tfrt.add.i32"(%i) : (i32) -> i32', "expected 2 operands, but found 1"),
    ('"tfrt.print.f32"(%x, %x) : (f32, f32) -> !tfrt.chain', "operand #1 must be !tfrt.chain type"),
    ('"tfrt.new.chain"(%c) : (!tfrt.chain) -> !tfrt.chain', "requires zero operands"),
    ('"ts.to_shape"() : () -> !ts.shape', "requires a single operand"),
    ('"tfrt.new.chain"() : () -> ()', "requires one result"),
    ('"tfrt.div.i32"(%i, %i) : (i32, i32) -> i32', "expected 2 results"),
    ('"tfrt_dht_sync.print_tensor"(%i) : (i32) -> i32', "requires zero results"),
    ('"tfrt.constant.ui32"() {value = 1 : ui32} : () -> i32', "32-bit unsigned integer, but"),
    ('"tfrt.constant.bf16"() {value = 1.0 : bf16} : () -> f16', "be bfloat16 type, but got 'f16'"),
    ('"tfrt.constant.f64"() {value = 1.0} : () -> f32', "be 64-bit float, but got 'f32'"),
    (
        '"tfrt.constant.complex64"() {real = 1.0 : f32, imaginary = 1.0 : f32} : () -> f32',
        "complex type with 32-bit float elements",
    ),
    ('"tfrt.constant.i32"() {other = 1 : i32} : () -> i32', "requires attribute 'value'"),
    ('"tfrt.if"(%i) ({ tfrt.return }, { tfrt.return }) : (i32) -> ()', "1-bit signless integer"),
    ("tfrt.add.i32 %i, %x", "use of value '%x' expects different type than prior uses: 'i32' vs"),
    ("tfrt.call @two(%i, %i) : (i32, f32) -> (i32, f32)", "value '%i' expects different type"),
    ("tfrt.call @two(%i) : (i32, f32) -> (i32, f32)", "1 operands present, but expected 2"),
    # Verifiers.
    ("tfrt.call @none(%i) : (i32) -> ()", "'none' does not reference a valid function"),
    ("tfrt.call @two(%i) : (i32) -> ()", "incorrect number of operands for callee"),
    ("tfrt.call @two(%i, %i) : (i32, i32) -> ()", "operand type mismatch"),
    ("tfrt.call @two(%i, %x) : (i32, f32) -> i32", "incorrect number of results for callee"),
    ("tfrt.call @two(%i, %x) : (i32, f32) -> (i32, i32)", "result type mismatch"),
    ("tfrt.cond %t @none @two(%i, %x) : (i32, f32) -> (i32, f32)", "'none' does not reference"),
    ("tfrt.cond %t @two @loud(%i, %x) : (i32, f32) -> (i32, f32)", "operands for false function"),
    ("tfrt.cond %t @two @two(%i, %i) : (i32, i32) -> (i32, f32)", "mismatch for true function"),
    ("tfrt.cond %t @loud @loud(%i) : (i32) -> ()", "number of results for true function"),
    ("tfrt.cond %t @loud @loud(%i) : (i32) -> (f32)", "result type mismatch for true function"),
    (
        '"tfrt.if"(%t, %i) ({ ^bb0(%y: i32): tfrt.return }, { tfrt.return }) : (i1, i32) -> ()',
        "incorrect number of arguments to 'else' block",
    ),
    (
        '"tfrt.if"(%t, %i) ({ ^bb0(%y: f32): tfrt.return }, { ^bb0(%y: i32): tfrt.return }) : '
        "(i1, i32) -> ()",
        "operand/argument type mismatch",
    ),
    ('"tfrt.if"(%t) ({ tfrt.return }) : (i1) -> ()', "requires 2 regions"),
    ("tfrt.if %t, %i : (i32) -> () { tfrt.return %i : i32 }", "types don't match 'tfrt.if' result"),
    ("tfrt.repeat.i32 %i, %x : f32 { tfrt.return }", "don't match 'tfrt.repeat.i32' result"),
    ('"tfrt.repeat.i32"(%i) ({ tfrt.return }) : (i32) -> i32', "incorrect number of operands"),
    (
        '"tfrt.repeat.i32"(%i, %x) ({ ^bb0(%y: f32): tfrt.return }) : (i32, f32) -> i32',
        "operand/result type mismatch",
    ),
    (
        "tfrt.parallel_for.i32 %i to %j fixed %i { tfrt.return %i : i32 }",
        "don't match 'tfrt.parallel_for.i32' result",
    ),
    ("tfrt.parallel_call.i32 %i to %i fixed %i @none()", "'none' does not reference"),
    ("tfrt.parallel_call.i32 %i to %i fixed %i @range()", "number of callee operands"),
    ("tfrt.parallel_call.i32 %i to %i fixed %i @two()", "must take stard and end"),
    ("tfrt.parallel_call.i32 %i to %i fixed %i @range(%i) : i32", "operand type mismatch"),
    ("tfrt_test.do.async %i : (i32) -> (i32) { tfrt.return }", "match 'tfrt_test.do.async' result"),
    (
        'tfrt_test.benchmark "own"() duration_secs = 1, max_count = 1 { tfrt.return }',
        "One return value is expected",
    ),
    ("tfrt_test.sync_benchmark @none() duration_secs = 1, max_count = 1", "'none' does not"),
    ("tfrt_test.sync_benchmark @quiet() duration_secs = 1, max_count = 1", "number of operands"),
    (
        "tfrt_test.sync_benchmark @loud(%i : i32) duration_secs = 1, max_count = 1",
        "Target benchmark function must return zero value.",
    ),
    ("tfrt_test.test_cost %i {_tfrt_cost = -1 : i64} : i32", "cost value must be larger than 0"),
    (
        '"corert.executeop"(%h) {op_attrs = [1], op_func_attrs = [], op_name = "x"} : '
        "(!corert.ophandler) -> ()",
        "each op_attr should be a key-value pair",
    ),
    ('corert.executeop(%i) "own.op"()', "value '%i' expects different type than prior uses"),
    ('corert.executeop(%i, %i) "own.op"()', "has 1 operands here"),
    ('corert.executeop() "own.op"() : 1', "has 1 operands here"),
    (
        '"corert.executeop"(%i) {op_attrs = [], op_func_attrs = [], op_name = "x"} : (i32) -> ()',
        "operand #0 must be !corert.ophandler type",
    ),
    # The converter.
    ('"own.call"() {what = @none} : () -> ()', "function @none not defined"),
    ('"own.call"() {what = [@two, @none]} : () -> ()', "function @none not defined"),
    ('"own.op"() {own = tensor<1xf32>} : () -> ()', "BEF files cannot encode the 'own' attribute"),
    ('"own.op"() {own = [1, !own.type]} : () -> ()', "cannot encode the 'own' attribute"),
    ('"own.op"() {own} : () -> ()', "BEF files cannot encode the 'own' attribute"),
]


@pytest.mark.parametrize(("operation", "reason"), OPERATIONS)
def test_operations_are_verified(operation: str, reason: str) -> None:
    text = f"{CALLED}{HEAD}  {operation}\n  tfrt.return\n}}"
    (error,) = tfrt.diagnose(text, "own.mlir")
    assert reason in error.reason, error
    assert error.line == CALLED.count("\n") + 2
    with pytest.raises(tfrt.TextError):
        tfrt.from_text(text)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (
            "func.func @f(%a: i32) {\n\ntfrt.return %a : i32 }",
            3,
            "'tfrt.return' op has 1 operands, but enclosing function returns 0",
        ),
        (
            "func.func @f(%a: i32) -> f32 {\ntfrt.return %a : i32 }",
            2,
            "type of return operand 0 ('i32') doesn't match function result type ('f32')",
        ),
        ('func.func @f() {\n\n"own.op"() : () -> ()\n}', 3, "functions need to have a tfrt.return"),
        ("func.func @f() {\n}", 2, "functions need to have a tfrt.return"),
        ("\nfunc.func private @f() -> i32", 2, "external functions are not allowed"),
        (
            "func.func @f(%a: i32) -> i32 attributes {tfrt.sync} {\ntfrt.return %a : i32 }",
            2,
            "return value 0 is an argument in a sync function",
        ),
        (
            "func.func @f() -> (i32, i32) attributes {tfrt.sync} {\n%a = tfrt.constant.i32 1\n"
            "tfrt.return %a, %a : i32, i32 }",
            3,
            "return value 1 is duplicated in a sync function",
        ),
    ],
)
def test_functions_are_verified(text: str, line: int, reason: str) -> None:
    (error,) = tfrt.diagnose(text)
    assert (error.line, reason in error.reason) == (line, True), error


def test_each_function_has_its_own_error() -> None:
    body = '() -> i32 {\n"tfrt.new.chain"() : () -> ()\ntfrt.return }\n'
    errors = tfrt.diagnose(f"func.func @f{body}func.func @g{body}")
    # The first one of a function ends its verification.
    assert [(error.line, "requires one result" in error.reason) for error in errors] == [
        (2, True),
        (5, True),
    ]


def test_the_converter_looks_where_the_verifiers_find_nothing() -> None:
    text = """func.func @f() { "own.call"() {a = @none} : () -> () tfrt.return }
    func.func @g() { "tfrt.new.chain"() : () -> () tfrt.return }"""
    (error,) = tfrt.diagnose(text)
    assert "requires one result" in error.reason


def test_what_need_not_be_verified_converts() -> None:
    text = 'func.func @f(%x: f32) { "tfrt.add.i32"(%x, %x) : (f32, f32) -> i32 tfrt.return }'
    file = tfrt.from_text(text, verified=False)
    # No form stands for an operation that it cannot be read as.
    assert '"tfrt.add.i32"(%arg0, %arg0) : (f32, f32) -> i32' in tfrt.to_text(file)
    exact = tfrt.to_text(file, exact=True)
    assert tfrt.dump(tfrt.from_text(exact, verified=False)) == tfrt.dump(file)
