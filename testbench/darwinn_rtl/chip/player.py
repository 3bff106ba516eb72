"""The whole chip in RTL, in this process: instructions and descriptors for it, and waits.

The chip is a shared library that Verilator builds (``chip_player.sv`` with its C++ side). It works
directly in the host memory that Python maps. Every wait ends when nothing has moved for
``STANDSTILL`` cycles.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
from darwinn_sim import chip
from darwinn_sim.errors import SimulationError
from darwinn_sim.kernel.state import SCALAR_UNIT_NAMES, UNIT_NAMES
from darwinn_sim.machine.diagnosis import SCALAR_FLAG_NAMES, TILE_FLAG_NAMES
from numpy.typing import NDArray

from darwinn_rtl.build import Design, as_asked, library, simulation_argument
from darwinn_rtl.line_coverage import keep_library_counts
from darwinn_rtl.waves import kept_waves, unfinished, write_chip_save_file

STALLS: Final = "STALLS"
"""Preprocessor symbol of a build with random stalls."""

TILE_MODELS: Final = "TILE_MODELS"
"""Preprocessor symbol of a build in which each tile is a simulation of its own
(``tile_models.sv``)."""

STANDSTILL = 1 << 18
"""A wait is given up after so many cycles in which no flag, row, transfer or idle bit changes. No
single instruction works nearly as long without such a change."""

LAST_EVENTS: Final = 12
"""How many of the latest hand-overs a time-out shows."""

SHOWN_TILES: Final = 4
"""How many waiting tiles a time-out shows."""

STALLED_ROW_CYCLES: Final = 256
"""Cycles of a row on the ring in a build with stalls. Wide-to-narrow, when stalled, takes some 90
cycles for a row, and must have finished it before the next one lands (docs/chip-facts.md, "Ring
bus")."""

LINES, REFUSED, MEMORY_ERROR = range(3)
"""Kinds of events: the interrupt lines have changed to the index (bits 0 to 3 the host's, 4 the
instruction queue, 5 fatal errors); a descriptor was refused; host memory answered with an error."""

_DONE, _TIMED_OUT, _ASSERTION, _INTERRUPTED, _REFUSED_BY_BUS = range(5)
_SCALAR_UNITS = 4


_numbers = count()
"""Numbers for chips of this process that write waves to no file of the caller's choice."""


def design(
    tiles: int = chip.TILES, *, waves: bool = False, stalls: bool = False, **parameters: int
) -> Design:
    """The chip with ``tiles`` tiles and other parameters of ``chip_player.sv``.

    With ``stalls`` it can be held back at random, and host memory does whatever AXI4 lets it.
    """
    slower = {"RingCyclesPerRow": STALLED_ROW_CYCLES, "Unruly": 1} if stalls else {}
    return Design(
        "chip_player",
        {"Tiles": tiles, **slower, **parameters},
        registers=True,
        c_sources=("chip_player.cpp", "workload.cpp", "tile_models.cpp"),
        blocks=("tile",),
        waves=waves,
        defines=(TILE_MODELS, STALLS) if stalls else (TILE_MODELS,),
    )


class RtlTimeout(SimulationError):
    """Nothing moves any more in the RTL; the message names the awaited event and the state."""


class RtlFailure(SimulationError):
    """The RTL broke one of its own rules, or a transfer failed."""


class _Status(ctypes.Structure):
    """``Status`` of ``chip_player.cpp``."""

    _fields_ = (
        ("cycle", ctypes.c_uint64),
        ("rows", ctypes.c_uint64),
        ("started", ctypes.c_uint32),
        ("completed", ctypes.c_uint32),
        ("units_idle", ctypes.c_uint32),
        ("tiles_idle", ctypes.c_uint32),
        ("tile_units_idle", ctypes.c_uint32 * 5),
        ("scalar_flags", ctypes.c_uint16 * chip.SCALAR_FLAGS),
        ("tile_flags", (ctypes.c_uint16 * chip.TILE_FLAGS) * chip.TILES),
    )


class _Event(ctypes.Structure):
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


@cache
def _library(chosen: Design) -> ctypes.CDLL:
    opened = ctypes.CDLL(str(library(chosen)))
    handle, word, wide = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
    outcome = ctypes.c_uint32
    signatures = {
        "chip_open": (handle, (ctypes.c_int, ctypes.c_char_p)),
        "chip_close": (None, (handle,)),
        "chip_stall": (None, (wide,)),
        "chip_write_register": (outcome, (handle, word, wide, wide)),
        "chip_read_register": (outcome, (handle, word, ctypes.POINTER(wide), wide)),
        "chip_take_chunk": (outcome, (handle, ctypes.POINTER(word), wide)),
        "chip_hand_over": (
            outcome,
            (handle, ctypes.c_char_p, word, word, word, word, wide),
        ),
        "chip_descriptor": (outcome, (handle, word, word, word, wide, wide)),
        "chip_push": (outcome, (handle, word, wide)),
        "chip_fetch": (outcome, (handle, ctypes.c_char_p, wide, wide)),
        "chip_settle": (outcome, (handle, wide)),
        "chip_status": (ctypes.POINTER(_Status), (handle,)),
        "chip_events": (word, (handle, ctypes.POINTER(ctypes.POINTER(_Event)))),
        "chip_forget_events": (None, (handle,)),
        "chip_reset": (None, (handle,)),
        "chip_run": (outcome, (handle, wide)),
        "chip_scalar_memory": (ctypes.POINTER(word), (handle,)),
        "chip_activations": (ctypes.POINTER(ctypes.c_uint8), (handle,)),
        "chip_parameters": (ctypes.POINTER(ctypes.c_uint8), (handle,)),
        "chip_scalar_flags": (ctypes.POINTER(ctypes.c_uint16), (handle,)),
        "chip_failure": (ctypes.c_char_p, ()),
        "workload_reset": (None, ()),
        "workload_map": (None, (wide, wide, handle)),
        "workload_elsewhere": (None, (READ_ELSEWHERE, WRITE_ELSEWHERE)),
    }
    if chosen.waves:
        signatures["chip_write_waves"] = (None, (handle, ctypes.c_char_p))
    if chosen.coverage:
        signatures["chip_write_coverage"] = (None, (handle, ctypes.c_char_p))
    for name, (result, arguments) in signatures.items():
        function = getattr(opened, name)
        function.restype, function.argtypes = result, arguments
    return opened


class ChipPlayer:
    """A chip in RTL after reset; state without a reset is random, from ``seed``.

    A design with waves writes them to ``waves``, an FST, with a file of groups beside it. One with
    stalls is held back at random from ``stall_seed``: host memory, the ring, what the scalar core
    hands over, and every unit.

    All chips of a process share host memory: :meth:`map` and :meth:`unmap_all` are for all; and
    those of one design the stalls.
    """

    def __init__(
        self,
        seed: int = 0,
        chosen: Design | None = None,
        *,
        waves: Path | None = None,
        stall_seed: int | None = None,
    ) -> None:
        self.design = as_asked(chosen or design())
        self._library = _library(self.design)
        argument = simulation_argument().encode()
        self._chip = self._library.chip_open(1 + seed % 0x7FFF_FFFE, argument)
        if stall_seed is not None:
            self._library.chip_stall(stall_seed % (1 << 64))
        dump: Path | None = None
        if self.design.waves:
            dump = waves or kept_waves(
                Path.cwd(), self.design.top, f"{os.getpid()}-{next(_numbers)}"
            )
            dump.parent.mkdir(parents=True, exist_ok=True)
            self._library.chip_write_waves(self._chip, str(unfinished(dump)).encode())
        self._finalizer = weakref.finalize(
            self, _close, self._library, self._chip, self.design, dump
        )
        self._status = self._library.chip_status(self._chip).contents
        self._last: deque[str] = deque(maxlen=LAST_EVENTS)
        self.tiles = self.design.parameters["Tiles"]
        self.scalar_memory = self._view("scalar_memory", chip.SCALAR_MEMORY_WORDS)
        """Words that the units see, uint32, in place; so are the others."""
        self.scalar_flags = self._view("scalar_flags", chip.SCALAR_FLAGS)
        """Sync flags of the scalar core, uint16."""
        self.activations = self._view(
            "activations", chip.ACTIVATION_UNITS * chip.ACTIVATION_UNIT_BYTES
        )
        """Bytes of the activation buffer."""
        self.parameters = self._view("parameters", chip.PARAMETER_UNITS * chip.PARAMETER_UNIT_BYTES)
        """Bytes of the parameter buffer."""

    def _view(self, name: str, size: int) -> NDArray[Any]:
        place = getattr(self._library, f"chip_{name}")(self._chip)
        view: NDArray[Any] = np.ctypeslib.as_array(place, (size,))
        return view

    def close(self) -> None:
        """Free the memory of the simulation; call nothing else afterwards."""
        self._finalizer()

    def reset(self) -> None:
        """Reset the chip; memories keep their contents."""
        self._library.chip_reset(self._chip)
        self._last.clear()

    @property
    def idle(self) -> bool:
        """Whether all units of the scalar core and all tiles are idle, apart from outputs."""
        units = (1 << _SCALAR_UNITS) - 1
        tiles = (1 << self.tiles) - 1
        status = self._library.chip_status(self._chip).contents
        return bool(status.units_idle & units == units and status.tiles_idle == tiles)

    @property
    def tile_flags(self) -> NDArray[np.uint16]:
        """Sync flags of the tiles as they are now, shape (tiles, flags)."""
        status = self._library.chip_status(self._chip).contents
        return np.array(status.tile_flags, np.uint16)[: self.tiles]

    @property
    def cycle(self) -> int:
        """Cycles since power-up."""
        return int(self._status.cycle)

    @property
    def rows(self) -> int:
        """Rows that the ring bus has carried."""
        return int(self._status.rows)

    def unmap_all(self) -> None:
        """Forget all host memory."""
        self._library.workload_reset()

    def map(self, address: int, place: int, size: int) -> None:
        """Let ``size`` bytes of this process, at ``place``, be those from a bus address on.

        The RTL works on them in place, so they must stay until :meth:`unmap_all`.
        """
        self._library.workload_map(address, size, place)

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
        self._library.workload_elsewhere(*self._elsewhere)

    def write_register(self, offset: int, value: int) -> None:
        """Write a register of 64 bits, as the host does.

        Raises ``RtlFailure`` if the bus refuses, ``RtlTimeout`` and ``RtlFailure`` as all that
        follow do.
        """
        self._check(
            self._library.chip_write_register(self._chip, offset, value, STANDSTILL),
            f"the answer to the write of register {offset:#x}",
        )

    def read_register(self, offset: int) -> int:
        """The value of a register of 64 bits, as the host reads it."""
        value = ctypes.c_uint64()
        self._check(
            self._library.chip_read_register(self._chip, offset, ctypes.byref(value), STANDSTILL),
            f"the answer to the read of register {offset:#x}",
        )
        return value.value

    def take_chunk(self) -> int:
        """Request the next chunk of the instruction queue; return its size in bytes."""
        self._note("asked for a chunk")
        size = ctypes.c_uint32()
        self._check(
            self._library.chip_take_chunk(self._chip, ctypes.byref(size), STANDSTILL),
            "a chunk of the instruction queue",
        )
        return size.value

    def hand_over(self, name: str, bits: bytes, tiles: int = 0, base: int | None = None) -> None:
        """Give an instruction (its bundles) to its unit, or to the set ``tiles``.

        ``name`` is for messages.
        """
        self._note(name)
        self._check(
            self._library.chip_hand_over(
                self._chip, bits, len(bits), tiles, base is not None, base or 0, STANDSTILL
            ),
            f"{name} to be taken",
        )

    def descriptor(self, tag: int, address: int, size: int, *, fence: bool = False) -> None:
        """Give a descriptor, or a fence, to the DMA engine."""
        name = "fence" if fence else f"descriptor of tag {tag}"
        self._note(f"{name}, {size} bytes at {address:#x}")
        self._check(
            self._library.chip_descriptor(self._chip, fence, tag, size, address, STANDSTILL),
            f"the DMA engine to take a {name}",
        )

    def push(self, word: int) -> None:
        """Send a word of the scalar core to the host."""
        self._check(self._library.chip_push(self._chip, word, STANDSTILL), "the output stream")

    def fetch(self, size: int) -> bytes:
        """The next ``size`` bytes of the instruction stream."""
        target = ctypes.create_string_buffer(size)
        self._check(
            self._library.chip_fetch(self._chip, target, size, STANDSTILL),
            f"{size} bytes of instructions",
        )
        return target.raw

    def settle(self) -> None:
        """Wait until all units are idle, and outputs and interrupts have left."""
        self._check(
            self._library.chip_settle(self._chip, STANDSTILL), "units, tiles and outputs to be done"
        )

    def run(self, cycles: int) -> None:
        """Run for so many cycles, whatever happens in them."""
        self._check(self._library.chip_run(self._chip, cycles), "cycles to pass")

    def take_events(self) -> list[tuple[int, int]]:
        """(kind, index) of the events since the last call."""
        events = ctypes.POINTER(_Event)()
        count = self._library.chip_events(self._chip, ctypes.byref(events))
        taken = [(int(events[k].kind), int(events[k].index)) for k in range(count)]
        self._library.chip_forget_events(self._chip)
        return taken

    def _note(self, event: str) -> None:
        self._last.append(f"cycle {self.cycle}: {event}")

    def _check(self, outcome: int, awaited: str) -> None:
        if outcome == _INTERRUPTED:
            raise KeyboardInterrupt
        if outcome == _REFUSED_BY_BUS:
            raise RtlFailure(f"the register bus answered with an error: {awaited}")
        if outcome == _ASSERTION:
            place = self._library.chip_failure().decode()
            raise RtlFailure(f"an assertion of the RTL failed at cycle {self.cycle}: {place}")
        if outcome == _TIMED_OUT:
            lines = (
                f"nothing has moved in the RTL for {STANDSTILL} cycles; waited for {awaited}",
                *self._state(),
                "last handed over:",
                *self._last,
            )
            raise RtlTimeout("\n  ".join(lines))

    def _state(self) -> Iterator[str]:
        """The units that are not idle, with their sync flags."""
        status = self._library.chip_status(self._chip).contents
        yield f"transfers: {status.started} begun, {status.completed} completed"
        busy = _clear_bits(status.units_idle, SCALAR_UNIT_NAMES)
        flags = _flags(status.scalar_flags, SCALAR_FLAG_NAMES)
        yield f"scalar core: {', '.join(busy) or 'no unit'} busy; flags {flags}"
        units = sum(word << (32 * k) for k, word in enumerate(status.tile_units_idle))
        waiting = [tile for tile in range(self.tiles) if not status.tiles_idle >> tile & 1]
        for tile in waiting[:SHOWN_TILES]:
            busy = _clear_bits(units >> (chip.TILE_UNITS * tile), UNIT_NAMES)
            flags = _flags(status.tile_flags[tile], TILE_FLAG_NAMES)
            yield f"tile {tile}: {', '.join(busy) or 'a fence'} busy; flags {flags}"
        if len(waiting) > SHOWN_TILES:
            yield f"and {len(waiting) - SHOWN_TILES} more tiles"


def _close(opened: ctypes.CDLL, handle: int, closed: Design, dump: Path | None) -> None:
    """Keep a chip's coverage counts and waves, and free its memory."""
    if closed.coverage:
        keep_library_counts(partial(opened.chip_write_coverage, handle), closed.top)
    opened.chip_close(handle)
    if dump is not None:
        unfinished(dump).replace(dump)
        write_chip_save_file(dump, closed.parameters["Tiles"])


def _clear_bits(bits: int, names: tuple[str, ...]) -> list[str]:
    return [name for number, name in enumerate(names) if not bits >> number & 1]


def _flags(values: ctypes.Array[ctypes.c_uint16], names: tuple[str, ...]) -> str:
    shown = [f"{name} {value}" for name, value in zip(names, values, strict=True) if value]
    return ", ".join(shown) or "all 0"
