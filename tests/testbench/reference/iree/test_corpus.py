"""The reference reproduces what the original runtime gave for real modules, over all calls."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError
from darwinn_reference.errors import Unsupported
from darwinn_reference.iree import IreeReference, OriginalIree, why_not
from darwinn_reference.iree.memory import device_copy
from darwinn_reference.iree.reference import _VmvxExecutable
from darwinn_reference.protocol import Intermediate, Port, Reference
from darwinn_testbench.comparison.compare import compare
from darwinn_testbench.policy import NAMED, Policy

EXACT, FLOAT32 = NAMED["exact"], NAMED["float32"]
SECONDS = 5.0

RESULTS: dict[str, tuple[int, Policy]] = {
    "v15/add.vmvx": (1, EXACT),
    "v15/matmul_f32.vmvx": (1, EXACT),
    "v15/qmatmul_const.vmvx": (1, EXACT),
    "v15/scalar_ctl.llvmcpu": (1, EXACT),
    "v15/scalar_ctl.vmvx": (1, EXACT),
    "v17/add.debug": (1, EXACT),
    "v17/add.nostrip": (1, EXACT),
    "v17/add.stripped": (1, EXACT),
    "v17/add.vmvx": (1, EXACT),
    "v17/add.vmvxinline": (1, EXACT),
    "v17/conv_stablehlo.vmvx": (1, EXACT),
    "v17/matmul_i8_dyn.vmvx": (2, EXACT),
    "v17/matmul_i8_dyn.vmvxinline": (2, EXACT),
    "v17/qmatmul_const.vmvx": (1, EXACT),
    "v17/scalar_ctl.llvmcpu": (2, EXACT),
    "v17/scalar_ctl.vmvx": (2, EXACT),
    "v17/scalar_ctl.vmvxinline": (2, EXACT),
    "v17/state_util.debug": (3, EXACT),
    "v17/state_util.nostrip": (3, EXACT),
    "v17/state_util.stripped": (3, EXACT),
    "v17/state_util.vmvx": (3, EXACT),
    "v17/state_util.vmvxinline": (1, EXACT),
    # tanh of the C library differs by its last bit between builds.
    "v17/tosa_mlp.vmvx": (1, FLOAT32),
    "v17/tosa_mlp.vmvxinline": (1, FLOAT32),
}
"""Calls of each module, and the policy that they are held to."""

MACHINE_CODE = (
    "v15/add.llvmcpu",
    "v15/matmul_f32.llvmcpu",
    "v15/qmatmul_const.llvmcpu",
    "v17/add.llvmcpu",
    "v17/conv_stablehlo.llvmcpu",
    "v17/matmul_i8_dyn.llvmcpu",
    "v17/qmatmul_const.llvmcpu",
    "v17/state_util.llvmcpu",
    "v17/tosa_mlp.llvmcpu",
)
WITHOUT_GOLDEN = ("v17/conv_stablehlo.vmvxinline", "v17/qmatmul_const.vmvxinline")


def path_of(corpus: Path, name: str) -> Path:
    return corpus / "vmfb" / f"{name}.vmfb"


def calls(corpus: Path, name: str) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """Function, inputs and outputs of each stored call."""
    with np.load(corpus / "vmfb" / f"{name}.npz") as stored:
        for call in range(len(stored.files)):
            if f"call{call}_fn" not in stored:
                return
            yield (
                str(stored[f"call{call}_fn"]),
                numbered(stored, f"call{call}_in"),
                numbered(stored, f"call{call}_out"),
            )


def numbered(stored: Any, prefix: str) -> list[Any]:
    names = (f"{prefix}{index}" for index in range(len(stored.files)))
    return [stored[name] for name in names if name in stored]


def check_golden(reference: Reference, corpus: Path, name: str, policy: Policy) -> int:
    count = 0
    for function, inputs, expected in calls(corpus, name):
        outputs = reference.run(inputs, function=function)
        assert len(outputs) == len(expected)
        for output, golden in zip(outputs, expected, strict=True):
            actual = np.asarray(output.data)
            # Numbers were stored as Python numbers, without the width that they have.
            result = compare(actual, golden if golden.ndim else golden.astype(actual.dtype), policy)
            assert result.passed, f"{name} {function}: {result.reason}"
        count += 1
    return count


def test_every_module_and_every_stored_result_has_a_row(corpus: Path) -> None:
    modules, results = (
        {
            path.relative_to(corpus / "vmfb").with_suffix("").as_posix()
            for path in (corpus / "vmfb").rglob(f"*.{suffix}")
        }
        for suffix in ("vmfb", "npz")
    )
    assert modules == {*RESULTS, *MACHINE_CODE, *WITHOUT_GOLDEN}
    assert results == {*RESULTS, *MACHINE_CODE}


@pytest.mark.parametrize("name", RESULTS)
def test_a_module_gives_what_is_stored(corpus: Path, name: str) -> None:
    count, policy = RESULTS[name]
    start = time.perf_counter()
    reference = IreeReference(path_of(corpus, name))
    assert check_golden(reference, corpus, name, policy) == count
    assert time.perf_counter() - start < SECONDS
    reference.reset()
    assert check_golden(reference, corpus, name, policy) == count


@pytest.mark.parametrize("name", MACHINE_CODE)
def test_machine_code_is_refused_by_name(corpus: Path, name: str) -> None:
    with pytest.raises(Unsupported, match=r"embedded-elf-x86_64 \(64-bit x86-64 shared object\)"):
        IreeReference(path_of(corpus, name))


@pytest.mark.parametrize("name", WITHOUT_GOLDEN)
def test_a_module_that_lacks_its_weights_fails_at_their_null_buffer(
    corpus: Path, name: str
) -> None:
    reference = IreeReference(path_of(corpus, name))
    (port,) = reference.inputs()
    assert port.shape is not None
    shape = [size or 1 for size in port.shape]
    with pytest.raises(ExecutionError, match="null"):
        reference.run([np.zeros(shape, port.dtype)])


needs_original = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


ORIGINAL = tuple(
    name
    for name in (*RESULTS, *MACHINE_CODE)
    if name.startswith("v17") and not name.endswith("vmvxinline")
)
"""What the original runtime executes: its own bytecode version, without inline modules."""


@needs_original
@pytest.mark.parametrize("name", ORIGINAL)
def test_the_original_runtime_gives_what_is_stored(corpus: Path, name: str) -> None:
    policy = RESULTS.get(name, (1, NAMED["float32-reassociated"]))[1]
    assert check_golden(OriginalIree(path_of(corpus, name)), corpus, name, policy) >= 1


@needs_original
@pytest.mark.parametrize("name", ["v15/add.vmvx", "v17/add.vmvxinline"])
def test_the_original_runtime_refuses_with_its_reason(corpus: Path, name: str) -> None:
    with pytest.raises(ExecutionError, match="original runtime"):
        OriginalIree(path_of(corpus, name))


@needs_original
@pytest.mark.parametrize("name", [name for name in ORIGINAL if name in RESULTS])
def test_the_original_runtime_and_ours_give_the_same(corpus: Path, name: str) -> None:
    path = path_of(corpus, name)
    ours, original = IreeReference(path), OriginalIree(path)
    assert ours.functions == original.functions
    random = np.random.default_rng(4)
    for function, inputs, _ in calls(corpus, name):
        assert ours.inputs(function) == original.inputs(function)
        for _ in range(4):
            drawn = [redrawn(entry, random) for entry in inputs]
            actual = ours.run(drawn, function=function)
            expected = original.run(drawn, function=function)
            for left, right in zip(actual, expected, strict=True):
                found = compare(np.asarray(left.data), np.asarray(right.data), RESULTS[name][1])
                assert found.passed, f"{function}: {found.reason}"


def redrawn(entry: Any, random: np.random.Generator) -> Any:
    """Random data in place of a tensor; numbers decide where a program goes and stay."""
    if entry.dtype == np.int8:
        return random.integers(-128, 128, entry.shape, np.int8)
    if entry.dtype == np.float32 and entry.ndim:
        return random.standard_normal(entry.shape, np.float32)
    return entry


def test_ports_are_as_the_source_declares_them(corpus: Path) -> None:
    reference = IreeReference(path_of(corpus, "v17/matmul_i8_dyn.vmvx"))
    assert reference.inputs() == tuple(
        Port(name, np.dtype(np.int8), (None, None)) for name in ("input0", "input1")
    )
    assert reference.outputs()[0].dtype == np.int32
    older = IreeReference(path_of(corpus, "v15/add.vmvx"))
    # It declares nothing, and checks its arguments.
    assert older.inputs() == tuple(
        Port(name, np.dtype(np.float32), (4, 4)) for name in ("input0", "input1")
    )


def test_a_call_names_what_does_not_fit(corpus: Path) -> None:
    reference = IreeReference(path_of(corpus, "v17/add.vmvx"))
    good = np.zeros((4, 4), np.float32)
    with pytest.raises(ExecutionError, match=r"input1 takes shape \(4, 4\), not \(4,\)"):
        reference.run([good, np.zeros(4, np.float32)])
    with pytest.raises(ExecutionError, match="input0 takes float32, not float64"):
        reference.run([good.astype(np.float64), good])
    older = IreeReference(path_of(corpus, "v15/add.vmvx"))
    with pytest.raises(ExecutionError, match=r"input0 takes shape \(4, 4\), not \(2, 2\)"):
        older.run([np.zeros((2, 2), np.float32), good])


@pytest.mark.parametrize("name", ["v17/tosa_mlp.vmvx", "v15/qmatmul_const.vmvx"])
def test_a_tap_sees_and_replaces_what_dispatches_write(corpus: Path, name: str) -> None:
    reference = IreeReference(path_of(corpus, name))
    (function, inputs, (golden,)) = next(calls(corpus, name))
    seen: list[Intermediate] = []
    reference.run(inputs, function=function, tap=seen.append)
    last = seen[-1]
    assert len({entry.name for entry in seen}) == len(seen)
    assert [entry.step for entry in seen] == list(range(len(seen)))
    assert "dispatch" in last.operation
    assert last.data.dtype == golden.dtype
    assert "<stdin>" in last.location
    zeroed = reference.run(
        inputs,
        function=function,
        tap=lambda entry: np.zeros_like(entry.data) if entry.name == last.name else None,
    )
    np.testing.assert_array_equal(zeroed[0].data, np.zeros_like(golden))
    with pytest.raises(ExecutionError, match="the tap gives float16"):
        reference.run(inputs, function=function, tap=lambda entry: np.zeros(1, np.float16))


def test_a_tap_sees_the_buffers_of_an_inline_module(corpus: Path) -> None:
    name = "v17/tosa_mlp.vmvxinline"
    seen: list[Intermediate] = []
    function, inputs, (golden,) = next(calls(corpus, name))
    reference = IreeReference(path_of(corpus, name))
    reference.run(inputs, function=function, tap=lambda entry: seen.append(entry))
    assert any(entry.data.nbytes == golden.nbytes for entry in seen)
    assert {entry.operation for entry in seen} == {"hal_inline.buffer.allocate"}


def test_a_dispatch_may_store_to_a_constant_that_it_was_given(corpus: Path) -> None:
    """Compilers place a result over a constant: the original lets the dispatch do that."""
    reference = IreeReference(corpus / "vmfb" / "v17" / "add.vmvx.vmfb")
    (nested,) = reference.module.nested.values()
    executable = _VmvxExecutable(nested, reference._host)
    two = np.arange(16, dtype=np.float32), np.full(16, 0.5, np.float32)
    sources = [memoryview(each.tobytes()) for each in (*two, np.zeros(16, np.float32))]
    bindings = [device_copy(each) for each in sources]
    executable.dispatch(0, (1, 1, 1), (), bindings)
    np.testing.assert_array_equal(np.frombuffer(bindings[2], np.float32), two[0] + two[1])
    assert bytes(sources[2]) == bytes(64)
    with pytest.raises(ExecutionError, match="a store to read-only data"):
        executable.dispatch(0, (1, 1, 1), (), sources)
