"""What operations need of their sources: all pixels at once, or those that their windows meet."""

from __future__ import annotations

from typing import Literal

from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES

from darwinn_testbench.compiler.stages.one_pixel import met_by_one
from darwinn_testbench.compiler.stages.operations import (
    AnyOperation,
    Channelwise,
    Convolution,
    Enlarged,
    Greatest,
    Image,
    Interpolated,
    MatrixProduct,
    Recurrent,
    Repeated,
    Reshaped,
    Stacked,
    Transposed,
    TransposedConvolution,
    WeightedSum,
    sources_of,
)
from darwinn_testbench.compiler.stages.storage import Interval, length

Axis = Literal["rows", "columns"]
"""An axis of images."""
Windowed = Convolution | Channelwise | Greatest
"""Operations that read a window for each pixel."""


def needs_along(
    operation: AnyOperation, axis: Axis, own: tuple[Interval, ...]
) -> tuple[Interval, ...]:
    """What each place of the grid needs of each source of an operation, for results ``own``."""
    if isinstance(operation, Enlarged):
        inputs = operation.inputs
    elif isinstance(operation, Windowed | TransposedConvolution | Interpolated):
        inputs = (operation.rows if axis == "rows" else operation.columns).inputs
    else:
        return own
    return tuple(inputs(*each) if length(each) else (0, 0) for each in own)


def reaches_beyond(operation: AnyOperation) -> bool:
    """Whether an operation reads what is outside of its source."""
    if not isinstance(operation, Windowed) or operation.result.is_vector:
        return False
    source, result = operation.source, operation.result
    ends = (
        (operation.rows.inputs(0, result.height), source.height),
        (operation.columns.inputs(0, result.width), source.width),
    )
    return any(first < 0 or end > size for (first, end), size in ends)


def work_of(operation: AnyOperation) -> int:
    """Cycles in which a tile computes a pixel of the result, about."""
    groups = operation.result.pitch // WORD_BYTES
    if isinstance(operation, Convolution | TransposedConvolution):
        outputs = len(operation.weights)
        words = operation.weights.size // outputs // WORD_BYTES
        return words * -(-outputs // chip.LANES)
    if isinstance(operation, Channelwise | Greatest):
        return operation.rows.kernel * operation.columns.kernel * groups
    return 2 * groups if isinstance(operation, WeightedSum) else groups


# --- all pixels at once -------------------------------------------------------------------------


def needs_whole(operation: AnyOperation) -> bool:
    """Whether an operation reads all pixels of its sources at once, and all their channels."""
    if is_shared_out(operation):
        return False
    if isinstance(operation, Reshaped | Transposed | Repeated | Stacked | Recurrent):
        return True
    return isinstance(operation, Windowed) and operation.result.is_vector


def whole_sources(operation: AnyOperation) -> tuple[Image, ...]:
    """The sources of which an operation reads all pixels at once."""
    if isinstance(operation, MatrixProduct):
        return operation.sources[1:]
    return sources_of(operation) if needs_whole(operation) else ()


_MOST_COPIED = chip.NARROW_BYTES // 2
"""Bytes of an image that all tiles get as a whole, at most, where they can share its channels."""


def is_shared_out(operation: AnyOperation) -> bool:
    """Whether an operation reads all pixels of a large image, each tile those of some channels."""
    if not isinstance(operation, Channelwise) or not operation.result.is_vector:
        return False
    plain = operation.weights is None and operation.stage.is_uniform
    source = operation.source
    return plain and not source.is_vector and source.pixels * source.pitch > _MOST_COPIED


Box = tuple[Interval, Interval]
"""Rows and columns of an image."""


def all_of(image: Image) -> Box:
    """All rows and columns of an image."""
    return (0, image.height), (0, image.width)


def read_at_once(operation: AnyOperation, source: Image) -> Box:
    """What an operation reads of a source that all tiles need: of a window what is in the image."""
    if not isinstance(operation, Convolution | Channelwise):
        return all_of(source)
    if max(operation.rows.dilation, operation.columns.dilation) > 1:
        return all_of(source)
    (top, rows), (left, columns) = met_by_one(operation)
    box = (top, top + rows.stop - rows.start), (left, left + columns.stop - columns.start)
    return box if all(map(length, box)) else ((0, 1), (0, 1))
