"""Which layers of a program may hold a tensor: results put together, by size and zero point.

A tap copies what a layer's instructions write; one layer, its executions, or several layers of one
output stage may be a tensor (``layers.results``). Nothing is shifted, scaled or chosen to fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, overload

import numpy as np
from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.graph import NetworkTensor
from darwinn_sim import chip
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.machine import layers
from darwinn_sim.machine.examine import Tap, TappedBytes
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.units import observation
from numpy.typing import NDArray

from darwinn_testbench.layers.results import (
    Bytes,
    Pass,
    Piece,
    Shape,
    image_shape,
    readings,
    results,
)

SIGN_BIT = 0x80
"""The chip holds int8 with this bit changed, so that its zero point is 128 higher."""


def layer_taps(program: LoweredProgram) -> tuple[Tap, ...]:
    """Taps of all layers whose results are bytes: what a comparison of layers needs."""
    return tuple(
        Tap(layer=each.number) for each in layers.find(program.chunks) if not each.output_16bit
    )


@dataclass(frozen=True, eq=False)
class Candidate:
    """Results of one or several layers that may be a tensor together."""

    parts: tuple[Pass, ...]

    @cached_property
    def layers(self) -> tuple[int, ...]:
        """Numbers of the layers, each once."""
        return tuple(dict.fromkeys(part.layer.number for part in self.parts))

    @cached_property
    def words(self) -> int:
        """Words of all parts."""
        return sum(len(part.words) for part in self.parts)

    def may_be(self, shape: Shape) -> bool:
        """Whether the number of words fits: a quick look before anything is put together."""
        words = shape[0] * shape[1] * -(-shape[2] // WORD_BYTES)
        if shape[0] * shape[1] == 1:
            # The last word of each tile may be partly filled.
            return words <= self.words <= words + len(self.parts) * chip.TILES
        return self.words == words or (len(self.parts) == 2 and self.words > words)

    @property
    def copies(self) -> bool:
        """Whether the bytes were moved, not computed."""
        return self.parts[0].layer.copies


@dataclass(frozen=True, eq=False)
class Match:
    """A candidate read as a tensor: ``pieces`` of ``shape``, and how they differ from its values.

    ``differing`` elements do, by at most ``max_difference``.
    """

    candidate: Candidate
    shape: Shape
    pieces: tuple[Piece, ...]
    differing: int
    max_difference: int

    def value(self, tensor: NetworkTensor) -> AnyArray:
        """What the layers hold of the tensor, or of one with the same bytes: its shape, dtype."""
        return _assembled(self.pieces, self.shape, tensor)


def find_candidates(program: LoweredProgram, tapped: Iterable[TappedBytes]) -> Candidates:
    """Everything that can be a tensor: layers, their executions, and layers of one output stage."""
    return Candidates(_candidates(program, tapped))


def _candidates(program: LoweredProgram, tapped: Iterable[TappedBytes]) -> Iterator[Candidate]:
    by_number = {each.number: each for each in layers.find(program.chunks)}
    stages: dict[tuple[float, ...], list[Pass]] = {}
    for item in tapped:
        layer = by_number.get(item.tap.layer)
        if layer is None or layer.output_16bit or not item.data.size:
            continue
        words: NDArray[np.void] = item.data.view(observation.TappedWord.dtype)
        whole, executions = results(program, layer, words)
        yield Candidate((whole,))
        if len(executions) > 1:
            yield Candidate(executions)
        stages.setdefault(layer.output_stage, []).append(whole)
    for stage in stages.values():
        yield from (Candidate(pair) for pair in combinations(stage, 2))
        for first, last in combinations(range(len(stage)), 2):
            if last - first >= 2:
                yield Candidate(tuple(stage[first : last + 1]))


class Candidates(Sequence[Candidate]):
    """Candidates, with their sizes as arrays, so that those of one size are found at once."""

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self._all = tuple(candidates)
        parts = [[len(part.words) for part in each.parts] for each in self._all]
        self._words = np.array([sum(each) for each in parts], np.int64)
        self._parts = np.array([len(each) for each in parts], np.int64)
        pairs = [each if len(each) == 2 else (0, 0) for each in parts]
        self._pairs = np.array(pairs, np.int64).reshape(-1, 2)
        zero_points = [each.parts[0].layer.output_zero_point for each in self._all]
        self._zero_points = np.array([-1 if k is None else k for k in zero_points], np.int64)

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, number: int) -> Candidate: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Candidate]: ...
    def __getitem__(self, number: int | slice) -> Candidate | Sequence[Candidate]:
        return self._all[number]

    def of(self, shape: Shape, zero_point: int | None) -> list[Candidate]:
        """Those that have the size, whole or in two bands that overlap, and the zero point."""
        rows, columns, channels = shape
        deep = -(-channels // WORD_BYTES)
        words = rows * columns * deep
        if rows * columns == 1:
            # The last word of each tile may be partly filled.
            most = words + self._parts * chip.TILES
            fitting = (words <= self._words) & (self._words <= most)
        else:
            whole = [(self._pairs % (extent * deep) == 0).all(axis=1) for extent in (columns, rows)]
            bands = (self._pairs.max(axis=1, initial=0) < words) & (whole[0] | whole[1])
            fitting = (self._words == words) | ((self._words > words) & (self._parts == 2) & bands)
        if zero_point is None:
            fitting &= self._zero_points == -1
        else:
            fitting &= (self._zero_points == -1) | (self._zero_points == zero_point)
        return [self._all[number] for number in np.flatnonzero(fitting).tolist()]


def find_equal(tensor: NetworkTensor, values: AnyArray, candidates: Candidates) -> list[Candidate]:
    """Candidates that are the tensor on every byte, the likeliest first."""
    octets = device_bytes(values)
    shape = image_shape(values.shape)
    found = [
        candidate
        for candidate in candidates.of(shape, zero_point_of(tensor))
        for pieces in readings(candidate.parts, shape)
        if all(np.array_equal(part.data, part.cut(octets)) for part in pieces)
    ]
    return sorted(found, key=lambda each: (each.copies, len(each.parts)))


def find_matches(
    tensor: NetworkTensor,
    values: AnyArray,
    candidates: Candidates,
    allowed: Callable[[Candidate], bool] = lambda _: True,
) -> Iterator[Match]:
    """Every reading of ``candidates`` as a tensor of bytes, with how it differs from ``values``."""
    octets = device_bytes(values)
    shape = image_shape(values.shape)
    for candidate in candidates.of(shape, zero_point_of(tensor)):
        if allowed(candidate):
            for found in readings(candidate.parts, shape):
                yield Match(candidate, shape, found, *_difference(found, octets))


def zero_point_of(tensor: NetworkTensor) -> int | None:
    """Zero point of a tensor of bytes on the chip; None if it has none."""
    if not tensor.quantised or tensor.dtype.itemsize != 1:
        return None
    return int(tensor.zero_point[0]) + (SIGN_BIT if tensor.dtype == np.int8 else 0)


def device_bytes(values: AnyArray) -> Bytes:
    """The bytes as the chip holds them, as (rows, columns, channels)."""
    octets = values.reshape(image_shape(values.shape)).view(np.uint8)
    return octets ^ np.uint8(SIGN_BIT) if values.dtype == np.int8 else octets


def _assembled(pieces: Iterable[Piece], shape: Shape, tensor: NetworkTensor) -> AnyArray:
    octets = np.zeros(shape, np.uint8)
    for piece in pieces:
        piece.cut(octets)[...] = piece.data
    return from_device(octets.reshape(tensor.shape), tensor.dtype)


def from_device(octets: Bytes, dtype: np.dtype[Any]) -> AnyArray:
    """Bytes of the chip as a tensor has them."""
    return (octets ^ np.uint8(SIGN_BIT)).view(np.int8) if dtype == np.int8 else octets


def as_tensor(value: AnyArray, tensor: NetworkTensor) -> AnyArray:
    """A value, or that of a tensor of the same bytes, in the shape and dtype of ``tensor``."""
    if value.dtype == tensor.dtype:
        return value.reshape(tensor.shape)
    return from_device(device_bytes(value).reshape(tensor.shape), tensor.dtype)


def _difference(parts: Iterable[Piece], values: Bytes) -> tuple[int, int]:
    """Bytes that differ, and the greatest difference."""
    differing = greatest = 0
    for part in parts:
        expected = part.cut(values)
        wrong = part.data != expected
        if wrong.any():
            differing += int(np.count_nonzero(wrong))
            gap = part.data[wrong].astype(np.int16) - expected[wrong]
            greatest = max(greatest, int(np.abs(gap).max()))
    return differing, greatest
