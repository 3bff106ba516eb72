"""Decides which tile holds what of each image, and where in narrow memory.

An image of several pixels is cut into a part for each tile of the grid. A vector (one pixel) is on
all tiles as a whole; so is a copy of an image of which some operator needs all pixels at once.
Places are given by lifetime: an image may lie where another one was that nobody reads any more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from darwinn_formats.errors import Portable
from darwinn_sim import chip

from darwinn_testbench.compiler.parameters import round_up
from darwinn_testbench.compiler.stages.bands import (
    Axes,
    Chain,
    Needs,
    Windowed,
    distances,
    local,
    needs_of,
)
from darwinn_testbench.compiler.stages.one_pixel import met_by_one
from darwinn_testbench.compiler.stages.operations import (
    AnyOperation,
    Channelwise,
    Convolution,
    Greatest,
    Image,
    IntegerGraph,
    MatrixProduct,
    Recurrent,
    Repeated,
    Reshaped,
    Stacked,
    Transposed,
    WeightedSum,
    sources_of,
)
from darwinn_testbench.compiler.stages.storage import (
    Interval,
    Storage,
    banded,
    everywhere,
    hull,
    length,
)

_ALIGNMENT = 8


class DoesNotFitError(Portable):
    """What of the network exceeds the tiles' memory: ``operation`` is the number of an operator."""

    def __init__(self, operation: int, reason: str) -> None:
        super().__init__(reason)
        self.operation = operation


@dataclass(frozen=True)
class Placement:
    """Where everything is.

    Attributes:
        parts: images that are spread over the tiles, by index.
        copies: images of which every tile has all that is read at once, by index.
        flats: bytes of narrow memory in which inputs of several pixels arrive, by index.
        scratch: the same for what an operation needs for itself, by index of its result;
            ``scratch_sizes`` are its bytes.
        narrow_bytes: how much of narrow memory is in use.
        chains: what runs band by band.
        bands: by band the images of all chains that exist in that band alone, by index.
    """

    parts: Mapping[int, Storage]
    copies: Mapping[int, Storage]
    flats: Mapping[int, int]
    scratch: Mapping[int, int]
    scratch_sizes: Mapping[int, int]
    narrow_bytes: int
    chains: tuple[Chain, ...] = ()
    bands: tuple[Mapping[int, Storage], ...] = ()

    def bands_of(self, chain: Chain, result: Image) -> Sequence[int]:
        """The bands of a chain in the order in which they are computed."""
        bands = range(chain.bands)
        is_above = chain.over is not None and (
            self.parts[result.index].base > self.parts[chain.over].base
        )
        return bands[::-1] if is_above else bands

    def in_band(self, band: int) -> Placement:
        """The same while a band of chains is computed."""
        return replace(self, parts={**self.parts, **self.bands[band]})

    def of(self, image: Image) -> Storage:
        """Where an operation that works on pixels reads or writes an image."""
        return self.copies[image.index] if image.is_vector else self.parts[image.index]


def needs_whole(operation: AnyOperation) -> bool:
    """Whether an operation reads all pixels of its sources at once, and all their channels."""
    if is_shared_out(operation):
        return False
    if isinstance(operation, Reshaped | Transposed | Repeated | Stacked | Recurrent):
        return True
    return isinstance(operation, Windowed) and operation.result.is_vector


def whole_sources(operation: AnyOperation) -> tuple[Image, ...]:
    """The sources of which an operation reads all pixels at once."""
    if isinstance(operation, MatrixProduct):
        return operation.sources[1:]
    return sources_of(operation) if needs_whole(operation) else ()


_MOST_COPIED = chip.NARROW_BYTES // 2
"""Bytes of an image that all tiles get as a whole, at most, where they can share its channels."""


def is_shared_out(operation: AnyOperation) -> bool:
    """Whether an operation reads all pixels of a large image, each tile those of some channels."""
    if not isinstance(operation, Channelwise) or not operation.result.is_vector:
        return False
    plain = operation.weights is None and operation.stage.is_uniform
    source = operation.source
    return plain and not source.is_vector and source.pixels * source.pitch > _MOST_COPIED


