"""Finds the chains of layers that have to run band by band, so that everything fits.

Where all images of a step together exceed the memory of a tile, the chain around it is taken with
which they do not, and whose bands cost the least: they compute some elements twice, each has
instructions of its own, and the host may have to send parts of an input twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import numpy as np
from darwinn_sim import chip

from darwinn_testbench.compiler.stages.bands import FLAT_BYTES, MEMBERS, Chain
from darwinn_testbench.compiler.stages.demand import Asked, Demand, DoesNotFitError
from darwinn_testbench.compiler.stages.needs import needs_whole, whole_sources, work_of
from darwinn_testbench.compiler.stages.operations import (
    Channelwise,
    Convolution,
    Image,
    IntegerGraph,
    WeightedSum,
)
from darwinn_testbench.compiler.stages.placement import Placement, place
from darwinn_testbench.compiler.stages.storage import Interval, banded, behind, common, length

_BANDS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
_MOST_BANDS = 96
"""Bands of a chain, at most: each has instructions of its own."""
_LONGEST = 12
"""Operations of a chain, at most."""


_LIMITS = tuple(chip.NARROW_BYTES * parts // 64 for parts in (64, 63, 62, 60, 56, 48))
"""Bytes that all images of a step may take together, one limit after another: places for all are
found more easily where there is room to spare."""


def fitted(demand: Demand) -> Placement:
    """Place a graph, with the chains that are needed.

    Raises:
        DoesNotFitError: narrow memory does not suffice.
    """
    largest, *others = _LIMITS
    asked = with_chains(demand, largest)
    try:
        return place(asked)
    except DoesNotFitError:
        if max(asked.needed) > chip.NARROW_BYTES:
            raise
        for limit in others:
            with suppress(DoesNotFitError):
                return place(with_chains(demand, limit))
        raise


def with_chains(demand: Demand, limit: int) -> Asked:
    """Add the chains with which no step takes more than ``limit`` bytes; where none helps, none."""
    asked = demand.asked()
    hopeless: set[int] = set()
    while True:
        beyond = [
            int(step) for step in np.flatnonzero(asked.needed > limit) if step not in hopeless
        ]
        if not beyond:
            return asked
        found = _chain_around(asked, beyond[0], limit)
        if found is None:
            hopeless.add(beyond[0])
        else:
            asked = demand.asked(found)


def _chain_around(asked: Asked, step: int, limit: int) -> list[Chain] | None:
    """The chains with one more around a step of the pressure."""
    if asked.fixed(_widest(asked.demand.graph, step))[step] > limit:
        return None
    best: tuple[int, list[Chain]] | None = None
    present = {each: cost_of(asked.demand, each) for each in asked.chains}
    for chain in _candidates(asked.demand.graph, step):
        first, last = chain.first, chain.last
        others = [each for each in asked.chains if each.last < first or each.first > last]
        if len(others) < sum(1 for each in asked.chains if not first <= each.first <= last):
            continue
        before = asked if len(others) == len(asked.chains) else asked.demand.asked(others)
        steps = [step, *range(first, last + 2)]
        for found in _that_fit(before, chain, steps, limit):
            cost = sum(present[each] for each in others) + cost_of(asked.demand, found)
            if best is None or cost < best[0]:
                best = cost, [*others, found]
        if best is not None and best[0] - sum(present.values()) < _CHEAP:
            break
    return None if best is None else best[1]


def _that_fit(before: Asked, chain: Chain, steps: list[int], limit: int) -> Iterator[Chain]:
    """A chain in as few bands as fit beside others, by the number of bands across."""
    graph, trial = before.demand.graph, before.trial(chain)
    fixed, inner = trial.fixed, slice(chain.first + 1, chain.last + 2)
    if max(fixed[steps].max(), fixed[inner].max() + _least_of(graph, chain)) > limit:
        return

    def fits(chosen: Chain) -> bool:
        return bool(trial.needed(chosen)[steps].max() <= limit)

    result = graph.operations[chain.last].result
    rows = _useful_bands(result.height, chip.GRID_ROWS)
    parts = _useful_bands(result.width, chip.GRID_COLUMNS) if chain.over is None else []
    for across in parts if chain.again else (1, *parts):
        tried = [replace(chain, bands=down * across, across=across) for down in rows]
        allowed = [each for each in tried if each.bands <= _MOST_BANDS]
        # More bands never need more memory, so what the most do not fit fewer do not either.
        if allowed and fits(allowed[-1]):
            yield next(each for each in allowed if fits(each))


# --- what bands cost ----------------------------------------------------------------------------

_STEP_CYCLES = 3000
"""Cycles until the host has sent the instructions of an operation in one more band, about."""
_BYTE_CYCLES = 1
"""Cycles in which the host sends a byte, about."""
_CHEAP = 30 * _STEP_CYCLES
"""A chain that costs no more than this is taken, without looking for longer ones."""


def cost_of(demand: Demand, chain: Chain) -> int:
    """Cycles that a chain takes because it runs in bands, about."""
    graph, bands = demand.graph, demand.bands(chain)
    members = chain.members(graph.operations)
    cost = _STEP_CYCLES * len(members) * (chain.bands - 1)
    for operation in members:
        image = operation.result
        once, often = (
            _most(banded(image.height, chip.GRID_ROWS).own)
            * _most(banded(image.width, chip.GRID_COLUMNS).own),
            sum(_most(each.places_of(image)) for each in bands.rows)
            * sum(_most(each.places_of(image)) for each in bands.columns),
        )
        cost += work_of(operation) * (often - once)
    if chain.fed is not None:
        image = chain.sources(graph.operations)[chain.fed]
        row = image.width * image.channels
        places = [
            [common(own, (0, image.height)) for own in each.needs[chain.fed]] for each in bands.rows
        ]
        if not chain.again:
            nothing = [(0, 0)] * chip.GRID_ROWS
            places = [list(map(behind, *each)) for each in pairwise([nothing, *places])]
        times = chain.across if chain.again else 1
        sent = times * row * sum(length(own) for each in places for own in each)
        cost += _BYTE_CYCLES * max(sent - image.height * row, 0)
        passes = sum(-(-_most(each) * row // chain.flat) for each in places)
        cost += _STEP_CYCLES * times * passes
    return cost


def _most(places: Sequence[Interval]) -> int:
    return max(map(length, places))


def _least_of(graph: IntegerGraph, chain: Chain) -> int:
    """Bytes that the result of a chain and its sources take together, at least."""
    result = graph.operations[chain.last].result
    sources = chain.sources(graph.operations)
    sizes = {index: _least_bytes(image) for index, image in sources.items() if index != chain.fed}
    taken = sizes.pop(chain.over, 0) if chain.over is not None else 0
    return sum(sizes.values()) + max(_least_bytes(result), taken)


def _least_bytes(image: Image) -> int:
    """Bytes of an image on the tile that has most of it, without what is around its own pixels."""
    rows, columns = -(-image.height // chip.GRID_ROWS), -(-image.width // chip.GRID_COLUMNS)
    return rows * columns * image.pitch


_FLAT_BYTES = (FLAT_BYTES, FLAT_BYTES // 4)
"""Bytes of an input that a tile may take at a time."""


def _candidates(graph: IntegerGraph, step: int) -> Iterator[Chain]:
    """Chains around a step, short ones first.

    Each alone, with its result over a source, and with an input that comes band by band.
    """
    for first, last in _ranges(graph, step):
        alone = Chain(first, last, 1)
        if last > first:
            yield alone
        over = _source_to_take(graph, first, last)
        if over is not None:
            yield replace(alone, over=over)
        fed = _input_to_feed(graph, alone)
        if fed is not None:
            for at_once in _FLAT_BYTES:
                yield replace(alone, fed=fed, flat=at_once)
                yield replace(alone, fed=fed, flat=at_once, again=True)


def _input_to_feed(graph: IntegerGraph, chain: Chain) -> int | None:
    """The largest input of the network that nothing but a chain reads."""
    inputs = {port.image.index for port in graph.inputs}
    free = [
        image
        for index, image in chain.sources(graph.operations).items()
        if index in inputs and all(step in chain for step in graph.readers[index])
    ]
    return max(free, key=lambda each: each.pixels * each.pitch).index if free else None


_READERS = (Channelwise, Convolution, WeightedSum)
"""Operations of which it is known that they read nothing but what they need of a source."""


def _source_to_take(graph: IntegerGraph, first: int, last: int) -> int | None:
    """The largest source of a chain that nothing else reads, and whose place the result may take.

    A copy of all pixels has a place of its own.
    """
    chain = Chain(first, last, 1)

    def keeps(image: Image, step: int) -> bool:
        operation = graph.operations[step]
        if step in chain and isinstance(operation, _READERS):
            return False
        return image not in whole_sources(operation)

    free = [
        image
        for index, image in chain.sources(graph.operations).items()
        if index not in graph.ends and not any(keeps(image, step) for step in graph.readers[index])
    ]
    return max(free, key=lambda each: each.pixels * each.pitch).index if free else None


def _useful_bands(size: int, places: int) -> list[int]:
    """Numbers of bands, of which the last one leaves a tile a row of ``size`` of the result."""
    rows = -(-size // places)
    found = [bands for bands in _BANDS if bands < rows]
    return [*found, _BANDS[min(len(found), len(_BANDS) - 1)]]


def _ranges(graph: IntegerGraph, step: int) -> Iterator[tuple[int, int]]:
    """Chains around a step, short ones first: a step is of the operation before it."""
    count = len(graph.operations)
    place = max(step - 1, 0)
    for size in range(1, _LONGEST + 1):
        for first in range(max(0, place - size), min(place + 2, count - size + 1)):
            if _is_chain(graph, first, first + size - 1):
                yield first, first + size - 1


def _widest(graph: IntegerGraph, step: int) -> Chain:
    """All operations of the chains around a step."""
    place = max(step - 1, 0)
    last = min(place + _LONGEST, len(graph.operations) - 1)
    return Chain(max(0, place - _LONGEST), last, 1)


def _is_chain(graph: IntegerGraph, first: int, last: int) -> bool:
    """Whether nothing but the last result of some operations is needed by others."""
    members = graph.operations[first : last + 1]
    if any(
        not isinstance(each, MEMBERS) or needs_whole(each) or each.result.is_vector
        for each in members
    ):
        return False
    return all(
        graph.readers[each.result.index]
        and each.result.index not in graph.ends
        and all(first <= step <= last for step in graph.readers[each.result.index])
        for each in members[:-1]
    )
