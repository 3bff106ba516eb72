"""A picture as the input of a model, prepared as pycoral does it.

A picture is scaled (Lanczos) to the size of the input: stretched, as pycoral's classification has
it; whole and in the upper left corner of an input that is otherwise 0, as its detection has it; or
cut to the proportions of the input around its middle. Pixels p then become real values
``(p - mean) / std`` and are quantised. By default mean and standard deviation are those that the
model's quantisation stands for, so that pixels are taken as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from darwinn_reference.arrays import AnyArray

from darwinn_testbench.chip.images import IMAGE_MIDDLE, picture_shape
from darwinn_testbench.chip.inputs import TensorPort
from darwinn_testbench.errors import InputError

if TYPE_CHECKING:
    from PIL import Image

_BRIGHTEST = 255
_HALF = 127.5
_SAME = 1e-5
"""As near as this, mean and standard deviation are those of the quantisation: pycoral's bound."""


class Fit(StrEnum):
    """How a picture comes to the size of the input."""

    STRETCH = "stretch"
    LETTERBOX = "letterbox"
    CROP = "crop"


@dataclass(frozen=True)
class Normalisation:
    """``(pixel - mean) / std`` is the real value of a pixel."""

    mean: float
    std: float

    def __post_init__(self) -> None:
        if not (np.isfinite([self.mean, self.std]).all() and self.std > 0):
            raise InputError(f"--mean {self.mean:g} --std {self.std:g}: a number, and one above 0")


@dataclass(frozen=True)
class Placement:
    """Where a picture lies in the input: input x is ``(x - left) * scale_x`` pixels of the picture.

    ``width`` and ``height`` are those of the input, ``shown`` the part of it that the picture has.
    """

    width: int
    height: int
    shown: tuple[int, int]
    left: float
    top: float
    scale_x: float
    scale_y: float

    def x(self, value: float) -> float:
        """The picture's x of the input's."""
        return (value - self.left) * self.scale_x

    def y(self, value: float) -> float:
        """The picture's y of the input's."""
        return (value - self.top) * self.scale_y


def image_port(ports: Sequence[TensorPort], file: str) -> TensorPort:
    """The only input of a model, if a picture can be given to it.

    Raises:
        InputError: it has several, or one that is no picture.
    """
    if len(ports) != 1 or picture_shape(ports[0].shape) is None:
        takes = ", ".join(map(str, ports)) or "none"
        raise InputError(
            f"{file}: takes {takes}: no picture (1 x height x width x 1, 3 or 4 channels)"
        )
    return ports[0]


def prepare(
    image: Image.Image, port: TensorPort, fit: Fit, normalisation: Normalisation | None = None
) -> tuple[AnyArray, Placement]:
    """The tensor of a picture, which has the channels of ``port``, and where it lies in it.

    Raises:
        InputError: the input has a type that no picture becomes, or no quantisation.
    """
    shape = picture_shape(port.shape)
    assert shape is not None
    height, width, _ = shape
    pixels, placement = _placed(image, width, height, fit)
    return _quantised(pixels.reshape(port.shape), port, normalisation), placement


def _placed(image: Image.Image, width: int, height: int, fit: Fit) -> tuple[AnyArray, Placement]:
    # Part of an extra: --help does without.
    from PIL import Image

    wide, high = image.size
    ratio = min(width / wide, height / high)
    if fit is Fit.LETTERBOX:
        shown = max(int(wide * ratio), 1), max(int(high * ratio), 1)
        scaled = np.asarray(image.resize(shown, Image.Resampling.LANCZOS), np.uint8)
        pixels = np.zeros((height, width, *scaled.shape[2:]), np.uint8)
        pixels[: shown[1], : shown[0]] = scaled
        return pixels, Placement(width, height, shown, 0, 0, 1 / ratio, 1 / ratio)
    left, top, across, down = 0.0, 0.0, float(wide), float(high)
    if fit is Fit.CROP:
        ratio = max(width / wide, height / high)
        # One of them is the picture's, which rounding must not exceed.
        across, down = min(width / ratio, wide), min(height / ratio, high)
        left, top = (wide - across) / 2, (high - down) / 2
    box = (left, top, left + across, top + down)
    scaled = np.asarray(image.resize((width, height), Image.Resampling.LANCZOS, box), np.uint8)
    scale_x, scale_y = across / width, down / height
    shown = (width, height)
    return scaled, Placement(
        width, height, shown, -left / scale_x, -top / scale_y, scale_x, scale_y
    )


def _quantised(pixels: AnyArray, port: TensorPort, normalisation: Normalisation | None) -> AnyArray:
    if port.dtype.kind not in "iuf":
        raise InputError(f"{port}: a picture is given as numbers")
    floating = port.dtype.kind == "f"
    if normalisation is None:
        if floating:
            return _real(pixels, port).astype(port.dtype)
        offset = IMAGE_MIDDLE if port.dtype == np.int8 else 0
        if port.dtype.itemsize != 1:
            raise InputError(f"{port}: --mean and --std say what pixels become")
        return (pixels.astype(np.int16) - offset).astype(port.dtype)
    mean, std = normalisation.mean, normalisation.std
    if floating:
        real: AnyArray = (pixels.astype(np.float64) - mean) / std
        return real.astype(port.dtype)
    if not port.scale:
        raise InputError(f"{port}: --mean and --std need an input with a scale")
    factor = std * port.scale
    if abs(factor - 1) < _SAME and abs(mean - port.zero_point) < _SAME:
        factor, mean = 1.0, float(port.zero_point)
    limits = np.iinfo(port.dtype)
    levels: AnyArray = (pixels.astype(np.float64) - mean) / factor + port.zero_point
    # What lies between two levels becomes the lower one, as in pycoral.
    quantised: AnyArray = np.floor(levels.clip(limits.min, limits.max)).astype(port.dtype)
    return quantised


def _real(pixels: AnyArray, port: TensorPort) -> AnyArray:
    """Real values of pixels: over the range of the QUANTIZE that follows, or else -1 to 1."""
    if port.limits is None:
        return np.asarray((pixels - _HALF) / _HALF)
    least, greatest = port.limits
    return np.asarray(least + pixels / _BRIGHTEST * (greatest - least))
