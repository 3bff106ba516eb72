"""The host's copies of outputs: one for each run of elements that both orders have."""

from __future__ import annotations

import pytest
from darwinn_formats.darwinn import Executable
from darwinn_formats.darwinn.schema import (
    InputLayer,
    Layer,
    OutputLayer,
    OutputLayout,
    OutputShapeInfo,
    Range,
    TensorLayout,
    TensorShape,
)
from darwinn_sim.timing import output_copies


def tiles(
    y: int, x: int, z: int, *, padded: int = 0, columns: tuple[int, ...] = (), rows: int = 1
) -> Layer:
    """``rows`` rows of tiles, each of column ``columns[x]``, with ``padded`` elements a step."""
    step = padded or z
    columns = columns or (0,) * x
    begins = [columns.index(each) for each in columns]
    layout = OutputLayout(
        y_coordinate_to_linear_tile_id_map=tuple(k * rows // y for k in range(y)),
        x_coordinate_to_linear_tile_id_map=columns,
        x_coordinate_to_local_byte_offset=tuple(
            (k - begin) * step for k, begin in enumerate(begins)
        ),
        y_coordinate_to_local_y_offset=tuple(range(y)),
        x_coordinate_to_local_y_row_size=(x * step,) * x,
    )
    return Layer(y_dim=y, x_dim=x, z_dim=z, any_layer=OutputLayer(layout=layout))


def slices(*shapes: tuple[int, ...]) -> Layer:
    layouts = tuple(
        TensorLayout(shape=TensorShape(tuple(Range(0, extent - 1) for extent in shape)))
        for shape in shapes
    )
    info = OutputShapeInfo(slice_layout=layouts, slice_offset=(0,) * len(layouts))
    return Layer(y_dim=4, x_dim=4, z_dim=4, any_layer=OutputLayer(shape_info=info))


@pytest.mark.parametrize(
    ("layer", "copies"),
    [
        (Layer(y_dim=1, x_dim=1, z_dim=1001, any_layer=OutputLayer()), 1),
        (
            Layer(
                y_dim=1,
                x_dim=1,
                z_dim=9,
                any_layer=OutputLayer(),
                execution_count_per_inference=5,
            ),
            5,
        ),
        (Layer(y_dim=4, x_dim=4, z_dim=4, any_layer=OutputLayer()), 1),
        (Layer(y_dim=4, x_dim=4, z_dim=4, any_layer=InputLayer()), 1),
        (tiles(8, 8, 16), 1),
        (tiles(8, 8, 16, rows=2), 8),
        (tiles(8, 8, 16, columns=(0, 0, 1, 1, 2, 2, 3, 3)), 32),
        (tiles(8, 8, 3, padded=4), 64),
        (tiles(8, 1, 3, padded=4), 8),
        (tiles(8, 1, 4, rows=4), 8),
        (slices((4, 4, 4)), 1),
        (slices((2, 4, 4), (2, 4, 4)), 16),
    ],
)
def test_the_copies_of_an_output(layer: Layer, copies: int) -> None:
    assert output_copies(Executable(output_layers=(layer,))) == copies


def test_outputs_add_up() -> None:
    layers = (tiles(8, 8, 3, padded=4), tiles(8, 8, 16))
    assert output_copies(Executable(output_layers=layers)) == 65
    assert output_copies(Executable()) == 0


def test_a_layout_without_its_tables_counts_each_position() -> None:
    broken = Layer(y_dim=2, x_dim=3, z_dim=4, any_layer=OutputLayer(layout=OutputLayout()))
    assert output_copies(Executable(output_layers=(broken,))) == 6
