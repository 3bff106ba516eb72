"""Every kernel, run from text over bytes, prints exactly what the original prints."""

from __future__ import annotations

import dataclasses
import io
import re
from pathlib import Path

import pytest
from bef_cases import CASES, Case
from bef_flow_cases import FLOW
from bef_run import body_lines, file_of, run
from bef_tensor_cases import TENSORS
from darwinn_formats.errors import ExecutionError
from darwinn_formats.limits import Limits, limited
from darwinn_reference.tfrt import KERNELS, TfrtReference, document


def text_of(operations: str) -> str:
    return f"func.func @case() {{\n%ch = tfrt.new.chain\n{operations}\ntfrt.return\n}}"


@pytest.mark.parametrize("case", [*CASES, *TENSORS], ids=lambda case: case[0])
def test_kernel(case: Case) -> None:
    _, operations, lines = case
    assert body_lines(operations) == lines


@pytest.mark.parametrize("case", [*CASES, *TENSORS], ids=lambda case: case[0])
def test_kernels_print_the_same_with_threads(case: Case) -> None:
    _, operations, lines = case
    assert body_lines(operations, threads=4) == lines


def test_no_kernel_is_without_a_case() -> None:
    texts = [text_of(operations) for _, operations, _ in [*CASES, *TENSORS]]
    texts += [text for _, text, _ in FLOW]
    seen = {name for text in texts for name in file_of(text).kernel_names}
    # Its lines go to the log, which has a test of its own.
    assert set(KERNELS) - seen == {"tfrt_test.logging"}


def test_a_text_that_doubles_is_bounded() -> None:
    append = '"tfrt_test.append_string"(%{0}, %{0}) : (!tfrt.string, !tfrt.string) -> !tfrt.string'
    doubled = [f"%{number + 1} = {append.format(number)}" for number in range(60)]
    text = '%0 = "tfrt_test.get_string"() {value = "12345678"} : () -> !tfrt.string'
    with limited(Limits(memory=1 << 20)):
        outcome = run(text_of("\n".join([text, *doubled])))
    assert outcome.log == ['"case.mlir":19:7: error: runtime error: Cannot allocate string']


ERRORS = [
    ("%a = tfrt.constant.i32 1", "tfrt.div.i32 %a, %z", "i32", "Divide by zero"),
    ("%a = tfrt.constant.i64 1", "tfrt.div.i64 %a, %z", "i64", "Divide by zero"),
    ("%a = tfrt.constant.f32 1.0", "tfrt.div.f32 %a, %z", "f32", "Divide by zero"),
    ("%a = tfrt.constant.f64 1.0", "tfrt.div.f64 %a, %z", "f64", "Divide by zero"),
]


@pytest.mark.parametrize(("before", "failing", "element", "message"), ERRORS)
def test_division_by_zero(before: str, failing: str, element: str, message: str) -> None:
    zero = f"%z = tfrt.constant.{element} 0{'.0' if element[0] == 'f' else ''}"
    results = ":2" if element[0] == "i" else ""
    value = "%r#0" if results else "%r"
    outcome = run(
        f"""func.func @case() -> {element} {{
        {before}
        {zero}
        // expected-error @+1 {{{{runtime error: {message}}}}}
        %r{results} = {failing}
        tfrt.return {value} : {element}
        }}"""
    )
    assert outcome.lines[1:] == [f"'case' returned <<error: {message}>>"]
    assert outcome.status == 0, outcome.log


FAILURES = [
    ('"tfrt_test.fail"() : () -> i32', "i32", "something bad happened"),
    ('"tfrt_test.error_chain"() : () -> !tfrt.chain', "!tfrt.chain", "error chain"),
    (
        '"tfrt_test.report_error_async"() : () -> i32',
        "i32",
        "something bad happened asynchronously",
    ),
    ("ts.to_shape %unranked", "!ts.shape", "Unknown rank"),
    (
        "ts.to_shape %partial",
        "!ts.shape",
        "Unknown dimensions at following indices = [0, 2]",
    ),
    (
        "tfrt_dht.create_uninitialized_tensor.i32.1 [1099511627776 : i64]",
        "!t.tensor",
        "Cannot allocate tensor",
    ),
    (
        "tfrt_dht.set_tensor_with_constant_values.i32 %tensor, %ch [1 : i32]",
        "!tfrt.chain",
        "Incorrect number of values for the tensor: 1, but expected 2",
    ),
    (
        "tfrt_dht.set_tensor_with_constant_values.complex64 %complex, %ch [1.0 : f32]",
        "!tfrt.chain",
        "1 parts are no complex numbers",
    ),
    (
        '"tfrt_dht_sync.make_tensor.i32"(%buffer, %shape) : (!ht.host_buffer, !ts.shape) -> '
        "!t.tensor",
        "!t.tensor",
        "tfrt_dht_sync.make_tensor failed: buffer_size (8) is not equal to the number of elements "
        "in shape ([3]) times element size (4)",
    ),
    (
        '"tfrt_test.slice_inplace.i32.3"(%cube, %tensor3, %ch, %cube) : (!t.tensor, !t.tensor, '
        "!tfrt.chain, !t.tensor) -> !tfrt.chain",
        "!tfrt.chain",
        "the slice reaches beyond the tensor",
    ),
    (
        '"tfrt_test.format_string"(%text, %number) : (!tfrt.string, i32) -> !tfrt.string',
        "!tfrt.string",
        "cannot format a number as '%s%999999d'",
    ),
    (
        '"tfrt_sht.create_tensor"() {shape = [3], values = ["a"]} : () -> !t.tensor',
        "!t.tensor",
        "Shape mismatch",
    ),
]


