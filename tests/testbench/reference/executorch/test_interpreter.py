"""The interpreter of execution plans: memory, state, control flow, shapes, delegates, taps."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import executorch_files as files
import numpy as np
import pytest
from darwinn_formats import executorch
from darwinn_formats.errors import ExecutionError, FormatError
from darwinn_formats.executorch import schema
from darwinn_formats.executorch.builder import MethodBuilder, ProgramBuilder, Value
from darwinn_reference.arrays import AnyArray
from darwinn_reference.bfloat16 import to_bfloat16
from darwinn_reference.errors import Unsupported
from darwinn_reference.executorch import (
    DelegateProgram,
    ExecutorchReference,
    TensorValue,
    interpreter,
)
from darwinn_reference.protocol import Intermediate, Reference
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

F32 = np.float32
X = np.arange(6, dtype=F32).reshape(2, 3)


def started() -> tuple[ProgramBuilder, MethodBuilder]:
    program = ProgramBuilder()
    return program, program.method()


def run(program: ProgramBuilder, *inputs: Any) -> list[Any]:
    return [entry.data for entry in ExecutorchReference(program.build()).run(inputs)]


def test_it_is_a_reference() -> None:
    program, method = started()
    method.output(method.input(F32, (2,)))
    assert isinstance(ExecutorchReference(program.build()), Reference)


# --- memory and state -----------------------------------------------------------------------------


def test_tensors_lie_where_the_plan_puts_them() -> None:
    """A tensor that nothing writes shows the bytes of another at the same place."""
    program, method = started()
    x = method.input(F32, (2, 3), at=0)
    behind = method.tensor(F32, (4,), at=8)
    method.output(x, behind)
    first, second = run(program, X)
    np.testing.assert_array_equal(first, X)
    np.testing.assert_array_equal(second, [2, 3, 4, 5])


def test_a_wrong_offset_shows() -> None:
    """The sum overwrites half of the operand that is needed again."""
    program, method = started()
    x = method.input(F32, (2, 3), at=0)
    total = method.tensor(F32, (2, 3), at=12)
    again = method.tensor(F32, (2, 3), at=48)
    method.call("aten::add.out", x, x, 1, outputs=[total])
    method.call("aten::add.out", x, total, 1, outputs=[again])
    method.output(again)
    (result,) = run(program, X)
    assert not np.array_equal(result, 3 * X)


def test_state_lasts_until_reset() -> None:
    program, method = started()
    x = method.input(np.int32, (3,))
    state = method.state(files.STATE)
    total = method.tensor(np.int32, (3,))
    method.call("aten::add.out", state, x, 1, outputs=[total])
    method.call("aten::copy_", state, total, False, returns=state)
    method.output(total)
    reference = ExecutorchReference(program.build())
    step = np.array([1, 10, 100], np.int32)
    for expected in (1, 2, 3):
        (output,) = reference.run([step])
        np.testing.assert_array_equal(output.data, files.STATE + expected * step)
    reference.reset()
    np.testing.assert_array_equal(reference.run([step])[0].data, files.STATE + step)


def test_results_are_copies_and_inputs_are_left_alone() -> None:
    program, method = started()
    x = method.input(F32, (2, 3), is_planned=False)
    y = method.tensor(F32, (2, 3), is_planned=False)
    method.call("aten::add.out", x, x, 1, outputs=[y])
    method.call("aten::copy_", x, y, False, returns=x)
    method.output(x, y)
    reference = ExecutorchReference(program.build())
    given_x = X.copy()
    first = reference.run([given_x])[1].data
    reference.run([np.zeros_like(X)])
    np.testing.assert_array_equal(first, 2 * X)
    np.testing.assert_array_equal(given_x, X)


def test_constants_are_not_written() -> None:
    program, method = started()
    constant = method.argument(program.constant(X))
    method.call("aten::copy_", constant, constant, False, returns=constant)
    with pytest.raises(ExecutionError, match="is a constant and cannot be written"):
        run(program)


def test_the_order_of_dimensions_is_that_of_the_memory() -> None:
    program, method = started()
    x = method.input(F32, (2, 3), dim_order=(1, 0), at=0)
    memory = method.tensor(F32, (6,), at=0)
    method.output(x, memory)
    logical, stored = run(program, X)
    np.testing.assert_array_equal(logical, X)
    np.testing.assert_array_equal(stored, X.T.reshape(-1))


@given(arrays.arrays(np.float32, (5,), elements=st.floats(width=32)))
def test_bfloat16_is_rounded_to_the_nearest(values: AnyArray) -> None:
    stored = to_bfloat16(values)
    back = (stored.astype(np.uint32) << 16).view(np.float32)
    finite = np.isfinite(values) & np.isfinite(back)
    with np.errstate(over="ignore"):
        gap = np.abs(values[finite].astype(np.float64)) * 2.0**-8
    assert (np.abs(back[finite].astype(np.float64) - values[finite]) <= gap + 1e-38).all()
    np.testing.assert_array_equal(np.isnan(back), np.isnan(values))
    np.testing.assert_array_equal(to_bfloat16(back)[~np.isnan(back)], stored[~np.isnan(back)])


def test_bfloat16_tensors_compute_as_float32() -> None:
    program, method = started()
    x = method.input(np.uint16, (2,))
    index = x.index
    tensor = method.values[index]
    assert isinstance(tensor, schema.Tensor)
    method.values[index] = schema.Tensor(
        schema.ScalarType.BFLOAT16,
        sizes=tensor.sizes,
        dim_order=tensor.dim_order,
        allocation_info=tensor.allocation_info,
    )
    y = method.tensor(F32, (2,))
    method.call("aten::add.out", x, x, 1, outputs=[y])
    method.output(y)
    values = np.array([1.0, 1.00390625], F32)
    (result,) = run(program, values)
    np.testing.assert_array_equal(result, [2, 2])


# --- shapes and inputs ----------------------------------------------------------------------------


def test_bound_sizes_follow_the_input() -> None:
    program, method = started()
    x = method.input(F32, (4, 3), is_bound=True)
    y = method.tensor(F32, (4, 3), is_bound=True)
    method.call("aten::add.out", x, 1.0, 1, outputs=[y])
    method.operators = ["aten::add.Scalar_out"]
    method.output(y)
    reference = ExecutorchReference(program.build())
    for rows in (1, 4, 2):
        given_x = np.ones((rows, 3), F32)
        np.testing.assert_array_equal(reference.run([given_x])[0].data, given_x + 1)
    assert reference.inputs()[0].shape == (None, None)
    # Only the number of elements is bounded.
    wide = reference.run([np.ones((2, 6), F32)])[0].data
    assert isinstance(wide, np.ndarray) and wide.shape == (2, 6)
    with pytest.raises(ExecutionError, match=r"input 0: %0 of at most \(4, 3\) would be \(5, 3\)"):
        reference.run([np.ones((5, 3), F32)])


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ((), "0 inputs, the method takes 3"),
        ((X, 5, "x"), "input 1: 5 given where the program has 4"),
        ((X, 4.0, "x"), r"input 1: 4\.0 given"),
        ((X, 4, "y"), "input 2: 'y' given where the program has 'x'"),
        ((X.astype(np.float64), 4, "x"), "input 0: elements of type float64"),
        ((X.T, 4, "x"), r"input 0: %0 of sizes \(2, 3\) would be \(3, 2\)"),
        ((1, 4, "x"), "input 0: 1 given where the program takes a tensor"),
    ],
)
def test_inputs_have_to_fit(inputs: Sequence[Any], reason: str) -> None:
    program, method = started()
    method.output(method.input(F32, (2, 3)))
    method.inputs += [method.argument(4).index, method.argument("x").index]
    with pytest.raises(ExecutionError, match=reason):
        ExecutorchReference(program.build()).run(inputs)


def test_results_of_other_sizes_than_declared_are_an_error() -> None:
    program, method = started()
    x = method.input(F32, (2, 3))
    y = method.tensor(F32, (3, 3))
    method.call("aten::permute_copy.out", x, [1, 0], outputs=[y])
    method.output(y)
    reason = r"instruction 0: aten::permute_copy\.out\(.*\): %1 of sizes \(3, 3\) would be \(3, 2\)"
    with pytest.raises(ExecutionError, match=reason):
        run(program, X)


# --- control flow ---------------------------------------------------------------------------------


def loop(program: ProgramBuilder, method: MethodBuilder, rounds: int) -> Value:
    """Rows of x, each doubled: the shape of what torch's map exports to."""
    rows = method.input(F32, (rounds, 3))
    result = method.tensor(F32, (rounds, 3), is_bound=True)
    row, doubled = method.tensor(F32, (3,)), method.tensor(F32, (3,))
    counter, done = method.argument(0), method.argument(False)
    method.call("aten::select_copy.int_out", rows, 0, counter, outputs=[row])
    method.call("aten::add.out", row, row, 1, outputs=[doubled])
    method.call("executorch_prim::et_copy_index.tensor", result, doubled, counter)
    method.call("executorch_prim::add.Scalar", counter, 1, returns=counter)
    method.call("executorch_prim::eq.Scalar", counter, rounds, returns=done)
    method.step(schema.JumpFalseCall(done.index, 0))
    method.call("executorch_prim::sub.Scalar", counter, rounds, returns=counter)
    method.output(result)
    return counter


