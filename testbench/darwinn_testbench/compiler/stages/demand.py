"""Says what a graph asks of narrow memory: which tile holds what of each image, and how long.

An image of several pixels is cut into a part for each tile of the grid. A vector (one pixel) is on
all tiles as a whole; so is a copy of an image of which some operator needs all pixels at once.
Step 0 is the input, step k + 1 the k-th operation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from darwinn_formats.errors import Portable
from darwinn_sim import chip
from numpy.typing import NDArray

from darwinn_testbench.compiler.parameters import round_up
from darwinn_testbench.compiler.stages.bands import (
    FLAT_BYTES,
    Axes,
    Bands,
    Chain,
    Needs,
    Stripe,
    distances,
    local,
    stripes,
)
from darwinn_testbench.compiler.stages.needs import (
    Axis,
    all_of,
    needs_along,
    needs_whole,
    reaches_beyond,
    read_at_once,
    whole_sources,
)
from darwinn_testbench.compiler.stages.operations import (
    AnyOperation,
    Channelwise,
    Convolution,
    Greatest,
    IntegerGraph,
    WeightedSum,
    sources_of,
)
from darwinn_testbench.compiler.stages.requests import (
    ALIGNMENT,
    Key,
    Overlay,
    Request,
    saved,
    total,
)
from darwinn_testbench.compiler.stages.storage import (
    Storage,
    banded,
    everywhere,
    hull,
    length,
)


class DoesNotFitError(Portable):
    """What of the network exceeds the tiles' memory: ``operation`` is the number of an operator."""

    def __init__(self, operation: int, reason: str) -> None:
        super().__init__(reason)
        self.operation = operation


class _Fed(NamedTuple):
    """Bytes of the part of an input that a band gets: on a tile, and as its rows come."""

    whole: int
    flat: int


