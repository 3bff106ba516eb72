"""Which input is which, in which layout, and how values are converted on the way."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from darwinn_reference.protocol import Port, Steps
from darwinn_testbench.comparison.compare import compare
from darwinn_testbench.comparison.conversion import comparable, convert
from darwinn_testbench.comparison.pairing import (
    Layout,
    Pair,
    Said,
    arrange,
    layouts,
    pair,
    parse_maps,
)
from darwinn_testbench.errors import InputError
from darwinn_testbench.policy import FLOAT_REFERENCE, NAMED, Exact, FloatTolerance, Policy
from hypothesis import given
from hypothesis import strategies as st

INT8, UINT8, FLOAT32 = np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.float32)
NOTHING: dict[str, Said] = {}


def port(name: str, *shape: int | None) -> Port:
    return Port(name, FLOAT32, shape)


def pairs(
    left: list[Port],
    right: list[Port],
    said: dict[str, Said] = NOTHING,
    *,
    device: bool = True,
    usual: Layout = Layout.SAME,
) -> tuple[Pair, ...]:
    more = {"device": device, "all_right": True}
    return pair(left, right, said, kind="input", files=("a", "b"), usual=usual, **more)


def positions(found: tuple[Pair, ...]) -> list[int]:
    return [each.position for each in found]


# --- pairing --------------------------------------------------------------------------------------


def test_names_come_before_shapes() -> None:
    left, right = [port("x", 4), port("y", 4)], [port("y", 4), port("x", 4)]
    assert positions(pairs(left, right)) == [1, 0]


def test_shapes_that_leave_one_way_pair() -> None:
    left = [port("a", 1, 8, 6, 3), port("b", 10)]
    right = [port("u", 1, 10), port("v", 1, 3, 8, 6)]
    found = pairs(left, right)
    assert positions(found) == [1, 0]
    assert [each.layout for each in found] == [Layout.TO_NCHW, Layout.SAME]


def test_equal_shapes_of_a_device_are_not_guessed() -> None:
    left, right = [port("a", 4), port("b", 4)], [port("u", 4), port("v", 4)]
    with pytest.raises(InputError, match="several pairings fit") as caught:
        pairs(left, right)
    message = str(caught.value)
    assert "a has a (float32 4), b (float32 4)" in message
    assert "b has u (float32 4), v (float32 4)" in message
    assert "--map a=u" in message
    # One map is enough: the rest follows.
    assert positions(pairs(left, right, {"a": Said("v")})) == [1, 0]
    assert positions(pairs(left, right, {"b": Said("0")})) == [1, 0]
    # Functions have their arguments in order.
    assert positions(pairs(left, right, device=False)) == [0, 1]


def test_an_image_that_may_be_transposed_or_not_is_not_guessed() -> None:
    left, right = [port("a", 1, 8, 8, 8)], [port("u", 1, 8, 8, 8)]
    with pytest.raises(InputError, match="--map a=u:nchw or :nhwc"):
        pairs(left, right)
    maps = parse_maps(["a=u:nchw"], left, [])
    assert pairs(left, right, dict(maps.inputs))[0].layout is Layout.TO_NCHW
    assert pairs(left, right, device=False)[0].layout is Layout.SAME


def test_an_image_of_equal_sizes_is_transposed_as_the_conventions_of_both_formats_say() -> None:
    left, right = [port("a", 1, 8, 8, 8)], [port("u", 1, 8, 8, 8)]
    for usual, said in product((Layout.TO_NCHW, Layout.TO_NHWC), ("", ":nchw", ":nhwc")):
        maps = parse_maps([f"a=u{said}"] if said else [], left, [])
        found = pairs(left, right, dict(maps.inputs), device=False, usual=usual)[0].layout
        assert found is (usual if said in ("", f":{str(usual)[-4:].lower()}") else Layout.SAME)
    sequence = [port("a", 1, 8, 8)], [port("u", 1, 8, 8)]
    assert pairs(*sequence, device=False, usual=Layout.TO_NHWC)[0].layout is Layout.SAME


def test_what_does_not_fit_lists_both_sides() -> None:
    with pytest.raises(InputError, match=r"a has a \(float32 4\); b has u \(float32 5\)"):
        pairs([port("a", 4)], [port("u", 5)])
    with pytest.raises(InputError, match="their numbers differ"):
        pairs([port("a", 4)], [port("u", 4), port("v", 4)])


def test_unknown_shapes_take_anything() -> None:
    assert positions(pairs([port("a", 1, 2)], [Port("u", None, None)])) == [0]
    with pytest.raises(InputError, match="several pairings"):
        pairs([port("a", 1), port("b", 2)], [Port("u", None, None), Port("v", None, None)])


def test_maps_are_read_with_any_names() -> None:
    inputs, outputs = [port("a=b", 1), port("x", 1)], [port("y:0", 1)]
    maps = parse_maps(["a=b=c:1x8", "x=0", "y:0=z:0:nhwc"], inputs, outputs)
    assert maps.inputs == {"a=b": Said("c", None, (1, 8)), "x": Said("0")}
    assert maps.outputs == {"y:0": Said("z:0", channels_last=True)}
    with pytest.raises(InputError, match=r"one of the inputs a=b, x or of the outputs y:0"):
        parse_maps(["nothing=1"], inputs, outputs)
    with pytest.raises(InputError, match="has no input 7, only 0 u"):
        pairs([port("a", 4)], [port("u", 4)], {"a": Said("7")})


# --- layouts --------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 4), min_size=4, max_size=4), st.booleans())
def test_a_transposed_image_is_brought_there_and_back(sizes: list[int], batch: bool) -> None:
    shape = tuple(sizes) if batch else tuple(sizes[1:])
    image = np.random.default_rng(0).random(shape)
    moved = np.moveaxis(image, -1, int(batch))
    assert layouts(shape, moved.shape, device=True)
    if Layout.TO_NCHW in layouts(shape, moved.shape, device=True):
        there = arrange(image, Layout.TO_NCHW, moved.shape, where="")
        np.testing.assert_array_equal(there, moved)
        back = arrange(there, Layout.TO_NCHW.back, image.shape, where="")
        np.testing.assert_array_equal(back, image)
    else:
        # Nothing moves: the bytes are those of the image.
        np.testing.assert_array_equal(moved.ravel(), image.ravel())


@pytest.mark.parametrize(
    ("left", "right"),
    [((1, 12, 1, 5), (1, 1, 5, 12)), ((1, 24, 1, 5), (5, 24)), ((1, 6, 4, 1), (4, 6))],
)
def test_an_image_of_one_row_is_brought_there_and_back(left: Any, right: Any) -> None:
    """Without its dimensions of 1 it would fit in the other layout as well."""
    image = np.arange(np.prod(left)).reshape(left)
    (layout, *_) = layouts(left, right, device=False)
    moved = arrange(image, layout, right, where="")
    assert layout is Layout.TO_NHWC
    np.testing.assert_array_equal(moved.ravel(), np.moveaxis(image, 1, -1).ravel())
    (back, *_) = layouts(right, left, device=False)
    assert back is Layout.TO_NCHW
    np.testing.assert_array_equal(arrange(moved, back, left, where=""), image)


def test_dimensions_of_one_may_be_missing_and_open_ones_fit() -> None:
    assert layouts((1, 1, 1, 10), (10,), device=True) == [Layout.SAME]
    assert layouts((4, 5), (None, 5), device=True) == [Layout.SAME]
    assert layouts((4, 5), (None, 4), device=True) == []
    assert arrange(np.zeros((1, 1, 6)), Layout.SAME, (2, 3), where="").shape == (2, 3)
    with pytest.raises(InputError, match="x: 1x1x6 does not fit 2x4"):
        arrange(np.zeros((1, 1, 6)), Layout.SAME, (2, 4), where="x")


# --- values ---------------------------------------------------------------------------------------


def quantised(dtype: np.dtype, scale: float, zero_point: int) -> Port:
    return Port("q", dtype, None, scale, zero_point)


@given(st.floats(1e-3, 10), st.integers(-128, 127))
def test_every_byte_survives_a_float_reference(scale: float, zero_point: int) -> None:
    values = np.arange(-128, 128, dtype=np.int8)
    device, real = quantised(INT8, scale, zero_point), Port("f", FLOAT32, None)
    there = convert(values, device, real)
    assert (there.values.dtype, there.how) == (FLOAT32, "dequantised")
    back = convert(there.values, real, device)
    np.testing.assert_array_equal(back.values, values)


def test_quantising_saturates_and_refuses_what_it_cannot_say() -> None:
    device, real = quantised(UINT8, 0.5, 10), Port("f", FLOAT32, None)
    given_values = np.array([-np.inf, -5, -4.75, 0.25, 1e9], np.float32)
    np.testing.assert_array_equal(convert(given_values, real, device).values, [0, 0, 0, 10, 255])
    with pytest.raises(InputError, match="NaN"):
        convert(np.array([np.nan], np.float32), real, device)
    with pytest.raises(InputError, match="has no scale"):
        convert(given_values, real, Port("i", INT8, None))


def test_integers_stay_but_for_their_sign_and_another_quantisation() -> None:
    octets = np.array([0, 127, 128, 255], np.uint8)
    plain = convert(octets, Port("u", UINT8, None), Port("s", INT8, None))
    np.testing.assert_array_equal(plain.values, [-128, -1, 0, 127])
    same = convert(octets, quantised(UINT8, 0.1, 128), quantised(INT8, 0.1, 0))
    np.testing.assert_array_equal(same.values, plain.values)
    assert same.how == "sign changed"
    other = convert(octets, quantised(UINT8, 0.1, 128), quantised(INT8, 0.2, 0))
    np.testing.assert_array_equal(other.values, [-64, 0, 0, 64])
    assert other.how == "requantised"
    wide = convert(np.array([300]), Port("w", np.dtype(np.int64), None), Port("t", None, None))
    assert wide.values.tolist() == [300]
    with pytest.raises(InputError, match="values 300 to 300 do not fit"):
        convert(np.array([300]), Port("w", np.dtype(np.int64), None), Port("u", UINT8, None))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([0.0, 3.0, 100.0], True),
        ([0.0, 3.0, 25.5], False),
        ([0.0, 3.0, 25.0], False),
        ([0.0, 3.0, 300.0], False),
        ([-1.0, 3.0, 100.0], False),
    ],
)
def test_bytes_that_are_stored_as_floats_are_called_so(values: list[float], told: bool) -> None:
    """Real values of this output end at 25.5."""
    port, floats = quantised(UINT8, 0.1, 0), Port("f", np.dtype(np.float32), None)
    octets, reals = np.zeros(3, np.uint8), np.array(values, np.float32)
    for how in (
        comparable(octets, port, reals, floats).how,
        comparable(reals, floats, octets, port).how,
    ):
        assert ("store them as uint8" in how) is told


@pytest.mark.parametrize(("plain", "middle"), [(UINT8, 0), (INT8, 128)])
def test_integers_without_a_scale_are_those_to_which_floats_are_rounded(
    plain: Any, middle: int
) -> None:
    floats = Port("f", FLOAT32, None, steps=Steps(0.5, 10, UINT8))
    stored = np.array([0, 10, 11, 127], plain)
    real = convert(stored, Port("p", plain, None), floats).values
    np.testing.assert_array_equal(real, (stored.astype(int) + middle - 10) * 0.5)
    np.testing.assert_array_equal(convert(real, floats, Port("p", plain, None)).values, stored)
    with pytest.raises(InputError, match="has no scale"):
        convert(real, Port("f", FLOAT32, None), Port("p", plain, None))


# --- which policy, from both sides ----------------------------------------------------------------


FLOAT16 = np.dtype(np.float16)
BYTES = quantised(UINT8, 0.5, 10)
SIDES = {
    "float": Port("f", FLOAT32, None),
    "half": Port("h", FLOAT16, None),
    "float in steps": Port("s", FLOAT32, None, steps=Steps(0.5, 10, UINT8)),
    "float in coarser steps": Port("c", FLOAT32, None, steps=Steps(2.0, 100, UINT8)),
    "bytes": BYTES,
    "signed bytes": quantised(INT8, 0.5, -118),
    "coarser bytes": quantised(INT8, 2.0, 3),
    "plain bytes": Port("p", UINT8, None),
    "plain signed bytes": Port("i", INT8, None),
}
"""Outputs that are the same quantised value, or its real one."""
REAL = np.array([-4.0, 0.0, 2.0, 40.0])


def stored(name: str) -> np.ndarray:
    """REAL as a side has it; integers without a scale are those of BYTES."""
    port = SIDES[name]
    assert port.dtype is not None
    if port.dtype.kind == "f":
        return REAL.astype(port.dtype)
    known = port if port.scale else BYTES if port.dtype == UINT8 else SIDES["signed bytes"]
    return convert(REAL, SIDES["float"], known).values


def meaning(name: str) -> bool:
    """Whether real values of a side are known."""
    return not name.startswith("plain")


@pytest.mark.parametrize("left", SIDES)
@pytest.mark.parametrize("right", SIDES)
def test_both_ways_of_a_comparison_ask_for_the_same(left: str, right: str) -> None:
    sides = [(stored(name), SIDES[name]) for name in (left, right)]
    there, back = (comparable(*one, *two) for one, two in (sides, sides[::-1]))
    assert there.policy == back.policy
    assert there.how == back.how
    if there.actual.dtype == back.actual.dtype:
        np.testing.assert_array_equal(there.actual, back.expected)
    # What means the same is the same, where both sides say or imply what they mean.
    plain = [name for name in (left, right) if not meaning(name)]
    implied = all(SIDES[name].scale or SIDES[name].steps for name in (left, right) if meaning(name))
    coarse = any("coarser" in name for name in (left, right))
    if not plain or (implied and not coarse):
        assert compare(there.actual, there.expected, there.policy).passed


@pytest.mark.parametrize(
    ("left", "right", "policy", "dtype"),
    [
        ("float", "float", NAMED["float32-reassociated"], FLOAT32),
        ("float", "half", NAMED["float32-reassociated"], FLOAT16),
        ("float", "bytes", FLOAT_REFERENCE, UINT8),
        ("float in steps", "bytes", FLOAT_REFERENCE, UINT8),
        ("float in steps", "plain bytes", FLOAT_REFERENCE, UINT8),
        ("float in steps", "float in steps", FLOAT_REFERENCE, UINT8),
        ("float in steps", "coarser bytes", FLOAT_REFERENCE, INT8),
        ("float", "plain bytes", NAMED["float32-reassociated"], FLOAT32),
        ("bytes", "signed bytes", Exact(), UINT8),
        ("bytes", "coarser bytes", FLOAT_REFERENCE, INT8),
        ("plain bytes", "plain signed bytes", Exact(), UINT8),
    ],
)
def test_the_policy_follows_from_both_quantisations(
    left: str, right: str, policy: Policy, dtype: np.dtype
) -> None:
    found = comparable(stored(left), SIDES[left], stored(right), SIDES[right])
    assert (found.policy, found.actual.dtype) == (policy, dtype)
    assert found.expected.dtype == dtype


def test_a_tolerance_of_floats_is_about_real_values() -> None:
    tolerance = FloatTolerance(0.1, 0)
    one, two = ((stored(name), SIDES[name]) for name in ("bytes", "float"))
    found = comparable(*one, *two, tolerance)
    np.testing.assert_array_equal(found.actual, REAL.astype(np.float32))
    # Of integers on both sides it is about these.
    assert comparable(*one, *one, tolerance).actual.dtype == UINT8


def test_no_step_represents_nan() -> None:
    with pytest.raises(InputError, match="f \\(float32\\) holds NaN"):
        comparable(np.array([np.nan], np.float32), SIDES["float"], stored("bytes")[:1], BYTES)
