"""Where to stop a run, and what to copy out of the chip: the values behind --until and --tap."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from darwinn_sim import chip

Memory = Literal["narrow", "wide", "scalar"]

_MEMORY_BYTES: dict[str, int] = {
    "narrow": chip.NARROW_BYTES,
    "wide": chip.WIDE_ROWS * chip.ROW_BYTES,
    "scalar": 4 * chip.SCALAR_MEMORY_WORDS,
}


@dataclass(frozen=True, slots=True)
class StopPoint:
    """Where a run stops before its end.

    Either before the scalar core executes bundle ``pc`` of ``chunk``, when everything issued has
    settled; or as soon as all tiles have completed layer ``layer``, with everything else where it
    is by then.
    """

    chunk: int = 0
    pc: int = -1
    layer: int = -1

    @classmethod
    def parse(cls, text: str) -> StopPoint:
        """Read ``pc:CHUNK:PC`` or ``layer:N``; raises ``ValueError`` for anything else."""
        if match := re.fullmatch(r"layer:(\d+)", text):
            return cls(layer=int(match[1]))
        if match := re.fullmatch(r"pc:(\d+):(\d+)", text):
            return cls(chunk=int(match[1]), pc=int(match[2]))
        raise ValueError(f"{text!r} is neither pc:CHUNK:PC nor layer:N")


@dataclass(frozen=True, slots=True)
class Tap:
    """Bytes to copy out: a memory range at the end of the run, or the results of a layer.

    ``tile``, ``start`` and ``end`` (bytes, end exclusive) belong to a memory range; ``layer``
    selects the words that the tensor instructions of a layer write, as they are written.
    """

    memory: Memory | None = None
    tile: int = 0
    start: int = 0
    end: int = 0
    layer: int = -1

    @classmethod
    def parse(cls, text: str) -> Tap:
        """Read ``narrow:TILE:START:END``, ``wide:TILE:ROW:ROW``, ``scalar:START:END``, ``layer:N``.

        Narrow and scalar addresses are bytes, wide ones rows; ends are exclusive. Raises
        ``ValueError`` for anything else and for a range outside the memory.
        """
        if match := re.fullmatch(r"layer:(\d+)", text):
            return cls(layer=int(match[1]))
        if match := re.fullmatch(r"scalar:(\w+):(\w+)", text):
            return cls._range("scalar", "0", match[1], match[2], 1)
        if match := re.fullmatch(r"(narrow|wide):(\d+):(\w+):(\w+)", text):
            unit = 1 if match[1] == "narrow" else chip.ROW_BYTES
            memory: Memory = "narrow" if match[1] == "narrow" else "wide"
            return cls._range(memory, match[2], match[3], match[4], unit)
        raise ValueError(
            f"{text!r} is none of narrow:TILE:START:END, wide:TILE:ROW:ROW, scalar:START:END, "
            "layer:N"
        )

    def __str__(self) -> str:
        """The text that :meth:`parse` reads."""
        if self.layer >= 0:
            return f"layer:{self.layer}"
        unit = chip.ROW_BYTES if self.memory == "wide" else 1
        place = "scalar" if self.memory == "scalar" else f"{self.memory}:{self.tile}"
        return f"{place}:{self.start // unit:#x}:{self.end // unit:#x}"

    @classmethod
    def _range(cls, memory: Memory, tile: str, start: str, end: str, unit: int) -> Tap:
        tap = cls(memory, int(tile), int(start, 0) * unit, int(end, 0) * unit)
        if tap.tile >= chip.TILES:
            raise ValueError(f"there is no tile {tap.tile}: tiles are 0 to {chip.TILES - 1}")
        if not tap.start < tap.end <= _MEMORY_BYTES[memory]:
            raise ValueError(f"bytes {tap.start} to {tap.end} are no range of {memory} memory")
        return tap


@dataclass(frozen=True)
class TappedBytes:
    """What a tap copied: ``data`` is uint8 of a memory range, or words of a layer, which are
    records of ``observation.TappedWord``.

    A layer's words name chunk-wide instruction number, tile, byte address, word and how many of its
    bytes are results.
    """

    tap: Tap
    data: NDArray[np.void] | NDArray[np.uint8]
