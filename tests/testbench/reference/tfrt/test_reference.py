"""The reference of BEF files behind the protocol: arrays in and out, taps, native functions."""

from __future__ import annotations

import io

import numpy as np
import pytest
from darwinn_formats import tfrt
from darwinn_formats.errors import ExecutionError
from darwinn_reference.errors import Unsupported
from darwinn_reference.protocol import Datum, Intermediate, Reference
from darwinn_reference.tfrt import DenseHostTensor, KernelError, TfrtReference, dense

QUANTISED = """
func.func private @layer(!t.tensor) -> !t.tensor attributes {tfrt.native}
func.func @main(%ch: !tfrt.chain, %x: !t.tensor) -> (!tfrt.chain, !t.tensor) {
  %h = tfrt.call @layer(%x) : (!t.tensor) -> !t.tensor
  %y = tfrt.call @layer(%h) : (!t.tensor) -> !t.tensor
  tfrt.return %ch, %y : !tfrt.chain, !t.tensor
}
func.func @numbers(%a: i32, %b: f32, %c: i1, %s: !tfrt.string) -> (i32, f32, i1, !tfrt.string) {
  %d = tfrt.add.i32 %a, %a
  tfrt.return %d, %b, %c, %s : i32, f32, i1, !tfrt.string
}
func.func @filled() -> !t.tensor {
  %ch = tfrt.new.chain
  %t = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
  %c = tfrt_dht.fill_tensor_with_constant.i32 %t, %ch 3 : i32
  %r = "tfrt_test.identity"(%c, %t) : (!tfrt.chain, !t.tensor) -> !t.tensor
  tfrt.return %r : !t.tensor
}
"""


def layer(tensor: DenseHostTensor) -> DenseHostTensor:
    """An int8 layer in integers: times 3, half, rounded towards zero, clamped."""
    accumulated = tensor.data.astype(np.int32) * 3
    return dense(np.clip(np.trunc(accumulated / 2), -128, 127).astype(np.int8))


@pytest.fixture
def reference() -> TfrtReference:
    data = tfrt.dump(tfrt.from_text(QUANTISED))
    return TfrtReference(data, natives={"layer": layer}, output=io.StringIO())


def test_it_follows_the_protocol(reference: TfrtReference) -> None:
    assert isinstance(reference, Reference)
    assert reference.functions == ("layer", "main", "numbers", "filled")
    assert [(port.name, port.dtype) for port in reference.inputs("main")] == [("arg1", None)]
    assert [port.dtype for port in reference.inputs("numbers")] == [
        np.dtype(np.int32),
        np.dtype(np.float32),
        np.dtype(np.bool_),
        None,
    ]
    assert [port.name for port in reference.outputs("main")] == ["result1"]


def test_native_functions_take_and_give_tensors(reference: TfrtReference) -> None:
    values = np.arange(-128, 128, dtype=np.int8)
    (output,) = reference.run([values], function="main")
    expected = layer(layer(dense(values))).data
    np.testing.assert_array_equal(output.data, expected)
    assert isinstance(output.data, np.ndarray)
    assert output.data.dtype == np.int8
    assert output.name == "result1"


def test_numbers_and_texts(reference: TfrtReference) -> None:
    outputs = reference.run([21, np.float32(0.5), True, "text"], function="numbers")
    assert [output.data for output in outputs] == [42, 0.5, True, "text"]


def test_inputs_are_not_changed(reference: TfrtReference) -> None:
    values = np.ones(3, np.int8)
    reference.run([values], function="main")
    np.testing.assert_array_equal(values, np.ones(3, np.int8))


def test_a_tap_sees_every_tensor_and_can_replace_it(reference: TfrtReference) -> None:
    seen: list[tuple[str, str, list[int]]] = []

    def tap(value: Intermediate) -> np.ndarray | None:
        seen.append((value.name, value.operation, value.data.tolist()))
        return np.array([10], np.int8) if value.name == "main.k1.0" else None

    (output,) = reference.run([np.array([1], np.int8)], function="main", tap=tap)
    assert seen == [("main.k1.0", "tfrt.call", [1]), ("main.k2.0", "tfrt.call", [15])]
    assert np.asarray(output.data).tolist() == [15]


def test_a_tap_sees_tensors_that_are_filled(reference: TfrtReference) -> None:
    seen: list[tuple[str, int, list[int]]] = []

    def tap(value: Intermediate) -> None:
        seen.append((value.operation.split(".")[1], value.step, value.data.tolist()))

    reference.run([], function="filled", tap=tap)
    assert ("fill_tensor_with_constant", 2, [3, 3]) in seen
    assert len({step for _, step, _ in seen}) == len(seen)


def test_every_call_is_the_same(reference: TfrtReference) -> None:
    values = np.array([5], np.int8)
    first = reference.run([values], function="main")
    reference.reset()
    assert first == reference.run([values], function="main")


