"""Pictures of files, and which tensors they can be for."""

from __future__ import annotations

import stat
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from darwinn_testbench.errors import InputError

if TYPE_CHECKING:
    from PIL import Image

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".webp"})
IMAGE_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""How Pillow calls pictures, by their channels."""
IMAGE_MIDDLE = 128
"""Pixels are 0 to 255; a signed tensor holds them less this."""

_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "PPM", "WEBP")
"""The formats of the suffixes above, whatever a file is called: Pillow knows others that run
programs.
"""
_PIXELS = 1 << 26
"""Pixels of the largest image, 8192 x 8192: one takes four bytes, and a second time to convert."""
_LEVELS = 256
"""Of 16 bits that become one of 8."""


def picture_shape(shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(height, width, channels) of a tensor that a picture can be; None of any other.

    That is one picture of 1, 3 or 4 channels, or a grey one without a dimension for them. A vector
    with a leading 1 is none; a matrix with one is if it is as wide as high, else a sequence.
    """
    inner = shape[1:] if shape[:1] == (1,) else shape
    if len(inner) == 2 and (inner is shape or inner[0] == inner[1] > 1):
        inner = (*inner, 1)
    if len(inner) != 3 or inner[2] not in IMAGE_MODES or 0 in inner:
        return None
    height, width, channels = inner
    return height, width, channels


def open_image(path: Path, channels: int) -> Image.Image:
    """A picture of a file, with that many channels of 8 bits; of grey ones of 16 the upper 8.

    Raises:
        InputError: the file is none, damaged or too large.
        OSError: it cannot be read.
    """
    # Part of an extra: what needs no pictures does without.
    from PIL import Image

    try:
        # A pipe would keep whoever opens it waiting, a device never ends.
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise InputError(f"{path}: no regular file")
        with warnings.catch_warnings(action="ignore", category=Image.DecompressionBombWarning):
            opened = Image.open(path, formats=_FORMATS)
        with opened as image:
            if image.width * image.height > _PIXELS:
                raise InputError(
                    f"{path}: {image.width} x {image.height} pixels, more than {_PIXELS}"
                )
            if image.mode == "F":
                raise InputError(f"{path}: pixels in floating point have no known range")
            # Pillow cuts what is above 255 off.
            grey = _upper_bits(image) if image.mode.startswith("I") else image
            return grey.convert(IMAGE_MODES[channels])
    except (Image.DecompressionBombError, ValueError, SyntaxError, EOFError) as error:
        raise InputError(f"{path}: not a readable image: {error}") from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise InputError(f"{path}: not a readable image: {error}") from error


def _upper_bits(image: Image.Image) -> Image.Image:
    """A grey picture of 16 bits as one of 8."""
    from PIL import Image

    levels = np.asarray(image).astype(np.int64) // _LEVELS
    return Image.fromarray(levels.clip(0, _LEVELS - 1).astype(np.uint8))
