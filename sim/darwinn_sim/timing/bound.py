"""How long an executable takes at least, and about, from what it contains: nothing is simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.isa.table import BY_NAME, TENSOR_NAMES
from darwinn_sim.kernel.state import Handover
from darwinn_sim.kernel.structure import Records
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.timing.description import ChipDescription, HostLink
from darwinn_sim.timing.state import Step
from darwinn_sim.timing.trace import blocks

OVERHEAD = 1.29
"""On-chip time by iterations of the busiest tile plus scalar cycles: the median of eight
convolution networks, which lie within 1.18 and 1.72."""


_TENSOR_OPCODES = [BY_NAME[name].opcode for name in TENSOR_NAMES]


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
        """Cycles of a convolution network, within a third or so."""
        return OVERHEAD * (self.tensor + self.scalar) + self.instructions + self.inputs


def static_bound(
    program: LoweredProgram,
    chunk_bytes: Sequence[int],
    chip_parameters: ChipDescription,
    host: HostLink | None = None,
) -> StaticBound:
    """The bound of a run; ``host`` None is a link of endless speed. Raises as ``trace.blocks``."""
    iterations = np.zeros(chip.TILES, np.int64)
    scalar = incoming = outgoing = 0
    for steps in blocks(program):
        iterations += _iterations(program, steps[steps["kind"] == Handover.DISPATCH])
        scalar += int((steps["gap"] + steps["length"]).sum())
        descriptors = steps[steps["kind"] == Handover.DESCRIPTOR]
        inputs = np.isin(descriptors["target"], (DescriptorTag.INPUT, DescriptorTag.PARAMETERS))
        outputs = descriptors["target"] == DescriptorTag.OUTPUT
        incoming += int(descriptors["size"][inputs].sum())
        outgoing += int(descriptors["size"][outputs].sum())
    clock = chip_parameters.clock.value
    speeds = (host.bytes_per_second_in.value, host.bytes_per_second_out.value) if host else None
    inwards, outwards = (clock / speed for speed in speeds) if speeds else (0.0, 0.0)
    return StaticBound(
        tensor=int(iterations.max()),
        scalar=scalar,
        instructions=sum(chunk_bytes) * inwards,
        inputs=incoming * inwards,
        outputs=outgoing * outwards,
    )


def _iterations(program: LoweredProgram, steps: Records[Step]) -> NDArray[np.int64]:
    """Iterations of the tensor unit of each tile in instructions that were dispatched."""
    tables = program.tables
    tensor = steps[np.isin(tables.opcode[steps["instruction"]], _TENSOR_OPCODES)]
    goes_to = tensor["target"][:, None] >> np.arange(chip.TILES) & 1
    iterations = tables.tensor_plan.place["iterations"][tensor["row"]]
    total: NDArray[np.int64] = iterations @ goes_to
    return total