def place(
    graph: IntegerGraph, scratch: Mapping[int, int], chains: Sequence[Chain] = ()
) -> Placement:
    """Place all images of a graph.

    Args:
        graph: the graph.
        scratch: bytes that operations need for themselves, by index of their result.
        chains: what is to run band by band.

    Raises:
        DoesNotFitError: narrow memory does not suffice.
    """
    asked = _ask(graph, scratch, chains)
    try:
        bases = asked.requests.solve()
    except _NoPlaceError as found:
        reason = "activations exceed the memory of the tiles"
        raise DoesNotFitError(_to_blame(graph, found), reason) from None

    def based(kind: str, storages: Mapping[int, Storage]) -> dict[int, Storage]:
        return {k: replace(each, base=bases[kind, k]) for k, each in storages.items()}

    return Placement(
        parts=based("part", asked.parts),
        copies=based("copy", asked.copies),
        flats={k: base for (kind, k), base in bases.items() if kind == "flat"},
        scratch={k: base for (kind, k), base in bases.items() if kind == "scratch"},
        scratch_sizes=scratch,
        narrow_bytes=asked.requests.used(bases),
        chains=tuple(chains),
        bands=tuple(based("part", each) for each in asked.bands),
    )


def pressure(
    graph: IntegerGraph, scratch: Mapping[int, int], chains: Sequence[Chain] = ()
) -> list[int]:
    """Bytes that all images at each step take together: step 0 is the input."""
    return _ask(graph, scratch, chains).requests.pressure()


# --- which tile holds what ----------------------------------------------------------------------


def _spreads(graph: IntegerGraph, chains: Sequence[Chain]) -> dict[int, Axes]:
    """Rows and columns of each image of several pixels that is not of one band alone."""
    images = [each.image for each in graph.inputs] + [each.result for each in graph.operations]
    spreads: dict[int, Axes] = {
        each.index: (banded(each.height, chip.GRID_ROWS), banded(each.width, chip.GRID_COLUMNS))
        for each in images
        if not each.is_vector
    }
    needs: dict[int, list[Needs]] = defaultdict(list)
    for step, operation in enumerate(graph.operations):
        if needs_whole(operation) or operation.result.is_vector:
            continue
        if any(step in chain for chain in chains):
            continue
        wanted = needs_of(operation, *spreads[operation.result.index])
        whole_ones = whole_sources(operation)
        for source in sources_of(operation):
            if source.index in spreads and source not in whole_ones:
                needs[source.index].append(wanted)
    for chain in chains:
        members = chain.members(graph.operations)
        for band in chain.axes(graph.operations, spreads[members[-1].result.index]):
            for index, each in band.needs.items():
                if index != chain.fed:
                    needs[index].append(each)
        for operation in members[:-1]:
            del spreads[operation.result.index]
        if chain.fed is not None:
            del spreads[chain.fed]
    for index, several in needs.items():
        rows, columns = spreads[index]
        spreads[index] = (
            rows.widened(each for each, _ in several),
            columns.widened(each for _, each in several),
        )
    _unite(graph, spreads)
    return spreads


def _padding(graph: IntegerGraph) -> dict[int, int]:
    """What is outside of images of which a maximum is taken: 0, which is never greater.

    Raises:
        DoesNotFitError: another operator needs zero points there.
    """
    found: dict[int, int] = {}
    for step, operation in enumerate(graph.operations):
        if not isinstance(operation, Greatest) or not _reaches_beyond(operation):
            continue
        index = operation.source.index
        for each in graph.operations:
            others = isinstance(each, Convolution | Channelwise) and each.source.index == index
            if others and _reaches_beyond(each):
                reason = "a maximum over the border of what others take zero points of"
                raise DoesNotFitError(step, reason)
        found[index] = 0
    return found


def _reaches_beyond(operation: AnyOperation) -> bool:
    """Whether an operation reads what is outside of its source."""
    if not isinstance(operation, Windowed) or operation.result.is_vector:
        return False
    source, result = operation.source, operation.result
    ends = (
        (operation.rows.inputs(0, result.height), source.height),
        (operation.columns.inputs(0, result.width), source.width),
    )
    return any(first < 0 or end > size for (first, end), size in ends)


