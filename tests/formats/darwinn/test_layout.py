"""Output re-layout: equal to an element by element reading of the layout tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from darwinn_formats import darwinn
from darwinn_formats.darwinn import DataType, FormatError, OutputLayer, OutputLayout, Range
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

Array = NDArray[Any]

EXAMPLE = OutputLayout(
    y_coordinate_to_linear_tile_id_map=(0, 0, 2, 2),
    x_coordinate_to_linear_tile_id_map=(0, 0, 0, 1, 1),
    linearized_tile_byte_offset=(0, 192, 320, 512),
    x_coordinate_to_local_byte_offset=(0, 32, 64, 0, 32),
    y_coordinate_to_local_y_offset=(0, 1, 0, 1),
    x_coordinate_to_local_y_row_size=(96, 96, 96, 64, 64),
)
"""The schema's own example: 2 x 2 tiles that make a tensor of 4 x 5 x 32."""

EXAMPLE_LAYER = darwinn.Layer("out", 640, 4, 5, 32, any_layer=OutputLayer(EXAMPLE))


def element(layout: OutputLayout, y: int, x: int, z: int) -> int:
    """Index of an element, as the schema describes it."""
    tile = (
        layout.y_coordinate_to_linear_tile_id_map[y] + layout.x_coordinate_to_linear_tile_id_map[x]
    )
    row = layout.y_coordinate_to_local_y_offset[y] * layout.x_coordinate_to_local_y_row_size[x]
    local = row + layout.x_coordinate_to_local_byte_offset[x] + z
    return layout.linearized_tile_byte_offset[tile] + local


def test_the_example_of_the_schema() -> None:
    tensor = np.arange(640, dtype=np.uint16).astype(np.uint8).reshape(4, 5, 32)
    quadrants = [tensor[:2, :3], tensor[:2, 3:], tensor[2:, :3], tensor[2:, 3:]]
    data = np.concatenate([part.reshape(-1) for part in quadrants])
    assert np.array_equal(darwinn.to_tensor(EXAMPLE_LAYER, data), tensor)
    assert np.array_equal(darwinn.to_tensor(EXAMPLE_LAYER, data.tobytes()), tensor)


@st.composite
def tilings(draw: st.DrawFn) -> tuple[darwinn.Layer, int]:
    """A layer whose tensor is cut into tiles of any sizes, with padding between z runs."""
    rows = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    columns = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    z, padding = draw(st.integers(1, 5)), draw(st.integers(0, 3))
    kind = draw(st.sampled_from([kind for kind in DataType if kind is not DataType.BFLOAT]))
    executions = draw(st.integers(1, 2))
    sizes = [height * width * (z + padding) for height in rows for width in columns]
    starts = np.cumsum([0, *sizes]).tolist()
    layout = OutputLayout(
        tuple(len(columns) * index for index, size in enumerate(rows) for _ in range(size)),
        tuple(index for index, size in enumerate(columns) for _ in range(size)),
        tuple(starts[:-1]),
        tuple((z + padding) * place for size in columns for place in range(size)),
        tuple(place for size in rows for place in range(size)),
        tuple((z + padding) * size for size in columns for _ in range(size)),
    )
    layer = darwinn.Layer(
        "out",
        y_dim=sum(rows),
        x_dim=sum(columns),
        z_dim=z,
        data_type=kind,
        any_layer=OutputLayer(layout),
        execution_count_per_inference=executions,
    )
    size = starts[-1] * darwinn.dtype_of(layer).itemsize + draw(st.integers(0, 9)) * 4
    return replace(layer, size_bytes=size), draw(st.integers(0, 2**32 - 1))


@given(tilings())
def test_relayout_equals_the_definition(case: tuple[darwinn.Layer, int]) -> None:
    layer, seed = case
    output = layer.any_layer
    assert isinstance(output, OutputLayer)
    assert output.layout is not None
    executions, dtype = layer.execution_count_per_inference, darwinn.dtype_of(layer)
    data = np.random.default_rng(seed).integers(
        0, 256, (executions, layer.size_bytes), dtype=np.uint8
    )
    tensor = darwinn.to_tensor(layer, data.reshape(-1))
    expected = np.zeros((executions, layer.y_dim, layer.x_dim, layer.z_dim), dtype)
    flat = (layer.y_dim, layer.x_dim) == (1, 1)
    for part, (y, x, z) in product(range(executions), places(layer)):
        index = z if flat else element(output.layout, y, x, z)
        raw = bytearray(data[part, index * dtype.itemsize : (index + 1) * dtype.itemsize])
        if layer.data_type in (DataType.SIGNED_FIXED_POINT8, DataType.SIGNED_FIXED_POINT16):
            raw[-1] ^= 0x80
        expected[part, y, x, z] = np.frombuffer(raw, dtype)[0]
    if executions == 1:
        expected = expected[0]
    assert tensor.dtype == dtype
    assert tensor.tobytes() == expected.tobytes()
    assert tensor.shape == expected.shape


