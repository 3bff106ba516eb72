"""What each operator becomes on the chip: one description for each kind of operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

from darwinn_sim.chip import WORD_BYTES

from darwinn_testbench.compiler.stages.channels import (
    joined_bytes,
    joined_phases,
    slice_phases,
)
from darwinn_testbench.compiler.stages.exchange import exchanges
from darwinn_testbench.compiler.stages.layers import (
    convolution_phases,
    transposed_convolution_phases,
)
from darwinn_testbench.compiler.stages.matrices import matrix_product_phases
from darwinn_testbench.compiler.stages.maxima import greatest_phases
from darwinn_testbench.compiler.stages.operations import (
    AnyOperation,
    BorderAverage,
    Channelwise,
    Convolution,
    Enlarged,
    Filled,
    Greatest,
    Interpolated,
    Joined,
    MatrixProduct,
    Product,
    Recurrent,
    Repeated,
    Reshaped,
    Slice,
    Softmax,
    Stacked,
    Transposed,
    TransposedConvolution,
    UnitVector,
    WeightedSum,
    sources_of,
)
from darwinn_testbench.compiler.stages.phases import Areas, Phase
from darwinn_testbench.compiler.stages.placement import Placement
from darwinn_testbench.compiler.stages.pools import (
    border_average_phases,
    channelwise_phases,
    depthwise_bytes,
)
from darwinn_testbench.compiler.stages.products import (
    product_bytes,
    product_phases,
    weighted_sum_phases,
)
from darwinn_testbench.compiler.stages.recurrent import recurrent_bytes, recurrent_phases
from darwinn_testbench.compiler.stages.resizing import enlarged_phases, interpolated_phases
from darwinn_testbench.compiler.stages.ring import Share, gather
from darwinn_testbench.compiler.stages.shapes import (
    fill_phases,
    repeat_phases,
    reshape_phases,
    stack_phases,
    transpose_phases,
)
from darwinn_testbench.compiler.stages.softmax import softmax_bytes, softmax_phases
from darwinn_testbench.compiler.stages.softmax_pixels import (
    softmax_pixels_bytes,
    softmax_pixels_phases,
)
from darwinn_testbench.compiler.stages.storage import TILES, Storage, common
from darwinn_testbench.compiler.stages.unit_vector import unit_vector_bytes, unit_vector_phases


class TooLargeError(Exception):
    """What of an operator exceeds a limit of the chip."""


def phases_of(operation: AnyOperation, placement: Placement, areas: Areas) -> list[Phase]:
    """The phases of an operation.

    Raises:
        TooLargeError: it exceeds a limit of the chip.
    """
    describe = cast(
        "Callable[[AnyOperation, Placement, Areas], Iterator[Phase]]",
        _MAPPINGS[type(operation)],
    )
    try:
        _refuse_single_pixel(operation)
        return list(describe(operation, placement, areas))
    except ValueError as reason:
        raise TooLargeError(str(reason)) from None


def _refuse_single_pixel(operation: AnyOperation) -> None:
    """Refuse what makes an image of one pixel, which has no edges that could be filled."""
    single = all(each.is_vector for each in sources_of(operation))
    if isinstance(operation, Reshaped | Transposed | Repeated | Filled | Stacked):
        return
    if single and not operation.result.is_vector:
        raise ValueError("an image of several pixels made of one")


def spread_phases(number: int, index: int, placement: Placement, areas: Areas) -> list[Phase]:
    """Fill the windows of an image, and make the copy that some operator needs of it."""
    storage = placement.parts.get(index)
    if storage is None:
        return []
    phases = [Phase(number, "edges", step, on_mesh=True) for step in exchanges(storage)]
    copy = placement.copies.get(index)
    if copy is not None:
        phases.append(_copy(number, storage, copy, areas))
    return phases


def _copy(number: int, storage: Storage, copy: Storage, areas: Areas) -> Phase:
    """Send what is read at once of all parts of an image to all tiles."""
    shares = []
    for tile in TILES:
        (top, end), (left, right) = map(common, storage.own(tile), copy.own(tile))
        if top >= end or left >= right:
            continue
        words = (right - left) * storage.image.pitch // WORD_BYTES
        shares.append(
            Share(
                tile,
                storage.word(tile, top, left),
                [(words, 1), (end - top, storage.row_pitch // WORD_BYTES)],
                copy.word(tile, top, left),
                [(words, 1), (end - top, copy.row_pitch // WORD_BYTES)],
            )
        )
    rows = sum(share.rows for share in shares)
    try:
        first, alone = areas.reuse(rows)
    except ValueError as reason:
        raise TooLargeError(str(reason)) from None
    return Phase(
        number,
        "copy to all tiles",
        lambda program: gather(program, shares, first),
        uses_ring=True,
        alone=alone,
    )


def scratch_bytes(operation: AnyOperation, areas: Areas) -> int:
    """Bytes of narrow memory that an operator needs for itself."""
    if isinstance(operation, Product):
        return product_bytes(areas)
    if isinstance(operation, Joined | Slice):
        return joined_bytes(operation)
    if isinstance(operation, Softmax):
        alone = operation.source.is_vector
        return softmax_bytes(operation) if alone else softmax_pixels_bytes(operation)
    if isinstance(operation, UnitVector):
        return unit_vector_bytes()
    if isinstance(operation, Recurrent):
        return recurrent_bytes(operation)
    return depthwise_bytes(operation, areas) if isinstance(operation, Channelwise) else 0


def _softmax_phases(operation: Softmax, placement: Placement, areas: Areas) -> Iterator[Phase]:
    """A vector is on all tiles; each tile has pixels of its own."""
    alone = operation.source.is_vector
    return (softmax_phases if alone else softmax_pixels_phases)(operation, placement, areas)


_MAPPINGS = {
    Convolution: convolution_phases,
    Channelwise: channelwise_phases,
    BorderAverage: border_average_phases,
    WeightedSum: weighted_sum_phases,
    Joined: joined_phases,
    Product: product_phases,
    MatrixProduct: matrix_product_phases,
    Slice: slice_phases,
    Enlarged: enlarged_phases,
    Greatest: greatest_phases,
    Interpolated: interpolated_phases,
    Softmax: _softmax_phases,
    UnitVector: unit_vector_phases,
    TransposedConvolution: transposed_convolution_phases,
    Reshaped: reshape_phases,
    Transposed: transpose_phases,
    Repeated: repeat_phases,
    Filled: fill_phases,
    Stacked: stack_phases,
    Recurrent: recurrent_phases,
}
