"""The original runtime against the interpreter, where it is installed (package executorch)."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import executorch_cases
import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError
from darwinn_reference.arrays import AnyArray
from darwinn_reference.errors import Unsupported
from darwinn_reference.executorch import ExecutorchReference
from darwinn_reference.executorch.element_types import ONE_TYPE
from darwinn_reference.executorch.original import OriginalRuntime, unavailable
from darwinn_reference.protocol import Datum, Port, Reference
from darwinn_testbench.comparison.compare import compare
from darwinn_testbench.policy import NAMED, FloatTolerance, Policy

REASON = unavailable()
needs_original = pytest.mark.skipif(bool(REASON), reason=REASON or "installed")

PROGRAMS = (
    "a_add",
    "a_add_dyn",
    "apple_add",
    "b_linear_relu",
    "b_linear_relu_stacktrace",
    "bundled_program.bpte",
    "c_conv_f32_channels_last",
    "d_qadd_fused",
    "d_qconv_int8_pertensor",
    "d_qint8_io",
    "e_mbv2_int8",
    "f_kv_cache",
    "f_mutable_init",
    "g_cond",
    "g_multi_method",
    "h_xnnpack_f32",
    "h_xnnpack_inline",
    "i_external_const",
    "i_io_not_planned",
    "j_dtypes",
    "j_qlinear_dyn",
)
ONE_STEP: dict[str, Policy] = {
    "d_qconv_int8_pertensor": FloatTolerance(0.00227, 0),
    "e_mbv2_int8": FloatTolerance(0.00053, 0),
}


@pytest.mark.skipif(not REASON, reason="the original runtime is installed")
def test_without_the_package_the_runtime_is_refused_with_the_reason() -> None:
    with pytest.raises(Unsupported, match="the original ExecuTorch runtime is not installed"):
        OriginalRuntime(b"")


REFUSED = {
    "ModuleLinear-no-constant-segment": "Failed to load program",
    # Its operators (cortex_m) are for microcontrollers.
    "arduino_KWS": "forward",
}
"""What the original runtime does not execute, and what it says."""


def test_every_program_of_the_corpus_is_compared_or_has_a_reason(corpus: Path) -> None:
    programs = {path.name.removesuffix(".pte") for path in (corpus / "pte").glob("*.*pte")}
    assert programs == {*PROGRAMS, *REFUSED}


@needs_original
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_of_the_corpus_on_random_inputs(corpus: Path, program: str) -> None:
    path = corpus / "pte" / (program if "." in program else f"{program}.pte")
    ours, original = ExecutorchReference(path), OriginalRuntime(path)
    assert isinstance(original, Reference)
    generator = np.random.default_rng(1)
    for function in original.functions:
        for position in range(4):
            inputs: list[Datum] = []
            for port in original.inputs(function):
                assert port.dtype is not None
                assert port.shape is not None
                shape = tuple(2 if size is None else size for size in port.shape)
                values = generator.normal(0, 1, shape) * (9 if port.dtype.kind in "iu" else 1)
                if program == "f_kv_cache" and port.dtype.kind == "i":
                    values = np.full(shape, position)
                inputs.append(values.astype(port.dtype))
            actual = ours.run(inputs, function=function)
            expected = original.run(inputs, function=function)
            for left, right in zip(actual, expected, strict=True):
                assert_same(left.data, right.data, ONE_STEP.get(program, NAMED["float32"]))


@needs_original
@pytest.mark.parametrize("network", ["resnet", "vit", "unet", "decoder", "prefill", "rows"])
def test_exported_networks(network: str) -> None:
    from benchmarks.conformance.networks import export

    data, calls = export(network)
    ours, original = ExecutorchReference(data), OriginalRuntime(data)
    for inputs in calls:
        actual, expected = ours.run(inputs), original.run(inputs)
        for left, right in zip(actual, expected, strict=True):
            assert_same(left.data, right.data, NAMED["float32-reassociated"])


@needs_original
def test_stored_results_of_the_operators_are_the_runtimes() -> None:
    """The script that made them gives them again, here for some of the operators."""
    path = Path(executorch_cases.__file__).with_name("executorch_expected.json")
    stored = json.loads(path.read_text())
    context = multiprocessing.get_context("fork")
    names = list(stored)[::7]
    with context.Pool(1) as pool:
        for name, result in zip(names, pool.map(executorch_cases.original, names), strict=True):
            np.testing.assert_allclose(
                np.hstack(result), np.hstack(stored[name]), rtol=1e-6, atol=1e-7
            )


@needs_original
@pytest.mark.parametrize("operator", ONE_TYPE)
def test_the_runtime_refuses_tensors_of_other_types_too(operator: str) -> None:
    for case in executorch_cases.with_other_types(operator, ONE_TYPE[operator]):
        with pytest.raises(ExecutionError, match="execute"):
            OriginalRuntime(case.build()).run(case.inputs)


@needs_original
def test_what_the_runtime_refuses_is_an_execution_error(corpus: Path) -> None:
    for program, reason in REFUSED.items():
        with pytest.raises(ExecutionError, match=reason):
            runtime = OriginalRuntime(corpus / "pte" / f"{program}.pte")
            runtime.run([zeros_of(port) for port in runtime.inputs()])
    runtime = OriginalRuntime(corpus / "pte" / "a_add.pte")
    with pytest.raises(ExecutionError, match="1 inputs, the method takes 2"):
        runtime.run([np.zeros((2, 3), np.float32)])
    with pytest.raises(ExecutionError, match="shows no intermediate values"):
        runtime.run([], tap=lambda entry: None)


def zeros_of(port: Port) -> AnyArray:
    return np.zeros([size or 0 for size in port.shape or ()], port.dtype)


def assert_same(actual: Datum, expected: Datum, policy: Policy) -> None:
    if isinstance(expected, str):
        assert actual == expected
        return
    wanted = np.asarray(expected)
    chosen = policy if wanted.dtype.kind == "f" else NAMED["exact"]
    found = compare(np.asarray(actual), wanted, chosen)
    assert found.passed, found.reason
