"""The whole chip in RTL, in this process: instructions and descriptors for it, and waits.

It is ``chip_player.sv`` with its C++ side. Every wait ends when nothing has moved for
``darwinn_rtl.player.STANDSTILL`` cycles.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from darwinn_sim import chip
from darwinn_sim.kernel.state import SCALAR_UNIT_NAMES, UNIT_NAMES
from darwinn_sim.machine.diagnosis import SCALAR_FLAG_NAMES, TILE_FLAG_NAMES
from numpy.typing import NDArray

from darwinn_rtl.build import Design
from darwinn_rtl.player import HANDLE, OUTCOME, WIDE, WORD, Player, Signatures
from darwinn_rtl.waves import write_chip_save_file

STALLS: Final = "STALLS"
"""Preprocessor symbol of a build with random stalls."""

TILE_MODELS: Final = "TILE_MODELS"
"""Preprocessor symbol of a build in which each tile is a simulation of its own
(``tile_models.sv``)."""

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

_SCALAR_UNITS = 4


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
        c_sources=("chip_player.cpp", "host_memory.cpp", "tile_models.cpp"),
        blocks=("tile",),
        waves=waves,
        defines=(TILE_MODELS, STALLS) if stalls else (TILE_MODELS,),
    )


class _Status(ctypes.Structure):
    """``Status`` of ``chip_player.cpp``."""

    _fields_ = (
        ("rows", ctypes.c_uint64),
        ("started", ctypes.c_uint32),
        ("completed", ctypes.c_uint32),
        ("units_idle", ctypes.c_uint32),
        ("tiles_idle", ctypes.c_uint32),
        ("tile_units_idle", ctypes.c_uint32 * 5),
        ("scalar_flags", ctypes.c_uint16 * chip.SCALAR_FLAGS),
        ("tile_flags", (ctypes.c_uint16 * chip.TILE_FLAGS) * chip.TILES),
    )


class ChipPlayer(Player):
    """A chip in RTL after reset.

    A design with stalls is held back at random from ``stall_seed``: host memory, the ring, what the
    scalar core hands over, and every unit. All chips of one design share the stalls.
    """

    FUNCTIONS: ClassVar[Signatures] = {
        "chip_stall": (None, (WIDE,)),
        "chip_stalled_quarters": (None, (WIDE,)),
        "chip_take_chunk": (OUTCOME, (HANDLE, ctypes.POINTER(WORD), WIDE)),
        "chip_hand_over": (OUTCOME, (HANDLE, ctypes.c_char_p, WORD, WORD, WORD, WORD, WIDE)),
        "chip_descriptor": (OUTCOME, (HANDLE, WORD, WORD, WORD, WIDE, WIDE)),
        "chip_push": (OUTCOME, (HANDLE, WORD, WIDE)),
        "chip_fetch": (OUTCOME, (HANDLE, ctypes.c_char_p, WIDE, WIDE)),
        "chip_settle": (OUTCOME, (HANDLE, WIDE)),
        "chip_status": (ctypes.POINTER(_Status), (HANDLE,)),
        "chip_scalar_memory": (ctypes.POINTER(WORD), (HANDLE,)),
        "chip_activations": (ctypes.POINTER(ctypes.c_uint8), (HANDLE,)),
        "chip_parameters": (ctypes.POINTER(ctypes.c_uint8), (HANDLE,)),
        "chip_scalar_flags": (ctypes.POINTER(ctypes.c_uint16), (HANDLE,)),
    }

    def __init__(
        self,
        seed: int = 0,
        chosen: Design | None = None,
        *,
        waves: Path | None = None,
        stall_seed: int | None = None,
    ) -> None:
        super().__init__(seed, chosen or design(), waves=waves)
        if stall_seed is not None:
            self._library.chip_stall(stall_seed % (1 << 64))
        self._status = self._library.chip_status(self._player).contents
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
        place = getattr(self._library, f"chip_{name}")(self._player)
        view: NDArray[Any] = np.ctypeslib.as_array(place, (size,))
        return view

    def stall(self, quarters: int) -> None:
        """Hold all chips of a design with stalls back in so many quarters of the cycles: 0 to 3."""
        self._library.chip_stalled_quarters(quarters)

    def reset(self) -> None:
        """Reset the chip; memories keep their contents."""
        super().reset()
        self._last.clear()

    @staticmethod
    def groups(dump: Path, design: Design) -> None:
        """Write the save file of finished waves."""
        write_chip_save_file(dump, design.parameters["Tiles"])

    @property
    def idle(self) -> bool:
        """Whether all units of the scalar core and all tiles are idle, apart from outputs."""
        units = (1 << _SCALAR_UNITS) - 1
        tiles = (1 << self.tiles) - 1
        status = self._library.chip_status(self._player).contents
        return bool(status.units_idle & units == units and status.tiles_idle == tiles)

    @property
    def tile_flags(self) -> NDArray[np.uint16]:
        """Sync flags of the tiles as they are now, shape (tiles, flags)."""
        status = self._library.chip_status(self._player).contents
        return np.array(status.tile_flags, np.uint16)[: self.tiles]

    @property
    def rows(self) -> int:
        """Rows that the ring bus has carried."""
        return int(self._status.rows)

    def take_chunk(self) -> int:
        """Request the next chunk of the instruction queue; return its size in bytes."""
        self._note("asked for a chunk")
        size = ctypes.c_uint32()
        chunk = "a chunk of the instruction queue"
        self._wait("chip_take_chunk", ctypes.byref(size), awaited=chunk)
        return size.value

    def hand_over(self, name: str, bits: bytes, tiles: int = 0, base: int | None = None) -> None:
        """Give an instruction (its bundles) to its unit, or to the set ``tiles``.

        ``name`` is for messages.
        """
        self._note(name)
        handed = (bits, len(bits), tiles, base is not None, base or 0)
        self._wait("chip_hand_over", *handed, awaited=f"{name} to be taken")

    def descriptor(self, tag: int, address: int, size: int, *, fence: bool = False) -> None:
        """Give a descriptor, or a fence, to the DMA engine."""
        name = "fence" if fence else f"descriptor of tag {tag}"
        self._note(f"{name}, {size} bytes at {address:#x}")
        taken = f"the DMA engine to take a {name}"
        self._wait("chip_descriptor", fence, tag, size, address, awaited=taken)

    def push(self, word: int) -> None:
        """Send a word of the scalar core to the host."""
        self._wait("chip_push", word, awaited="the output stream")

    def fetch(self, size: int) -> bytes:
        """The next ``size`` bytes of the instruction stream."""
        target = ctypes.create_string_buffer(size)
        self._wait("chip_fetch", target, size, awaited=f"{size} bytes of instructions")
        return target.raw

    def settle(self) -> None:
        """Wait until all units are idle, and outputs and interrupts have left."""
        self._wait("chip_settle", awaited="units, tiles and outputs to be done")

    def take_events(self) -> list[tuple[int, int]]:
        """(kind, index) of the events since the last call."""
        events, count = self._events()
        taken = [(int(events[k].kind), int(events[k].index)) for k in range(count)]
        self._library.player_forget_events(self._player)
        return taken

    def _note(self, event: str) -> None:
        self._last.append(f"cycle {self.cycle}: {event}")

    def _state(self) -> Iterator[str]:
        """The units that are not idle, with their sync flags, and what they were given last."""
        status = self._library.chip_status(self._player).contents
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
        yield "last handed over:"
        yield from self._last


def _clear_bits(bits: int, names: tuple[str, ...]) -> list[str]:
    return [name for number, name in enumerate(names) if not bits >> number & 1]


def _flags(values: ctypes.Array[ctypes.c_uint16], names: tuple[str, ...]) -> str:
    shown = [f"{name} {value}" for name, value in zip(names, values, strict=True) if value]
    return ", ".join(shown) or "all 0"