def test_a_loop_over_rows() -> None:
    program, method = started()
    loop(program, method, 4)
    reference = ExecutorchReference(program.build())
    x = np.arange(12, dtype=F32).reshape(4, 3)
    for _ in range(2):
        np.testing.assert_array_equal(reference.run([x])[0].data, 2 * x)


def test_an_endless_loop_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "INSTRUCTION_LIMIT", 100)
    program, method = started()
    method.step(schema.JumpFalseCall(method.argument(False).index, 0))
    with pytest.raises(ExecutionError, match="more than 100 instructions"):
        run(program)


@pytest.mark.parametrize("truth", [np.array([True, False]), np.array([True, True])])
def test_branches_move_handles_and_tensors_decide_by_all_elements(truth: AnyArray) -> None:
    program, method = started()
    condition = method.input(np.bool_, (2,))
    x = method.input(F32, (2, 3))
    result = method.tensor(F32, (2, 3), at=256)
    yes, no = (method.tensor(F32, (2, 3)) for _ in range(2))
    method.step(schema.JumpFalseCall(condition.index, 4))
    method.call("aten::sin.out", x, outputs=[yes])
    method.step(schema.MoveCall(yes.index, result.index))
    method.step(schema.JumpFalseCall(method.argument(False).index, 6))
    method.call("aten::cos.out", x, outputs=[no])
    method.step(schema.MoveCall(no.index, result.index))
    method.output(result)
    expected = np.sin(X) if truth.all() else np.cos(X)
    np.testing.assert_allclose(run(program, truth, X)[0], expected, rtol=1e-6)


