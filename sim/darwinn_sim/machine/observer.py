"""What a run shows on the way: its stop point, its taps, and what is noted of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel import state
from darwinn_sim.kernel.structure import Records
from darwinn_sim.machine import layers
from darwinn_sim.machine.examine import StopPoint, Tap, TappedBytes
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.units.observation import Notebook, Seen, new_observation

_TAP_WORDS = 1 << 20


class Noting(Protocol):
    """Takes what a run on identities (``units.identities``) or on marks (``units.marks``) notes."""

    seen: Notebook

    def take(self) -> None:
        """Take out what has been noted, so that there is room for more."""


Progress = Callable[[int, int], None]
"""Called with (bundles executed, tensor iterations done) while a run goes on."""


@dataclass(frozen=True)
class Wanted:
    """What is to be seen of a run.

    It stops at ``until``. ``taps`` copy out. ``progress`` is called now and then. With ``noting``
    the run is one on identities or on marks.
    """

    until: StopPoint | None = None
    taps: Sequence[Tap] = ()
    progress: Progress | None = None
    noting: Noting | None = None


class Observer:
    """Sees what is wanted of one run: tells the kernels, by ``seen``, what to watch for.

    Raises:
        ValueError: the program has no such layer, chunk or instruction, or words are to be tapped
            of a run on identities or marks, which computes none.
    """

    def __init__(self, core: state.Core, program: LoweredProgram, wanted: Wanted) -> None:
        self.core, self.program, self.wanted = core, program, wanted
        layer_taps = any(tap.layer >= 0 for tap in wanted.taps)
        self.layers = layers.find(program.chunks) if layer_taps or wanted.until else ()
        self.seen: Seen = new_observation(_TAP_WORDS if layer_taps else 1)
        self._words = self.seen.words
        if wanted.noting is not None:
            if layer_taps:
                raise ValueError("a run on identities or marks has no words of layers")
            self.seen = wanted.noting.seen
        self._watch = self.seen.watch[0]
        self._records: list[NDArray[np.void]] = []
        self._watch["tap_begin"], self._watch["tap_end"] = self._tap_range()
        self._set_stop(wanted.until)

    @property
    def stop_pc(self) -> int:
        """Before which instruction to stop (``scalar_core.NOWHERE``: before none)."""
        return int(self._watch["stop_pc"])

    def report(self) -> None:
        """Say how far the run is."""
        if self.wanted.progress is not None:
            self.wanted.progress(int(self.core["steps"]), int(self.core["iterations"]))

    def _tap_range(self) -> tuple[int, int]:
        wanted = [self._layer(tap.layer) for tap in self.wanted.taps if tap.layer >= 0]
        if not wanted:
            return 0, 0
        return min(layer.first for layer in wanted), max(layer.last for layer in wanted) + 1

    def _layer(self, number: int) -> layers.ComputedLayer:
        if number >= len(self.layers):
            known = f"layers are 0 to {len(self.layers) - 1}" if self.layers else "it has none"
            raise ValueError(f"there is no layer {number} in the program: {known}")
        return self.layers[number]

    def _set_stop(self, until: StopPoint | None) -> None:
        if until is None:
            return
        if until.layer < 0:
            self._watch["stop_pc"] = self._stop_pc(until)
            return
        layer = self._layer(until.layer)
        self._watch["first"], self._watch["last"] = layer.first, layer.last
        self._watch["left"] = layer.executions

    def _stop_pc(self, until: StopPoint) -> int:
        if until.chunk >= len(self.program.starts):
            last = len(self.program.starts) - 1
            raise ValueError(f"there is no chunk {until.chunk}: chunks are 0 to {last}")
        pc = self.program.starts[until.chunk] + until.pc
        if not 0 <= until.pc < self.program.chunks[until.chunk].bundles or (
            self.program.tables.at[pc] < 0
        ):
            raise ValueError(f"no instruction starts at bundle {until.pc} of chunk {until.chunk}")
        return pc

    def take(self) -> bool:
        """Take the tapped words out, so that there is room for more; True if there were any."""
        count = int(self._watch["tapped"])
        if count:
            self._records.append(self._words[:count].copy())
            self._watch["tapped"] = 0
        return count > 0

    def make_room(self) -> None:
        """Take out what has been tapped, and noted: there is no room for more."""
        self.take()
        if self.wanted.noting is not None:
            self.wanted.noting.take()

    def collect(self, tiles: Records[state.Tile]) -> list[TappedBytes]:
        """What the taps ask for, after the run."""
        self.take()
        words = self._words_by_layer()
        return [TappedBytes(tap, self._tapped(tap, words, tiles)) for tap in self.wanted.taps]

    def _words_by_layer(self) -> dict[int, NDArray[np.void]]:
        """The words that were tapped, by number of layer; those of a layer as they were written."""
        firsts = np.array([layer.first for layer in self.layers], np.int64)
        parts: dict[int, list[NDArray[np.void]]] = {}
        while self._records:
            record = self._records.pop(0)
            numbers = np.searchsorted(firsts, record["instruction"], side="right") - 1
            record = record[np.argsort(numbers, kind="stable")]
            ends = np.cumsum(np.bincount(numbers))
            for number in np.unique(numbers).tolist():
                start = ends[number - 1] if number else 0
                parts.setdefault(number, []).append(record[start : ends[number]])
        return {number: np.concatenate(each) for number, each in parts.items()}

    def _tapped(
        self,
        tap: Tap,
        words: Mapping[int, NDArray[np.void]],
        tiles: Records[state.Tile],
    ) -> NDArray[np.void] | NDArray[np.uint8]:
        if tap.layer >= 0:
            return words.get(tap.layer, self._words[:0])
        source = self.core["memory"] if tap.memory == "scalar" else tiles[tap.tile][str(tap.memory)]
        octets: NDArray[np.uint8] = source.view(np.uint8)[tap.start : tap.end].copy()
        return octets
