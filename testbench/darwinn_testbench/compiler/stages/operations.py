"""The network in integers: what the chip has to compute, free of any file format.

All values are unsigned bytes, as the chip holds them: an int8 value has 128 added, and so has its
zero point. Sums are int32; an output stage makes bytes of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from darwinn_sim.chip import WORD_BYTES
from numpy.typing import NDArray

from darwinn_testbench.compiler.parameters import round_up


@dataclass(frozen=True, eq=False)
class Image:
    """A tensor of one image: ``height`` x ``width`` pixels of ``channels`` bytes.

    ``shape`` is that of the network, ``zero_point`` that of the chip. Of numbers of 16 bits each is
    two channels (``element_bytes``).
    """

    index: int
    name: str
    shape: tuple[int, ...]
    height: int
    width: int
    channels: int
    scale: np.float32
    zero_point: int
    element_bytes: int = 1

    @property
    def pitch(self) -> int:
        """Bytes of a pixel in narrow memory: its channels, rounded up to whole words."""
        return round_up(self.channels, WORD_BYTES)

    @property
    def sides(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        return self.height, self.width, self.channels

    @property
    def pixels(self) -> int:
        """Number of pixels."""
        return self.height * self.width

    @property
    def is_vector(self) -> bool:
        """Whether it has one pixel only."""
        return self.pixels == 1


@dataclass(frozen=True)
class Reach:
    """A window along an axis: output i meets inputs ``i * stride - before + k * dilation``."""

    kernel: int
    stride: int
    dilation: int
    before: int

    def first(self, output: int) -> int:
        """The first input that an output meets; it may be outside of the image."""
        return output * self.stride - self.before

    @property
    def span(self) -> int:
        """Elements from the first to the last input of an output."""
        return (self.kernel - 1) * self.dilation + 1

    def inputs(self, first: int, end: int) -> tuple[int, int]:
        """The inputs that outputs from ``first`` up to but without ``end`` meet, likewise."""
        return self.first(first), self.first(end - 1) + self.span


UNIT = Reach(1, 1, 1, 0)
"""The window of an operator that works on each pixel alone."""


@dataclass(frozen=True, eq=False)
class FunctionTable:
    """A function in eight pieces, polynomials of degree 4 each.

    ``coefficients`` float32 (8, 5), lowest power first; ``bounds`` float32 (7), where the pieces
    after the first begin. Of a ``reduced`` function the table holds from 1 to 4: at x = m * 4^k it
    is 2^-k times that at m. Of an ``odd`` one it holds from 0 on.
    """

    coefficients: NDArray[np.float32]
    bounds: NDArray[np.float32]
    reduced: bool = False
    odd: bool = False


@dataclass(frozen=True, eq=False)
class OutputStage:
    """What becomes of an int32 sum: bias, factor, bounds, rounding, zero point.

    ``factors`` (float32) and ``bias`` (int32) have one element, or one for each channel. Bounds are
    in steps from the zero point. With a ``table`` they are those of the function's argument.
    Results of a ``wide`` stage have 16 bits.
    """

    factors: NDArray[np.float32]
    bias: NDArray[np.int32]
    low: np.float32
    high: np.float32
    zero_point: int
    table: FunctionTable | None = None
    wide: bool = False

    def keeps_bytes(self, zero_point: int) -> bool:
        """Whether bytes less ``zero_point`` come out as they went in."""
        plain = self.zero_point == zero_point and self.table is None and not self.wide
        everything = self.low <= -zero_point and self.high >= 255 - zero_point
        return bool(plain and everything and (self.factors == 1).all() and not self.bias.any())

    @property
    def is_uniform(self) -> bool:
        """Whether all channels have the same factor and bias."""
        return len(self.factors) == len(self.bias) == 1


@dataclass(frozen=True, eq=False)
class Operation:
    """An operator: number and name in the network, its result."""

    number: int
    name: str
    result: Image


@dataclass(frozen=True, eq=False)
class Convolution(Operation):
    """Sums over windows and all channels; ``weights`` uint8 (outputs, rows, columns, inputs)."""

    source: Image
    rows: Reach
    columns: Reach
    weights: NDArray[np.uint8]
    weight_zero_point: int
    stage: OutputStage


@dataclass(frozen=True)
class Spacing:
    """An axis of a transposed convolution: input i adds to outputs ``i * stride - before + k``."""

    kernel: int
    stride: int
    before: int

    def taps(self, output: int) -> list[int]:
        """The places of the kernel that an output meets, the last input first."""
        first = (output + self.before) % self.stride
        return list(range(first, self.kernel, self.stride))

    def first(self, output: int) -> int:
        """The first input that an output meets; it may be outside of the image."""
        taps = self.taps(output)
        return (output + self.before - (taps[-1] if taps else 0)) // self.stride

    def inputs(self, first: int, end: int) -> tuple[int, int]:
        """The inputs that outputs from ``first`` up to but without ``end`` meet, likewise."""
        outputs = range(first, end)
        firsts = [self.first(each) for each in outputs]
        return min(firsts), max(
            begin + max(len(self.taps(each)), 1)
            for begin, each in zip(firsts, outputs, strict=True)
        )


@dataclass(frozen=True, eq=False)
class TransposedConvolution(Operation):
    """Each pixel adds its products to a window; ``weights`` as those of a convolution."""

    source: Image
    rows: Spacing
    columns: Spacing
    weights: NDArray[np.uint8]
    weight_zero_point: int
    stage: OutputStage


@dataclass(frozen=True, eq=False)
class Channelwise(Operation):
    """Sums over windows, each channel alone; ``weights`` uint8 (rows, columns, channels).

    With ``weights`` None all of them are 1: a pool, or a copy of each pixel.
    """

    source: Image
    rows: Reach
    columns: Reach
    weights: NDArray[np.uint8] | None
    weight_zero_point: int
    stage: OutputStage


@dataclass(frozen=True, eq=False)
class BorderAverage(Channelwise):
    """An average whose windows have fewer elements at the border.

    ``row_counts`` and ``column_counts`` are those of each result's window within the image. A sum
    of so many elements has weights and a stage by ``shares``: all weights are the same integer.
    """

    row_counts: tuple[int, ...]
    column_counts: tuple[int, ...]
    shares: Mapping[int, tuple[int, OutputStage]]


@dataclass(frozen=True, eq=False)
class WeightedSum(Operation):
    """Two operands times 16-bit weights each: an addition, or with a negative one a difference."""

    sources: tuple[Image, Image]
    weights: tuple[int, int]
    stage: OutputStage


@dataclass(frozen=True, eq=False)
class Joined(Operation):
    """Images of the same pixels, one behind the other along the channels.

    Each part has the output stage that brings it to the quantisation of the result.
    """

    sources: tuple[Image, ...]
    stages: tuple[OutputStage, ...]


@dataclass(frozen=True, eq=False)
class Product(Operation):
    """Two operands, element by element; the second may be one pixel for all of the first."""

    sources: tuple[Image, Image]
    stage: OutputStage


@dataclass(frozen=True, eq=False)
class MatrixProduct(Operation):
    """Each pixel of the first image times each one of the second: their channels, added up."""

    sources: tuple[Image, Image]
    stage: OutputStage


@dataclass(frozen=True, eq=False)
class Slice(Operation):
    """Some channels of an image, from channel ``first`` on; beyond its own ones are zero points."""

    source: Image
    first: int
    stage: OutputStage


@dataclass(frozen=True, eq=False)
class Enlarged(Operation):
    """Each pixel ``times`` times in each direction.

    With ``apart`` each of these has channels of its own, so many from one to the next, row by row.
    """

    source: Image
    times: int
    stage: OutputStage
    apart: int = 0

    def inputs(self, first: int, end: int) -> tuple[int, int]:
        """The pixels of which results come, along an axis."""
        return first // self.times, (end - 1) // self.times + 1


@dataclass(frozen=True, eq=False)
class Greatest(Operation):
    """The greatest byte of each window, each channel alone; outside of the image is nothing."""

    source: Image
    rows: Reach
    columns: Reach
    stage: OutputStage


@dataclass(frozen=True)
class Taps:
    """Along an axis, the pixels of the source that each result lies between.

    Result i lies ``weights[i]`` / 128 from pixel ``first[i]`` to pixel ``second[i]``, which is the
    same one beyond the ends.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    weights: tuple[int, ...]

    def inputs(self, first: int, end: int) -> tuple[int, int]:
        """The pixels between which results from ``first`` up to but without ``end`` lie."""
        return min(self.first[first:end]), max(self.second[first:end]) + 1