def _in_bands(
    graph: IntegerGraph, chains: Sequence[Chain], parts: Mapping[int, Storage]
) -> list[dict[int, Storage]]:
    """By band the images of all chains, of their results the band, and what they are fed."""
    inputs = {port.image.index: port.image for port in graph.inputs}
    found: list[dict[int, Storage]] = [{} for _ in range(max((c.bands for c in chains), default=0))]
    for chain in chains:
        members = chain.members(graph.operations)
        result = parts[members[-1].result.index]
        for number, band in enumerate(chain.axes(graph.operations, (result.rows, result.columns))):
            for operation in members:
                image = operation.result
                found[number][image.index] = Storage(image, *band.made[image.index])
            if chain.fed is not None:
                fed = inputs[chain.fed]
                rows, columns = band.needs[chain.fed]
                axes = local(fed.height, rows), local(fed.width, columns)
                found[number][chain.fed] = Storage(fed, *axes)
    return found


def _overlay(graph: IntegerGraph, chain: Chain, asked: _Asked) -> None:
    """Let the result of a chain take the place of a source."""
    result = graph.operations[chain.last].result.index
    if chain.over is None:
        return
    storage = asked.parts[result]
    axes = chain.axes(graph.operations, (storage.rows, storage.columns))
    bands = [
        (asked.bands[number][result], band.needs[chain.over]) for number, band in enumerate(axes)
    ]
    apart = distances(asked.parts[chain.over], bands)
    asked.requests.overlay(("part", result), ("part", chain.over), apart)


def _unite(graph: IntegerGraph, spreads: dict[int, Axes]) -> None:
    """Give both operands of an addition the same windows: then one instruction reads all rows."""
    sums = [each for each in graph.operations if isinstance(each, WeightedSum)]
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


def _copied(graph: IntegerGraph) -> dict[int, _Box]:
    """Rows and columns of images that every tile needs: all of vectors, else what is read of them
    at once."""
    images = [each.image for each in graph.inputs] + [each.result for each in graph.operations]
    boxes = defaultdict(list, {each.index: [_all_of(each)] for each in images if each.is_vector})
    for operation in graph.operations:
        for source in whole_sources(operation):
            boxes[source.index].append(_read_at_once(operation, source))
    return {
        index: (hull(*(rows for rows, _ in each)), hull(*(columns for _, columns in each)))
        for index, each in boxes.items()
    }


_Box = tuple[Interval, Interval]
"""Rows and columns of an image."""


def _all_of(image: Image) -> _Box:
    return (0, image.height), (0, image.width)


def _read_at_once(operation: AnyOperation, source: Image) -> _Box:
    """What an operator reads of a source that all tiles need: of a window what is in the image."""
    if not isinstance(operation, Convolution | Channelwise):
        return _all_of(source)
    if max(operation.rows.dilation, operation.columns.dilation) > 1:
        return _all_of(source)
    (top, rows), (left, columns) = met_by_one(operation)
    box = (top, top + rows.stop - rows.start), (left, left + columns.stop - columns.start)
    return box if all(map(length, box)) else ((0, 1), (0, 1))


def _to_blame(graph: IntegerGraph, found: _NoPlaceError) -> int:
    """The operation that cannot be computed without a place that was not found.

    Of a copy of all pixels that is what reads them, not what makes the image.
    """
    kind, index = found.key
    if kind == "copy":
        for step, operation in enumerate(graph.operations):
            if index in {each.index for each in whole_sources(operation) if not each.is_vector}:
                return step
    return max(found.birth - 1, 0)


# --- where in narrow memory ---------------------------------------------------------------------

_Key = tuple[str, int]


class _NoPlaceError(Portable):
    """No place was found for what is needed from step ``birth`` on."""

    def __init__(self, key: _Key, birth: int) -> None:
        super().__init__(key)
        self.key, self.birth = key, birth


@dataclass(frozen=True)
class _Request:
    size: int
    birth: int
    death: int


_ORDERS: Sequence[Callable[[_Request], tuple[int, ...]]] = (
    lambda each: (-each.size, each.birth),
    lambda each: (-each.size * (each.death - each.birth + 1), each.birth),
    lambda each: (each.birth, -each.size),
    lambda each: (each.birth - each.death, -each.size),
    lambda each: (-each.death, -each.size),
)
"""Orders in which places are given: large ones first, those that last long first, and so on."""


