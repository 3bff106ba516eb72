"""Chains of layers that run band by band, where their images exceed the memory of the tiles.

Between the source of a chain and its result only a band of rows exists at a time. Each tile
computes what its part of the band needs of every image between, also what neighbours compute too:
nothing has to be exchanged there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from darwinn_testbench.compiler.stages.operations import (
    AnyOperation,
    Channelwise,
    Convolution,
    Reach,
)
from darwinn_testbench.compiler.stages.storage import (
    Interval,
    Spread,
    common,
    length,
    pieces_of,
)

Axes = tuple[Spread, Spread]
"""Rows and columns of an image."""


@dataclass(frozen=True)
class Chain:
    """Operations ``first`` to ``last`` of a graph, in so many bands."""

    first: int
    last: int
    bands: int

    def __contains__(self, step: int) -> bool:
        return self.first <= step <= self.last

    def members(self, operations: Sequence[AnyOperation]) -> list[Convolution | Channelwise]:
        """The operations of the chain."""
        chosen = operations[self.first : self.last + 1]
        return [each for each in chosen if isinstance(each, Convolution | Channelwise)]


def met(reach: Reach, own: Sequence[Interval]) -> tuple[Interval, ...]:
    """What the results of each place of the grid meet of their source."""
    return tuple(reach.inputs(*each) if length(each) else (0, 0) for each in own)


def band_axes(
    members: Sequence[Convolution | Channelwise], result: Axes, bands: int
) -> Iterator[list[Axes]]:
    """For each band the axes of every result of the chain, and before them those of its source.

    The source's are what the band needs of it; the last ones are the band of the chain's result.
    """
    rows, columns = result
    for band in range(bands):
        own = tuple(pieces_of(each, bands)[band] for each in rows.own)
        axes: Axes = (replace(rows, own=own), columns)
        found = [axes]
        for operation in reversed(members):
            axes = _before(operation, axes)
            found.append(axes)
        yield found[::-1]


def _before(operation: Convolution | Channelwise, axes: Axes) -> Axes:
    """The axes of the source of an operation, as far as its result needs it."""
    source = operation.source
    rows = _axis(source.height, met(operation.rows, axes[0].own))
    columns = _axis(source.width, met(operation.columns, axes[1].own))
    return rows, columns


def _axis(size: int, window: tuple[Interval, ...]) -> Spread:
    own = []
    for each in window:
        inside = common(each, (0, size))
        own.append(inside if length(inside) else (0, 0))
    return Spread(size, tuple(own), window, is_local=True)
