"""The tensors of a network as images, and what operators of all kinds ask of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from darwinn_reference.tflite.factors import (
    conversion_factor,
)
from darwinn_reference.tflite.graph import Network, NetworkTensor, Operator
from darwinn_reference.tflite.layers import Axis, window_axes
from darwinn_reference.tflite.output_stage import clip_bounds
from numpy.typing import NDArray

from darwinn_testbench.compiler.stages.operations import (
    AnyOperation,
    Image,
    OutputStage,
    Reach,
    Reshaped,
)

IMAGE_RANK = 4


SIDES = 3
"""Axes of an image: rows, columns, channels."""


CHANNELS = 2
"""The axis of channels among them."""


COLUMNS = -2
"""The axis of columns, from the last one."""


BYTE_SPAN = 255


_WINDOWS = ("CONV_2D", "DEPTHWISE_CONV_2D")
"""Operators that find zero points beyond their sources."""


Made = AnyOperation | list[AnyOperation] | None
"""What an operator becomes."""


class StaysError(Exception):
    """Why an operator stays on the CPU, in a few words."""


@dataclass(frozen=True)
class Framed:
    """An image with zero points around it.

    ``sides`` are rows and columns with them; ``before`` are those of them above and on the left.
    """

    image: Image
    sides: tuple[int, int]
    before: tuple[int, int]

    def reaches(self, axes: tuple[Axis, Axis]) -> tuple[Reach, Reach]:
        """Windows along both axes, which begin to count at the image's own first pixel."""
        rows, columns = map(reach_of, axes)
        above, left = self.before
        return (
            replace(rows, before=rows.before + above),
            replace(columns, before=columns.before + left),
        )


