"""How long an executable takes at least, and about, from what it contains: nothing is simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from darwinn_sim import chip
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.isa.table import BY_NAME, TENSOR_NAMES
from darwinn_sim.kernel.state import Handover
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.timing.description import ChipDescription, HostLink
from darwinn_sim.timing.trace import record

OVERHEAD = 1.17
"""On-chip time by iterations of the busiest tile plus scalar cycles: the mean of eleven convolution
networks, which lie within 1.13 and 1.29."""


_TENSOR_OPCODES = frozenset(BY_NAME[name].opcode for name in TENSOR_NAMES)


@dataclass(frozen=True, slots=True)
class StaticBound:
    """Cycles that parts of a run take, each by itself.

    ``tensor``: iterations of the busiest tile; ``scalar``: bundles; ``instructions``, ``inputs``
    (parameters that are streamed included) and ``outputs``: bytes on the host link.
    """

    tensor: int
    scalar: int
    instructions: float
    inputs: float
    outputs: float

    @property
    def lower(self) -> float:
        """Cycles below which no run can be: what must be done one after the other."""
        computing = max(self.tensor, self.scalar)
        return max(self.instructions + max(computing, self.inputs), self.outputs)

    @property
    def estimate(self) -> float:
        """Cycles of a convolution network, within a tenth or so."""
        return OVERHEAD * (self.tensor + self.scalar) + self.instructions + self.inputs


def static_bound(
    program: LoweredProgram,
    chunk_bytes: Sequence[int],
    chip_parameters: ChipDescription,
    host: HostLink | None = None,
) -> StaticBound:
    """The bound of a run; ``host`` None is a link of endless speed. Raises as ``trace.record``."""
    steps = record(program)
    tables = program.tables
    iterations = np.zeros(chip.TILES, np.int64)
    for step in steps[steps["kind"] == Handover.DISPATCH]:
        if tables.opcode[step["instruction"]] in _TENSOR_OPCODES:
            place = tables.tensor_plan.place[step["row"]]
            iterations[_tiles(int(step["target"]))] += place["iterations"]
    descriptors = steps[steps["kind"] == Handover.DESCRIPTOR]
    incoming = np.isin(descriptors["target"], (DescriptorTag.INPUT, DescriptorTag.PARAMETERS))
    outgoing = descriptors["target"] == DescriptorTag.OUTPUT
    clock = chip_parameters.clock.value
    speeds = (host.bytes_per_second_in.value, host.bytes_per_second_out.value) if host else None
    inwards, outwards = (clock / speed for speed in speeds) if speeds else (0.0, 0.0)
    return StaticBound(
        tensor=int(iterations.max()),
        scalar=int((steps["gap"] + steps["length"]).sum()),
        instructions=sum(chunk_bytes) * inwards,
        inputs=int(descriptors["size"][incoming].sum()) * inwards,
        outputs=int(descriptors["size"][outgoing].sum()) * outwards,
    )


def _tiles(targets: int) -> list[int]:
    return [tile for tile in range(chip.TILES) if targets >> tile & 1]
