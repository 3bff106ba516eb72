"""Gives a workload to the C++ side of the running simulation, and takes its result from there.

cocotb runs inside the simulator's process, so the C++ functions are reached without a library of
their own, and the RTL works on the very arrays of this module: nothing is copied.
"""

from __future__ import annotations

import ctypes
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from darwinn_rtl.dma.descriptor_model import READ_TAGS
from darwinn_rtl.dma.workload import EVENTS, Workload, WorkloadResult
from darwinn_rtl.memory_library import memory_library


class WorkloadPlayer:
    """``workload``, in place for the simulation that this process is: from now on until there is
    another one, also if nobody waits for its end.
    """

    _in_place: ClassVar[WorkloadPlayer | None] = None
    """The player whose arrays the RTL works in, also after a test has ended."""

    def __init__(self, workload: Workload) -> None:
        self._library = memory_library()
        self._regions = {
            start: np.frombuffer(data, np.uint8).copy() for start, data in workload.regions.items()
        }
        self._descriptors = workload.table()
        self._output = np.frombuffer(workload.output, np.uint8)
        self._stalls = np.ascontiguousarray(workload.stalls, np.uint32)
        sizes, tags = self._descriptors["size"].astype(np.uint64), self._descriptors["tag"]
        # Refused descriptors bring nothing, so this is at least what arrives.
        mapped = sum(data.size for data in self._regions.values())
        self._sinks = {
            tag: np.zeros(int(np.minimum(sizes[tags == tag], mapped).sum()), np.uint8)
            for tag in READ_TAGS
        }
        self._attach()

    def _attach(self) -> None:
        library, size = self._library, ctypes.c_uint64
        library.workload_reset()
        for start, data in self._regions.items():
            library.workload_map(size(start), size(data.size), _pointer(data))
        library.workload_program(
            _pointer(self._descriptors),
            ctypes.c_uint32(self._descriptors.size),
            _pointer(self._output),
            size(self._output.size),
        )
        for tag, data in self._sinks.items():
            library.workload_sink(ctypes.c_uint32(tag), _pointer(data), size(data.size))
        library.workload_pattern(_pointer(self._stalls), ctypes.c_uint32(self._stalls.size))
        WorkloadPlayer._in_place = self

    def result(self) -> WorkloadResult:
        """The result so far; raises ``AssertionError`` if a stream gave more bytes than
        requested."""
        streams = {}
        for tag, data in self._sinks.items():
            taken = self._library.workload_taken(ctypes.c_uint32(tag))
            assert taken <= data.size, f"stream {tag.name}: {taken} bytes of {data.size}"
            streams[tag] = data[:taken].tobytes()
        count = self._library.workload_event_count()
        events = np.empty(count, EVENTS)
        if count:
            ctypes.memmove(_pointer(events), self._library.workload_events(), events.nbytes)
        regions = {start: data.tobytes() for start, data in self._regions.items()}
        return WorkloadResult(regions, streams, events)


def _pointer(array: NDArray[np.generic]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