@pytest.mark.parametrize(("operation", "element", "message"), FAILURES)
def test_errors_are_results_and_diagnostics(operation: str, element: str, message: str) -> None:
    text = f"""func.func @case() -> {element} {{
    %ch = tfrt.new.chain
    %unranked = ts.build_unranked_partial_shape
    %partial = ts.build_partial_shape [-1 : i64, 57 : i64, -1 : i64]
    %tensor = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
    %complex = tfrt_dht.create_uninitialized_tensor.complex64.1 [2]
    %cube = tfrt_dht.create_uninitialized_tensor.i32.3 [2, 2, 2]
    %tensor3 = "tfrt_test.const_dense_attr"() {{value = dense<1> : tensor<3xi64>}} : () -> !t.tensor
    %eight = tfrt.constant.i64 8
    %buffer = tfrt_dht.allocate_buffer %eight, %eight
    %shape = ts.build_shape [3]
    %number = tfrt.constant.i32 1
    %text = tfrt_test.get_string {{value = "%s%999999d"}}
    %r = {operation} // expected-error {{{{{message}}}}}
    tfrt.return %r : {element}
    }}"""
    outcome = run(text)
    assert outcome.lines[1:] == [f"'case' returned <<error: {message}>>"]
    assert outcome.status == 0, outcome.log
    unexpected = run(re.sub("//.*", "", text))
    assert unexpected.status == 1
    (line,) = unexpected.log
    assert re.fullmatch(rf'"case.mlir":14:\d+: error: runtime error: {re.escape(message)}', line)


@pytest.mark.parametrize("kind", ["concrete", "indirect"])
def test_an_error_that_depends_on_the_operand(kind: str) -> None:
    for value, returned in ((0, "0"), (1, "<<error: something bad happened asynchronously>>")):
        expected = "// expected-error {{asynchronously}}" if value else ""
        outcome = run(
            f"""func.func @case() -> i32 {{
            %a = tfrt.constant.i32 {value}
            %r = "tfrt_test.report_error_{kind}_async"(%a) : (i32) -> i32 {expected}
            tfrt.return %r : i32
            }}"""
        )
        assert outcome.lines[1:] == [f"'case' returned {returned}"]
        assert outcome.status == 0


def test_one_result_may_be_an_error_and_another_not() -> None:
    outcome = run(
        """func.func @case() -> !tfrt.chain {
        %x, %y = "tfrt_test.partial_fail"() : () -> (i32, i32) // expected-error {{bad happened}}
        %ch = tfrt.new.chain
        %a = tfrt.print.i32 %x, %ch
        %b = tfrt.print.i32 %y, %a
        tfrt.return %b : !tfrt.chain
        }"""
    )
    assert outcome.lines[1:] == ["int32 = 1", "'case' returned <<error: something bad happened>>"]
    assert outcome.status == 0


def test_a_cancelled_request_runs_nothing_more() -> None:
    outcome = run(
        """func.func @case() -> !tfrt.chain {
        %ch = tfrt.new.chain
        %x, %a = "tfrt_test.cancel"(%ch) : (!tfrt.chain) -> (i32, !tfrt.chain)
        %b = tfrt.print.i32 %x, %a
        tfrt.return %b : !tfrt.chain
        }
        func.func @next() { tfrt.return }"""
    )
    assert outcome.lines[1:] == ["'case' returned <<error: Cancelled>>", "--- Running 'next':"]
    assert outcome.status == 0


def test_two_names_of_one_location_are_an_error() -> None:
    """Kernels of one location do not occur in what is written here, so the file is changed."""
    file = file_of(
        """func.func @case() -> !tfrt.chain {
        %a = "tfrt_test.unique_loc"() {name = "a"} : () -> !tfrt.chain
        %b = "tfrt_test.unique_loc"() {name = "b"} : () -> !tfrt.chain
        %c = tfrt.merge.chains %a, %b : !tfrt.chain, !tfrt.chain
        tfrt.return %c : !tfrt.chain
        }"""
    )
    (function,) = file.functions
    assert function.body is not None
    kernels = tuple(dataclasses.replace(k, location_offset=7) for k in function.body.kernels)
    body = dataclasses.replace(function.body, kernels=kernels)
    changed = dataclasses.replace(file, functions=(dataclasses.replace(function, body=body),))
    with pytest.raises(ExecutionError, match="duplicate locations 7"):
        TfrtReference(changed, output=io.StringIO()).run([])


def test_the_log_has_six_lines() -> None:
    outcome = run(
        text_of(
            '%s = "tfrt_test.get_string"() {value = "hi"} : () -> !tfrt.string\n'
            '"tfrt_test.logging"(%s, %ch) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain'
        )
    )
    assert outcome.lines == ["--- Running 'case':"]
    pattern = r"([IWE])\d{4} [\d:.]+ +\d+ \w+\.py:\d+\] from (TFRT_LOG.*)"
    found = [re.fullmatch(pattern, line) for line in outcome.log]
    assert [match.groups() for match in found if match] == [
        ("I", "TFRT_LOG(INFO): hi"),
        ("W", "TFRT_LOG(WARNING): hi"),
        ("E", "TFRT_LOG(ERROR): hi"),
        ("I", "TFRT_LOG_IF(INFO, true): hi"),
        ("W", "TFRT_LOG_IF(WARNING, true): hi"),
        ("E", "TFRT_LOG_IF(ERROR, true): hi"),
    ]


def test_the_document_lists_the_kernels() -> None:
    path = Path(__file__).parents[4] / "docs" / "formats-bef.md"
    assert document.updated(path.read_text()) == path.read_text()
