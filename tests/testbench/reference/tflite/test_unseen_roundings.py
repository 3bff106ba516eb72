"""Numbers that public programs round in another way than first thought, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from darwinn_reference.tflite.factors import addition_weights
from darwinn_reference.tflite.softmax import DifferenceUnit
from hypothesis import given
from hypothesis import strategies as st
from one_operator import byte_types, compute, scales, single, slow_output, tensor, zero_points


def real(word: int) -> np.float32:
    return np.float32(np.uint32(word).view(np.float32))


def word(value: np.float32) -> int:
    return int(np.float32(value).view(np.uint32))


@pytest.mark.parametrize(
    ("scale", "zero_point", "factor", "exponential"),
    [
        (0x3E89B5C9, -58, 0x3F7FFFFE, 0x3E89B5CA),
        (0x3E78154E, -19, 0x3F800001, 0x3E78154D),
        (0x3D5909B1, -26, 0x3F7FFFFF, 0x3D5909B2),
        (0x3DDF728B, 74, 0x3F7FFFFF, 0x3DDF728C),
        (0x3F7E7E7E, -128, 0x3F800000, 0x3F7E7E7E),
        (0x3E05F90B, 61 - 128, 0x3F800000, 0x3E05F90B),
    ],
)
def test_the_unit_of_the_differences_of_a_softmax(
    scale: int, zero_point: int, factor: int, exponential: int
) -> None:
    """Of four programs in which it is not the unit of the values, and of two in which it is."""
    unit = DifferenceUnit.of(real(scale), zero_point + 128)
    assert (word(unit.factor), word(unit.scale)) == (factor, exponential)


@given(byte_types, st.data())
def test_a_maximum_is_a_bounded_difference_and_a_sum(dtype: str, data: st.DataObject) -> None:
    scale, zero_point = data.draw(scales), data.draw(zero_points(dtype))
    tensors = [tensor(k, (64,), dtype, scale, zero_point) for k in range(3)]
    limits = np.iinfo(dtype)
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    one, other = random.integers(limits.min, limits.max + 1, (2, 64)).astype(dtype)
    found = compute(single("MAXIMUM", tensors, (0, 1), (2,)), one, other)
    half = np.float32(scale) * (np.float32(1) / np.float32(2 * np.float32(scale)))
    for first, second, made in zip(one.tolist(), other.tolist(), found.tolist(), strict=True):
        more = round(float(np.float32(first - second) * half)) if first > second else 0
        # The bound is 127 or 128 steps of two, as the span is rounded.
        expected = [min(second + 2 * min(more, most), limits.max) for most in (127, 128)]
        assert made in expected
        assert abs(made - max(first, second)) <= 2


@given(st.data())
def test_a_constant_is_the_first_operand_of_an_addition(data: st.DataObject) -> None:
    """Wherever the network has it: its scale and weight make the factor of the sum."""
    scale, other, result = (np.float32(data.draw(scales)) for _ in range(3))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    value, constant = random.integers(0, 256, (2, 4, 8)).astype(np.uint8)
    tensors = [
        tensor(0, (4, 8), "u1", scale, 3),
        tensor(1, (4, 8), "u1", other, 7, constant),
        tensor(2, (4, 8), "u1", result, 100),
    ]
    weights = addition_weights(other, scale, tensors[2])
    found = [compute(single("ADD", tensors, inputs, (2,)), value) for inputs in ((0, 1), (1, 0))]
    assert np.array_equal(found[0], found[1])
    total = weights[1] * (value.astype(np.int64) - 3) + weights[0] * (constant.astype(int) - 7)
    expected = [slow_output(int(each), weights[2], tensors[2]) for each in total.reshape(-1)]
    assert found[0].reshape(-1).tolist() == expected


def test_an_operand_whose_scale_is_too_small_has_no_weight() -> None:
    """0x3F7FFFD3 in a transformer whose operands have scales of 0.06 and 2.9e-7."""
    sum_of = tensor(2, (1,), "i1", 0.060564864, -128)
    large, small = np.float32(0.060564704), np.float32(2.8870676e-07)
    for one, other, weights in ((large, small, (1, 0)), (small, large, (0, 1))):
        first, second, factor = addition_weights(one, other, sum_of)
        assert (first, second) == weights
        assert word(factor) == 0x3F7FFFD3
