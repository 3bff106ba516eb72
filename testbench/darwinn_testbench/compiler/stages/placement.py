"""Decides which tile holds what of each image, and where in narrow memory.

An image of several pixels is cut into a grid of 4 x 4 parts. A vector (one pixel) is on all tiles
as a whole; so is a copy of an image of which some operator needs all pixels at once. Places are
given by lifetime: an image may lie where another one was that nobody reads any more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from darwinn_sim import chip

from darwinn_testbench.compiler.parameters import round_up
from darwinn_testbench.compiler.stages.operations import (
    AnyOperation,
    Channelwise,
    Convolution,
    Image,
    IntegerGraph,
    Reach,
    WeightedSum,
    sources_of,
)
from darwinn_testbench.compiler.stages.storage import Interval, Spread, Storage, banded, length, whole

_ALIGNMENT = 8


class DoesNotFitError(Exception):
    """What of the network exceeds the tiles' memory: ``operation`` is the number of an operator."""

    def __init__(self, operation: int, reason: str) -> None:
        super().__init__(reason)
        self.operation = operation


@dataclass(frozen=True)
class Placement:
    """Where everything is.

    Attributes:
        parts: images that are spread over the tiles, by index.
        copies: images that every tile has as a whole, by index.
        flats: bytes of narrow memory in which inputs of several pixels arrive, by index.
        scratch: the same for what an operation needs for itself, by number of the operator.
        narrow_bytes: how much of narrow memory is in use.
    """

    parts: Mapping[int, Storage]
    copies: Mapping[int, Storage]
    flats: Mapping[int, int]
    scratch: Mapping[int, int]
    narrow_bytes: int

    def of(self, image: Image) -> Storage:
        """Where an operation that works on pixels reads or writes an image."""
        return self.copies[image.index] if image.is_vector else self.parts[image.index]


def needs_whole(operation: AnyOperation) -> bool:
    """Whether an operation reads all pixels of its source at once."""
    return isinstance(operation, Convolution | Channelwise) and operation.result.is_vector


def place(graph: IntegerGraph, scratch: Mapping[int, int]) -> Placement:
    """Place all images of a graph; ``scratch`` are bytes that operators need for themselves.

    Raises:
        DoesNotFitError: narrow memory does not suffice.
    """
    spreads = _spreads(graph)
    copied = _copied(graph)
    requests = _Requests(len(graph.operations))
    images = {each.image.index: each.image for each in graph.inputs}
    images |= {each.result.index: each.result for each in graph.operations}
    parts = {
        index: Storage(images[index], *axes)
        for index, axes in spreads.items()
    }
    copies = {
        index: Storage(images[index], whole(images[index].height), whole(images[index].width))
        for index in copied
    }
    _ask(requests, graph, parts, copies, scratch)
    bases = requests.solve()
    return Placement(
        parts={k: replace(each, base=bases["part", k]) for k, each in parts.items()},
        copies={k: replace(each, base=bases["copy", k]) for k, each in copies.items()},
        flats={k: base for (kind, k), base in bases.items() if kind == "flat"},
        scratch={k: base for (kind, k), base in bases.items() if kind == "scratch"},
        narrow_bytes=requests.used(bases),
    )


# --- which tile holds what ----------------------------------------------------------------------


def _spreads(graph: IntegerGraph) -> dict[int, tuple[Spread, Spread]]:
    """Rows and columns of each image of several pixels."""
    images = [each.image for each in graph.inputs] + [each.result for each in graph.operations]
    spreads = {
        each.index: (banded(each.height), banded(each.width))
        for each in images
        if not each.is_vector
    }
    needs: dict[int, list[tuple[tuple[Interval, ...], tuple[Interval, ...]]]] = defaultdict(list)
    for operation in graph.operations:
        if not isinstance(operation, Convolution | Channelwise) or needs_whole(operation):
            continue
        rows, columns = spreads[operation.result.index]
        if operation.source.index in spreads:
            needs[operation.source.index].append(
                (_met(operation.rows, rows), _met(operation.columns, columns))
            )
    for index, wanted in needs.items():
        rows, columns = spreads[index]
        spreads[index] = (
            rows.widened(each for each, _ in wanted),
            columns.widened(each for _, each in wanted),
        )
    _unite(graph, spreads)
    return spreads


def _met(reach: Reach, spread: Spread) -> tuple[Interval, ...]:
    """What the results of each place of the grid meet of the source."""
    return tuple(
        reach.inputs(*own) if length(own) else (0, 0) for own in spread.own
    )