class Demand:
    """What a graph asks for, with any chains of bands.

    A search tries many chains: what a graph asks for without any is found once.

    Args:
        graph: the graph.
        scratch: bytes that operations need for themselves, by index of their result.

    Raises:
        DoesNotFitError: two operators need other bytes outside of the same image.
    """

    def __init__(self, graph: IntegerGraph, scratch: Mapping[int, int]) -> None:
        self.graph, self.scratch = graph, scratch
        self.copies = _copies(graph)
        self.sums = [each for each in graph.operations if isinstance(each, WeightedSum)]
        self._padding = _padding(graph)
        self._lives = _lives(graph)
        self._banded = {
            index: (banded(each.height, chip.GRID_ROWS), banded(each.width, chip.GRID_COLUMNS))
            for index, each in graph.images.items()
            if not each.is_vector
        }
        self._needs: dict[int, list[tuple[int, Needs]]] = defaultdict(list)
        for step, operation in enumerate(graph.operations):
            for index, needs in self._needs_of(operation):
                self._needs[index].append((step, needs))
        self._stripes: dict[tuple[int, int, Axis, int, bool], tuple[Stripe, ...]] = {}
        self._bands: dict[Chain, Bands] = {}
        self._fed_bytes: dict[tuple[int, ...], _Fed] = {}

    def asked(self, chains: Sequence[Chain] = ()) -> Asked:
        """All places, with chains."""
        asked, parts, pairs = self.places(self.graph.images, chains)
        steps = {each.result.index: k + 1 for k, each in enumerate(self.graph.operations)}
        for index, size in self.scratch.items():
            asked["scratch", index] = Request.of(size, steps[index], steps[index])
        return Asked(self, tuple(chains), asked, parts, pairs)

    def places(
        self, indices: Collection[int], chains: Sequence[Chain]
    ) -> tuple[dict[Key, Request], dict[int, Storage], list[Overlay]]:
        """The places of some images, their parts, and those that overlap."""
        gone = self._gone(chains)
        parts = self._parts_of([each for each in indices if each not in gone], chains)
        births, deaths, copied = self._lives_with(chains)
        sizes = {index: each.bytes for index, each in parts.items()}
        sizes |= {index: size for index, size in gone.items() if index in indices}
        asked: dict[Key, Request] = {
            ("part", index): Request.of(size, births[index], deaths[index])
            for index, size in sizes.items()
        }
        for index, each in self.copies.items():
            if index in indices:
                asked["copy", index] = Request.of(each.bytes, births[index], copied[index])
        for port in self.graph.inputs:
            if port.image.index in parts:
                asked["flat", port.image.index] = Request.of(
                    flat_bytes(parts[port.image.index]), 0, 0
                )
        for chain in chains:
            if chain.fed is not None and chain.fed in indices:
                # It comes before the first operation of a band.
                step, size = chain.first + 1, self._most_fed(chain, chain.fed).flat
                asked["flat", chain.fed] = Request.of(size, step, step)
        pairs = []
        for chain in chains:
            if chain.over in parts:
                result = self.graph.operations[chain.last].result.index
                apart = distances(parts[chain.over], parts[result], self.bands(chain))
                pairs.append(Overlay(("part", result), ("part", chain.over), *apart))
        return asked, parts, pairs

    # --- chains ---------------------------------------------------------------------------------

    def bands(self, chain: Chain) -> Bands:
        """The bands of a chain."""
        if chain not in self._bands:
            numbers = chain.bands // chain.across, chain.across
            self._bands[chain] = Bands(
                self._cut(chain, "rows", numbers[0]), self._cut(chain, "columns", numbers[1])
            )
        return self._bands[chain]

    def _cut(self, chain: Chain, axis: Axis, count: int) -> tuple[Stripe, ...]:
        """The stripes of a chain along an axis; other chains of the same operations share them."""
        exact = chain.over is not None
        key = chain.first, chain.last, axis, count, exact
        if key not in self._stripes:
            members = chain.members(self.graph.operations)
            spread = self._banded[members[-1].result.index][axis == "columns"]
            self._stripes[key] = stripes(members, axis, spread.own, count, exact=exact)
        return self._stripes[key]

    def _gone(self, chains: Sequence[Chain]) -> dict[int, int]:
        """The images of which there are only bands, and the bytes of the largest of these."""
        found: dict[int, int] = {}
        for chain in chains:
            bands = self.bands(chain)
            for operation in chain.members(self.graph.operations)[:-1]:
                found[operation.result.index] = bands.most_bytes(operation.result)
            if chain.fed is not None:
                found[chain.fed] = self._most_fed(chain, chain.fed).whole
        return found

    def _most_fed(self, chain: Chain, index: int) -> _Fed:
        """The bytes of an input in the bands that get most of it: each stripe of rows
        comes with each stripe of columns."""
        shape = chain.first, chain.last, chain.bands, chain.across, chain.again, chain.flat
        key = (*shape, chain.over is None, index)
        if key not in self._fed_bytes:
            image, bands = self.graph.images[index], self.bands(chain)
            rows = [local(image.height, each.needs[index]) for each in bands.rows]
            apart, together = [each.needs[index] for each in bands.columns], bands.needs[index][1]
            columns = [local(image.width, each) for each in (apart if chain.again else [together])]
            area = max(each.extent for each in rows) * max(each.extent for each in columns)
            flat = max(flat_bytes(Storage(image, each, columns[0]), chain.flat) for each in rows)
            self._fed_bytes[key] = _Fed(area * image.pitch, flat)
        return self._fed_bytes[key]

    def _fed(self, chain: Chain, index: int) -> list[Storage]:
        """By band what a chain gets of an input."""
        image, bands = self.graph.images[index], self.bands(chain)
        together = bands.needs[index][1]
        return [
            Storage(
                image,
                local(image.height, rows.needs[index]),
                local(image.width, columns.needs[index] if chain.again else together),
            )
            for rows, columns in bands
        ]

    def touched(self, chain: Chain) -> set[int]:
        """The images that a chain reads or makes."""
        members = chain.members(self.graph.operations)
        return {image.index for each in members for image in (*sources_of(each), each.result)}

    def in_bands(
        self, chains: Sequence[Chain], parts: Mapping[int, Storage]
    ) -> list[dict[int, Storage]]:
        """By band the images of all chains, of their results the band, and what they are fed."""
        found: list[dict[int, Storage]] = [
            {} for _ in range(max((c.bands for c in chains), default=0))
        ]
        for chain in chains:
            *between, last = (each.result for each in chain.members(self.graph.operations))
            exact, whole = chain.over is not None, parts[last.index]
            for number, (rows, columns) in enumerate(self.bands(chain)):
                for image in between:
                    axes = rows.made[image.index], columns.made[image.index]
                    found[number][image.index] = Storage(image, *axes)
                found[number][last.index] = Storage(
                    last,
                    replace(whole.rows, own=rows.own, is_exact=exact),
                    replace(whole.columns, own=columns.own, is_exact=exact),
                )
            if chain.fed is not None:
                for number, storage in enumerate(self._fed(chain, chain.fed)):
                    found[number][chain.fed] = storage
        return found

    # --- which tile holds what ------------------------------------------------------------------

    def _needs_of(self, operation: AnyOperation) -> Iterator[tuple[int, Needs]]:
        """What an operation needs of the parts of its sources, by index."""
        if needs_whole(operation) or operation.result.is_vector:
            return
        rows, columns = self._banded[operation.result.index]
        needs = (
            needs_along(operation, "rows", rows.own),
            needs_along(operation, "columns", columns.own),
        )
        whole_ones = whole_sources(operation)
        for source in sources_of(operation):
            if not source.is_vector and source not in whole_ones:
                yield source.index, needs

    def _parts_of(self, indices: Iterable[int], chains: Sequence[Chain]) -> dict[int, Storage]:
        """Where all that operators and chains need of images has its place."""
        inside = {step for chain in chains for step in chain.steps}
        needs = defaultdict(list)
        for chain in chains:
            for index, each in self.bands(chain).needs.items():
                needs[index].append(each)
        spreads = {}
        for index in indices:
            if index not in self._banded:
                continue
            several = [each for step, each in self._needs[index] if step not in inside]
            several += needs[index]
            rows, columns = self._banded[index]
            spreads[index] = (
                rows.widened([each for each, _ in several]),
                columns.widened([each for _, each in several]),
            )
        _unite(self.sums, spreads)
        images = self.graph.images
        return {
            index: Storage(
                images[index], *axes, padding=self._padding.get(index, images[index].zero_point)
            )
            for index, axes in spreads.items()
        }

    def _lives_with(self, chains: Sequence[Chain]) -> _Lives:
        """First and last steps with chains: they need their sources again in each band."""
        births, deaths, copied = (dict(each) for each in self._lives)
        for chain in chains:
            members = chain.members(self.graph.operations)
            made = {each.result.index for each in members}
            births[members[-1].result.index] = chain.first + 1
            if chain.fed is not None:
                births[chain.fed] = chain.first + 1
            for operation in members:
                whole_ones = whole_sources(operation)
                for image in sources_of(operation):
                    if image.index not in made:
                        ends = copied if image.is_vector or image in whole_ones else deaths
                        ends[image.index] = max(ends[image.index], chain.last + 1)
        return births, deaths, copied


