"""The output stage's float32 on the RTL's tile, against NumPy's, 64 lanes at a time, by class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from darwinn_sim import chip
from float_classes import CLASSES, OutputCase, expected
from nightly import nightly_seed, nightly_too, note
from stimulus import Walk, nothing
from tile_units import TileAndModel

MAC = "TensorMac"
RESULTS = 4096
"""Where results go in narrow memory."""
ZERO = 128
"""The zero point of the parameters."""
CASES, CASES_NIGHTLY = 60, 20_000
"""Of 64 lanes, of each class."""

NOTHING = nothing(MAC)


def instruction(case: OutputCase) -> dict[str, Any]:
    """One product, of the byte at address 0 and a byte of each lane of row 0, and the bias."""
    words = chip.LANES // (2 if case.function >> 2 & 1 else 4)
    ones, zeros = (1,) * 7, (0,) * 7
    fields = NOTHING | {
        "partial_sum_read": 3,
        "mac_disable": 14,
        "last_block_lanes": chip.LANES - 1,
        "parameter_zero_point": ZERO,
        "apply_bias": 1,
        "use_scales": 1,
        "output_scale": case.output_scale,
        "low_clip": case.low_clip,
        "high_clip": case.high_clip,
        "output_zero_point": case.zero_point,
        "function": case.function,
        "symmetric_function": case.symmetric,
        "odd_function": case.odd,
    }
    return fields | Walk((words, *ones), (4, *zeros), base=RESULTS).fields(MAC, "narrow_write")


def check(pair: TileAndModel, case: OutputCase) -> None:
    pair.rtl.narrow[0] = 1
    pair.rtl.wide[: chip.LANES] = ZERO + case.products
    pair.rtl.scale_bias[: chip.LANES] = case.scales.view(np.uint32)
    # A bias has 32 bits, and what it gives with the product saturates.
    limits = np.iinfo(np.int32)
    products = case.products.astype(np.int64)
    biases = np.clip(case.sums - products, limits.min, limits.max)
    case = replace(case, sums=np.clip(products + biases, limits.min, limits.max))
    pair.rtl.scale_bias[2 * chip.LANES : 3 * chip.LANES] = biases.astype(np.int32).view(np.uint32)
    table = {"coefficient": case.coefficients.ravel().tolist(), "lower_bound": case.bounds.tolist()}
    pair.give("CoefficientTable", table | {"degree": 3})
    pair.give(MAC, instruction(case))
    pair.rtl.run(1000)
    assert pair.rtl.idle
    size = 2 if case.function >> 2 & 1 else 1
    found = pair.rtl.narrow[RESULTS : RESULTS + size * chip.LANES].view(f"<u{size}").tolist()
    wanted = expected(case)
    wrong = [lane for lane in range(chip.LANES) if found[lane] != wanted[lane]]
    assert not wrong, [
        (int(case.sums[k]), float(case.scales[k]).hex(), found[k], wanted[k]) for k in wrong[:4]
    ] + [case]


@nightly_too
@pytest.mark.parametrize("draw", CLASSES, ids=lambda draw: draw.__name__)
def test_results_are_those_of_ieee_754(
    draw: Callable[[np.random.Generator], OutputCase], nightly: bool
) -> None:
    name = f"output stage, {draw.__name__}"
    chosen, cases = (nightly_seed(), CASES_NIGHTLY) if nightly else (crc32(name.encode()), CASES)
    random = np.random.default_rng(chosen)
    pair = TileAndModel({})
    for _ in range(cases):
        check(pair, draw(random))
    if nightly:
        note(name, cases * chip.LANES, chosen)