@dataclass(frozen=True, eq=False)
class Interpolated(Operation):
    """Each result between four pixels of the source."""

    source: Image
    rows: Taps
    columns: Taps
    stage: OutputStage


@dataclass(frozen=True, eq=False)
class Reshaped(Operation):
    """The same bytes in another shape: element by element in the order of rows."""

    source: Image


@dataclass(frozen=True, eq=False)
class Transposed(Operation):
    """The axes in another order: ``order`` are those of the source, rows 0 to channels 2."""

    source: Image
    order: tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Repeated(Operation):
    """Each row, column or channel as often as the result has some, where the source has one."""

    source: Image


@dataclass(frozen=True, eq=False)
class Filled(Operation):
    """A constant: ``values`` uint8 (height, width, channels)."""

    values: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Stacked(Operation):
    """Images one below the other, or with ``beside`` one beside the other.

    Each part has the output stage that brings it to the quantisation of the result.
    """

    sources: tuple[Image, ...]
    stages: tuple[OutputStage, ...]
    beside: bool


@dataclass(frozen=True, eq=False)
class Softmax(Operation):
    """Shares of a vector's channels: each exponential by the sum of all.

    The difference of a value to the greatest is multiplied by ``factor`` and rounded; ``scale``
    times that is what the exponential is taken of.
    """

    source: Image
    factor: np.float32
    scale: np.float32