@dataclass(frozen=True, eq=False)
class Asked:
    """The places that a graph asks for with some chains.

    Attributes:
        demand: what it asks for with any chains.
        chains: the chains.
        places: the places.
        parts: images that are spread over the tiles, by index.
        overlays: which places overlap.
    """

    demand: Demand
    chains: tuple[Chain, ...]
    places: Mapping[Key, Request]
    parts: Mapping[int, Storage]
    overlays: Sequence[Overlay]

    @cached_property
    def needed(self) -> NDArray[np.int64]:
        """Bytes that all images at each step take together."""
        return self.total(self.places, self.overlays)

    def total(
        self, places: Mapping[Key, Request], overlays: Sequence[Overlay]
    ) -> NDArray[np.int64]:
        """Bytes of some places at each step together."""
        steps = len(self.demand.graph.operations) + 2
        return total(places.values(), saved(places, overlays), steps)

    @cached_property
    def bands(self) -> list[dict[int, Storage]]:
        """By band the images of all chains, of their results the band, and what they are fed."""
        return self.demand.in_bands(self.chains, self.parts)

    @cached_property
    def _together(self) -> dict[int, set[int]]:
        """Images of which each changes with the others: those added up, and those that overlap."""
        pairs = [[each.index for each in operation.sources] for operation in self.demand.sums]
        pairs += [[each.result[1], each.source[1]] for each in self.overlays]
        found: dict[int, set[int]] = {}
        for pair in pairs:
            merged = set().union(*(found.get(index, {index}) for index in pair))
            found.update(dict.fromkeys(merged, merged))
        return found

    def trial(self, chain: Chain) -> Trial:
        """Add a chain, in any number of bands."""
        demand, indices = self.demand, self._changed(chain)
        chains = [each for each in self.chains if not indices.isdisjoint(demand.touched(each))]
        return Trial(self, indices, chains, self.fixed(chain))

    def fixed(self, chain: Chain) -> NDArray[np.int64]:
        """Bytes at each step of what no chain among some operations changes."""
        indices = self._changed(chain)
        kinds = ("part", "copy", "flat")
        keys = [(kind, index) for index in indices for kind in kinds]
        places = {key: self.places[key] for key in keys if key in self.places}
        overlays = [each for each in self.overlays if each.source[1] in indices]
        return self.needed - self.total(places, overlays)

    def _changed(self, chain: Chain) -> set[int]:
        """The images that change with a chain."""
        touched = self.demand.touched(chain)
        return touched.union(*(self._together.get(index, ()) for index in touched))


