"""A top module in RTL, in this process: a shared library that Verilator builds, with its C++ side.

The RTL works directly in the host memory that Python maps, and runs only within a call.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from darwinn_sim.errors import SimulationError

from darwinn_rtl.build import Design, as_asked, library, simulation_argument
from darwinn_rtl.line_coverage import keep_library_counts
from darwinn_rtl.waves import kept_waves, unfinished, write_save_file

STANDSTILL = 1 << 18
"""A wait is given up after so many cycles in which nothing moves, beside those in which a program
can be at work without a change of a flag, row, transfer or idle bit (``Player.quiet``)."""

_DONE, TIMED_OUT, _ASSERTION, _INTERRUPTED, _REFUSED_BY_BUS = range(5)


_WRITE = "the answer to the write of register"
_READ = "the answer to the read of register"

_numbers = count()
"""Numbers for tops of this process that write waves to no file of the caller's choice."""


class RtlTimeout(SimulationError):
    """Nothing moves any more in the RTL; the message names the awaited event and the state."""


class RtlFailure(SimulationError):
    """The RTL broke one of its own rules, or a transfer failed."""


class Event(ctypes.Structure):
    """``Event`` of ``player.h``."""

    _fields_ = (
        ("cycle", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("index", ctypes.c_uint32),
    )


READ_ELSEWHERE = ctypes.CFUNCTYPE(
    ctypes.c_uint8, ctypes.c_uint64, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint8)
)
"""Gives the bytes at a bus address that no mapped region has; 1 if there are none."""

WRITE_ELSEWHERE = ctypes.CFUNCTYPE(
    ctypes.c_uint8,
    ctypes.c_uint64,
    ctypes.c_uint32,
    ctypes.POINTER(ctypes.c_uint8),
    ctypes.c_uint32,
)
"""Writes the bytes there that have a bit in the last argument; 1 if the address has no memory."""

HANDLE, WORD, WIDE = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
OUTCOME = ctypes.c_uint32

Signatures = Mapping[str, tuple[Any, tuple[Any, ...]]]
"""Result and arguments of C functions."""

MEMORY: Signatures = {
    "host_memory_forget": (None, ()),
    "host_memory_map": (None, (WIDE, WIDE, HANDLE)),
    "host_memory_elsewhere": (None, (READ_ELSEWHERE, WRITE_ELSEWHERE)),
    "memory_seed": (None, (WIDE,)),
    "memory_seen_of": (WIDE, (WORD,)),
}
"""What ``host_memory.cpp`` exports."""

_EVERY_PLAYER: Signatures = {
    **MEMORY,
    "player_open": (HANDLE, (ctypes.c_int, ctypes.c_char_p)),
    "player_close": (None, (HANDLE,)),
    "player_failure": (ctypes.c_char_p, ()),
    "player_reset": (None, (HANDLE,)),
    "player_cycle": (WIDE, (HANDLE,)),
    "player_run": (OUTCOME, (HANDLE, WIDE)),
    "player_write_register": (OUTCOME, (HANDLE, WORD, WIDE, WIDE)),
    "player_read_register": (OUTCOME, (HANDLE, WORD, ctypes.POINTER(WIDE), WIDE)),
    "player_events": (WORD, (HANDLE, ctypes.POINTER(ctypes.POINTER(Event)))),
    "player_forget_events": (None, (HANDLE,)),
}
_WITH_WAVES: Signatures = {"player_write_waves": (None, (HANDLE, ctypes.c_char_p))}
_WITH_COVERAGE: Signatures = {"player_write_coverage": (None, (HANDLE, ctypes.c_char_p))}


def declare(opened: ctypes.CDLL, signatures: Signatures) -> ctypes.CDLL:
    """Give functions of a library their types; return it."""
    for name, (result, arguments) in signatures.items():
        function = getattr(opened, name)
        function.restype, function.argtypes = result, arguments
    return opened


@cache
def _library(chosen: Design) -> ctypes.CDLL:
    opened = declare(ctypes.CDLL(str(library(chosen))), _EVERY_PLAYER)
    declare(opened, _WITH_WAVES if chosen.waves else {})
    return declare(opened, _WITH_COVERAGE if chosen.coverage else {})


