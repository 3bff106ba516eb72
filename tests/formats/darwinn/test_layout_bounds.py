"""Layouts with anything in their tables: read by element, or refused where one is not there."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from darwinn_formats import darwinn
from darwinn_formats.darwinn import (
    DataType,
    FormatError,
    InputLayer,
    OutputLayer,
    OutputLayout,
    Range,
    TensorLayout,
    TensorShape,
)
from darwinn_formats.darwinn.layout import check_size
from darwinn_formats.limits import Limits, limited
from hypothesis import given, settings
from hypothesis import strategies as st

TYPES = st.sampled_from([DataType.FIXED_POINT8, DataType.FIXED_POINT16])
STEPS = st.sampled_from([0, 1, 1, 2, 2, 3, 4, -1])
OFFSETS = st.sampled_from([0, 0, 2, 4, 6, 1, 9, -1])


@st.composite
def layers_of_tiles(draw: st.DrawFn) -> darwinn.Layer:
    """Tables of about the right length, with entries about where they may be."""
    y, x, z = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(1, 3))

    def table(most: int, length: int) -> tuple[int, ...]:
        shorter = draw(st.sampled_from([0, 0, 0, 0, 1]))
        low = draw(st.sampled_from([0, 0, 0, -1]))
        count = max(0, length - shorter)
        return tuple(draw(st.lists(st.integers(low, most), min_size=count, max_size=count)))

    layout = OutputLayout(
        table(1, y), table(1, x), table(4, 3), table(3, x), table(2, y), table(3, x)
    )
    size = draw(st.integers(2, 30))
    return darwinn.Layer(
        "out", size, y, x, z, None, draw(TYPES), OutputLayer(layout), 1, file_offset=7
    )


def slow_tiles(layer: darwinn.Layer, data: bytes) -> dict[tuple[int, ...], int] | None:
    """Elements by place; None where a table or the data has no such entry."""
    assert isinstance(layer.any_layer, OutputLayer)
    layout = layer.any_layer.layout
    assert layout is not None
    width = darwinn.dtype_of(layer).itemsize
    sizes = (layer.y_dim, layer.x_dim, layer.z_dim)
    if sizes[:2] == (1, 1):
        ends = [width * (z + 1) for z in range(sizes[2])]
        found = {(0, 0, k): data[end - width : end] for k, end in enumerate(ends)}
    else:
        found = {}
        for y, x, z in product(*map(range, sizes)):
            try:
                tile = (
                    layout.y_coordinate_to_linear_tile_id_map[y]
                    + layout.x_coordinate_to_linear_tile_id_map[x]
                )
                row = (
                    layout.y_coordinate_to_local_y_offset[y]
                    * layout.x_coordinate_to_local_y_row_size[x]
                )
                start = layout.x_coordinate_to_local_byte_offset[x]
                start += layout.linearized_tile_byte_offset[tile] + row
            except IndexError:
                return None
            if tile < 0 or start < 0:
                return None
            found[y, x, z] = data[width * (start + z) : width * (start + z + 1)]
    if any(len(each) < width for each in found.values()):
        return None
    return {place: int.from_bytes(each, "little") for place, each in found.items()}


def check(layer: darwinn.Layer, expected: dict[tuple[int, ...], int] | None, data: bytes) -> None:
    if expected is None:
        with pytest.raises(FormatError) as error:
            darwinn.to_tensor(layer, data)
        assert error.value.field.startswith('Layer["out"].')
        assert error.value.offset == 7
        return
    tensor = darwinn.to_tensor(layer, data)
    assert {place: int(tensor[place]) for place in np.ndindex(tensor.shape)} == expected


@settings(max_examples=300)
@given(layers_of_tiles())
def test_tiles(layer: darwinn.Layer) -> None:
    data = bytes(range(100, 100 + layer.size_bytes))
    check(layer, slow_tiles(layer, data), data)


@st.composite
def layers_of_slices(draw: st.DrawFn) -> darwinn.Layer:
    """A tensor of two rows, or of two batches, and one or two slices somewhere about it."""
    extent = draw(st.sampled_from([(2, 2), (2, 3), (1, 4)]))
    origin = draw(st.sampled_from([(0, 0), (5, 1)]))
    whole = tuple(Range(a, a + b - 1) for a, b in zip(origin, extent, strict=True))

    def box() -> tuple[Range, ...]:
        if draw(st.integers(0, 3)):
            return whole
        return tuple(
            Range(a + draw(st.integers(-1, 1)), a + draw(st.integers(-1, b)))
            for a, b in zip(origin, extent, strict=True)
        )[: draw(st.sampled_from([2, 2, 2, 1]))]

    slices = draw(st.integers(1, 2))
    strides = st.lists(STEPS, min_size=2, max_size=draw(st.sampled_from([2, 2, 2, 3])))
    info = darwinn.OutputShapeInfo(
        tuple(TensorLayout(TensorShape(box()), tuple(draw(strides))) for _ in range(slices)),
        tuple(
            draw(st.integers(-1, 9)) for _ in range(slices + draw(st.sampled_from([0, 0, 0, 1])))
        ),
    )
    return darwinn.Layer(
        "out",
        draw(st.integers(6, 30)),
        *(1, draw(st.sampled_from([2, extent[0] * extent[1]])), 1),
        None,
        draw(TYPES),
        OutputLayer(shape_info=info),
        shape=TensorShape(whole),
        file_offset=7,
    )


def slow_slices(layer: darwinn.Layer, data: bytes) -> dict[tuple[int, ...], int] | None:
    """Elements by place, each from the last slice that has it; None for anything that is not so."""
    assert isinstance(layer.any_layer, OutputLayer)
    info, shape = layer.any_layer.shape_info, layer.shape
    assert info is not None
    assert shape is not None
    width = darwinn.dtype_of(layer).itemsize
    places = list(product(*(range(each.start, each.end + 1) for each in shape.dimension)))
    of_one = layer.y_dim * layer.x_dim * layer.z_dim
    if len(places) % of_one or len(places) * width > len(data):
        return None
    if len(info.slice_layout) != len(info.slice_offset):
        return None
    found: dict[tuple[int, ...], int] = {}
    for each, offset in zip(info.slice_layout, info.slice_offset, strict=True):
        assert each.shape is not None
        ranges = each.shape.dimension
        inside = list(product(*(range(one.start, one.end + 1) for one in ranges)))
        if not inside or any(one.end < one.start for one in ranges):
            return None
        if len(ranges) != 2 or not set(inside) <= set(places):
            return None
        if len(each.stride) != 2 or min(each.stride) < 0 or offset < 0 or offset % width:
            return None
        for place in inside:
            index = sum(
                (at - one.start) * step
                for at, one, step in zip(place, ranges, each.stride, strict=True)
            )
            octets = data[offset + width * index : offset + width * (index + 1)]
            if len(octets) < width:
                return None
            found[place] = int.from_bytes(octets, "little")
    if found.keys() != set(places):
        return None
    batches = len(places) // of_one
    values = np.array([found[place] for place in places]).reshape(
        (batches, layer.y_dim, layer.x_dim, layer.z_dim)[1 if batches == 1 else 0 :]
    )
    return {place: int(values[place]) for place in np.ndindex(values.shape)}


@settings(max_examples=400)
@given(layers_of_slices())
def test_slices(layer: darwinn.Layer) -> None:
    data = bytes(range(100, 100 + layer.size_bytes))
    check(layer, slow_slices(layer, data), data)


@pytest.mark.parametrize("octets", range(12, 18))
@pytest.mark.parametrize("offset", range(9))
def test_a_slice_that_begins_behind_others_and_bytes_that_are_no_element(
    octets: int, offset: int
) -> None:
    whole = TensorShape((Range(0, 1), Range(0, 2)))
    info = darwinn.OutputShapeInfo((TensorLayout(whole, (3, 1)),), (offset,))
    layer = darwinn.Layer(
        *("out", octets, 1, 6, 1, None, DataType.FIXED_POINT16, OutputLayer(shape_info=info)),
        shape=whole,
        file_offset=7,
    )
    data = bytes(range(100, 100 + octets))
    check(layer, slow_slices(layer, data), data)


LAYER = darwinn.Layer("in", 12, 1, 2, 3, None, DataType.FIXED_POINT16, InputLayer(), 5)


@pytest.mark.parametrize(
    ("changes", "batch", "limit", "reason"),
    [
        ({}, 1, 60, None),
        ({}, 1, 59, "60 bytes in a run are more than 59"),
        ({}, 0, 60, None),
        ({}, 0, 59, "60 bytes in a run are more than 59"),
        ({}, 2, 120, None),
        ({}, 2, 119, "120 bytes in a run are more than 119"),
        ({"size_bytes": 11}, 1, 60, "12 bytes of elements are in 11"),
        ({"size_bytes": 0}, 1, 60, "sizes, dimensions and executions must be positive"),
        ({"x_dim": 0}, 1, 60, "must be positive"),
        ({"execution_count_per_inference": 0}, 1, 60, "must be positive"),
        ({"execution_count_per_inference": 1, "size_bytes": 1 << 28}, 1, 1 << 28, None),
    ],
)
def test_sizes_of_layers(
    changes: dict[str, Any], batch: int, limit: int, reason: str | None
) -> None:
    layer = replace(LAYER, **changes)
    if reason is None:
        check_size(layer, batch, limit)
        return
    with pytest.raises(FormatError, match=reason):
        check_size(layer, batch, limit)


def test_sizes_of_layers_have_limits_of_their_own() -> None:
    wide = replace(LAYER, size_bytes=1 << 28, execution_count_per_inference=1)
    check_size(wide)
    with pytest.raises(FormatError, match=f"are more than {1 << 28}"):
        check_size(replace(wide, size_bytes=(1 << 28) + 1))
    with limited(Limits(memory=59)), pytest.raises(FormatError, match=r"layer 'in'\.size_bytes"):
        check_size(LAYER)


def test_inputs_that_just_fit() -> None:
    tensor = np.arange(6, dtype="<u2")
    layer = replace(LAYER, execution_count_per_inference=1)
    assert darwinn.to_device_input(layer, tensor) == tensor.tobytes()
    with pytest.raises(FormatError, match="6 elements of uint16 take more than 11 bytes") as error:
        darwinn.to_device_input(replace(layer, size_bytes=11, file_offset=3), tensor)
    assert (error.value.field, error.value.offset) == ('Layer["in"].size_bytes', 3)
    assert darwinn.to_tensor(layer, tensor.tobytes()).tolist() == [[[0, 1, 2], [3, 4, 5]]]
    with pytest.raises(FormatError, match="6 elements of uint16 take more than 11 bytes"):
        darwinn.to_tensor(replace(layer, size_bytes=11), bytes(11))
