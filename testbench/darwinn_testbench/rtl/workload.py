"""The DMA program of an executable as a workload for the harness, and what came of it.

The scalar core of the model runs the executable and issues the descriptors; everything that it
moved is recorded, so that the harness can move it again and be compared. A workload travels to the
simulation, and its result back, as a file of arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.dma_trace import Transfer, TransferDirection, TransferKind
from darwinn_sim.host_interface import HostInterface
from darwinn_sim.host_memory import HostMemory
from numpy.typing import NDArray

from darwinn_testbench.rtl.descriptor_model import READ_TAGS, Descriptor, Tag

DESCRIPTORS = np.dtype(
    [("address", "<u8"), ("size", "<u4"), ("tag", "u1"), ("fence", "u1"), ("unused", "<u2")]
)
"""A descriptor as ``workload.cpp`` reads it."""

EVENTS = np.dtype([("cycle", "<u4"), ("kind", "<u4"), ("index", "<u4")])
"""An entry of the log: the cycle since ``go``, what happened (below 16: completion event of that
number; from 16 on: 16 + outcome of the beginning), and the descriptor's place in the order."""

START = 16
"""Kind of the event that a descriptor begins; the outcome is added."""

_TAGS = {
    TransferKind.INSTRUCTION: Tag.INSTRUCTION,
    TransferKind.INPUT: Tag.INPUT,
    TransferKind.PARAMETER: Tag.PARAMETER,
    TransferKind.OUTPUT: Tag.OUTPUT,
}


@dataclass
class Workload:
    """Descriptors with the memory that they work on.

    ``regions`` maps the bus address of each piece of host memory to its bytes before the run,
    ``output`` is the output stream.
    """

    descriptors: list[Descriptor]
    regions: dict[int, bytes]
    output: bytes

    def save(self, path: Path) -> None:
        """Write the workload as a file of arrays."""
        rows = [(d.address, d.size, d.tag, d.fence, 0) for d in self.descriptors]
        _save(
            path,
            self.regions,
            descriptors=np.array(rows, DESCRIPTORS),
            output=np.frombuffer(self.output, np.uint8),
        )


@dataclass
class WorkloadResult:
    """What is there after the run: host memory, the bytes of each read stream, the log."""

    regions: dict[int, bytes]
    streams: dict[Tag, bytes]
    events: NDArray[np.void] = field(default_factory=lambda: np.empty(0, EVENTS))

    def save(self, path: Path) -> None:
        """Write the result as a file of arrays."""
        streams = {
            f"stream_{int(tag)}": np.frombuffer(data, np.uint8)
            for tag, data in self.streams.items()
        }
        _save(path, self.regions, events=self.events, **streams)

    @classmethod
    def load(cls, path: Path) -> WorkloadResult:
        """Read what ``save`` has written."""
        with np.load(path) as arrays:
            streams = {tag: arrays[f"stream_{int(tag)}"].tobytes() for tag in READ_TAGS}
            return cls(_regions(arrays), streams, arrays["events"])


def _save(path: Path, regions: Mapping[int, bytes], **arrays: NDArray[np.generic]) -> None:
    memory = {f"region_{start:x}": np.frombuffer(data, np.uint8) for start, data in regions.items()}
    np.savez(path, allow_pickle=False, **memory, **arrays)


def _regions(arrays: Mapping[str, NDArray[np.generic]]) -> dict[int, bytes]:
    prefix = "region_"
    return {
        int(name.removeprefix(prefix), 16): arrays[name].tobytes()
        for name in arrays
        if name.startswith(prefix)
    }


def tag_of(transfer: Transfer) -> int:
    """The tag of the descriptor that a transfer of the trace stands for."""
    if transfer.kind is TransferKind.INTERRUPT:
        return Tag.INTERRUPT + transfer.number
    if transfer.kind is TransferKind.SCRATCH:
        inwards = transfer.direction is TransferDirection.INFEED
        return Tag.INPUT if inwards else Tag.OUTPUT
    return _TAGS[transfer.kind]


def descriptor_of(transfer: Transfer) -> Descriptor:
    """The entry of the harness's descriptor queue for a transfer of the trace."""
    if transfer.kind is TransferKind.FENCE:
        return Descriptor(fence=True)
    return Descriptor(tag_of(transfer), transfer.address, transfer.size)


class _RecordingHost(HostInterface):
    """A host interface that keeps what went through it, and host memory before and after."""

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
        self.streams[Tag.INSTRUCTION] += chunk or b""
        return chunk

    def pull(self, tag: int, limit: int) -> NDArray[np.uint8]:
        data = super().pull(tag, limit)
        self.streams[Tag(tag)] += data.tobytes()
        return data

    def push(self, data: NDArray[np.uint8]) -> None:
        self.output += data.tobytes()
        super().push(data)

    def issue(self, tag: int, address: int, size: int) -> None:
        super().issue(tag, address, size)
        if tag >= Tag.INTERRUPT:
            self.after = self.snapshot()

    def snapshot(self) -> dict[int, bytes]:
        """Every mapped buffer by device address."""
        return {
            mapping.address: self.mmu.read(mapping.address, mapping.size).tobytes()
            for mapping in self.mappings
        }


class _RecordingAccelerator(Accelerator):
    def _new_host(self) -> HostInterface:
        self.recorder = _RecordingHost(HostMemory(strict=self.strict))
        return self.recorder


def record(
    executable: Executable, inputs: Mapping[str, bytes], window_base: int, *, seed: int = 0
) -> tuple[Workload, WorkloadResult]:
    """Run the DMA program of ``executable`` on the model; return the workload and its result.

    ``window_base`` is the device address of bus address 0. Raises what ``Accelerator.run`` raises.
    """
    accelerator = _RecordingAccelerator(dma_only=True, seed=seed)
    transfers = accelerator.run(executable, inputs).transfers
    host = accelerator.recorder
    workload = Workload(
        [descriptor_of(transfer) for transfer in transfers],
        {address - window_base: data for address, data in host.before.items()},
        bytes(host.output),
    )
    after = {address - window_base: data for address, data in host.after.items()}
    return workload, WorkloadResult(after, {tag: bytes(data) for tag, data in host.streams.items()})