def _unite(graph: IntegerGraph, spreads: dict[int, tuple[Spread, Spread]]) -> None:
    """Give both operands of an addition the same windows: they are read by the same loops."""
    sums = [each for each in graph.operations if isinstance(each, WeightedSum)]
    changed = True
    while changed:
        changed = False
        for operation in sums:
            left, right = (each.index for each in operation.sources)
            if left not in spreads or spreads[left] == spreads[right]:
                continue
            merged = tuple(
                a.widened([b.window]) for a, b in zip(spreads[left], spreads[right], strict=True)
            )
            spreads[left] = spreads[right] = (merged[0], merged[1])
            changed = True


def _copied(graph: IntegerGraph) -> set[int]:
    """Images that every tile needs as a whole."""
    images = [each.image for each in graph.inputs] + [each.result for each in graph.operations]
    copied = {each.index for each in images if each.is_vector}
    for operation in graph.operations:
        if needs_whole(operation):
            copied |= {each.index for each in sources_of(operation)}
    return copied


# --- where in narrow memory ---------------------------------------------------------------------

_Key = tuple[str, int]


@dataclass(frozen=True)
class _Request:
    size: int
    birth: int
    death: int


class _Requests:
    """Places that are asked for, each from a step to another, both included."""

    def __init__(self, steps: int) -> None:
        self._end = steps
        self._asked: dict[_Key, _Request] = {}

    def ask(self, key: _Key, size: int, birth: int, death: int) -> None:
        """Ask for ``size`` bytes."""
        self._asked[key] = _Request(round_up(max(size, 1), _ALIGNMENT), birth, death)

    def solve(self) -> dict[_Key, int]:
        """The first byte of each place: large ones first, each as low as it can be."""
        placed: dict[_Key, int] = {}
        order = sorted(self._asked, key=lambda key: (-self._asked[key].size, self._asked[key].birth))
        for key in order:
            request = self._asked[key]
            base = self._lowest(request, placed)
            if base + request.size > chip.NARROW_BYTES:
                step = max(request.birth - 1, 0)
                raise DoesNotFitError(step, "activations exceed the memory of the tiles")
            placed[key] = base
        return placed

    def used(self, bases: Mapping[_Key, int]) -> int:
        """Bytes up to the last place in use."""
        return max((base + self._asked[key].size for key, base in bases.items()), default=0)

    def _lowest(self, request: _Request, placed: Mapping[_Key, int]) -> int:
        others = sorted(
            (base, base + self._asked[key].size)
            for key, base in placed.items()
            if self._asked[key].birth <= request.death and request.birth <= self._asked[key].death
        )
        base = 0
        for first, end in others:
            if base + request.size <= first:
                break
            base = max(base, end)
        return base


def _ask(
    requests: _Requests,
    graph: IntegerGraph,
    parts: Mapping[int, Storage],
    copies: Mapping[int, Storage],
    scratch: Mapping[int, int],
) -> None:
    """Ask for all places: step 0 is the input, step k + 1 the k-th operation."""
    end = len(graph.operations) + 1
    births = {each.image.index: 0 for each in graph.inputs}
    births |= {each.result.index: k + 1 for k, each in enumerate(graph.operations)}
    deaths = dict(births)
    whole_deaths = dict(births)
    for step, operation in enumerate(graph.operations, 1):
        for image in sources_of(operation):
            ends = whole_deaths if needs_whole(operation) or image.is_vector else deaths
            ends[image.index] = step
    for port in graph.outputs:
        ends = whole_deaths if port.image.is_vector else deaths
        ends[port.image.index] = end
    for index, storage in parts.items():
        requests.ask(("part", index), storage.bytes, births[index], deaths[index])
    for index, storage in copies.items():
        requests.ask(("copy", index), storage.bytes, births[index], whole_deaths[index])
    for port in graph.inputs:
        if port.image.index in parts:
            size = flat_bytes(parts[port.image.index])
            requests.ask(("flat", port.image.index), size, 0, 0)
    steps = {each.number: k + 1 for k, each in enumerate(graph.operations)}
    for number, size in scratch.items():
        requests.ask(("scratch", number), size, steps[number], steps[number])


def flat_bytes(storage: Storage) -> int:
    """Bytes that hold a row of tiles' own rows of an input as the host sends them, and a bit."""
    image = storage.image
    rows = max(length(own) for own in storage.rows.own)
    return round_up(rows * image.width * image.channels, _ALIGNMENT) + 3 * _ALIGNMENT


