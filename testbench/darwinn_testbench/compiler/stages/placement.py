"""Says where in narrow memory each image is, and what runs band by band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from darwinn_testbench.compiler.stages.bands import Chain
from darwinn_testbench.compiler.stages.demand import Asked, DoesNotFitError
from darwinn_testbench.compiler.stages.needs import whole_sources
from darwinn_testbench.compiler.stages.operations import Image, IntegerGraph
from darwinn_testbench.compiler.stages.requests import NoPlaceError, Solver
from darwinn_testbench.compiler.stages.storage import Storage


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


def place(asked: Asked) -> Placement:
    """Place all images of a graph.

    Raises:
        DoesNotFitError: narrow memory does not suffice.
    """
    demand, solver = asked.demand, Solver(asked.places, asked.overlays)
    try:
        bases = solver.solve()
    except NoPlaceError as found:
        reason = "activations exceed the memory of the tiles"
        raise DoesNotFitError(_to_blame(demand.graph, found), reason) from None

    def based(kind: str, storages: Mapping[int, Storage]) -> dict[int, Storage]:
        return {k: replace(each, base=bases[kind, k]) for k, each in storages.items()}

    return Placement(
        parts=based("part", asked.parts),
        copies=based("copy", demand.copies),
        flats={k: base for (kind, k), base in bases.items() if kind == "flat"},
        scratch={k: base for (kind, k), base in bases.items() if kind == "scratch"},
        scratch_sizes=demand.scratch,
        narrow_bytes=solver.used(bases),
        chains=asked.chains,
        bands=tuple(based("part", each) for each in asked.bands),
    )


def _to_blame(graph: IntegerGraph, found: NoPlaceError) -> int:
    """The operation that cannot be computed without a place that was not found.

    Of an input, and of a copy of all pixels, that is what reads them, not what makes the image.
    """
    kind, index = found.key
    if kind == "copy":
        for step, operation in enumerate(graph.operations):
            if index in {each.index for each in whole_sources(operation) if not each.is_vector}:
                return step
    return found.birth - 1 if found.birth else next(iter(graph.readers[index]), 0)