class Player:
    """A top after reset; state without a reset is random, from ``seed``.

    A design with waves writes them to ``waves``, an FST, with a file of groups beside it.

    All players of a process with the same design share host memory: :meth:`map` and
    :meth:`unmap_all` are for all. ``quiet``: cycles in which a program can be at work and nothing
    shows it.
    """

    quiet: int = 0

    FUNCTIONS: ClassVar[Signatures] = {}
    """What the library exports besides the functions of every player."""

    def __init__(self, seed: int, chosen: Design, *, waves: Path | None = None) -> None:
        self.design = as_asked(chosen)
        self._library = declare(_library(self.design), self.FUNCTIONS)
        argument = simulation_argument().encode()
        self._player = self._library.player_open(1 + seed % 0x7FFF_FFFE, argument)
        dump: Path | None = None
        if self.design.waves:
            dump = waves or kept_waves(
                Path.cwd(), self.design.top, f"{os.getpid()}-{next(_numbers)}"
            )
            dump.parent.mkdir(parents=True, exist_ok=True)
            self._library.player_write_waves(self._player, str(unfinished(dump)).encode())
        closes = partial(_close, self._library, self._player, self.design, dump, self.groups)
        self._finalizer = weakref.finalize(self, closes)

    @staticmethod
    def groups(dump: Path, design: Design) -> None:
        """Write the save file of finished waves."""
        write_save_file(dump, design.top)

    def close(self) -> None:
        """Free the memory of the simulation; call nothing else afterwards."""
        self._finalizer()

    def reset(self) -> None:
        """Reset the top; memories keep their contents."""
        self._library.player_reset(self._player)

    @property
    def cycle(self) -> int:
        """Cycles since the last reset."""
        return int(self._library.player_cycle(self._player))

    def unmap_all(self) -> None:
        """Forget all host memory."""
        self._library.host_memory_forget()

    def map(self, address: int, place: int, size: int) -> None:
        """Let ``size`` bytes of this process, at ``place``, be those from a bus address on.

        The RTL works on them in place, so they must stay until :meth:`unmap_all`.
        """
        self._library.host_memory_map(address, size, place)

    def map_elsewhere(
        self,
        read: Callable[[int, int], bytes | None],
        write: Callable[[int, bytes, int], bool],
    ) -> None:
        """Let these functions answer for unmapped memory, until :meth:`unmap_all`.

        ``read`` takes a bus address and a size, and returns None if there is no memory. ``write``
        takes an address, bytes, and a bit for each byte to write, and returns whether it wrote
        them.
        """

        def give(address: int, size: int, target: Any) -> int:
            data = read(address, size)
            if data is None:
                return 1
            ctypes.memmove(target, data, size)
            return 0

        def take(address: int, size: int, source: Any, strobes: int) -> int:
            return int(not write(address, ctypes.string_at(source, size), strobes))

        self._elsewhere = READ_ELSEWHERE(give), WRITE_ELSEWHERE(take)
        self._library.host_memory_elsewhere(*self._elsewhere)

    def write_register(self, offset: int, value: int) -> None:
        """Write a register of 64 bits, as the host does.

        Raises ``RtlFailure`` if the bus refuses, ``RtlTimeout`` and ``RtlFailure`` as all that
        follow do.
        """
        self._wait("player_write_register", offset, value, awaited=f"{_WRITE} {offset:#x}")

    def read_register(self, offset: int) -> int:
        """The value of a register of 64 bits, as the host reads it."""
        value = WIDE()
        place = ctypes.byref(value)
        self._wait("player_read_register", offset, place, awaited=f"{_READ} {offset:#x}")
        return value.value

    def run(self, cycles: int) -> None:
        """Run for so many cycles, whatever happens in them."""
        self._check(self._library.player_run(self._player, cycles), "cycles to pass")

    def _events(self) -> tuple[Any, int]:
        """A pointer to the events since they were last forgotten, and their number."""
        events = ctypes.POINTER(Event)()
        return events, self._library.player_events(self._player, ctypes.byref(events))

    def _wait(self, function: str, *arguments: Any, awaited: str) -> None:
        """Call a function of the library that waits for something, with the bound of a wait."""
        waited = getattr(self._library, function)(self._player, *arguments, self._bound)
        self._check(waited, awaited)

    @property
    def _bound(self) -> int:
        """Cycles after which a wait is given up, if nothing has moved."""
        return STANDSTILL + self.quiet

    def _check(self, outcome: int, awaited: str) -> None:
        if outcome == _INTERRUPTED:
            raise KeyboardInterrupt
        if outcome == _REFUSED_BY_BUS:
            raise RtlFailure(f"the register bus answered with an error: {awaited}")
        if outcome == _ASSERTION:
            place = self._library.player_failure().decode()
            raise RtlFailure(f"an assertion of the RTL failed at cycle {self.cycle}: {place}")
        if outcome == TIMED_OUT:
            lines = (
                f"nothing has moved in the RTL for {self._bound} cycles; waited for {awaited}",
                *self._state(),
            )
            raise RtlTimeout("\n  ".join(lines))

    def _state(self) -> Iterator[str]:
        """What a time-out shows."""
        yield from ()


def _close(
    opened: ctypes.CDLL,
    handle: int,
    closed: Design,
    dump: Path | None,
    groups: Callable[[Path, Design], None],
) -> None:
    """Keep coverage counts and waves, and free the memory."""
    if closed.coverage:
        keep_library_counts(partial(opened.player_write_coverage, handle), closed.top)
    opened.player_close(handle)
    if dump is not None:
        unfinished(dump).replace(dump)
        groups(dump, closed)
