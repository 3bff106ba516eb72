"""The expected behaviour of a chip in RTL, row by row: the model, run beside it on the same inputs.

The model sends one row on the ring at a time, when nothing else can move, so every row can be
recorded. The program (turns and flags) fixes the order in which one receiver sees its rows, but no
order between receivers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator, ModelEngine
from darwinn_sim.device.chip import Chip
from darwinn_sim.device.run import ProgramRun, Turn
from darwinn_sim.kernel import state
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.machine.observer import Wanted
from numpy.typing import NDArray

OUTFEED = chip.TILES
"""Number of the outfeed among the receivers of rows, behind the tiles."""


class Receiver(NamedTuple):
    """A receiver of rows: a tile's consumer of channel 0 (A) or 1 (B), or the outfeed."""

    tile: int
    channel: int = 0

    def __str__(self) -> str:
        """The receiver in words."""
        return "outfeed" if self.tile == OUTFEED else f"tile {self.tile}, channel {self.channel}"


RECEIVERS = (
    *(Receiver(tile, channel) for tile in range(chip.TILES) for channel in range(2)),
    Receiver(OUTFEED),
)


class ModelRow(NamedTuple):
    """Bytes of a row on the ring, and a mark for those that programs have written.

    The others can be anything, such as a buffer's power-up contents after the last input.
    """

    data: NDArray[np.uint8]
    known: NDArray[np.bool_]

    def difference(self, found: bytes) -> str:
        """The difference to a row seen elsewhere, in words; empty if there is none."""
        if len(found) != self.data.size:
            return f"{len(found) // 4} words, of the model {self.data.size // 4}"
        places = np.flatnonzero((np.frombuffer(found, np.uint8) != self.data) & self.known)
        if not places.size:
            return ""
        at = int(places[0])
        return f"byte {at} is {found[at]:#04x}, of the model {self.data[at]:#04x}"


@dataclass
class Expected:
    """The results of a program: its ``outputs`` by layer, the ``rows`` of each receiver in order,
    and the sync flags at its end, of tiles (shape (tiles, flags)) and of the scalar core."""

    outputs: Mapping[str, bytes] = field(default_factory=dict)
    rows: dict[Receiver, list[ModelRow]] = field(default_factory=dict)
    tile_flags: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    scalar_flags: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))


class _RecordedRun(ProgramRun):
    """A run that notes every row as it is sent."""

    def __init__(self, device: Chip, program: LoweredProgram, wanted: Wanted) -> None:
        super().__init__(device, program, wanted)
        self.rows: dict[Receiver, list[ModelRow]] = {receiver: [] for receiver in RECEIVERS}
        self._sent = 0
        self._ends = self._queue_ends()

    def turn(self) -> Turn:
        """Run for so short a time that at most one row is sent."""
        turn = super().turn()
        sent = int(self.core["rows_sent"])
        if sent != self._sent:
            assert sent == self._sent + 1, "more than one row was sent in a turn"
            self._sent = sent
            self._note_row()
        return turn

    def _queue(self, receiver: Receiver) -> state.RowFifo:
        if receiver.tile == OUTFEED:
            queue: state.RowFifo = self.core["ring"]
        else:
            queue = self.tiles[receiver.tile]["ring"][receiver.channel]
        return queue

    def _queue_ends(self) -> list[int]:
        """Where the next row of each receiver goes; moves by one with each that comes."""
        queues = map(self._queue, RECEIVERS)
        return [(int(q["head"]) + int(q["length"])) % chip.RING_FIFO_ROWS for q in queues]

    def _note_row(self) -> None:
        ends = self._queue_ends()
        for receiver, end, before in zip(RECEIVERS, ends, self._ends, strict=True):
            if end != before:
                row = self._queue(receiver)["rows"][before]
                data, written = (row[name][: int(row["words"])] for name in ("data", "written"))
                self.rows[receiver].append(
                    ModelRow(data.copy().view(np.uint8), written.copy().view(np.uint8) != 0)
                )
        self._ends = ends


class _RecordingEngine(ModelEngine):
    """The model's kernels, with the latest run."""

    last: _RecordedRun

    def run_of(self, device: Chip, program: LoweredProgram, wanted: Wanted) -> ProgramRun:
        """A run that is recorded."""
        device.work_of_a_turn = 1
        self.last = _RecordedRun(device, program, wanted)
        return self.last


class ChipReference:
    """A chip after power-up, whose tiles keep what programs leave in them.

    Args:
        seed: as ``Accelerator``.
    """

    def __init__(self, seed: int = 0) -> None:
        self._engine = _RecordingEngine()
        # Only so does the model follow through all units which bytes nothing has written.
        self._accelerator = Accelerator(strict=True, seed=seed, engine=self._engine)

    def run(self, executable: Executable, inputs: Mapping[str, bytes]) -> Expected:
        """Run ``executable`` next. Raises as ``Accelerator.run``, and ``UninitialisedRead`` for a
        program whose decisions depend on bytes that were never written."""
        result = self._accelerator.run(executable, inputs)
        device = self._accelerator.chip
        return Expected(
            result.outputs,
            self._engine.last.rows,
            np.array([tile["flags"] for tile in device.tiles]) & 0xFFFF,
            np.array(device.core["flags"]) & 0xFFFF,
        )
