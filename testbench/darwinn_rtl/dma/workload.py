"""The DMA program of an executable as a workload for the harness, and its result.

The scalar core of the model runs the executable and issues the descriptors. All data that it moves
is recorded, so that the harness can move it again and be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_sim.accelerator import Accelerator, ModelEngine
from darwinn_sim.host.dma_trace import Transfer, TransferDirection, TransferKind
from darwinn_sim.host.interface import HostInterface
from darwinn_sim.host.memory import HostMemory
from darwinn_sim.isa.codes import DescriptorTag
from numpy.typing import NDArray

from darwinn_rtl.dma.descriptor_model import (
    ADDRESS_BITS,
    READ_TAGS,
    Descriptor,
    DescriptorModel,
    Outcome,
    Window,
)
from darwinn_rtl.dma.programs import DescriptorProgram, Pressure
from darwinn_rtl.dma.timing import Channel, DmaStep

DESCRIPTORS = np.dtype(
    [("address", "<u8"), ("size", "<u4"), ("tag", "u1"), ("fence", "u1"), ("unused", "<u2")]
)
"""A descriptor as ``harness_player.cpp`` reads it."""

EVENTS = np.dtype([("cycle", "<u4"), ("kind", "<u4"), ("index", "<u4")])
"""An entry of the log: the cycle since it began, what happened (below 16: completion event of that
number; from 16 on: 16 + outcome of the beginning), and the descriptor's place in the order."""

START = 16
"""Kind of the event that a descriptor begins; the outcome is added."""

_TAGS = {
    TransferKind.INSTRUCTION: DescriptorTag.INSTRUCTIONS,
    TransferKind.INPUT: DescriptorTag.INPUT,
    TransferKind.PARAMETER: DescriptorTag.PARAMETERS,
    TransferKind.OUTPUT: DescriptorTag.OUTPUT,
}


STALL_CYCLES = 4093
"""Cycles after which a random back-pressure pattern repeats; a prime, so that it meets bursts and
boundaries in every way."""

NO_STALLS = np.zeros(0, np.uint32)
"""The back-pressure pattern that holds nothing back."""

DEFAULT_WINDOW = Window(1 << 63, 1 << 32)
"""The window of device addresses after reset."""


def stall_pattern(seed: int, pressure: Pressure) -> NDArray[np.uint32]:
    """A pattern in which each channel is held back in its share of the cycles."""
    if not pressure:
        return NO_STALLS
    shares = [pressure.bus] * 5 + [pressure.sinks] * 3 + [pressure.source]
    held = np.random.default_rng(seed).random((STALL_CYCLES, len(Channel))) < shares
    held[0] = False
    words: NDArray[np.uint32] = (held << np.arange(len(Channel))).sum(axis=1).astype(np.uint32)
    return words


@dataclass
class Workload:
    """Descriptors with the memory that they work on.

    ``regions`` maps the bus address of each piece of host memory to its bytes before the run,
    ``output`` is the output stream. ``stalls`` is uint32 of shape (cycles,), repeated for ever: a
    bit for each ``Channel`` of the timing model, 1 where it is held back.
    """

    descriptors: list[Descriptor]
    regions: dict[int, bytes]
    output: bytes
    stalls: NDArray[np.uint32] = field(default_factory=lambda: NO_STALLS)
    window: Window = DEFAULT_WINDOW
    burst_limit: int = 0

    def table(self) -> NDArray[np.void]:
        """The descriptors as ``harness_player.cpp`` reads them."""
        rows = [(d.address, d.size, d.tag, d.fence, 0) for d in self.descriptors]
        return np.array(rows, DESCRIPTORS)

    def steps(self) -> list[DmaStep]:
        """The descriptors as the timing model reads them."""
        return [
            DmaStep(
                d.tag,
                (d.address - self.window.base) % (1 << ADDRESS_BITS),
                d.size,
                d.fence,
                self.window.outcome(d) is not Outcome.STARTED,
            )
            for d in self.descriptors
        ]


@dataclass
class WorkloadResult:
    """What is there after the run: host memory, the bytes of each read stream, the log.

    ``seconds`` is the processor time of the simulation, ``registers`` holds status and counts,
    ``begun`` is the time in waves at which cycle 0 began.
    """

    regions: dict[int, bytes]
    streams: dict[DescriptorTag, bytes]
    events: NDArray[np.void] = field(default_factory=lambda: np.empty(0, EVENTS))
    seconds: float = 0.0
    begun: int = 0
    registers: dict[str, int] = field(default_factory=dict)

    @property
    def cycles(self) -> int:
        """The cycle of the last event, 0 without any."""
        return int(self.events["cycle"].max(initial=0))


