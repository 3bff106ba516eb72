"""Performs workloads on the harness, in this process: memory, units and log in C++.

The RTL works on the very arrays of this module: nothing is copied.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from darwinn_sim.isa.codes import DescriptorTag
from numpy.typing import NDArray

from darwinn_rtl.build import Design
from darwinn_rtl.dma.descriptor_model import READ_TAGS
from darwinn_rtl.dma.workload import DEFAULT_WINDOW, EVENTS, Workload, WorkloadResult
from darwinn_rtl.harness import HarnessDescription
from darwinn_rtl.player import HANDLE, OUTCOME, TIMED_OUT, WIDE, Player, RtlTimeout, Signatures
from darwinn_rtl.registers_rdl import HARNESS_MAP

LONGEST_CYCLES = 200_000_000
"""Default bound of the wait for a workload."""

NO_SETTINGS: Mapping[str, int] = {}

_OFFSETS = {entry.name: entry.offset for entry in HARNESS_MAP}

_IN_ORDER, _UNRULY = 1, 2
"""``Memory`` of ``harness.sv``."""


def workload_design(
    harness: HarnessDescription | None = None, *, waves: bool = False, unruly: bool = False
) -> Design:
    """The harness with memory in C++. An ``unruly`` memory has no predictable cycles; it does
    everything that AXI4 allows."""
    harness = harness or HarnessDescription()
    return Design(
        "harness",
        {
            "DataBytes": harness.data_bytes,
            "BufferBeats": harness.buffer_words,
            "QueueDepth": harness.queue_depth,
            "OutstandingReads": harness.outstanding_reads,
            "OutstandingWrites": harness.outstanding_writes,
            "Latency": harness.memory_latency,
            "Memory": _UNRULY if unruly else _IN_ORDER,
        },
        registers=True,
        c_sources=("harness_player.cpp", "host_memory.cpp"),
        waves=waves,
    )


class Placed(ctypes.Structure):
    """A workload in place: ``Workload`` of ``harness_player.cpp``, with the arrays it names."""

    _fields_ = (
        ("descriptors", HANDLE),
        ("count", WIDE),
        ("output", HANDLE),
        ("output_size", WIDE),
        ("stalls", HANDLE),
        ("stall_count", WIDE),
        ("sinks", HANDLE * len(READ_TAGS)),
        ("limits", WIDE * len(READ_TAGS)),
        ("taken", WIDE * len(READ_TAGS)),
        ("given", WIDE),
    )

    def __init__(self, workload: Workload) -> None:
        self.regions = {
            start: np.frombuffer(data, np.uint8).copy() for start, data in workload.regions.items()
        }
        table = workload.table()
        output = np.frombuffer(workload.output, np.uint8)
        stalls = np.ascontiguousarray(workload.stalls, np.uint32)
        sizes, tags = table["size"].astype(np.uint64), table["tag"]
        # Refused descriptors bring nothing, so this is at least what arrives.
        mapped = sum(data.size for data in self.regions.values())
        self.streams = [
            np.zeros(int(np.minimum(sizes[tags == tag], mapped).sum()), np.uint8)
            for tag in READ_TAGS
        ]
        self.arrays = (table, output, stalls)
        super().__init__(
            *(word for array in self.arrays for word in (array.ctypes.data, array.size)),
            (HANDLE * len(READ_TAGS))(*(data.ctypes.data for data in self.streams)),
            (WIDE * len(READ_TAGS))(*(data.size for data in self.streams)),
        )


class WorkloadPlayer(Player):
    """A harness that performs workloads, one after another.

    ``moved`` are the bytes that streams gave and took since the last one began. The RTL works in
    its memory until the next one begins, also if nobody waits for its end.
    """

    FUNCTIONS: ClassVar[Signatures] = {
        "harness_begin": (WIDE, (HANDLE, HANDLE)),
        "harness_finish": (OUTCOME, (HANDLE, WIDE)),
    }

    def __init__(
        self, seed: int = 0, chosen: Design | None = None, *, waves: Path | None = None
    ) -> None:
        super().__init__(seed, chosen or workload_design(), waves=waves)
        self._library.memory_seed(seed)
        self._workload: Placed | None = None

    @property
    def moved(self) -> int:
        """Bytes that streams gave and took since the last workload began."""
        assert self._workload is not None
        return int(sum(self._workload.taken) + self._workload.given)

    def memory_saw(self, what: int) -> int:
        """How often an unruly memory did so, by the number of ``unruly_memory.sv``."""
        return int(self._library.memory_seen_of(what))

    def write(self, name: str, value: int) -> None:
        """Write register ``name``."""
        self.write_register(_OFFSETS[name], value)

    def perform(
        self,
        workload: Workload,
        limit: int = LONGEST_CYCLES,
        status: tuple[str, ...] = (),
        settings: Mapping[str, int] = NO_SETTINGS,
    ) -> WorkloadResult:
        """Reset, perform ``workload``, and return its result with the ``status`` registers.

        ``settings`` are further registers to write before, in this order.

        Raises ``RtlTimeout`` if it is not done after ``limit`` cycles, ``RtlFailure`` if an
        assertion fails, and ``AssertionError`` if a stream gave more bytes than requested.
        """
        self.reset()
        self.unmap_all()
        self._workload = chosen = Placed(workload)
        for start, data in chosen.regions.items():
            self.map(start, data.ctypes.data, data.size)
        if workload.window != DEFAULT_WINDOW:
            self.write("harness_window_base", workload.window.base)
            self.write("harness_window_size", workload.window.size)
        if workload.burst_limit:
            self.write("dma_burst_limiter", workload.burst_limit)
        for name, value in settings.items():
            self.write(name, value)
        begun = self._library.harness_begin(self._player, ctypes.byref(chosen))
        seconds = self._finish(limit, len(workload.descriptors))
        self.run(3)  # status registers follow
        result = self._result(chosen)
        result.seconds, result.begun = seconds, begun
        result.registers = {name: self.read_register(_OFFSETS[name]) for name in status}
        return result

    def _finish(self, limit: int, descriptors: int) -> float:
        """Wait for the end; the processor seconds."""
        begun = time.process_time()
        outcome = self._library.harness_finish(self._player, limit)
        if outcome == TIMED_OUT:
            raise RtlTimeout(f"waited {limit} cycles for the end of {descriptors} descriptors")
        self._check(outcome, "")
        return time.process_time() - begun

    def _result(self, chosen: Placed) -> WorkloadResult:
        streams: dict[DescriptorTag, bytes] = {}
        for tag, data, taken in zip(READ_TAGS, chosen.streams, chosen.taken, strict=True):
            assert taken <= data.size, f"stream {tag.name}: {taken} bytes of {data.size}"
            streams[tag] = data[:taken].tobytes()
        entries, count = self._events()
        events: NDArray[Any] = np.empty(count, EVENTS)
        if count:
            ctypes.memmove(events.ctypes.data, entries, events.nbytes)
        regions = {start: data.tobytes() for start, data in chosen.regions.items()}
        return WorkloadResult(regions, streams, events)
