"""Stored results of the original runtime for every program of the corpus: the table of results.

Integers exactly, floats within float32's tolerance. Quantised programs compute in float32 between
their quantisers, so that a tie can fall the other way where a matrix product adds up in another
order: floats that come from a quantiser may be one step off (on the development machine none is).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from darwinn_formats import executorch
from darwinn_formats.executorch import schema
from darwinn_reference.executorch import ExecutorchReference, missing_operators
from darwinn_testbench.comparison.compare import compare
from darwinn_testbench.policy import NAMED, FloatTolerance, Policy

EXACT, FLOAT32 = NAMED["exact"], NAMED["float32"]

RESULTS: dict[str, tuple[Policy, int]] = {
    "a_add": (EXACT, 2),
    "a_add_dyn": (EXACT, 3),
    "apple_add.forward": (EXACT, 1),
    "b_linear_relu": (FLOAT32, 2),
    "b_linear_relu_stacktrace": (FLOAT32, 1),
    "c_conv_f32_channels_last": (FLOAT32, 1),
    "d_qadd_fused": (EXACT, 1),
    "d_qconv_int8_pertensor": (FloatTolerance(0.00227, 0), 1),
    "d_qint8_io": (EXACT, 1),
    "e_mbv2_int8": (FloatTolerance(0.00053, 0), 1),
    "f_kv_cache": (FLOAT32, 4),
    "f_mutable_init": (EXACT, 3),
    "g_cond": (FLOAT32, 2),
    "g_multi_method.decode": (FLOAT32, 1),
    "g_multi_method.encode": (FLOAT32, 1),
    "g_multi_method.get_name": (EXACT, 1),
    "g_multi_method.get_vocab": (EXACT, 1),
    "h_xnnpack_f32": (FLOAT32, 1),
    "h_xnnpack_inline": (FLOAT32, 1),
    "i_external_const": (FLOAT32, 1),
    "i_io_not_planned": (FLOAT32, 1),
    "j_dtypes": (FLOAT32, 1),
    "j_qlinear_dyn": (FLOAT32, 1),
}
"""Policy and number of calls on one instance, by the name of the stored results."""


def stored(folder: Path, name: str) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """Inputs and outputs of each call."""
    with np.load(folder / f"{name}.npz") as archive:
        calls = 1 + max(int(key.removeprefix("call").partition("_")[0]) for key in archive)
        return [
            (
                [archive[key] for key in sorted(archive) if key.startswith(f"call{call}_in")],
                [archive[key] for key in sorted(archive) if key.startswith(f"call{call}_out")],
            )
            for call in range(calls)
        ]


def test_the_table_is_complete(corpus: Path) -> None:
    names = {path.stem for path in (corpus / "pte").glob("*.npz")}
    assert names == set(RESULTS)


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_those_of_the_original_runtime(corpus: Path, name: str) -> None:
    policy, count = RESULTS[name]
    program, _, method = name.partition(".")
    reference = ExecutorchReference(corpus / "pte" / f"{program}.pte")
    calls = stored(corpus / "pte", name)
    assert len(calls) == count
    for _ in range(2):
        for inputs, expected in calls:
            outputs = reference.run(inputs, function=method or None)
            assert len(outputs) == len(expected)
            for output, wanted in zip(outputs, expected, strict=True):
                if isinstance(output.data, str):
                    assert output.data == wanted.item()
                    continue
                found = compare(
                    np.asarray(output.data), wanted, policy if wanted.dtype.kind == "f" else EXACT
                )
                assert found.passed, found.reason
        # State that the calls left is forgotten: the second round gives the same.
        reference.reset()


def test_every_operator_of_the_corpus_has_a_kernel(corpus: Path) -> None:
    for path in (corpus / "pte").glob("*.*pte"):
        for plan in executorch.load(path).program.execution_plan:
            assert not missing_operators(plan), path


def test_quantisation_of_inputs_and_outputs_is_known(corpus: Path) -> None:
    reference = ExecutorchReference(corpus / "pte" / "d_qint8_io.pte")

    def stored_number(method: str) -> object:
        return reference.run((), function=method)[0].data

    for kind, port in (("input", reference.inputs()[0]), ("output", reference.outputs()[0])):
        assert port.dtype == np.int8
        assert port.scale == stored_number(f"{kind}0_scale")
        assert port.zero_point == stored_number(f"{kind}0_zp")


def test_bundled_test_cases_hold(corpus: Path) -> None:
    file = executorch.load(corpus / "pte" / "bundled_program.bpte")
    reference = ExecutorchReference(file)
    assert file.bundle is not None
    for suite in file.bundle.method_test_suites:
        for case in suite.test_cases:
            inputs = [bundled(entry) for entry in case.inputs]
            outputs = reference.run(inputs, function=suite.method_name)
            for output, wanted in zip(outputs, case.expected_outputs, strict=True):
                assert compare(np.asarray(output.data), bundled(wanted), EXACT).passed


def bundled(value: schema.BundledValue) -> np.ndarray:
    tensor = value.val
    assert isinstance(tensor, schema.BundledTensor)
    return np.frombuffer(tensor.data, schema.DTYPES[tensor.scalar_type]).reshape(tensor.sizes)


def test_a_program_without_stored_results_runs(corpus: Path) -> None:
    """The keyword spotter needs the Cortex-M operators; its classes are told apart."""
    reference = ExecutorchReference(corpus / "pte" / "arduino_KWS.pte")
    (port,) = reference.inputs()
    samples = np.random.default_rng(0).normal(0, 40, (4, 1, 1, 49, 10)).astype(np.float32)
    results = [reference.run([sample])[0].data for sample in samples]
    assert all(isinstance(entry, np.ndarray) and entry.shape == (1, 12) for entry in results)
    assert len({np.asarray(entry).tobytes() for entry in results}) > 1
    assert port.scale is None
