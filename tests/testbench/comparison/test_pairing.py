"""Which input is which, in which layout, and how values are converted on the way."""

from __future__ import annotations

import numpy as np
import pytest
from darwinn_reference.protocol import Port
from darwinn_testbench.comparison.conversion import convert, default_policy
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
from darwinn_testbench.policy import FLOAT_REFERENCE, NAMED, Exact
from hypothesis import given
from hypothesis import strategies as st

INT8, UINT8, FLOAT32 = np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.float32)
NOTHING: dict[str, Said] = {}


def port(name: str, *shape: int | None) -> Port:
    return Port(name, FLOAT32, shape)


def pairs(
    left: list[Port], right: list[Port], said: dict[str, Said] = NOTHING, *, device: bool = True
) -> tuple[Pair, ...]:
    return pair(left, right, said, kind="input", files=("a", "b"), device=device, all_right=True)


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
    assert maps.outputs == {"y:0": Said("z:0", Layout.SAME)}
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
    assert (there.values.dtype, there.how, there.rounded) == (FLOAT32, "dequantised", False)
    back = convert(there.values, real, device)
    np.testing.assert_array_equal(back.values, values)
    assert back.rounded
    assert default_policy(back) == FLOAT_REFERENCE


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
    assert default_policy(plain) == Exact()
    same = convert(octets, quantised(UINT8, 0.1, 128), quantised(INT8, 0.1, 0))
    np.testing.assert_array_equal(same.values, plain.values)
    assert not same.rounded
    other = convert(octets, quantised(UINT8, 0.1, 128), quantised(INT8, 0.2, 0))
    np.testing.assert_array_equal(other.values, [-64, 0, 0, 64])
    assert (other.how, other.rounded) == ("requantised", True)
    wide = convert(np.array([300]), Port("w", np.dtype(np.int64), None), Port("t", None, None))
    assert wide.values.tolist() == [300]
    with pytest.raises(InputError, match="values 300 to 300 do not fit"):
        convert(np.array([300]), Port("w", np.dtype(np.int64), None), Port("u", UINT8, None))


def test_floats_are_held_to_sums_in_another_order() -> None:
    real = Port("f", FLOAT32, None)
    assert default_policy(convert(np.zeros(1), real, real)) == NAMED["float32-reassociated"]