@pytest.mark.parametrize(
    ("inputs", "function", "message"),
    [
        ([], "main", "1 inputs are needed, not 0"),
        ([np.zeros(1, "datetime64[s]")], "main", "cannot hold elements"),
        ([1.5, 0.5, True, ""], "numbers", "1.5 is not an i32"),
        ([2**31, 0.5, True, ""], "numbers", "is not an i32"),
        (["a", 0.5, True, ""], "numbers", "i32 cannot be given as str"),
        ([1, 0.5, True, 1], "numbers", "!tfrt.string cannot be given as int"),
        ([], "absent", "no function 'absent'"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(
    reference: TfrtReference, inputs: list[Datum], function: str, message: str
) -> None:
    with pytest.raises(ExecutionError, match=message):
        reference.run(inputs, function=function)


def test_an_error_lists_the_first_of_many_functions() -> None:
    text = "\n".join(f"func.func @f{number}() {{ tfrt.return }}" for number in range(1022))
    file = TfrtReference(tfrt.from_text(text))
    for function in (None, "other"):
        with pytest.raises(ExecutionError, match=r"f0, f1, .* and 1,002 more") as raised:
            file.run([], function=function)
        assert len(str(raised.value)) < 300


def test_native_functions_that_are_missing_are_named() -> None:
    file = tfrt.from_text("func.func private @a() attributes {tfrt.native}")
    with pytest.raises(Unsupported, match=r"native functions .* a$"):
        TfrtReference(file)


def test_a_native_function_may_fail(reference: TfrtReference) -> None:
    def fails(_: DenseHostTensor) -> DenseHostTensor:
        raise KernelError("no")

    broken = TfrtReference(reference.file, natives={"layer": fails})
    with pytest.raises(ExecutionError, match="main: result1: no"):
        broken.run([np.zeros(1, np.int8)], function="main")


WRONG = [
    ('%a = "tfrt.add.i32"(%ch, %ch) : (!tfrt.chain, !tfrt.chain) -> i32', "cannot take"),
    ('"tfrt.add.i32"(%ch) : (!tfrt.chain) -> i32', "needs 2 operands, has 1"),
    ('"tfrt.new.chain"() {a = 1 : i32} : () -> !tfrt.chain', "has 0 attributes, not 1"),
    ('"tfrt.constant.i32"() {value = 1 : i64} : () -> i32', "of another type"),
    ('"tfrt.new.chain"() : () -> ()', "gives 1 results, not 0"),
    ('"tfrt.call"(%ch) {f = @f} : (!tfrt.chain) -> ()', "called with 1 arguments, not 0"),
    ('"tfrt.call"() {f = @f} : () -> (i32)', "gave 0 results, not 1"),
    ('"tfrt_test.usleep"(%ch) : (!tfrt.chain) -> ()', "of another type than its use"),
    ('"tfrt.if"(%ch) : (!tfrt.chain) -> ()', "cannot take"),
]


@pytest.mark.parametrize(("operation", "message"), WRONG)
def test_calls_that_a_kernel_does_not_allow_are_refused(operation: str, message: str) -> None:
    text = f"func.func @f() {{ %ch = tfrt.new.chain\n{operation}\ntfrt.return }}"
    file = tfrt.load(tfrt.dump(tfrt.from_text(text, verified=False)))
    with pytest.raises(ExecutionError, match=message):
        TfrtReference(file).run([])


def test_calls_are_not_nested_without_end() -> None:
    reference = TfrtReference(
        tfrt.from_text("func.func @f() { tfrt.call @f() : () -> () tfrt.return }")
    )
    with pytest.raises(ExecutionError, match="nested more than 200 deep"):
        reference.run([])


@pytest.mark.parametrize("iterations", [1, 2])
def test_a_run_does_not_go_on_forever(iterations: int) -> None:
    reference = TfrtReference(
        tfrt.from_text(
            f"""func.func @forever(%c: i1) -> (i1, i1) {{
              %d = tfrt.and.i1 %c, %c
              tfrt.return %d, %c : i1, i1
            }}
            func.func @main() -> i1 {{
              %t = tfrt.constant.i1 true
              %r = tfrt.while %t @forever(%t) parallel_iterations({iterations}) : (i1) -> (i1)
              tfrt.return %r : i1
            }}"""
        )
    )
    reference.host.maximum_calls = 1000
    with pytest.raises(ExecutionError, match="more than 1000 calls"):
        reference.run([], function="main")
    # The next run starts anew.
    with pytest.raises(ExecutionError, match="more than 1000 calls"):
        reference.run([], function="main")


def test_files_without_optional_sections_run() -> None:
    """Kernels know the types of their attributes, so that a file need not say them."""
    file = tfrt.load(
        tfrt.dump(
            tfrt.from_text(
                """func.func @f() -> (i32, f32) {
                %a = tfrt.constant.i32 7
                %b = tfrt.constant.f32 0.5
                tfrt.return %a, %b : i32, f32
                }"""
            )
        )
    )
    data = tfrt.dump(file)
    end = data.index(b"\x08\x0a\x02")
    stripped = tfrt.load(data[:end])
    assert stripped.attribute_data is not None
    assert [output.data for output in TfrtReference(stripped).run([])] == [7, 0.5]