_TRIES = 8
"""How often each order is tried."""


class _Requests:
    """Places that are asked for, each from a step to another, both included."""

    def __init__(self) -> None:
        self._asked: dict[_Key, _Request] = {}
        self._apart: dict[tuple[_Key, _Key], int] = {}

    def ask(self, key: _Key, size: int, birth: int, death: int) -> None:
        """Ask for ``size`` bytes."""
        before = self._asked.get(key)
        largest = max(size, 1, before.size if before else 0)
        self._asked[key] = _Request(round_up(largest, _ALIGNMENT), birth, death)

    def overlay(self, result: _Key, source: _Key, distances: tuple[int, int]) -> None:
        """Let a place overlap that of its source, which it is so many bytes below or above."""
        below, above = (round_up(each, _ALIGNMENT) for each in distances)
        self._apart[result, source] = min(below, self._asked[result].size)
        self._apart[source, result] = min(above, self._asked[source].size)

    def _distance(self, lower: _Key, upper: _Key) -> int:
        """Bytes from the begin of a place to that of another one above it, at least."""
        return self._apart.get((lower, upper), self._asked[lower].size)

    def _saved(self) -> Iterator[tuple[_Request, _Request, int]]:
        """Places that overlap, by pairs, and bytes that they have in common."""
        for lower, upper in self._apart:
            if (lower, upper) <= (upper, lower):
                one, other = self._asked[lower], self._asked[upper]
                spans = (
                    max(self._distance(lower, upper) + other.size, one.size),
                    max(self._distance(upper, lower) + one.size, other.size),
                )
                yield one, other, one.size + other.size - min(spans)

    def pressure(self) -> list[int]:
        """Bytes that are asked for at each step together."""
        end = max((each.death for each in self._asked.values()), default=0)
        changes = [0] * (end + 2)
        for each in self._asked.values():
            changes[each.birth] += each.size
            changes[each.death + 1] -= each.size
        for one, other, size in self._saved():
            changes[max(one.birth, other.birth)] -= size
            changes[min(one.death, other.death) + 1] += size
        return list(accumulate(changes[:-1]))

    def solve(self) -> dict[_Key, int]:
        """The first byte of each place: each as low as it can be, in one of several orders.

        What finds no place in an order comes first in the next one.

        Raises:
            _NoPlaceError: none of them leads to places for all.
        """
        failed: list[_Key] = []
        for order in _ORDERS:
            keys = sorted(self._asked, key=lambda key: order(self._asked[key]))
            for _ in range(_TRIES):
                placed, without = self._placed(keys)
                if without is None:
                    return placed
                failed.append(without)
                keys.remove(without)
                keys.insert(0, without)
        raise _NoPlaceError(failed[0], self._asked[failed[0]].birth)

    def _placed(self, keys: Sequence[_Key]) -> tuple[dict[_Key, int], _Key | None]:
        """Places in an order, up to the first key that finds none."""
        placed: dict[_Key, int] = {}
        for key in keys:
            request = self._asked[key]
            base = self._lowest(key, placed)
            if base + request.size > chip.NARROW_BYTES:
                return placed, key
            placed[key] = base
        return placed, None

    def used(self, bases: Mapping[_Key, int]) -> int:
        """Bytes up to the last place in use."""
        return max((base + self._asked[key].size for key, base in bases.items()), default=0)

    def _lowest(self, key: _Key, placed: Mapping[_Key, int]) -> int:
        """The lowest base that is far enough from all others that exist at the same time."""
        request = self._asked[key]
        taken = sorted(
            (base - self._distance(key, other), base + self._distance(other, key))
            for other, base in placed.items()
            if self._asked[other].birth <= request.death
            and request.birth <= self._asked[other].death
        )
        lowest = 0
        for below, above in taken:
            if lowest <= below:
                break
            lowest = max(lowest, above)
        return lowest


@dataclass(frozen=True)
class _Asked:
    requests: _Requests
    parts: Mapping[int, Storage]
    copies: Mapping[int, Storage]
    bands: Sequence[Mapping[int, Storage]]


