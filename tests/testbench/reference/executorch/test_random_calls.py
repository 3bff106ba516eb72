"""Random calls of operators: the interpreter ends each, and agrees with the original runtime."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import nightly
import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError
from darwinn_reference.executorch import ExecutorchReference
from darwinn_reference.executorch.original import OriginalRuntime, unavailable
from executorch_calls import GROUPS, calls
from executorch_cases import Case

REASON = unavailable()
_KERNEL_ERRORS = (ValueError, IndexError, TypeError, ZeroDivisionError, ExecutionError)


def built(case: Case) -> bytes | None:
    """The program of a call; None where its arguments do not fit."""
    try:
        with np.errstate(all="ignore"):
            return case.build()
    except _KERNEL_ERRORS:
        return None


def test_calls_end_with_results_or_one_error() -> None:
    ran = 0
    for case in calls(1, 25 * len(GROUPS)):
        program = built(case)
        if program is not None:
            outputs = ExecutorchReference(program).run(case.inputs)
            assert len(outputs) == len(case.dtypes)
            ran += 1
    # Most of the arguments fit.
    assert ran > 20 * len(GROUPS)


def original(program: bytes, inputs: list[np.ndarray]) -> list[Any]:
    return [np.asarray(entry.data) for entry in OriginalRuntime(program).run(inputs)]


def agree(actual: Any, expected: Any) -> None:
    assert actual.shape == expected.shape
    exact = actual.dtype.kind != "f"
    np.testing.assert_allclose(
        actual.astype(np.float64),
        expected.astype(np.float64),
        rtol=0 if exact else 1e-4,
        atol=0 if exact else 1e-4,
    )


@pytest.mark.nightly
@pytest.mark.skipif(bool(REASON), reason=REASON or "installed")
def test_calls_agree_with_the_original_runtime() -> None:
    """What the original refuses, or crashes on, is passed over: the interpreter takes more."""
    seed = nightly.nightly_seed() % 2**31
    nightly.note("random calls of ExecuTorch operators", nightly.CASES, seed)
    context = multiprocessing.get_context("fork")
    compared = 0
    for case in calls(seed, nightly.CASES):
        program = built(case)
        if program is None:
            continue
        with ProcessPoolExecutor(1, context) as pool:
            try:
                expected = pool.submit(original, program, case.inputs).result()
            except (BrokenProcessPool, ExecutionError):
                continue
        for output, each in zip(
            ExecutorchReference(program).run(case.inputs), expected, strict=True
        ):
            agree(np.asarray(output.data), each)
        compared += 1
    assert compared > nightly.CASES // 2
