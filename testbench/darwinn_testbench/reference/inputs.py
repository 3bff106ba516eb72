"""Inputs of a model: random from a seed, or read from .npy, .npz and image files.

Nothing is resized, cast or normalised: an input that does not fit is refused.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from darwinn_testbench.policy import AnyArray
from darwinn_testbench.reference.graph import ModelError, Tensor

Content = Literal["noise", "image"]

_HEADER_ALLOWANCE = 64 * 1024
"""Bytes that a .npy member of an archive may have beyond its data."""
_COARSE_CELLS = 8
"""Cells along each side of the random grid that an image-like input is interpolated from."""
_IMAGE_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


class InputError(ModelError):
    """An input file that does not fit the model: names the file and the reason."""


def random_inputs(
    tensors: Sequence[Tensor], seed: int, content: Content = "noise"
) -> tuple[AnyArray, ...]:
    """Random values for each tensor, the same for the same seed on every machine.

    ``noise`` draws integers uniformly over their whole range (32 and 64 bits: -128 to 127) and
    floats from -1 to 1. ``image`` gives tensors of shape (1, h, w, c) smooth areas with
    some noise, as photographs have, over the same range; other tensors get noise.
    """
    generator = np.random.default_rng(seed)
    return tuple(_random(each, generator, content) for each in tensors)


def _random(tensor: Tensor, generator: np.random.Generator, content: Content) -> AnyArray:
    low, high = _range(tensor)
    values: AnyArray
    if content == "image" and len(tensor.shape) == 4 and min(tensor.shape) > 0:
        values = low + (high - low) * _image(tensor.shape, generator)
    elif tensor.dtype.kind == "f":
        values = generator.uniform(low, high, tensor.shape)
    else:
        values = generator.integers(int(low), int(high), tensor.shape, np.int64, endpoint=True)
    rounded: AnyArray = values if tensor.dtype.kind == "f" else np.rint(values)
    return rounded.astype(tensor.dtype)


def _range(tensor: Tensor) -> tuple[float, float]:
    kind, size = tensor.dtype.kind, tensor.dtype.itemsize
    if kind == "b":
        return 0, 1
    if kind == "f":
        return -1.0, 1.0
    if kind not in "iu":
        raise InputError("random input", f"tensor {tensor.index} ({tensor.name}) has no dtype")
    if size > 2:
        return (-128, 127) if kind == "i" else (0, 127)
    limits = np.iinfo(tensor.dtype)
    return int(limits.min), int(limits.max)


def _image(shape: tuple[int, ...], generator: np.random.Generator) -> AnyArray:
    """Values from 0 to 1: a coarse random grid, interpolated, with a little noise."""
    count, height, width, channels = shape
    grid = generator.uniform(0, 1, (count, _COARSE_CELLS, _COARSE_CELLS, channels))
    rows = _interpolation(height)
    columns = _interpolation(width)
    smooth = np.einsum("yi,nijc,xj->nyxc", rows, grid, columns)
    image: AnyArray = np.clip(smooth + generator.normal(0, 0.02, shape), 0, 1)
    return image


def _interpolation(size: int) -> AnyArray:
    """Matrix (size, cells) of linear interpolation between the cells of the coarse grid."""
    positions = np.linspace(0, _COARSE_CELLS - 1, size)
    weights: AnyArray = 1 - np.abs(positions[:, None] - np.arange(_COARSE_CELLS))
    return np.maximum(0, weights)


def read_inputs(path: str | Path, tensors: Sequence[Tensor]) -> tuple[AnyArray, ...]:
    """Read the values of ``tensors`` from one file, known by its suffix.

    ``.npy`` and images hold the only input of a model with one. ``.npz`` holds each input under
    its tensor's name or, if it has as many arrays as there are inputs, in their order. A leading
    axis of extent 1 may be left out. Images give bytes as they are; for int8 inputs 128 is
    subtracted.

    Raises:
        InputError: the file is damaged, or an array has another shape or dtype than its tensor.
        OSError: the file cannot be read.
    """
    source = Path(path)
    reader = _READERS.get(source.suffix.lower(), _read_image)
    return reader(source, tensors)


def _read_npy(source: Path, tensors: Sequence[Tensor]) -> tuple[AnyArray, ...]:
    tensor = _only(source, tensors)
    try:
        # Mapped, so that a header which promises more than the file holds allocates nothing.
        array = np.load(source, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, SyntaxError) as fault:
        raise InputError(str(source), f"not a .npy file: {fault}") from None
    if not isinstance(array, np.ndarray):
        raise InputError(str(source), "not a .npy file")
    return (_fitting(source, tensor, np.array(array)),)


def _read_npz(source: Path, tensors: Sequence[Tensor]) -> tuple[AnyArray, ...]:
    try:
        with zipfile.ZipFile(source) as archive:
            sizes = [each.file_size for each in archive.infolist()]
        allowed = max((each.size * each.dtype.itemsize for each in tensors), default=0)
        if max(sizes, default=0) > allowed + _HEADER_ALLOWANCE:
            raise InputError(str(source), f"an array of {max(sizes)} bytes fits no input")
        with np.load(source, allow_pickle=False) as arrays:
            return _by_name(source, dict(arrays.items()), tensors)
    except (ValueError, EOFError, KeyError, SyntaxError, MemoryError, zipfile.BadZipFile) as fault:
        raise InputError(str(source), f"not a .npz file: {fault}") from None
    except (NotImplementedError, RuntimeError) as fault:
        raise InputError(str(source), f"cannot be unpacked: {fault}") from None


def _by_name(
    source: Path, arrays: Mapping[str, AnyArray], tensors: Sequence[Tensor]
) -> tuple[AnyArray, ...]:
    names = [each.name for each in tensors]
    if all(name in arrays for name in names):
        chosen = [arrays[name] for name in names]
    elif len(arrays) == len(names):
        chosen = list(arrays.values())
    else:
        raise InputError(str(source), f"holds {', '.join(arrays)}; wanted {', '.join(names)}")
    return tuple(_fitting(source, *pair) for pair in zip(tensors, chosen, strict=True))


def _read_image(source: Path, tensors: Sequence[Tensor]) -> tuple[AnyArray, ...]:
    tensor = _only(source, tensors)
    if tensor.dtype not in (np.uint8, np.int8) or len(tensor.shape) != 4 or tensor.shape[0] != 1:
        wanted = f"{tensor.dtype} {tensor.shape}"
        raise InputError(str(source), f"an image cannot be the input {tensor.name}, {wanted}")
    _, height, width, channels = tensor.shape
    mode = _IMAGE_MODES.get(channels)
    if mode is None:
        raise InputError(str(source), f"an image cannot have {channels} channels")
    try:
        with Image.open(source) as image:
            if image.size != (width, height):
                found = f"{image.size[0]} x {image.size[1]}"
                raise InputError(str(source), f"{found} pixels, not {width} x {height}")
            pixels = np.asarray(image.convert(mode), np.uint8)
    except (Image.DecompressionBombError, ValueError, SyntaxError, EOFError) as fault:
        raise InputError(str(source), f"not an image: {fault}") from None
    except OSError as fault:
        if fault.errno is not None:
            raise
        raise InputError(str(source), f"not an image: {fault}") from None
    values = pixels.reshape(tensor.shape)
    return ((values ^ np.uint8(0x80)).view(np.int8) if tensor.dtype == np.int8 else values,)


def _only(source: Path, tensors: Sequence[Tensor]) -> Tensor:
    if len(tensors) != 1:
        raise InputError(str(source), f"the model has {len(tensors)} inputs: give them as .npz")
    return tensors[0]


def _fitting(source: Path, tensor: Tensor, array: AnyArray) -> AnyArray:
    if array.dtype == tensor.dtype:
        if array.shape == tensor.shape:
            return array
        if (1, *array.shape) == tensor.shape:
            return array[None]
    found, wanted = f"{array.dtype} {array.shape}", f"{tensor.dtype} {tensor.shape}"
    raise InputError(str(source), f"{found}, but input {tensor.name} is {wanted}")


_READERS: dict[str, Callable[[Path, Sequence[Tensor]], tuple[Any, ...]]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
}
