"""The C++ side of memories that Python gives to the RTL in place (``rtl/bench/workload.cpp``)."""

from __future__ import annotations

import atexit
import ctypes
from functools import cache


@cache
def memory_library() -> ctypes.CDLL:
    """Return its functions in the simulation of this process.

    It forgets its arrays at the latest when Python ends: the RTL runs on for the rest of that time
    step, and would work in arrays that are gone.
    """
    library = ctypes.CDLL(None)
    library.workload_events.restype = ctypes.c_void_p
    library.workload_taken.restype = ctypes.c_uint64
    atexit.register(library.workload_reset)
    return library
