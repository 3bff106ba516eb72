"""How many copies the host makes to bring outputs from the chip's order to that of the tensors.

The vendor's runtime copies each run of elements that lie side by side in both orders: all of an
output that comes from one tile without padding, a part of a line for each tile otherwise, and the
elements of each position alone where the chip pads them.
"""

from __future__ import annotations

from itertools import pairwise

from darwinn_formats.darwinn import Executable
from darwinn_formats.darwinn.schema import Layer, OutputLayer, OutputLayout, OutputShapeInfo


def output_copies(executable: Executable) -> int:
    """Copies of one inference, of all outputs together."""
    return sum(_copies(layer) for layer in executable.output_layers)


def _copies(layer: Layer) -> int:
    output = layer.any_layer
    executions = max(1, layer.execution_count_per_inference)
    if not isinstance(output, OutputLayer) or (layer.y_dim, layer.x_dim) == (1, 1):
        return executions
    if output.shape_info is not None:
        return _of_slices(output.shape_info)
    if output.layout is None:
        return executions
    return executions * _of_tiles(layer, output.layout)


def _of_slices(info: OutputShapeInfo) -> int:
    """One copy for a slice without gaps that is alone, else one for each line of a slice."""
    shapes = [each.shape for each in info.slice_layout if each.shape is not None]
    slices = [[each.end - each.start + 1 for each in one.dimension] for one in shapes]
    if len(slices) <= 1:
        return 1
    copies = 0
    for extents in slices:
        lines = 1
        for extent in extents[:-1]:
            lines *= max(1, extent)
        copies += lines
    return copies


def _of_tiles(layer: Layer, layout: OutputLayout) -> int:
    positions = layer.y_dim * layer.x_dim
    columns = layout.x_coordinate_to_linear_tile_id_map[: layer.x_dim]
    lines = layout.y_coordinate_to_linear_tile_id_map[: layer.y_dim]
    if _step(layer, layout) != layer.z_dim:
        return positions
    parts = 1 + sum(a != b for a, b in pairwise(columns))
    if parts == 1 and lines[:1] == lines[-1:]:
        return 1
    return layer.y_dim * parts


def _step(layer: Layer, layout: OutputLayout) -> int:
    """Elements from one position to its neighbour in the chip's order; 0 where nothing says it."""
    tables = (layout.x_coordinate_to_local_byte_offset, layout.y_coordinate_to_local_y_offset)
    if layer.x_dim > 1:
        return tables[0][1] - tables[0][0] if len(tables[0]) > 1 else 0
    sizes = layout.x_coordinate_to_local_y_row_size
    if len(tables[1]) < 2 or not sizes:
        return 0
    return (tables[1][1] - tables[1][0]) * sizes[0]