@dataclass(frozen=True, eq=False)
class Trial:
    """A chain that is added to others.

    ``fixed`` are bytes of what it does not change, at each step. ``indices`` are the images that it
    changes, ``chains`` the others that these depend on.
    """

    before: Asked
    indices: Collection[int]
    chains: Sequence[Chain]
    fixed: NDArray[np.int64]

    def needed(self, chain: Chain) -> NDArray[np.int64]:
        """Bytes that all images at each step take together with the chain."""
        places, _, overlays = self.before.demand.places(self.indices, [*self.chains, chain])
        return self.fixed + self.before.total(places, overlays)


_Lives = tuple[dict[int, int], dict[int, int], dict[int, int]]
"""First step of each image, last step of its parts, and last step of its copy."""


def _lives(graph: IntegerGraph) -> _Lives:
    births = {each.image.index: 0 for each in graph.inputs}
    births |= {each.result.index: k + 1 for k, each in enumerate(graph.operations)}
    # A copy is made when all parts are there.
    deaths, copied = dict(births), dict(births)
    for step, operation in enumerate(graph.operations, 1):
        whole_ones = whole_sources(operation)
        for image in sources_of(operation):
            ends = copied if image.is_vector or image in whole_ones else deaths
            ends[image.index] = max(ends[image.index], step)
    # Outputs leave at once, but for an input that is one.
    for port in graph.outputs:
        if births[port.image.index] == 0:
            ends = copied if port.image.is_vector else deaths
            ends[port.image.index] = len(graph.operations) + 1
    return births, deaths, copied


def _padding(graph: IntegerGraph) -> dict[int, int]:
    """What is outside of images of which a maximum is taken: 0, which is never greater.

    Raises:
        DoesNotFitError: another operator needs zero points there.
    """
    found: dict[int, int] = {}
    for step, operation in enumerate(graph.operations):
        if not isinstance(operation, Greatest) or not reaches_beyond(operation):
            continue
        index = operation.source.index
        readers = (graph.operations[each] for each in graph.readers[index])
        if any(
            isinstance(each, Convolution | Channelwise) and reaches_beyond(each) for each in readers
        ):
            reason = "a maximum over the border of what others take zero points of"
            raise DoesNotFitError(step, reason)
        found[index] = 0
    return found


def _copies(graph: IntegerGraph) -> dict[int, Storage]:
    """Images that every tile needs: all of vectors, else what is read of them at once."""
    vectors = {index: [all_of(each)] for index, each in graph.images.items() if each.is_vector}
    boxes = defaultdict(list, vectors)
    for operation in graph.operations:
        for source in whole_sources(operation):
            boxes[source.index].append(read_at_once(operation, source))
    found = {}
    for index, each in boxes.items():
        rows, columns = (hull(*intervals) for intervals in zip(*each, strict=True))
        image = graph.images[index]
        found[index] = Storage(
            image,
            everywhere(image.height, rows, chip.GRID_ROWS),
            everywhere(image.width, columns, chip.GRID_COLUMNS),
        )
    return found


def _unite(sums: Sequence[WeightedSum], spreads: dict[int, Axes]) -> None:
    """Give both operands of an addition the same windows: then one instruction reads all rows."""
    changed = True
    while changed:
        changed = False
        for operation in sums:
            left, right = (each.index for each in operation.sources)
            if not spreads.keys() >= {left, right} or spreads[left] == spreads[right]:
                continue
            merged = tuple(
                a.widened([b.window]) for a, b in zip(spreads[left], spreads[right], strict=True)
            )
            spreads[left] = spreads[right] = (merged[0], merged[1])
            changed = True


def flat_passes(storage: Storage, at_once: int = FLAT_BYTES) -> int:
    """In how many passes the rows of an input come, so that what a tile takes is not too much."""
    rows = max(length(own) for own in storage.rows.own)
    size = rows * storage.image.width * storage.image.channels
    return max(1, min(rows, round(size / at_once)))


def flat_bytes(storage: Storage, at_once: int = FLAT_BYTES) -> int:
    """Bytes that hold the rows of an input that come in one pass, and a bit."""
    image = storage.image
    rows = -(-max(length(own) for own in storage.rows.own) // flat_passes(storage, at_once))
    return round_up(rows * image.width * image.channels, ALIGNMENT) + 3 * ALIGNMENT
