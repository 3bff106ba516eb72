"""Constrained-random tensor instructions: coherent loops, operands, lanes and an output stage.

Activations are read from the lower half of narrow memory and results go to the upper half;
parameters, sums and zero points have regions of wide memory of their own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from darwinn_sim import chip
from hypothesis import strategies as st
from slow_model import tensor_unit as slow
from slow_model.tensor_unit import INTERPOLATE, MAC
from stimulus import (
    NO_AIMS,
    Aims,
    Draw,
    Walk,
    free_shape,
    near_edges,
    placed,
    producer,
    walk,
    watchers,
)

LOOPS = 8
NARROW_MIDDLE = chip.NARROW_BYTES // 2
PARAMETER_GRANULES = 4 * 1000
SUM_GRANULES = (4 * 1100, 4 * 1800)
ZERO_POINT_ROWS = (1900, 2000)
WATCHED = (11, 12, 13, 14, 15)


def float_values(low: float, high: float) -> st.SearchStrategy[float]:
    """Values that float32 holds exactly."""
    return st.floats(low, high, width=32, allow_nan=False)


def _main(draw: Draw, *, fixed: tuple[int, ...] = ()) -> dict[str, Any]:
    most = 24 // max(1, len(fixed) * 2)
    counts, alternate = free_shape(draw, LOOPS, most)
    if fixed:
        counts, alternate = (*fixed, *counts[len(fixed) :]), (0, 0)
    return {
        "main_limit": [count - 1 for count in counts],
        "main_alternate_loop": alternate[0],
        "main_alternate_limit": alternate[1] - 1 if alternate[0] else 0,
    }


def _in_step(draw: Draw, fields: dict[str, Any], steps: list[int], name: str) -> Walk:
    """A traversal that has the loops of the main operation."""
    counts = tuple(limit + 1 for limit in fields["main_limit"])
    loop = fields["main_alternate_loop"]
    alternate = (loop, fields["main_alternate_limit"] + 1) if loop else (0, 0)
    return Walk(counts, tuple(steps), alternate=alternate)


def _sums(draw: Draw, fields: dict[str, Any]) -> dict[str, Any]:
    """Partial sums: every place outside the reduction has an address of its own."""
    steps, unit = [0] * LOOPS, 4
    for loop in draw(st.permutations(range(LOOPS))):
        count = fields["main_limit"][loop] + 1
        if not fields["reduction_loops"] >> loop & 1 and count > 1:
            steps[loop] = unit
            unit *= count
    candidate = _in_step(draw, fields, steps, "partial_sum")
    low, high = SUM_GRANULES
    chosen = placed(draw, candidate, MAC, "partial_sum", low, high, 4)
    return chosen.fields(MAC, "partial_sum") | producer(draw, "partial_sum_producer", LOOPS)


def _lanes(draw: Draw) -> dict[str, int]:
    return {
        "output_block_loop": draw(st.integers(0, LOOPS - 1)),
        "block_lanes": draw(near_edges(0, chip.LANES - 1)),
        "last_block_lanes": draw(near_edges(0, chip.LANES - 1)),
    }


def writes(draw: Draw, fields: dict[str, Any]) -> dict[str, Any]:
    """A write traversal with a place for each word of the results."""
    size = slow.output_bytes(fields)
    words = sum(-(-size * lanes // 4) for lanes in slow.output_lanes(fields))
    drawn = walk(
        draw,
        MAC,
        "narrow_write",
        low=NARROW_MIDDLE,
        high=chip.NARROW_BYTES - 4,
        count=words,
        unit=draw(st.sampled_from([1, 4, 4])),
    )
    return drawn.fields(MAC, "narrow_write") | producer(draw, "narrow_write_producer", LOOPS)


def _mac_disable(operation: str, wide: int) -> st.SearchStrategy[int]:
    """Values for so many operands of 16 bits; at least one product, or one byte of a maximum."""
    if operation == MAC:
        return st.sampled_from([[0, 12, 14], [0, 12], [0]][wide])
    return st.sampled_from([0, 14] if operation == slow.MAXIMUM and not wide else [0])


def _operands(draw: Draw, operation: str, aims: Aims) -> dict[str, Any]:
    wide_activations = draw(st.integers(0, 1)) if operation == MAC else 0
    wide_parameters = draw(st.integers(0, 1))
    out: dict[str, Any] = {
        "activation_16bit": wide_activations,
        "parameter_16bit": wide_parameters,
        "mac_disable": draw(_mac_disable(operation, wide_activations + wide_parameters)),
        "activation_zero_point": draw(near_edges(0, 65535 if wide_activations else 255)),
        "parameter_zero_point": draw(near_edges(0, 65535 if wide_parameters else 255)),
        "load_parameter_zero_point": draw(st.integers(0, 1)) if operation == MAC else 0,
    }
    low, high = ZERO_POINT_ROWS
    base = draw(near_edges(low, high - 20))
    stride = draw(st.integers(0, 3))
    limit = base + draw(st.integers(0, 3)) * stride
    if out["load_parameter_zero_point"]:
        out |= {"zero_point_base": base, "zero_point_stride": stride, "zero_point_limit": limit}
    else:
        out |= {"zero_point_base": 0, "zero_point_stride": 0, "zero_point_limit": 0}
    unit = draw(st.sampled_from([4, 4, 2, 1]))
    name = "parameter_read"
    parameters = walk(
        draw, MAC, name, low=0, high=PARAMETER_GRANULES, most=24, unit=unit, kind=aims.get(name)
    )
    out |= parameters.fields(MAC, name)
    return out | producer(draw, "parameter_read_producer", LOOPS)


def _reads(draw: Draw, fields: dict[str, Any]) -> dict[str, Any]:
    steps = [draw(near_edges(-900, 900)) for _ in range(LOOPS)]
    candidate = _in_step(draw, fields, steps, "narrow_read")
    if draw(st.booleans()):
        double = (draw(st.integers(0, LOOPS - 1)), draw(st.integers(1, 999)), 0)
        candidate = replace(candidate, double=double)
    high = NARROW_MIDDLE - 70
    return placed(draw, candidate, MAC, "narrow_read", 0, high, 1).fields(MAC, "narrow_read")


def output_stage(draw: Draw) -> dict[str, Any]:
    """Bias, scale, clip, function and offset of a MAC, maximum or sum."""
    function = draw(st.sampled_from([0, 0, 0, 1, 3, 4, 5, 7]))
    wide = function >> 2
    highest = 65535 if wide else 255
    zero = draw(near_edges(0, highest))
    raw = draw(st.booleans()) and not function & 1
    clips = (float("-inf"), float("inf")) if raw else (float(-zero), float(highest - zero))
    if function & 1:
        clips = (0.001, 4096.0) if function >> 1 & 1 else (-8.0, 8.0)
    use_scales = draw(st.integers(0, 1))
    scales = st.one_of(st.sampled_from([1.0, 0.5, 2.0**-14]), float_values(2.0**-20, 1.0))
    symmetric = draw(st.integers(0, 1)) if function in (1, 5) else 0
    return {
        "function": function,
        "output_zero_point": zero if draw(st.booleans()) else draw(near_edges(0, 65535)),
        "low_clip": clips[0],
        "high_clip": clips[1],
        "use_scales": use_scales,
        "output_scale": 1.0 if use_scales else draw(scales),
        "apply_bias": draw(st.integers(0, 1)),
        "immediate_bias": draw(near_edges(-(1 << 31), (1 << 31) - 1)),
        "symmetric_function": symmetric,
        "odd_function": draw(st.integers(0, 1)) if symmetric else 0,
    }


@st.composite
def instructions(draw: Any, operation: str, aims: Aims = NO_AIMS) -> dict[str, Any]:
    """Fields of a valid TensorMac, TensorMax or TensorSum."""
    fields = _main(draw) | {"reduction_loops": draw(st.integers(0, 255))}
    mode = 3 if operation == slow.MAXIMUM else draw(st.sampled_from([3, 3, 1]))
    fields |= {"partial_sum_read": mode} | _lanes(draw)
    fields |= _sums(draw, fields) | _reads(draw, fields) | _operands(draw, operation, aims)
    fields |= output_stage(draw)
    fields |= writes(draw, fields)
    return fields | watchers(draw, operation, WATCHED, LOOPS - 1, most=3)


@st.composite
def interpolations(draw: Any) -> dict[str, Any]:
    """Fields of a valid TensorInterpolate: main loops 0 and 1 are the taps, of which the nearest
    pixel has one.
    """
    nearest = draw(st.booleans())
    fields = _main(draw, fixed=(1, 1) if nearest else (2, 2)) | {
        "reduction_loops": 3,
        "partial_sum_read": 3,
    }
    fields |= _lanes(draw) | {"output_block_loop": draw(st.integers(2, LOOPS - 1))}
    fields |= _sums(draw, fields)
    axes = draw(st.permutations(range(2, LOOPS)))[:2]
    pitches = {"x": draw(near_edges(1, 300)), "y": draw(near_edges(1, 3000))}
    steps = [pitches["x"], pitches["y"], *(draw(st.sampled_from([0, 64])) for _ in range(6))]
    for loop in axes:
        steps[loop] = 0
    base = 20_000
    reads = replace(_in_step(draw, fields, steps, "narrow_read"), base=base)
    fields |= reads.fields(INTERPOLATE, "narrow_read")
    for axis, loop in zip("xy", axes, strict=True):
        fields |= {
            f"{axis}_loop": loop,
            f"{axis}_start": draw(near_edges(-128, 127)),
            f"{axis}_step": draw(near_edges(0, 300)),
            f"{axis}_pitch": pitches[axis],
        }
    fields |= {
        "activation_16bit": 0,
        "parameter_16bit": 0,
        "mac_disable": 0,
        "load_parameter_zero_point": 0,
        "zero_point_base": 0,
        "function": 0,
        "output_scale": 1.0 if nearest else 2.0**-14,
        "apply_bias": int(nearest),
        "use_scales": 0,
        "symmetric_function": 0,
        "odd_function": 0,
    }
    fields |= walk(draw, MAC, "parameter_read", low=0, high=400, most=4).fields(
        INTERPOLATE, "parameter_read"
    )
    fields |= producer(draw, "parameter_read_producer", LOOPS) | writes(draw, fields)
    return fields | watchers(draw, INTERPOLATE, WATCHED, LOOPS - 1, most=2)


@st.composite
def tables(draw: Any) -> dict[str, Any]:
    """Fields of a CoefficientTable: increasing bounds, coefficients of moderate size."""
    bounds = sorted(draw(st.lists(float_values(-8.0, 8.0), min_size=7, max_size=7)))
    values = st.one_of(st.sampled_from([0.0, 1.0, -1.0]), float_values(-100.0, 100.0))
    coefficients = draw(st.lists(values, min_size=40, max_size=40))
    return {"coefficient": coefficients, "lower_bound": bounds, "degree": 3}


def scale_bias(seed: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """A scale/bias buffer: 2 x 64 scales as floats, 2 x 64 biases as integers."""
    random = np.random.default_rng(seed)
    scales = np.exp2(random.uniform(-16, 0, 128)).astype(np.float32).view(np.uint32)
    biases = random.integers(-(1 << 20), 1 << 20, 128).astype(np.int32).view(np.uint32)
    return np.concatenate([scales, biases])
