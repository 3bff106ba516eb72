"""Finds the chains of layers that have to run band by band, so that everything fits.

Where all images of a step together exceed the memory of a tile, the shortest chain around it is
taken with which they do not, in as few bands as possible: bands compute some elements twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from darwinn_sim import chip

from darwinn_testbench.compiler.stages.bands import MEMBERS, Chain
from darwinn_testbench.compiler.stages.operations import Image, IntegerGraph, sources_of
from darwinn_testbench.compiler.stages.placement import needs_whole, pressure

_BANDS = (2, 3, 4, 6, 8, 12, 16, 24, 32)
_LONGEST = 12
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
    for first, last in _ranges(graph, step):
        others = [each for each in chains if each.last < first or each.first > last]
        if len(others) < sum(1 for each in chains if not first <= each.first <= last):
            continue
        *fewer, most = _useful_bands(graph.operations[last].result)

        def fits(chosen: list[Chain], steps: tuple[int, ...]) -> bool:
            needed = pressure(graph, scratch, chosen)
            return max(needed[each] for each in steps) <= chip.NARROW_BYTES

        steps = step, *range(first, last + 2)
        # More bands never need more memory, so what the most do not fit fewer do not either.
        if not fits([*others, Chain(first, last, most)], steps):
            continue
        for bands in fewer:
            chosen = [*others, Chain(first, last, bands)]
            if fits(chosen, steps):
                return chosen
        return [*others, Chain(first, last, most)]
    return None


def _useful_bands(result: Image) -> list[int]:
    """Numbers of bands, of which the last one leaves a tile a row of the result."""
    rows = -(-result.height // chip.GRID_ROWS)
    found = [bands for bands in _BANDS if bands < rows]
    return [*found, _BANDS[min(len(found), len(_BANDS) - 1)]]


def _ranges(graph: IntegerGraph, step: int) -> Iterator[tuple[int, int]]:
    """Chains around a step, short ones first: a step is of the operation before it."""
    count = len(graph.operations)
    place = max(step - 1, 0)
    for length in range(2, _LONGEST + 1):
        for first in range(max(0, place - length), min(place + 2, count - length + 1)):
            if _is_chain(graph, first, first + length - 1):
                yield first, first + length - 1


def _is_chain(graph: IntegerGraph, first: int, last: int) -> bool:
    """Whether nothing but the last result of some operations is needed by others."""
    members = graph.operations[first : last + 1]
    if any(
        not isinstance(each, MEMBERS) or needs_whole(each) or each.result.is_vector
        for each in members
    ):
        return False
    inner = {each.result.index for each in members[:-1]}
    used = {image.index for each in members for image in sources_of(each)}
    outside = {port.image.index for port in graph.outputs}
    for number, each in enumerate(graph.operations):
        if not first <= number <= last:
            outside.update(image.index for image in sources_of(each))
    return inner <= used and inner.isdisjoint(outside)
