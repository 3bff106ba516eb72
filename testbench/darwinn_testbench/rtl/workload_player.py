"""Gives a workload to the C++ side of the running simulation, and takes its result from there.

cocotb runs inside the simulator's process, so the C++ functions are reached without a library of
their own, and the RTL works on the very arrays of this module: nothing is copied.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from darwinn_testbench.rtl.descriptor_model import READ_TAGS
from darwinn_testbench.rtl.workload import DESCRIPTORS, EVENTS, WorkloadResult

_PREFIX = "region_"


class WorkloadPlayer:
    """The workload of file ``path``, in place for the simulation that this process is.

    ``stalls`` holds one word for each cycle, repeated for ever: bits 0 to 4 hold back the channels
    AR, R, AW, W and B of host memory, bits 5 to 8 the read streams and the output stream.
    """

    def __init__(self, path: Path, stalls: NDArray[np.uint32] | None = None) -> None:
        self._library = ctypes.CDLL(None)
        self._library.workload_events.restype = ctypes.c_void_p
        self._library.workload_taken.restype = ctypes.c_uint64
        with np.load(path) as arrays:
            self._regions = {
                int(name.removeprefix(_PREFIX), 16): arrays[name].copy()
                for name in arrays
                if name.startswith(_PREFIX)
            }
            self.descriptors = np.ascontiguousarray(arrays["descriptors"].astype(DESCRIPTORS))
            self._output = np.ascontiguousarray(arrays["output"])
        self._stalls = np.ascontiguousarray(
            np.empty(0, np.uint32) if stalls is None else stalls, np.uint32
        )
        self._sinks = {
            tag: np.zeros(int(self.descriptors["size"][self.descriptors["tag"] == tag].sum()), "u1")
            for tag in READ_TAGS
        }
        self._attach()

    def _attach(self) -> None:
        library, size = self._library, ctypes.c_uint64
        library.workload_reset()
        for start, data in self._regions.items():
            library.workload_map(size(start), size(data.size), _pointer(data))
        library.workload_program(
            _pointer(self.descriptors),
            ctypes.c_uint32(self.descriptors.size),
            _pointer(self._output),
            size(self._output.size),
        )
        for tag, data in self._sinks.items():
            library.workload_sink(ctypes.c_uint32(tag), _pointer(data), size(data.size))
        library.workload_pattern(_pointer(self._stalls), ctypes.c_uint32(self._stalls.size))

    def result(self) -> WorkloadResult:
        """What is there now; raises ``AssertionError`` if a stream gave more than was asked for."""
        for tag, data in self._sinks.items():
            taken = self._library.workload_taken(ctypes.c_uint32(tag))
            assert taken <= data.size, f"stream {tag.name}: {taken} bytes of {data.size}"
        count = self._library.workload_event_count()
        events = np.empty(count, EVENTS)
        if count:
            ctypes.memmove(_pointer(events), self._library.workload_events(), events.nbytes)
        return WorkloadResult(
            {start: data.tobytes() for start, data in self._regions.items()},
            {tag: data.tobytes() for tag, data in self._sinks.items()},
            events,
        )


def _pointer(array: NDArray[np.generic]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