def _ask(graph: IntegerGraph, scratch: Mapping[int, int], chains: Sequence[Chain]) -> _Asked:
    """Ask for all places: step 0 is the input, step k + 1 the k-th operation."""
    images = {each.image.index: each.image for each in graph.inputs}
    images |= {each.result.index: each.result for each in graph.operations}
    spreads = _spreads(graph, chains)
    padding = _padding(graph)
    parts = {
        k: Storage(images[k], *axes, padding=padding.get(k, images[k].zero_point))
        for k, axes in spreads.items()
    }
    copies = {
        k: Storage(
            images[k],
            everywhere(images[k].height, rows, chip.GRID_ROWS),
            everywhere(images[k].width, columns, chip.GRID_COLUMNS),
        )
        for k, (rows, columns) in _copied(graph).items()
    }
    bands = _in_bands(graph, chains, parts)
    requests = _Requests()
    births, deaths, whole_deaths = _lifetimes(graph, chains)
    for index, storage in parts.items():
        requests.ask(("part", index), storage.bytes, births[index], deaths[index])
    for band in bands:
        for index, storage in band.items():
            if index not in parts:
                requests.ask(("part", index), storage.bytes, births[index], deaths[index])
    for index, storage in copies.items():
        birth = births[index]
        requests.ask(("copy", index), storage.bytes, birth, whole_deaths[index])
    for port in graph.inputs:
        index = port.image.index
        if index in parts:
            requests.ask(("flat", index), flat_bytes(parts[index]), 0, 0)
    for chain in chains:
        for band in bands[: chain.bands]:
            if chain.fed is not None:
                # It comes before the first operation of a band.
                step, size = chain.first + 1, flat_bytes(band[chain.fed])
                requests.ask(("flat", chain.fed), size, step, step)
    steps = {each.result.index: k + 1 for k, each in enumerate(graph.operations)}
    for index, size in scratch.items():
        requests.ask(("scratch", index), size, steps[index], steps[index])
    asked = _Asked(requests, parts, copies, bands)
    for chain in chains:
        _overlay(graph, chain, asked)
    return asked


def _lifetimes(
    graph: IntegerGraph, chains: Sequence[Chain]
) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """First step of each image, last step of its parts, and last step of its copy."""
    end = len(graph.operations) + 1
    births = {each.image.index: 0 for each in graph.inputs}
    births |= {each.result.index: k + 1 for k, each in enumerate(graph.operations)}
    for chain in chains:
        births[graph.operations[chain.last].result.index] = chain.first + 1
        if chain.fed is not None:
            births[chain.fed] = chain.first + 1
    deaths = dict(births)
    for step, operation in enumerate(graph.operations, 1):
        # A copy is made when all parts are there.
        deaths[operation.result.index] = max(deaths[operation.result.index], step)
    whole_deaths = dict(deaths)
    for step, operation in enumerate(graph.operations, 1):
        whole_ones = whole_sources(operation)
        for image in sources_of(operation):
            ends = whole_deaths if image in whole_ones or image.is_vector else deaths
            last = max([step, *_chain_ends(graph, chains, step - 1, image)])
            ends[image.index] = max(ends[image.index], last)
    for port in graph.outputs:
        ends = whole_deaths if port.image.is_vector else deaths
        ends[port.image.index] = end
    return births, deaths, whole_deaths


def _chain_ends(
    graph: IntegerGraph, chains: Sequence[Chain], step: int, image: Image
) -> Iterator[int]:
    """The last step of a chain that needs an image again in each band."""
    for chain in chains:
        if step in chain and (image.is_vector or image.index in chain.sources(graph.operations)):
            yield chain.last + 1


_FLAT_BYTES = 1 << 15
"""Bytes of an input that a tile takes at a time, about."""


def flat_passes(storage: Storage) -> int:
    """In how many passes the rows of an input come, so that what a tile takes is not too much."""
    rows = max(length(own) for own in storage.rows.own)
    size = rows * storage.image.width * storage.image.channels
    return max(1, min(rows, round(size / _FLAT_BYTES)))


def flat_bytes(storage: Storage) -> int:
    """Bytes that hold the rows of an input that come in one pass, and a bit."""
    image = storage.image
    rows = -(-max(length(own) for own in storage.rows.own) // flat_passes(storage))
    return round_up(rows * image.width * image.channels, _ALIGNMENT) + 3 * _ALIGNMENT