class Operands:
    """The images that operators of a network read and make.

    An operator that only gives its bytes another shape makes none: its result is the same image.
    Where another operator needs the pixels of the new shape, an operation of that one makes them.
    Zero points around an image are none either, if nothing but windows reads them: windows find
    zero points beyond an image anyway. ``apart`` are tensors of which they are to be made.

    Operators ``elsewhere`` are no part of the graph. An operation may be of several operators:
    the first one makes it, and ``merged`` are the others.
    """

    def __init__(
        self,
        network: Network,
        apart: frozenset[int] = frozenset(),
        elsewhere: Collection[int] = (),
    ) -> None:
        self.network = network
        self.merged: set[int] = set()
        self._elsewhere = elsewhere
        self.framed: dict[int, Framed] = {}
        """Images with zero points around them that nothing makes, by the index of their tensor."""
        self._apart = apart
        self._images: dict[int, Image] = {}
        self._reshaped: dict[int, Image] = {}
        self._ahead: list[AnyOperation] = []
        self._between = 0
        self._known: set[int] = set()
        """Images that an operation makes or reads."""

    def image(self, index: int) -> Image:
        """The image of a tensor.

        Raises:
            StaysError: it is no image of bytes with one scale.
        """
        if index not in self._images:
            self._images[index] = image_of(self.network.tensors[index])
        return self._images[index]

    def state(self, index: int) -> Image:
        """The vector of a variable that an operator changes, of 8 or 16 bits.

        Raises:
            StaysError: it is none, or another operator reads it.
        """
        tensor = self.network.tensors[index]
        if not tensor.variable or len(self._readers(index)) > 1 or index in self.network.outputs:
            raise StaysError("a state that is not the operator's own variable")
        image = image_of(replace(tensor, variable=False), widest=2)
        if not image.is_vector:
            raise StaysError("several sequences at once")
        self._images[index] = image
        return image

    def alias(self, operator: Operator, place: int = 0) -> None:
        """Let the result of an operator be the image that is input ``place``.

        Raises:
            StaysError: the result is other bytes, or they are constant.
        """
        if self.tensor(operator, place).constant is not None:
            raise StaysError("a constant operand")
        source = self.image(operator.inputs[place])
        target = self.network.tensors[operator.outputs[0]]
        result = image_of(target)
        if (source.scale, source.zero_point) != (result.scale, result.zero_point):
            raise StaysError("another quantisation of the same bytes")
        if source.pixels * source.channels != result.pixels * result.channels:
            raise StaysError("a shape of another number of elements")
        if self._is_free(source):
            # It comes from the host, which does not care what shape the bytes have.
            source = self.seen_as(source.index, (result.height, result.width, result.channels))
        self._images[target.index] = source

    def _is_free(self, image: Image) -> bool:
        """Whether nothing but one operator has to do with an image that the chip does not make, and
        with each tensor that is the same image."""
        if image.index in self._known:
            return False
        alike = {index for index, each in self._images.items() if each.index == image.index}
        read = [index for each in self.network.operators for index in each.inputs if index in alike]
        return sorted(read) == sorted(alike) and alike.isdisjoint(self.network.outputs)

    def takes(self, operator: Operator) -> None:
        """Note that an operation makes the results of an operator, and reads what it reads."""
        self._known.update(operator.outputs)
        self._known.update(
            self._images[index].index for index in operator.inputs if index in self._images
        )

    def tensor(self, operator: Operator, place: int) -> NetworkTensor:
        """An input of an operator."""
        return self.network.tensors[operator.inputs[place]]

    def result(self, operator: Operator) -> tuple[NetworkTensor, Image]:
        """The output of an operator, as tensor and as image."""
        index = operator.outputs[0]
        return self.network.tensors[index], self.image(index)

    def source(self, operator: Operator, place: int = 0) -> Image:
        """An input that is computed, as the image that its shape says."""
        tensor = self.tensor(operator, place)
        if tensor.constant is not None:
            raise StaysError("a constant operand")
        image = self.image(tensor.index)
        if sides_of(tensor.shape) == (image.height, image.width, image.channels):
            return image
        if tensor.index not in self._reshaped:
            like = image_of(tensor)
            made = self.between(like, (like.height, like.width, like.channels))
            self._reshaped[tensor.index] = made
            self._ahead.append(Reshaped(operator.index, operator.name, made, image))
        return self._reshaped[tensor.index]

    def window_source(self, operator: Operator) -> Framed:
        """The image that an operator with a window reads, with the zero points around it."""
        found = self.framed.get(operator.inputs[0])
        if found is not None:
            return found
        image = self.source(operator)
        return Framed(image, (image.height, image.width), (0, 0))

    def frame(self, operator: Operator, source: Image, before: tuple[int, int]) -> bool:
        """Let windows that read the result of an operator read ``source`` beyond its borders.

        False if something else reads it, or takes other bytes there.
        """
        result = self.result(operator)[1]
        framed = Framed(source, (result.height, result.width), before)
        others = {each.name for each in self._readers(operator.inputs[0])}
        if (
            result.index in self._apart
            or result.index in self.network.outputs
            or "MAX_POOL_2D" in others
            or not all(
                self._meets(each, result.index, framed) for each in self._readers(result.index)
            )
        ):
            return False
        self.framed[result.index] = framed
        self.takes(operator)
        return True

    def _meets(self, reader: Operator, index: int, framed: Framed) -> bool:
        """Whether an operator reads a tensor in windows that all have a pixel of the image, or in
        a single one."""
        if reader.name not in _WINDOWS or reader.inputs[0] != index:
            return False
        _, height, width, _ = self.tensor(reader, 1).shape
        axes = window_axes(reader.options, framed.sides, (height, width))
        if reader.name == "CONV_2D" and all(axis.outputs == 1 for axis in axes):
            return True
        return all(
            reach.first(0) + reach.span > 0 and reach.first(axis.outputs - 1) < size
            for reach, axis, size in zip(
                framed.reaches(axes), axes, (framed.image.height, framed.image.width), strict=True
            )
        )

    def merge(self, *others: Operator) -> None:
        """Let an operation be that of further operators, too, which come behind its own.

        Raises:
            StaysError: one of them is elsewhere.
        """
        for each in others:
            if each.index in self._elsewhere:
                raise StaysError(f"{each.index} {each.name} runs elsewhere")
        for each in others:
            self._known.update(each.outputs)
        self.merged.update(each.index for each in others)

    def only_reader(self, index: int) -> Operator | None:
        """The operator that reads a tensor, if it is one and the tensor is no output."""
        readers = self._readers(index)
        return readers[0] if len(readers) == 1 and index not in self.network.outputs else None

    def _readers(self, index: int) -> list[Operator]:
        return [each for each in self.network.operators if index in each.inputs]

    def between(self, like: Image, sides: tuple[int, int, int]) -> Image:
        """An image that no tensor is, with the quantisation of another one."""
        self._between -= 1
        height, width, channels = sides
        return replace(
            like,
            index=self._between,
            name=f"{like.name} ({self._between})",
            shape=(1, *sides),
            height=height,
            width=width,
            channels=channels,
        )

    def seen_as(self, index: int, sides: tuple[int, int, int]) -> Image:
        """The image of a tensor with other sides than its shape says."""
        height, width, channels = sides
        image = replace(self.image(index), height=height, width=width, channels=channels)
        self._images[index] = image
        return image

    def as_shape(self, operator: Operator, image: Image, sides: tuple[int, int, int]) -> Image:
        """The bytes of an image as one of other sides."""
        if (image.height, image.width, image.channels) == sides:
            return image
        made = self.between(image, sides)
        return self.first(Reshaped(operator.index, operator.name, made, image))

    def first(self, operation: AnyOperation) -> Image:
        """The result of an operation that is needed before that of the operator."""
        self._ahead.append(operation)
        return operation.result