def test_only_truth_values_decide() -> None:
    program, method = started()
    method.step(schema.JumpFalseCall(method.argument(1).index, 0))
    with pytest.raises(ExecutionError, match="%0 decides a jump but is no truth value"):
        run(program)


def test_freed_tensors_cannot_be_read() -> None:
    program, method = started()
    x = method.input(F32, (2, 3))
    y = method.tensor(F32, (2, 3))
    method.step(schema.FreeCall(x.index))
    method.call("aten::sin.out", x, outputs=[y])
    with pytest.raises(ExecutionError, match=r"instruction 1: .*: %0 has no memory"):
        run(program, X)


def test_views_share_memory() -> None:
    program, method = started()
    x = method.input(F32, (2, 3))
    flat = method.tensor(F32, (6,), is_planned=False)
    method.call("executorch_prim::et_view.default", x, [-1], flat)
    method.call("aten::copy_", x, flat_sum(method, flat), False, returns=x)
    method.output(flat)
    np.testing.assert_array_equal(run(program, X)[0], np.full(6, 15))


def flat_sum(method: MethodBuilder, source: Value) -> Value:
    total = method.tensor(F32, ())
    method.call("aten::sum.IntList_out", source, [], False, None, outputs=[total])
    return total


def test_lists_of_outputs() -> None:
    program, method = started()
    x = method.input(F32, (2, 3))
    parts = [method.tensor(F32, (2, 1)), method.tensor(F32, (2, 2))]
    call = "aten::split_with_sizes_copy.out"
    method.call(call, x, [1, 2], 1, method.tensors(parts), returns=method.tensors(parts))
    method.output(*parts)
    first, second = run(program, X)
    np.testing.assert_array_equal(np.hstack([first, second]), X)


