"""What the host link moves in a run, and the trace of the scalar core that asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from darwinn_sim.errors import ChipFault, PageFault, SimulationError
from darwinn_sim.host.descriptors import Refusal, refusal
from darwinn_sim.isa.codes import DescriptorTag
from darwinn_sim.kernel.state import Handover
from darwinn_sim.kernel.structure import Records
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.timing import state as parts
from darwinn_sim.timing import trace
from darwinn_sim.timing.host_buffers import HostBuffers

_KEPT_STEPS = 1 << 16
"""Steps that are kept from when the transfers were looked for; those of a longer trace are made
anew when they are executed. Public programs have up to 7,000."""

_KIND_OF_TAG = {DescriptorTag.INPUT: parts.ACTIVATIONS, DescriptorTag.PARAMETERS: parts.PARAMETERS}


@dataclass
class Plan:
    """The link's transfers in both directions, and the blocks of the trace, up to its fault."""

    steps: Iterator[Records[parts.Step]]
    inbound: Records[parts.Transfer]
    outbound: Records[parts.Transfer]
    unreachable: dict[int, PageFault]
    """What becomes of the outbound transfers that no buffer is for."""


def plan(program: LoweredProgram, sizes: Sequence[int], buffers: HostBuffers | None) -> Plan:
    """Look through the trace for what the link moves, in the order in which that is executed.

    A fault ends the run when the scalar core gets there: units may have stopped it before.
    """
    link = _Link(program, sizes, buffers)
    kept: list[Records[parts.Step]] = []
    steps = 0
    fault: SimulationError | None = None
    try:
        for block in trace.blocks(program):
            if steps <= _KEPT_STEPS:
                kept.append(block)
            steps += link.take(block)
            fault = link.fault
            if fault is not None:
                break
    except ChipFault as error:
        fault = error
    blocks = iter(kept) if steps <= _KEPT_STEPS else trace.blocks(program, again=True)
    outbound = _table(link.outbound)
    outbound["reachable"] = outbound["size"]
    outbound["address"] = link.addresses
    for number, unreachable in link.unreachable.items():
        outbound["reachable"][number] -= unreachable.size
    return Plan(_up_to(blocks, steps, fault), _table(link.inbound), outbound, link.unreachable)


def _up_to(
    blocks: Iterator[Records[parts.Step]], steps: int, fault: SimulationError | None
) -> Iterator[Records[parts.Step]]:
    """Blocks of ``steps`` in all; then the fault."""
    for block in blocks:
        yield block[:steps]
        steps -= min(steps, len(block))
        if not steps:
            break
    if fault is not None:
        raise fault


class _Link:
    """What the link moves, as far as the trace has been looked through, and what it cannot."""

    def __init__(
        self, program: LoweredProgram, sizes: Sequence[int], buffers: HostBuffers | None
    ) -> None:
        self.inbound: list[tuple[int, int, int]] = []
        self.outbound: list[tuple[int, int, int]] = []
        self.addresses: list[int] = []
        self.fault: SimulationError | None = None
        self.unreachable: dict[int, PageFault] = {}
        self._program, self._sizes, self._buffers = program, sizes, buffers
        self._promised = 0

    def take(self, block: Records[parts.Step]) -> int:
        """Take a block of the trace; return how many of its steps come before a fault."""
        kinds = block["kind"]
        of_link = (kinds == Handover.CHUNK) | (kinds == Handover.DESCRIPTOR)
        for at in np.flatnonzero(of_link):
            step = block[int(at)]
            if step["kind"] == Handover.CHUNK:
                number = int(step["target"])
                self.inbound.append((parts.INSTRUCTIONS, self._sizes[number], number))
                continue
            try:
                self._check(step)
            except SimulationError as error:
                self.fault = error
                return int(at)
            self._add(int(step["target"]), int(step["size"]))
            if step["target"] >= DescriptorTag.OUTPUT:
                self.addresses.append(int(step["address"]) % parts.BURST_BOUNDARY)
        return len(block)

    def _add(self, tag: int, size: int) -> None:
        if tag in _KIND_OF_TAG:
            if self.outbound and self.inbound[-1][0] != parts.HOST_FENCE:
                self.inbound.append((parts.HOST_FENCE, 0, self._promised))
            self.inbound.append((_KIND_OF_TAG[DescriptorTag(tag)], size, 0))
        elif tag == DescriptorTag.OUTPUT:
            self._promised += size
            self.outbound.append((parts.OUTPUT, size, 0))
        else:
            self.outbound.append((parts.INTERRUPT, 0, tag - DescriptorTag.INTERRUPT_0))

    def _check(self, step: parts.Step) -> None:
        """Raise what the host interface would for a descriptor."""
        tag, address, size = int(step["target"]), int(step["address"]), int(step["size"])
        reason = refusal(tag, address, size)
        if reason is not None:
            chunk, pc = self._program.locate(int(self._program.tables.pc[step["instruction"]]))
            text = f"descriptor tag {tag}: {reason.value}"
            if reason is Refusal.LENGTH_0:
                text = f"{reason.value} of descriptor tag {tag}"
            raise ChipFault("DMA", text, chunk, pc, -1, 0)
        if self._buffers is None or tag >= DescriptorTag.INTERRUPT_0:
            return
        try:
            self._buffers.transfer(tag, address, size)
        except PageFault as error:
            if tag != DescriptorTag.OUTPUT:
                raise
            # Output that never comes goes nowhere.
            self.unreachable[len(self.outbound)] = error


def _table(transfers: list[tuple[int, int, int]]) -> Records[parts.Transfer]:
    table = parts.Transfer.zeros(len(transfers))
    for row, (kind, size, number) in zip(table, transfers, strict=True):
        row["kind"], row["size"], row["number"] = kind, size, number
    for name in ("issued", "start", "end"):
        table[name] = -1
    return table