def sides_of(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Height, width and channels of a shape."""
    if len(shape) > IMAGE_RANK or (len(shape) == IMAGE_RANK and shape[0] != 1):
        raise StaysError("more than one image")
    height, width, channels = ((1,) * IMAGE_RANK + shape)[-3:]
    return height, width, channels


def image_of(tensor: NetworkTensor, widest: int = 1) -> Image:
    """The image of a tensor, whose elements have at most so many bytes.

    Raises:
        StaysError: it is none.
    """
    if tensor.dtype not in (np.uint8, np.int8, np.int16) or tensor.dtype.itemsize > widest:
        raise StaysError(f"{tensor.dtype} data")
    if not tensor.quantised or not tensor.scale[0] > 0:
        raise StaysError("not quantised")
    if tensor.variable:
        raise StaysError("a variable")
    height, width, channels = sides_of(tensor.shape)
    if not height * width * channels:
        raise StaysError("no elements")
    size = tensor.dtype.itemsize
    return Image(
        tensor.index,
        tensor.name,
        tensor.shape,
        height,
        width,
        channels * size,
        tensor.scale[0],
        int(tensor.zero_point[0]) - int(np.iinfo(tensor.dtype).min),
        size,
    )


def activation_of(operator: Operator) -> str:
    """The fused activation."""
    return str(operator.options.get("fused_activation_function", "NONE"))


def stage_of(
    tensor: NetworkTensor,
    image: Image,
    factors: NDArray[np.float32] | np.float32,
    bias: NDArray[np.int32] | int = 0,
    activation: str = "NONE",
) -> OutputStage:
    """An output stage with the bounds of a tensor and an activation."""
    low, high = clip_bounds(tensor, activation)
    return OutputStage(
        np.atleast_1d(factors).astype(np.float32),
        np.atleast_1d(np.asarray(bias, np.int32)),
        low,
        high,
        image.zero_point,
    )


def unchanged(image: Image) -> OutputStage:
    """The stage of bytes of an image that come out as they went in."""
    zero_point = image.zero_point
    return OutputStage(
        np.ones(1, np.float32),
        np.zeros(1, np.int32),
        np.float32(-zero_point),
        np.float32(BYTE_SPAN - zero_point),
        zero_point,
    )


def requantising(
    source: Image, tensor: NetworkTensor, image: Image, activation: str
) -> OutputStage:
    """The stage that brings values to the quantisation of a result."""
    factor = np.ones(1, np.float32)
    if source.scale != image.scale:
        factor = conversion_factor(source.scale, tensor)
    return stage_of(tensor, image, factor, activation=activation)


def reach_of(axis: Axis) -> Reach:
    """A window along an axis."""
    return Reach(axis.kernel, axis.stride, axis.dilation, axis.before)
