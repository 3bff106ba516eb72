"""Finds the chains of layers that have to run band by band, so that everything fits.

Where all images of a step together exceed the memory of a tile, the shortest chain around it is
taken with which they do not, in as few bands as possible: bands compute some elements twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from darwinn_sim import chip

from darwinn_testbench.compiler.stages.bands import Chain
from darwinn_testbench.compiler.stages.operations import (
    Channelwise,
    Convolution,
    IntegerGraph,
    sources_of,
)
from darwinn_testbench.compiler.stages.placement import needs_whole, pressure

_BANDS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
_LONGEST = 10
"""Operations of a chain, at most."""


def chains_of(graph: IntegerGraph, scratch: Mapping[int, int]) -> list[Chain]:
    """The chains that are needed; where none helps, there is none."""
    chains: list[Chain] = []
    hopeless: set[int] = set()
    while True:
        needed = pressure(graph, scratch, chains)
        beyond = [
            step
            for step, size in enumerate(needed)
            if size > chip.NARROW_BYTES and step not in hopeless
        ]
        if not beyond:
            return chains
        found = _chain_around(graph, scratch, chains, beyond[0])
        if found is None:
            hopeless.add(beyond[0])
        else:
            chains = found


def _chain_around(
    graph: IntegerGraph, scratch: Mapping[int, int], chains: list[Chain], step: int
) -> list[Chain] | None:
    """The chains with one more around a step of the pressure."""
    links = _links(graph)
    for first, last in _ranges(links, step, len(graph.operations)):
        others = [each for each in chains if each.last < first or each.first > last]
        if len(others) < sum(1 for each in chains if not first <= each.first <= last):
            continue
        for bands in _BANDS:
            chosen = [*others, Chain(first, last, bands)]
            needed = pressure(graph, scratch, chosen)
            if max(needed[step], *needed[first : last + 2]) <= chip.NARROW_BYTES:
                return chosen
    return None


def _links(graph: IntegerGraph) -> list[bool]:
    """Of each operation, whether it may follow the one before in a chain."""
    uses = Counter(image.index for each in graph.operations for image in sources_of(each))
    uses.update(port.image.index for port in graph.outputs)
    links = [False]
    for before, after in zip(graph.operations, graph.operations[1:], strict=False):
        links.append(
            isinstance(before, Convolution | Channelwise)
            and isinstance(after, Convolution | Channelwise)
            and not needs_whole(before)
            and not needs_whole(after)
            and after.source is before.result
            and uses[before.result.index] == 1
        )
    return links


def _ranges(links: list[bool], step: int, count: int) -> Iterator[tuple[int, int]]:
    """Chains around a step, short ones first: a step is of the operation before it."""
    place = max(step - 1, 0)
    for length in range(2, _LONGEST + 1):
        for first in range(max(0, place - length), min(place + 2, count - length + 1)):
            last = first + length - 1
            if all(links[first + 1 : last + 1]):
                yield first, last