def places(layer: darwinn.Layer) -> Iterator[tuple[int, ...]]:
    return product(range(layer.y_dim), range(layer.x_dim), range(layer.z_dim))


def sliced(*slices: tuple[tuple[Range, ...], tuple[int, ...], int]) -> darwinn.OutputShapeInfo:
    return darwinn.OutputShapeInfo(
        tuple(darwinn.TensorLayout(darwinn.TensorShape(box), stride) for box, stride, _ in slices),
        tuple(offset for _, _, offset in slices),
    )


def shaped(info: darwinn.OutputShapeInfo, **changes: Any) -> darwinn.Layer:
    """Layer of 2 batches, 2 x 3 x 4 elements of 16 bits, whose first batch has the number 5."""
    shape = darwinn.TensorShape((Range(5, 6), Range(0, 1), Range(0, 2), Range(0, 3)))
    layer = darwinn.Layer(
        "out", 256, 2, 3, 4, None, DataType.FIXED_POINT16, OutputLayer(shape_info=info), shape=shape
    )
    return replace(layer, **changes)


LEFT = (Range(5, 6), Range(0, 1), Range(0, 1), Range(0, 3))
RIGHT = (Range(5, 6), Range(0, 1), Range(2, 2), Range(0, 3))
SLICES = sliced((LEFT, (40, 12, 5, 1), 4), (RIGHT, (8, 4, 4, 1), 200))


def test_slices_are_put_in_their_place() -> None:
    """Two slices, of which one has padding, in a layer with a batch."""
    data = np.random.default_rng(1).integers(0, 256, 256, dtype=np.uint8)
    words = data.view("<u2")
    expected = np.zeros((2, 2, 3, 4), np.uint16)
    for batch, y, x, z in product(range(2), range(2), range(3), range(4)):
        index = 2 + 40 * batch + 12 * y + 5 * x + z if x < 2 else 100 + 8 * batch + 4 * y + z
        expected[batch, y, x, z] = words[index]
    assert np.array_equal(darwinn.to_tensor(shaped(SLICES), data), expected)


def test_a_single_slice_without_padding_is_the_data_itself() -> None:
    box = tuple(Range(0, size - 1) for size in (2, 3, 4))
    layer = shaped(sliced((box, (12, 4, 1), 0)), shape=darwinn.TensorShape(box), size_bytes=48)
    data = bytes(range(48))
    assert darwinn.to_tensor(layer, data).shape == (2, 3, 4)
    assert darwinn.to_tensor(layer, data).tobytes() == data