def tag_of(transfer: Transfer) -> int:
    """The tag of the descriptor that a transfer of the trace stands for."""
    if transfer.kind is TransferKind.INTERRUPT:
        return DescriptorTag.INTERRUPT_0 + transfer.number
    if transfer.kind is TransferKind.SCRATCH:
        inwards = transfer.direction is TransferDirection.INFEED
        return DescriptorTag.INPUT if inwards else DescriptorTag.OUTPUT
    return _TAGS[transfer.kind]


def descriptor_of(transfer: Transfer) -> Descriptor:
    """The entry of the harness's descriptor queue for a transfer of the trace."""
    if transfer.kind is TransferKind.FENCE:
        return Descriptor(fence=True)
    return Descriptor(tag_of(transfer), transfer.address, transfer.size)


class _RecordingHost(HostInterface):
    """A host interface that records its traffic, and host memory before and after."""

    def __init__(self, memory: HostMemory) -> None:
        super().__init__(memory)
        self.streams = {tag: bytearray() for tag in READ_TAGS}
        self.output = bytearray()
        self.before: dict[int, bytes] = {}
        self.after: dict[int, bytes] = {}

    def fetch_chunk(self) -> bytes | None:
        if not self.before:
            self.before = self.snapshot()
        chunk = super().fetch_chunk()
        self.streams[DescriptorTag.INSTRUCTIONS] += chunk or b""
        return chunk

    def pull(self, tag: int, limit: int) -> NDArray[np.uint8]:
        data = super().pull(tag, limit)
        self.streams[DescriptorTag(tag)] += data.tobytes()
        return data

    def push(self, data: NDArray[np.uint8], known: NDArray[np.bool_] | None = None) -> None:
        self.output += data.tobytes()
        super().push(data, known)

    def issue(self, tag: int, address: int, size: int) -> None:
        super().issue(tag, address, size)
        if tag >= DescriptorTag.INTERRUPT_0:
            self.after = self.snapshot()

    def snapshot(self) -> dict[int, bytes]:
        """Every mapped buffer by device address."""
        return {
            mapping.address: self.mmu.read(mapping.address, mapping.size).tobytes()
            for mapping in self.mappings
        }


def record(
    executable: Executable, inputs: Mapping[str, bytes], window_base: int, *, seed: int = 0
) -> tuple[Workload, WorkloadResult]:
    """Run the DMA program of ``executable`` on the model; return the workload and its result.

    ``window_base`` is the device address of bus address 0. Raises what ``Accelerator.run`` raises.
    """
    accelerator = Accelerator(dma_only=True, seed=seed, engine=ModelEngine(_RecordingHost))
    host = accelerator.host
    assert isinstance(host, _RecordingHost)
    transfers = accelerator.run(executable, inputs).transfers
    workload = Workload(
        [descriptor_of(transfer) for transfer in transfers],
        {address - window_base: data for address, data in host.before.items()},
        bytes(host.output),
    )
    after = {address - window_base: data for address, data in host.after.items()}
    return workload, WorkloadResult(after, {tag: bytes(data) for tag, data in host.streams.items()})


def workload_of(program: DescriptorProgram, word_bytes: int, seed: int) -> Workload:
    """A random program as a workload; words that answer with an error are holes in the regions.

    ``seed`` decides the back-pressure pattern.
    """
    regions, start = {}, 0
    for word in [*sorted(program.bad_words), len(program.memory) // word_bytes]:
        end = word * word_bytes
        if end > start:
            regions[start] = program.memory[start:end]
        start = end + word_bytes
    return Workload(
        program.descriptors,
        regions,
        program.output,
        stall_pattern(seed, program.pressure),
        program.window,
        program.burst_limit,
    )


def performed_by_model(
    program: DescriptorProgram, word_bytes: int
) -> tuple[DescriptorModel[bytearray], WorkloadResult]:
    """The descriptor model's result for a random program."""
    memory = bytearray(program.memory)
    model = DescriptorModel(memory, program.window, word_bytes, program.bad_words)
    for descriptor, output in zip(program.descriptors, program.output_of(), strict=True):
        model.perform(descriptor, output)
    regions = workload_of(program, word_bytes, 0).regions
    return model, WorkloadResult(
        {start: bytes(memory[start : start + len(data)]) for start, data in regions.items()},
        {tag: bytes(data) for tag, data in model.streams.items()},
        registers=model.status(),
    )
