"""Functional coverage of the DMA engine: the kinds of descriptors that ran, crossed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cocotb_coverage.coverage import CoverCross, CoverPoint, coverage_db, coverage_section

from darwinn_rtl.dma.programs import Alignment, SizeClass, TransferSample

_BOOLEANS = (False, True)
_IMPOSSIBLE = [
    (SizeClass.BYTE.value, Alignment.ACROSS_BOUNDARY.value, write, fence, pressure, error)
    for write in _BOOLEANS
    for fence in _BOOLEANS
    for pressure in _BOOLEANS
    for error in _BOOLEANS
]


@coverage_section(
    CoverPoint("dma.size", xf=lambda s: s.size.value, bins=[size.value for size in SizeClass]),
    CoverPoint(
        "dma.alignment",
        xf=lambda s: s.alignment.value,
        bins=[place.value for place in Alignment],
    ),
    CoverPoint("dma.write", xf=lambda s: s.write, bins=list(_BOOLEANS)),
    CoverPoint("dma.behind_fence", xf=lambda s: s.behind_fence, bins=list(_BOOLEANS)),
    CoverPoint("dma.back_pressure", xf=lambda s: s.back_pressure, bins=list(_BOOLEANS)),
    CoverPoint("dma.response_error", xf=lambda s: s.response_error, bins=list(_BOOLEANS)),
    CoverCross(
        "dma.transfer",
        items=[
            "dma.size",
            "dma.alignment",
            "dma.write",
            "dma.behind_fence",
            "dma.back_pressure",
            "dma.response_error",
        ],
        ign_bins=_IMPOSSIBLE,
    ),
)
def sample_transfer(sample: TransferSample) -> None:
    """Count a transfer that was started and completed."""


OUTCOMES = ("STARTED", "MALFORMED", "LENGTH_0", "INBOUND_FAULT", "EXTENDED_FAULT")
"""Names of the outcomes of a descriptor."""


@coverage_section(
    CoverPoint("dma.outcome", xf=lambda outcome, fence, tag: outcome, bins=list(OUTCOMES)),
    CoverPoint("dma.tag", xf=lambda outcome, fence, tag: tag, bins=list(range(16))),
    CoverPoint("dma.fence", xf=lambda outcome, fence, tag: fence, bins=list(_BOOLEANS)),
)
def sample_descriptor(outcome: str, fence: bool, tag: int) -> None:
    """Count a descriptor, good or bad."""


def missing_bins(items: Iterable[str]) -> dict[str, list[Any]]:
    """For each of the coverage ``items`` with bins that were never hit: those bins."""
    missing = {
        item: [name for name, hits in coverage_db[item].detailed_coverage.items() if not hits]
        for item in items
    }
    return {item: bins for item, bins in missing.items() if bins}


def missing_transfers() -> list[TransferSample]:
    """The bins of the transfer cross that were never hit."""
    bins = missing_bins(("dma.transfer",)).get("dma.transfer", [])
    return [TransferSample(SizeClass(size), Alignment(place), *rest) for size, place, *rest in bins]


ITEMS = ("dma.transfer", "dma.outcome", "dma.tag", "dma.fence")
"""Coverage items whose bins must all be hit; the cross includes its points."""


def bins() -> dict[str, dict[str, int]]:
    """Hits of every bin of every item, for the report."""
    return {
        item: {str(name): hits for name, hits in coverage_db[item].detailed_coverage.items()}
        for item in ITEMS
    }