@dataclass(frozen=True, eq=False)
class UnitVector(Operation):
    """A vector by its length.

    ``root`` makes the reciprocal of the length, in 16 bits, of the sum of squares; ``stage`` the
    result of a value times that.
    """

    source: Image
    root: OutputStage
    stage: OutputStage


@dataclass(frozen=True, eq=False)
class Recurrent(Operation):
    """An LSTM over all time steps, each a pixel of the result and of the source.

    A pixel of ``source`` has what a step is fed, a byte for each unit of each gate: input, forget
    and output gate, then the candidate. ``hidden`` and ``cell`` are states, which each step
    changes in place; the cell's numbers have 16 bits. ``weights`` uint8 (four times the units,
    units) make ``back`` of the hidden state. All numbers of 16 bits have one zero point, that of
    the cell.

    ``gate`` and ``candidate`` are the stages of a sum of what is fed and what comes back. ``gated``
    is input gate times candidate, ``kept`` forget gate times cell; both have ``shares`` in the new
    cell, whose stage is ``memory``. ``squashed`` is the function of the same sum, ``emitted`` the
    output gate times that.
    """

    source: Image
    hidden: Image
    cell: Image
    weights: NDArray[np.uint8]
    weight_zero_point: int
    back: OutputStage
    gate: OutputStage
    candidate: OutputStage
    gated: OutputStage
    kept: OutputStage
    shares: tuple[int, int]
    memory: OutputStage
    squashed: OutputStage
    emitted: OutputStage


AnyOperation = (
    Convolution
    | Channelwise
    | BorderAverage
    | WeightedSum
    | Joined
    | Product
    | MatrixProduct
    | Slice
    | Enlarged
    | Greatest
    | Interpolated
    | Softmax
    | UnitVector
    | TransposedConvolution
    | Reshaped
    | Transposed
    | Repeated
    | Filled
    | Stacked
    | Recurrent
)


def sources_of(operation: AnyOperation) -> tuple[Image, ...]:
    """The images that an operation reads."""
    if isinstance(operation, WeightedSum | Joined | Product | MatrixProduct | Stacked):
        return operation.sources
    if isinstance(operation, Recurrent):
        return operation.source, operation.hidden, operation.cell
    if isinstance(operation, Filled):
        return ()
    return (operation.source,)


@dataclass(frozen=True)
class Port:
    """A tensor that enters or leaves the chip, and its image; ``signed``: it is int8, or int16.

    Several tensors of different shapes and types can be the same image. A ``state`` leaves the chip
    as it will enter it at the next inference.
    """

    index: int
    name: str
    shape: tuple[int, ...]
    image: Image
    signed: bool
    state: bool = False


@dataclass(frozen=True, eq=False)
class IntegerGraph:
    """The part of a network that goes to the chip."""

    operations: tuple[AnyOperation, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @cached_property
    def images(self) -> Mapping[int, Image]:
        """All images by index: inputs and results."""
        images = [each.image for each in self.inputs] + [each.result for each in self.operations]
        return {each.index: each for each in images}

    @cached_property
    def readers(self) -> Mapping[int, Sequence[int]]:
        """The steps that read an image, by its index."""
        found: dict[int, list[int]] = {index: [] for index in self.images}
        for step, operation in enumerate(self.operations):
            for index in {image.index for image in sources_of(operation)}:
                found[index].append(step)
        return found

    @cached_property
    def ends(self) -> frozenset[int]:
        """The images that leave the chip, by index."""
        return frozenset(port.image.index for port in self.outputs)
