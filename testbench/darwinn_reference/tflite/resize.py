"""Resizing: taps and weights in 1/128 pixel, as the interpolating instruction counts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.call import Call, require_image, require_same_quantisation
from darwinn_reference.tflite.graph import NetworkTensor
from darwinn_reference.tflite.output_stage import NotComputableError

_PIXEL = 128
"""Positions of the interpolating instruction are in 1/128 pixel."""


def resize_bilinear(call: Call) -> AnyArray:
    """RESIZE_BILINEAR: four taps with weights of 7 bits for each axis, scale 2^-14, no offset."""
    image = _image(call).astype(np.int64)
    rows, columns = call.output.shape[1:3]
    top, bottom, row_weight = _taps(call, image.shape[1], rows)
    left, right, column_weight = _taps(call, image.shape[2], columns)
    across = image[:, :, left] * (_PIXEL - column_weight)[:, None]
    across += image[:, :, right] * column_weight[:, None]
    total = across[:, top] * (_PIXEL - row_weight)[:, None, None]
    total += across[:, bottom] * row_weight[:, None, None]
    # At most 255 * 2^14 < 2^24, and the scale is a power of two: exact in float32.
    return call.finish(total, np.float32(2.0**-14), _raw(call.output), "NONE")


def _raw(output: NetworkTensor) -> NetworkTensor:
    """The tensor without a zero point: bytes are interpolated as they are."""
    return replace(output, zero_point=np.zeros_like(output.zero_point))


def resize_nearest_neighbor(call: Call) -> AnyArray:
    """RESIZE_NEAREST_NEIGHBOR: the pixel below the exact position, or the nearest if aligned."""
    image = _image(call)
    rows = _nearest(call, image.shape[1], call.output.shape[1])
    columns = _nearest(call, image.shape[2], call.output.shape[2])
    return image[:, rows][:, :, columns]


def _image(call: Call) -> AnyArray:
    operand = call.operand(0)
    require_image(operand)
    require_same_quantisation(operand.tensor, call.output)
    rows, columns = call.output.shape[1:3]
    call.expect((operand.value.shape[0], rows, columns, operand.value.shape[3]))
    if not all(call.output.shape) or not operand.value.size:
        raise NotComputableError("an image without pixels")
    return operand.value


def _step(call: Call, size: int, outputs: int) -> tuple[Fraction, Fraction]:
    """Pixels from one output to the next, and the position of the first."""
    aligned = bool(call.option("align_corners", False)) and outputs > 1
    step = Fraction(size - 1, outputs - 1) if aligned else Fraction(size, outputs)
    half = bool(call.option("half_pixel_centers", False))
    return step, step / 2 - Fraction(1, 2) if half else Fraction(0)


def _nearest(call: Call, size: int, outputs: int) -> NDArray[np.int64]:
    step, start = _step(call, size, outputs)
    if _PIXEL * step % 1:
        call.assume("steps that are no multiple of 1/128 pixel are not rounded")
    middle = bool(call.option("align_corners", False)) or bool(
        call.option("half_pixel_centers", False)
    )
    offset = start + (Fraction(1, 2) if middle else 0)
    found = [(step * k + offset).__floor__() for k in range(outputs)]
    return np.clip(found, 0, size - 1)


def _taps(
    call: Call, size: int, outputs: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """First and second tap of each output, and the second's weight in 1/128."""
    step, start = _step(call, size, outputs)
    if size == 1:
        step = start = Fraction(0)
    step, start = _PIXEL * step, _PIXEL * start
    if step.denominator != 1 or start.denominator != 1:
        call.assume("steps and starts are rounded to 1/128 pixel, as the program's steps are")
    positions = round(start) + _whole(call, step) * np.arange(outputs)
    first = positions >> 7
    taps = (np.clip(first, 0, size - 1), np.clip(first + 1, 0, size - 1))
    return *taps, (positions & (_PIXEL - 1)).astype(np.int32)


def _whole(call: Call, step: Fraction) -> int:
    """The step of an instruction: the next whole one below or above if the program has it."""
    nearest = round(step)
    found = [each for each in (step.__floor__(), step.__ceil__()) if each in call.choices.steps]
    return nearest if nearest in found or not found else found[0]
