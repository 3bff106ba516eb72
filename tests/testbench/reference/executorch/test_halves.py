"""Half precision in float32 arithmetic has the bits of NumPy's conversions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from darwinn_reference.executorch.halves import from_halves, round_halves

HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
FINITE = np.sort(HALVES[np.isfinite(HALVES)].astype(np.float32))
SMALL = FINITE[np.abs(FINITE) < 32768]
TIES = ((SMALL[1:].astype(np.float64) + SMALL[:-1]) / 2).astype(np.float32)
RANDOM = np.random.default_rng(0)
DRAWN = (RANDOM.normal(size=100_000) * 10 ** RANDOM.uniform(-12, 5, 100_000)).astype(np.float32)

CASES: dict[str, Any] = {
    "halves": SMALL,
    "ties": TIES,
    "beyond ties": np.nextafter(TIES, np.float32(np.inf)),
    "before ties": np.nextafter(TIES, np.float32(-np.inf)),
    "drawn": DRAWN[np.abs(DRAWN) < 32768],
    "large": DRAWN,
    "all halves": HALVES.astype(np.float32),
    "overflow": np.array([65519.9, 65520, -65521, 7e4, np.nan, np.inf], np.float32),
    "zeros": np.array([-0.0, 0.0, -1e-20, 1e-20, -1e-45], np.float32),
    "none": np.zeros((0, 3), np.float32),
}


@pytest.mark.parametrize("name", CASES)
def test_floats_are_rounded_to_half_precision(name: str) -> None:
    values = CASES[name].copy()
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16).astype(np.float32)
    round_halves(values, np.empty_like(values))
    absent = np.isnan(expected)
    assert np.isnan(values[absent]).all()
    np.testing.assert_array_equal(values.view(np.int32)[~absent], expected.view(np.int32)[~absent])


@pytest.mark.parametrize("values", [HALVES, HALVES[:0x7C00], HALVES.reshape(256, 256).T])
def test_halves_are_floats(values: Any) -> None:
    found = from_halves(values)
    expected = values.astype(np.float32)
    assert found.shape == values.shape
    absent = np.isnan(expected)
    assert np.isnan(found[absent]).all()
    np.testing.assert_array_equal(found.view(np.int32)[~absent], expected.view(np.int32)[~absent])