@pytest.mark.parametrize(
    ("layer", "field", "reason"),
    [
        (replace(EXAMPLE_LAYER, size_bytes=639), "layout", "of 639 bytes"),
        (replace(EXAMPLE_LAYER, x_dim=6), "x_coordinate", "5 entries are too few for 6"),
        (replace(EXAMPLE_LAYER, any_layer=OutputLayer()), "layout", "needed and absent"),
        (
            replace(
                EXAMPLE_LAYER,
                any_layer=OutputLayer(replace(EXAMPLE, linearized_tile_byte_offset=(0, 192))),
            ),
            "layout",
            "tile 3 is not below 2",
        ),
        (replace(EXAMPLE_LAYER, data_type=DataType.BFLOAT), "data_type", "BFLOAT: not supported"),
        (replace(EXAMPLE_LAYER, z_dim=0), "size_bytes", "must be positive"),
        (replace(EXAMPLE_LAYER, y_dim=1, x_dim=1, z_dim=641), "size_bytes", "more than 640"),
        (shaped(SLICES, shape=None), "shape", "needed and absent"),
        (shaped(SLICES, size_bytes=90), "shape", "more than 90 bytes"),
        (shaped(SLICES, size_bytes=214), "slice_offset[1]", "slice from 200 to 232 of 214"),
        (shaped(SLICES, x_dim=5), "shape", "not a multiple"),
        (shaped(sliced((LEFT, (40, 12, 5, 1), 4))), "shape_info", "16 elements are in no slice"),
        (shaped(sliced((LEFT, (40, 12, 5), 4))), "slice_layout[0].stride", "does not fit"),
        (shaped(sliced((LEFT[1:], (12, 5, 1), 4))), "slice_layout[0].shape", "is not within"),
        (shaped(sliced((LEFT, (40, 12, 5, 1), 3))), "slice_offset[0]", "slice from 3"),
        (shaped(replace(SLICES, slice_offset=(4,))), "slice_offset", "1 offsets for 2 slices"),
    ],
)
def test_layouts_that_do_not_fit_are_refused(layer: darwinn.Layer, field: str, reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as info:
        darwinn.to_tensor(layer, bytes(layer.size_bytes))
    assert field in info.value.field


def test_data_of_another_size_is_refused() -> None:
    with pytest.raises(FormatError, match=r"639 bytes are given, not 1 \* 640"):
        darwinn.to_tensor(EXAMPLE_LAYER, bytes(639))


@pytest.mark.parametrize("kind", [kind for kind in DataType if kind is not DataType.BFLOAT])
@pytest.mark.parametrize("executions", [1, 3])
def test_inputs_go_in_and_come_out_again(kind: DataType, executions: int) -> None:
    layer = darwinn.Layer(
        "in",
        64,
        1,
        3,
        5,
        None,
        kind,
        darwinn.InputLayer(),
        execution_count_per_inference=executions,
    )
    dtype = darwinn.dtype_of(layer)
    shape = (3, 1, 3, 5) if executions == 3 else (1, 3, 5)
    tensor = np.random.default_rng(2).integers(0, 100, shape).astype(dtype)
    data = darwinn.to_device_input(layer, tensor)
    assert len(data) == 64 * executions
    assert data[15 * dtype.itemsize : 64] == bytes(64 - 15 * dtype.itemsize)
    assert np.array_equal(darwinn.to_tensor(layer, data), tensor)


def test_the_sign_bit_of_inputs_is_inverted() -> None:
    layer = darwinn.Layer("in", 8, 1, 1, 4, None, DataType.SIGNED_FIXED_POINT8)
    data = darwinn.to_device_input(layer, np.array([-128, -1, 0, 127], np.int8))
    assert data == bytes([0, 127, 128, 255, 0, 0, 0, 0])
    layer = replace(layer, data_type=DataType.SIGNED_FIXED_POINT16)
    words = darwinn.to_device_input(layer, np.array([-(2**15), -1, 0, 2**15 - 1], np.int16))
    assert np.frombuffer(words, "<u2").tolist() == [0, 2**15 - 1, 2**15, 2**16 - 1]


@pytest.mark.parametrize(
    ("tensor", "reason"),
    [
        (np.zeros(4, np.uint8), "elements of type uint8 are given, not int8"),
        (np.zeros(5, np.int8), r"5 elements are given, not 1 \* 4"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(tensor: Array, reason: str) -> None:
    layer = darwinn.Layer("in", 8, 1, 1, 4, None, DataType.SIGNED_FIXED_POINT8)
    with pytest.raises(FormatError, match=reason):
        darwinn.to_device_input(layer, tensor)
    with pytest.raises(FormatError, match="take more than 3 bytes"):
        darwinn.to_device_input(replace(layer, size_bytes=3), np.zeros(4, np.int8))


def test_every_real_output_can_be_put_in_order(corpus: Path) -> None:
    """The layout of every real layer is a permutation: no element is read twice."""
    for path in sorted((corpus / "darwinn").iterdir()):
        for executable in darwinn.load(path).executables:
            for layer in executable.output_layers:
                numbers = np.arange(layer.size_bytes)
                digits = [
                    darwinn.to_tensor(
                        replace(layer, data_type=DataType.FIXED_POINT8),
                        (numbers >> shift).astype(np.uint8),
                    ).astype(np.int64)
                    << shift
                    for shift in (0, 8, 16)
                ]
                count = layer.y_dim * layer.x_dim * layer.z_dim
                assert len(np.unique(sum(digits))) == count, path.name