def test_changed_programs_run_or_fail_as_they_should(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the loader lets through never makes the interpreter fail otherwise."""
    monkeypatch.setattr(interpreter, "INSTRUCTION_LIMIT", 200)
    program, method = started()
    loop(program, method, 3)
    data = program.build()
    source = random.Random(5)
    outcomes = set()
    for place in range(8, len(data)):
        changed = data[:place] + bytes([source.randrange(256)]) + data[place + 1 :]
        try:
            reference = ExecutorchReference(changed, methods=["forward"])
            reference.run([np.ones((3, 3), F32)])
            outcomes.add("ran")
        except (FormatError, ExecutionError) as error:
            outcomes.add(type(error).__name__)
    # A changed tag of a union may be one of a newer schema, which is a format error of its own.
    assert outcomes == {"ran", "FormatError", "NewerError", "ExecutionError", "Unsupported"}


# --- what is missing ------------------------------------------------------------------------------


def test_all_missing_operators_are_named_at_load() -> None:
    program, method = started()
    x = method.input(F32, (2, 3))
    method.call("my::second", x, outputs=[x])
    method.call("aten::sin.out", x, outputs=[x])
    method.call("my::first.out", x, outputs=[x])
    other = program.method("other")
    other.call("my::third.out", other.input(F32, (1,)))
    with pytest.raises(Unsupported) as caught:
        ExecutorchReference(program.build())
    assert caught.value.missing == ("my::first.out", "my::second", "my::third.out")
    assert "my::first.out, my::second, my::third.out" in str(caught.value)
    with pytest.raises(ExecutionError, match="no method 'nothing'; there are: forward, other"):
        ExecutorchReference(program.build(), methods=["nothing"])


def test_a_call_of_too_few_arguments_is_refused_at_load() -> None:
    program, method = started()
    method.call("aten::add.out", method.input(F32, (1,)))
    with pytest.raises(ExecutionError, match=r"instruction 0: aten::add\.out\(%0\): 1 arguments"):
        ExecutorchReference(program.build())


def test_elements_without_arithmetic_are_named_at_load() -> None:
    program, method = started()
    for kind in (schema.ScalarType.FLOAT8_E5M2, schema.ScalarType.COMPLEX64):
        method.value(schema.Tensor(kind, sizes=(1,), dim_order=(0,)))
    other = program.method("other")
    other.value(schema.Tensor(schema.ScalarType.COMPLEX32, sizes=(2,), dim_order=(0,)))
    with pytest.raises(Unsupported) as caught:
        ExecutorchReference(program.build())
    assert caught.value.missing == ("complex32", "complex64", "float8_e5m2")
    x = other.input(F32, (2,))
    other.call("aten::view_as_real_copy.out", x, outputs=[x])
    with pytest.raises(Unsupported, match=r"aten::view_as_real_copy.out \(complex numbers\)"):
        ExecutorchReference(program.build())


def test_of_two_methods_of_one_name_the_first_is_called() -> None:
    """As in the original runtime, version 1.5.1."""
    program, method = started()
    for operator, same in (("aten::neg.out", method), ("aten::abs.out", program.method())):
        x = same.input(F32, (2, 3))
        y = same.tensor(F32, (2, 3))
        same.call(operator, x, outputs=[y])
        same.output(y)
    np.testing.assert_array_equal(run(program, X)[0], -X)


@pytest.mark.parametrize("operator", ["mul.Scalar", "add.Scalar", "sub.Scalar"])
def test_integers_stay_within_64_bits(operator: str) -> None:
    """A loop that squares one would ask for all memory."""
    program, method = started()
    number, other = method.argument(-(2**62)), method.argument(2**62)
    for _ in range(3):
        pair = (number, other) if operator == "sub.Scalar" else (number, number)
        method.call(f"executorch_prim::{operator}", *pair, returns=number)
    method.output(number)
    with pytest.raises(ExecutionError, match="64"):
        run(program)


@pytest.mark.parametrize(("operator", "arguments"), [("mod.Scalar", (2.5, 2)), ("mod.int", (1, 0))])
def test_numbers_that_do_not_fit_are_one_error(operator: str, arguments: tuple[Any, ...]) -> None:
    program, method = started()
    result = method.argument(0)
    method.call(f"executorch_prim::{operator}", *arguments, returns=result)
    method.output(result)
    with pytest.raises(ExecutionError, match=f"executorch_prim::{operator}"):
        run(program)


def test_other_devices_are_refused() -> None:
    program, method = started()
    on_gpu = schema.ExtraTensorInfo(device_type=schema.DeviceType.CUDA)
    method.value(schema.Tensor(sizes=(1,), dim_order=(0,), extra_tensor_info=on_gpu))
    with pytest.raises(ExecutionError, match="%0 is on CUDA"):
        ExecutorchReference(program.build())


def test_more_memory_than_there_is_is_refused() -> None:
    program, method = started()
    method.planned_bytes = 1 << 40
    with pytest.raises(ExecutionError, match="planned memory of 1099511627776 bytes"):
        ExecutorchReference(program.build())
    program, method = started()
    method.input(F32, (1 << 20, 1 << 20), is_bound=True, is_planned=False)
    with pytest.raises(ExecutionError, match="%0 of 4398046511104 bytes is more than this"):
        run(program, X)


# --- delegates and taps ---------------------------------------------------------------------------


def test_delegates_run_on_registered_backends() -> None:
    opened: list[DelegateProgram] = []

    def backend(program: DelegateProgram) -> interpreter.DelegateRunner:
        opened.append(program)

        def call(arguments: Sequence[Any]) -> Sequence[TensorValue]:
            source, target = arguments
            assert isinstance(source, TensorValue)
            target.write(source.array() * 10)
            return [target]

        return call

    # The program frees its output at the end; without that, and with a tensor as the output:
    plan = executorch.load(files.program_bytes()).method("forward")
    (chain,) = plan.chains
    steps = (*chain.instructions[:-1], schema.Instruction(schema.MoveCall(1, 1)))
    data = files.changed(outputs=(1,), chains=(replace(chain, instructions=steps),))
    backends = {"EdgeTpuBackend": backend, "Other": backend}
    reference = ExecutorchReference(data, methods=["forward"], backends=backends)
    tapped: list[tuple[str, str]] = []

    def tap(entry: Intermediate) -> None:
        tapped.append((entry.operation, entry.name))

    (output,) = reference.run([X], tap=tap)
    np.testing.assert_array_equal(output.data, 10 * X)
    assert tapped == [("aten::add.out", "%1"), ("EdgeTpuBackend", "%1")]
    assert [(entry.id, bytes(entry.payload)) for entry in opened] == [
        ("EdgeTpuBackend", files.package()),
        ("Other", b"blob"),
    ]
    assert opened[0].compile_specs == {"chip": b"beagle"}
    assert bytes(opened[0].named_data("weights")) == files.package()


def test_taps_see_every_tensor_with_its_source_and_may_replace_it() -> None:
    program, method = started()
    x = method.input(F32, (2, 3))
    y, z = (method.tensor(F32, (2, 3)) for _ in range(2))
    method.call("aten::sin.out", x, outputs=[y])
    method.call("aten::add.out", y, y, 1, outputs=[z])
    method.output(z)
    reference = ExecutorchReference(program.build())
    seen: list[tuple[str, int, str]] = []

    def tap(entry: Intermediate) -> AnyArray | None:
        seen.append((entry.name, entry.step, entry.operation))
        return X if entry.name == "%1" else None

    (output,) = reference.run([X], tap=tap)
    assert seen == [("%1", 0, "aten::sin.out"), ("%2", 1, "aten::add.out")]
    np.testing.assert_array_equal(output.data, 2 * X)


def test_stack_traces_say_where_a_value_and_a_fault_come_from(corpus: Any) -> None:
    reference = ExecutorchReference(corpus / "pte" / "b_linear_relu_stacktrace.pte")
    places: list[str] = []

    def tap(entry: Intermediate) -> None:
        places.append(entry.location)

    reference.run([np.zeros((4, 16), F32)], tap=tap)
    assert len(places) == 5
    assert all(".py:" in place for place in places)
