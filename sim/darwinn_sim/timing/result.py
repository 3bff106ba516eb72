"""What the event model says of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from darwinn_formats.brief import brief
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.host.dma_trace import TransferDirection, TransferKind
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.timing import stations
from darwinn_sim.timing.description import ChipDescription, HostLink
from darwinn_sim.timing.stations import Cause

SPAN = np.dtype(
    [
        ("tile", "i4"),
        ("station", "i4"),
        ("instruction", "i4"),
        ("start", "i8"),
        ("end", "i8"),
        ("spent", "i8", stations.CAUSES),
    ]
)
"""One execution of an instruction: cycles ``start`` to ``end`` - 1. ``tile`` is -1 for the chip's
own stations; ``station`` counts in ``TILE_STATION_NAMES`` or ``CHIP_STATION_NAMES``;
``instruction`` counts through all chunks, as in ``LoweredProgram.tables``. ``spent`` are the cycles
of the station, by ``Cause``, since its span before ended: waits for this instruction and in it."""


@dataclass(frozen=True, slots=True)
class TimedTransfer:
    """A transfer on the host link.

    ``issued`` is the cycle in which the scalar core issued its descriptor (-1: the host began it),
    ``start`` and ``end`` are those of its bytes. ``number`` is that of a chunk or an interrupt.
    """

    kind: TransferKind
    direction: TransferDirection
    size: int
    number: int
    issued: int
    start: int
    end: int


@brief
@dataclass(frozen=True, slots=True)
class LayerTiming:
    """A layer (``darwinn_sim.machine.layers``) in time.

    ``start`` and ``end`` are cycles: of its first and behind its last tensor instruction, -1 for a
    layer that was not executed. ``cycles`` holds, by ``Cause``, the cycles of the tensor units of
    all tiles in and before its instructions; ``busiest`` the working cycles of the busiest tile.
    ``iterations`` and ``products`` (8 x 8 bit) are sums over all tiles.
    """

    number: int
    start: int
    end: int
    cycles: NDArray[np.int64]
    busiest: int
    iterations: int
    products: int


@brief
@dataclass(frozen=True, eq=False)
class Timing:
    """Cycles of one run of an executable, approximately those of the chip.

    Attributes:
        chip, host: the descriptions that were used; ``host`` None is a link of endless speed.
        program: the lowered executable.
        cycles: from the request to the last interrupt, without the host's fixed cost.
        tile_usage: int64, shape ``(tiles, stations, causes)``: how each station of
            ``TILE_STATION_NAMES`` spent its cycles; the causes of a station add up to ``cycles``.
        chip_usage: int64, shape ``(stations, causes)``, for ``CHIP_STATION_NAMES``.
        tile_elements: int64, shape ``(tiles, stations)``: what each station moved: iterations of
            the tensor unit, words of result writer, narrow-to-wide, wide-to-narrow and mesh, rows
            of ring producer and consumers, instructions of dispatch.
        chip_elements: int64, shape ``(stations,)``: bundles, units of pops, infeed and outfeed,
            bytes of the link.
        instructions: int64, shape ``(instructions, causes)``: cycles of all stations on each
            instruction, the wait before it included.
        executions: int64, shape ``(instructions, 3)``: how often each was executed by a unit, first
            start and last end (0, -1 and -1 if never).
        transfers: the host link's transfers in order, both directions.
        ring_rows, ring_words, ring_busy: rows and words on the ring, cycles in which it was taken.
        layers: one for each layer of the program.
        spans: array of ``SPAN`` by start if recording was asked for, else empty.
        output_copies: copies by which the host brings the outputs into the order of the tensors.
    """

    chip: ChipDescription
    host: HostLink | None
    program: LoweredProgram
    cycles: int
    tile_usage: NDArray[np.int64]
    chip_usage: NDArray[np.int64]
    tile_elements: NDArray[np.int64]
    chip_elements: NDArray[np.int64]
    instructions: NDArray[np.int64]
    executions: NDArray[np.int64]
    transfers: tuple[TimedTransfer, ...]
    ring_rows: int
    ring_words: int
    ring_busy: int
    layers: tuple[LayerTiming, ...]
    spans: NDArray[np.void]
    output_copies: int = 0

    @property
    def device_seconds(self) -> float:
        """Seconds of the cycles."""
        return self.cycles / self.chip.clock.value

    @property
    def fixed_seconds(self) -> float:
        """The host's fixed cost of a request."""
        return self.host.fixed_seconds.value if self.host else 0.0

    @property
    def copy_seconds(self) -> float:
        """The host's copies of outputs."""
        return self.output_copies * self.host.output_copy_seconds.value if self.host else 0.0

    @property
    def seconds(self) -> float:
        """Seconds of a request: the cycles, the host's fixed cost and its copies of outputs."""
        return self.device_seconds + self.fixed_seconds + self.copy_seconds

    @property
    def fixed_share(self) -> float:
        """Share of the host's fixed cost in ``seconds``."""
        return self.fixed_seconds / self.seconds if self.seconds else 0.0

    @property
    def tensor_iterations(self) -> int:
        """Iterations of the tensor units of all tiles."""
        return int(self.tile_elements[:, stations.TENSOR].sum())

    @property
    def utilisation(self) -> float:
        """Share of the multipliers' cycles in which they compute: products by peak of the run."""
        products = sum(layer.products for layer in self.layers)
        peak = chip.TILES * chip.LANES * 4 * self.cycles
        return products / peak if peak else 0.0

    def waiting(self) -> dict[Cause, int]:
        """Cycles of the tensor units of all tiles, by cause."""
        totals = self.tile_usage[:, stations.TENSOR].sum(axis=0)
        return {cause: int(totals[cause]) for cause in Cause}
