"""Tensors that are drawn from a seed, of several kinds, because each kind misses other faults.

Noise averages out: behind a wide window every position looks alike, so that a network of colours or
of large shapes hardly moves. Smooth gradients, constants and extremes move it as a whole and reach
the ends of ranges, and sparse edges show which weight is at which place. A kind is a rule for any
shape and any dtype: it says how far between the ends of the range each element lies (0 to 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from darwinn_testbench.request.inputs import InputKind as InputKind

Array = NDArray[Any]
Shares = NDArray[np.float64]
"""How far each element lies between the ends of its range, 0 to 1."""

_PLANES = frozenset((1, 3, 4))
"""Channels of images; an image of four dimensions with so many in the second is N x C x H x W."""

_UNKNOWN_RANGE = (-3.0, 3.0)
"""Where nothing says what a floating point tensor takes: most of a normal distribution."""

_BOXES = 6
_POINTS = 200
"""Sparse edges: boxes at most, and positions for each of which one stands out by itself."""


@dataclass(frozen=True)
class Range:
    """The values between which elements are drawn, and the one that stands for zero."""

    low: float
    high: float
    zero: float

    @property
    def zero_share(self) -> float:
        """How far zero lies between the ends, 0 to 1."""
        return float(np.clip((self.zero - self.low) / ((self.high - self.low) or 1), 0, 1))


def draw(
    kind: InputKind,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    generator: np.random.Generator,
    *,
    zero_point: int = 0,
    limits: tuple[float, float] | None = None,
) -> Array:
    """A tensor of this kind. ``limits`` are the least and greatest value, if they are known.

    Other integers take the whole range of their dtype.
    """
    if kind is InputKind.NOISE or 0 in shape:
        return _noise(shape, dtype, generator, limits)
    bounds = _range(dtype, zero_point, limits)
    channel = _channel_axis(shape)
    inner = list(shape)
    channels = 1 if channel is None else inner.pop(channel)
    shares = _DRAWN[kind]((*inner, channels), bounds.zero_share, generator)
    shares = np.broadcast_to(shares, (*inner, channels))
    if channel is not None:
        shares = np.moveaxis(shares, -1, channel)
    return _values(shares.reshape(shape), dtype, bounds)


def _channel_axis(shape: tuple[int, ...]) -> int | None:
    """The axis of channels: there is one where there are positions beside it."""
    if len(shape) < 3:
        return None
    planes = len(shape) == 4 and shape[1] in _PLANES and shape[3] not in _PLANES
    axis = 1 if planes else len(shape) - 1
    return axis if any(size > 1 for k, size in enumerate(shape) if k != axis) else None


def _range(dtype: np.dtype[Any], zero_point: int, limits: tuple[float, float] | None) -> Range:
    if dtype.kind == "b":
        return Range(0, 1, 0)
    if dtype.kind == "f":
        return Range(*(limits or _UNKNOWN_RANGE), 0)
    least, greatest = _ends(dtype, limits)
    return Range(float(least), float(greatest), min(max(zero_point, least), greatest))


def _values(shares: Shares, dtype: np.dtype[Any], bounds: Range) -> Array:
    if dtype.kind == "b":
        return np.asarray(shares >= 0.5)
    values = bounds.low * (1 - shares) + bounds.high * shares
    if dtype.kind == "f":
        return values.astype(dtype)
    # The greatest integers of 64 bits are no floating point numbers: the next below is.
    highest = np.nextafter(bounds.high, 0) if dtype.itemsize == 8 else bounds.high
    return np.rint(values).clip(bounds.low, highest).astype(dtype)


def _noise(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    generator: np.random.Generator,
    limits: tuple[float, float] | None,
) -> Array:
    if dtype.kind == "f":
        found = generator.standard_normal(shape) if limits is None else None
        return np.asarray(generator.uniform(*limits, shape) if limits else found).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(generator.integers(2, size=shape)).astype(np.bool_)
    least, greatest = _ends(dtype, limits)
    return np.asarray(
        generator.integers(least, greatest, size=shape, dtype=dtype.type, endpoint=True)
    )


def _ends(dtype: np.dtype[Any], limits: tuple[float, float] | None) -> tuple[int, int]:
    """Least and greatest integer."""
    if limits is not None:
        return int(limits[0]), int(limits[1])
    whole = np.iinfo(dtype)
    return int(whole.min), int(whole.max)


def _gradients(shape: tuple[int, ...], zero: float, generator: np.random.Generator) -> Shares:
    del zero
    *inner, channels = shape
    way = np.zeros(shape)
    for axis, size in enumerate(inner):
        steps = np.linspace(0, 1, size).reshape([-1 if k == axis else 1 for k in range(len(shape))])
        way = way + generator.standard_normal(channels) * steps
    axes = tuple(range(len(inner)))
    least = way.min(axis=axes, keepdims=True)
    length = way.max(axis=axes, keepdims=True) - least
    along = np.where(length > 0, (way - least) / np.where(length > 0, length, 1), 0)
    swing = 0.5 - 0.5 * np.cos(np.pi * generator.integers(1, 4, channels) * along)
    # Half of the channels reach both ends; a single position is at one of them.
    ends = generator.uniform(size=(2, channels))
    whole = generator.integers(2, size=channels) == 1
    first = np.where(whole, generator.integers(2, size=channels), ends[0])
    last = np.where(whole, 1 - first, ends[1])
    return np.asarray(first + (last - first) * swing)


def _extremes(shape: tuple[int, ...], zero: float, generator: np.random.Generator) -> Shares:
    del zero
    *inner, channels = shape
    blocks = [1 << int(generator.integers(0, max(size, 1).bit_length())) for size in inner]
    counts = [-(-size // block) for size, block in zip(inner, blocks, strict=True)]
    ends = generator.integers(2, size=(*counts, channels)).astype(np.float64)
    where = [np.arange(size) // block for size, block in zip(inner, blocks, strict=True)]
    return np.asarray(ends[np.ix_(*where, np.arange(channels))])


def _constants(shape: tuple[int, ...], zero: float, generator: np.random.Generator) -> Shares:
    channels = shape[-1]
    ends = [np.zeros(channels), np.ones(channels), np.full(channels, zero)]
    return _one_of([*ends, *generator.random((3, channels))], shape, generator)


def _edges(shape: tuple[int, ...], zero: float, generator: np.random.Generator) -> Shares:
    *inner, channels = shape
    ground = _constants(shape, zero, generator)
    opposite = np.where(ground < 0.5, 1.0, 0.0)
    shares = np.array(np.broadcast_to(ground, shape))
    for _ in range(int(generator.integers(2, _BOXES + 1))):
        box = tuple(_stretch(size, size < max(inner), generator) for size in inner)
        choices = [opposite.ravel(), generator.random(channels)]
        shares[box] = _one_of(choices, shape, generator)
    flat = shares.reshape(-1, channels)
    flat[generator.integers(len(flat), size=-(-len(flat) // _POINTS))] = opposite.ravel()
    return shares


def _one_of(
    choices: Sequence[Shares], shape: tuple[int, ...], generator: np.random.Generator
) -> Shares:
    """For each channel one of the choices for it, as wide as one position of ``shape``."""
    channels = shape[-1]
    chosen = np.stack(choices)[generator.integers(len(choices), size=channels), np.arange(channels)]
    return chosen.reshape([1] * (len(shape) - 1) + [-1])


def _stretch(size: int, may_be_whole: bool, generator: np.random.Generator) -> slice:
    """A part of an axis: one position, those between two, or all of them."""
    first, last = sorted(int(each) for each in generator.integers(0, size, 2))
    parts = (slice(first, first + 1), slice(first, last + 1), slice(None))
    return parts[int(generator.integers(3 if may_be_whole else 2))]


_DRAWN: Mapping[InputKind, Callable[[tuple[int, ...], float, np.random.Generator], Shares]] = {
    InputKind.GRADIENTS: _gradients,
    InputKind.EXTREMES: _extremes,
    InputKind.CONSTANTS: _constants,
    InputKind.EDGES: _edges,
}
"""How each kind draws the shares of (positions ..., channels); dimensions may be 1 for all."""
