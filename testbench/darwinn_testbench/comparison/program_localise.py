"""Find where a compiled model begins to differ from a program, with taps on both sides.

The model's layers are searched among the bytes that the reference computes on the way. The
reference runs once as it is, to see which values correspond. Then it runs again, and takes the
layer's value at every corresponding value. So both sides compute each value from the same ones, and
an error counts once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from darwinn_reference.arrays import AnyArray
from darwinn_reference.protocol import Intermediate
from darwinn_sim.machine.examine import TappedBytes
from darwinn_sim.machine.lowering import LoweredProgram

from darwinn_testbench.comparison.first_difference import RunTapped, trace
from darwinn_testbench.comparison.pairing import Layout, layouts
from darwinn_testbench.layers.candidates import SIGN_BIT, Candidate, find_candidates
from darwinn_testbench.layers.localise import Divergence
from darwinn_testbench.layers.results import Bytes, Piece, Shape, image_shape, readings
from darwinn_testbench.policy import Policy, absolute_difference, within


def localise_device(
    program: LoweredProgram,
    tapped: Sequence[TappedBytes],
    reference: RunTapped,
    given: Sequence[AnyArray],
    shapes: Sequence[tuple[int, ...]],
    policy: Policy,
    run: int,
) -> list[Divergence]:
    """The layers of a compiled program that differ from a reference's values of themselves.

    The reference goes on from the layers' values. Only values of one byte can be layers; those
    among ``given``, the inputs, are none. ``shapes`` are what the layout of a value that the
    reference keeps flat may be; ``policy`` says how far a layer may be off.
    """
    search = _Search(find_candidates(program, tapped), given, shapes, policy)
    for position, entry in enumerate(trace(reference)):
        search.claim(position, entry)
    found: list[Divergence] = []
    position = -1

    def tap(entry: Intermediate) -> AnyArray | None:
        nonlocal position
        position += 1
        match = search.find(position, entry)
        if match is None:
            return None
        if match.outside:
            layers = match.candidate.layers
            where = " and ".join(f"layer {number}" for number in layers)
            differing, greatest = match.outside, match.max_difference
            row = _divergence(entry, where, run, differing, greatest, first=not found)
            found.append(replace(row, layers=layers))
        return match.value

    reference(tap)
    return found


class _Search:
    """Which layers are which values. A layer that is one value is not looked at as another."""

    def __init__(
        self,
        held: Sequence[Candidate],
        given: Sequence[AnyArray],
        shapes: Sequence[tuple[int, ...]],
        policy: Policy,
    ) -> None:
        self.held, self.shapes, self.policy = held, shapes, policy
        self.given = {each.tobytes() for each in given}
        self.claims: dict[int, int] = {}

    def claim(self, position: int, entry: Intermediate) -> None:
        """Take the layers of a value that some layers are."""
        match = self._best(position, entry)
        if match is not None and not match.outside:
            self._take(position, match)

    def find(self, position: int, entry: Intermediate) -> _Match | None:
        """The layers that come closest to a value; None if none can be it."""
        match = self._best(position, entry)
        if match is not None:
            self._take(position, match)
        return match

    def _take(self, position: int, match: _Match) -> None:
        self.claims |= dict.fromkeys(match.candidate.layers, position)

    def _best(self, position: int, entry: Intermediate) -> _Match | None:
        data = entry.data
        bytewise = data.dtype.itemsize == 1 and data.dtype.kind in "iu" and data.size
        if not bytewise or data.tobytes() in self.given:
            return None
        free = [
            each
            for each in self.held
            if all(self.claims.get(number, position) == position for number in each.layers)
        ]
        matches = (match for each in free for match in self._matches(data, each))
        return min(
            matches,
            key=lambda each: (each.outside, each.differing, each.candidate.layers),
            default=None,
        )

    def _matches(self, data: AnyArray, candidate: Candidate) -> Iterator[_Match]:
        for shape, back in _images(data.shape, self.shapes):
            if not candidate.may_be(shape):
                continue
            for pieces in readings(candidate.parts, shape):
                value = _assemble(pieces, shape, back, data)
                gap = absolute_difference(value, data)
                outside = ~within(self.policy, value, data)
                yield _Match(
                    candidate,
                    value,
                    int(np.count_nonzero(outside)),
                    int(np.count_nonzero(gap)),
                    int(gap.max(initial=0)),
                )


@dataclass(frozen=True, eq=False)
class _Match:
    """A layer, or several, read as a value of the reference: bytes in the value's own shape."""

    candidate: Candidate
    value: AnyArray
    outside: int
    differing: int
    max_difference: int


_Back = Callable[[Bytes], Bytes]
"""From rows, columns and channels to the order of a value of the reference."""


def _images(
    own: tuple[int, ...], shapes: Sequence[tuple[int, ...]]
) -> Iterator[tuple[Shape, _Back]]:
    """Every image (rows, columns, channels) that a value may be, with the way back."""
    sizes = [size for size in own if size != 1]
    if len(sizes) <= 1:
        yield (1, 1, int(np.prod(own, dtype=np.int64))), lambda image: image
        for shape in shapes:
            if np.prod(shape, dtype=np.int64) == np.prod(own, dtype=np.int64):
                yield image_shape(shape), lambda image: image
        return
    yield image_shape(own), lambda image: image
    if len(own) in (3, 4):
        channels, rows, columns = own[-3:]
        if Layout.TO_NCHW in layouts((rows, columns, channels), own[-3:], device=True):
            yield (rows, columns, channels), lambda image: image.transpose(2, 0, 1)


def _assemble(pieces: Sequence[Piece], shape: Shape, back: _Back, like: AnyArray) -> AnyArray:
    """The bytes of a layer in the shape, order and type of a value."""
    image = np.zeros(shape, np.uint8)
    for piece in pieces:
        piece.cut(image)[...] = piece.data
    octets = np.ascontiguousarray(back(image)).reshape(like.shape)
    if like.dtype.kind == "u":
        return octets
    return (octets ^ np.uint8(SIGN_BIT)).view(np.int8)


def _divergence(
    entry: Intermediate, where: str, run: int, differing: int, greatest: float, *, first: bool
) -> Divergence:
    return Divergence(
        run=run,
        first=first,
        name=entry.name,
        operation=entry.operation,
        where=where,
        location=entry.location,
        elements=entry.data.size,
        differing=differing,
        max_difference=greatest,
    )
