"""A lifted program: what many inputs of it give, equal on every byte to what runs of them give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from darwinn_formats.darwinn import Executable
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.host.output_check import differing_output
from darwinn_sim.lifting import kernels, runs
from darwinn_sim.lifting.stages import Made, Stage, split, stages
from darwinn_sim.lifting.walk import CONSTANTS, STALE, NotLifted, Walked, walk
from darwinn_sim.units.identities import BLOCK

MOST_INPUTS = 64
"""Inputs that go through a program at once, in one thread."""

VALUES_BYTES = 1 << 28
"""Bytes of values that are there at once, which bounds how many inputs go through together."""

_GATHERED = 1 << 20
"""Bytes gathered at once: they are used while they are in a cache."""

_SHARED = 1 << 28
"""Products for each of several threads, at least: some 5 ms. What is shorter than that takes longer
in two threads than in one."""

_SPARSE, _DENSE, _TAKEN = 8.0, 48.0, 2.0
"""How much is done in a time: products with few weights, in matrices, and bytes gathered for the
latter."""


class _Step(NamedTuple):
    """A stage with slots in the place of identities; ``parts``: of a matrix, else empty."""

    stage: Stage
    operands: NDArray[np.int32]
    others: NDArray[np.int32]
    slot: int
    parts: tuple[int, ...]
    begin: NDArray[np.int32]
    column: NDArray[np.int32]
    weight: NDArray[np.int32]
    matrix: NDArray[np.float32]
    coefficient: NDArray[np.float32]
    lower_bound: NDArray[np.float32]


class LiftedProgram:
    """What an executable computes, without its moves. Made by :func:`lift`."""

    def __init__(self, found: runs.Found) -> None:
        walked = found.walked
        self._tensor = walked.program.tables.tensor
        parts = stages(found)
        slots = _Slots(walked.identities)
        self._inputs: dict[str, int] = {}
        for name, numbers in walked.inputs.items():
            self._inputs[name] = slots.reserve(numbers)
        outputs = np.concatenate([each[each >= CONSTANTS] for each in walked.outputs.values()])
        self._steps = slots.placed(parts, outputs)
        self._outputs = {name: slots.of(each) for name, each in walked.outputs.items()}
        self._work = sum(each.operands.size * each.stage.lanes for each in self._steps)
        self.slots = slots.total
        """Bytes of each input that there are at once."""
        self._rooms: list[NDArray[np.uint8]] = []

    @property
    def operations(self) -> int:
        """How many stages it has."""
        return len(self._steps)

    def inputs_at_once(self, count: int, memory: int = VALUES_BYTES, threads: int = 1) -> int:
        """How many of ``count`` inputs go through together within ``memory`` bytes."""
        return max(1, min(count, MOST_INPUTS * threads, memory // max(1, self.slots)))

    def run(
        self, inputs: Sequence[Mapping[str, bytes]], threads: int = 1
    ) -> list[dict[str, bytes]]:
        """Outputs by layer name, in device order, of each of the inputs, which are given so too.

        Up to as many ``threads`` share the inputs, if there is enough to do. Bytes of outputs that
        the program does not write are 0.
        """
        threads = min(threads, 1 + self._work * len(inputs) // _SHARED)
        ends = [len(inputs) * k // threads for k in range(threads + 1)]
        parts = [inputs[begin:end] for begin, end in pairwise(ends) if begin < end]
        self._make_rooms([len(part) for part in parts])
        if len(parts) <= 1:
            return list(chain.from_iterable(map(self._run, parts, self._rooms)))
        # Else the library of matrices would have threads of its own for each of these.
        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(len(parts)) as pool:
            return list(chain.from_iterable(pool.map(self._run, parts, self._rooms)))

    def _make_rooms(self, counts: list[int]) -> None:
        """Have values for as many inputs in each thread."""
        if [room.shape[1] for room in self._rooms] == counts:
            return
        self._rooms = [np.zeros((self.slots, count), np.uint8) for count in counts]
        for room in self._rooms:
            room[:CONSTANTS] = np.arange(CONSTANTS, dtype=np.uint8)[:, None]

    def _run(
        self, inputs: Sequence[Mapping[str, bytes]], values: NDArray[np.uint8]
    ) -> list[dict[str, bytes]]:
        for name, first in self._inputs.items():
            for k, each in enumerate(inputs):
                octets = np.frombuffer(each[name], np.uint8)
                values[first : first + octets.size, k] = octets
        for step in self._steps:
            self._make(step, values)
        found = {name: values[slots].T for name, slots in self._outputs.items()}
        return [
            {name: np.ascontiguousarray(each[k]).tobytes() for name, each in found.items()}
            for k in range(len(inputs))
        ]

    def _make(self, step: _Step, values: NDArray[np.uint8]) -> None:
        stage, inputs = step.stage, values.shape[1]
        row = max(stage.row, 0)
        ending = kernels.Ending(
            self._tensor[row : row + 1],
            stage.row < 0,
            stage.offset,
            stage.scale,
            step.coefficient,
            step.lower_bound,
            np.empty(inputs, np.int32),
            np.empty(inputs, np.float32),
        )
        if stage.how is Made.MAXIMUM:
            kernels.maxima(step.operands, stage.width, ending, values, step.slot)
        elif stage.how is Made.PAIRS:
            widths = (stage.width, stage.other_width)
            kernels.pairs(
                step.operands, step.others, widths, stage.zeros, ending, values, step.slot
            )
        elif step.parts:
            _multiply(step, ending, values)
        else:
            weights = (step.begin, step.column, step.weight)
            kernels.products(step.operands, *weights, stage.zero, ending, values, step.slot)


def _multiply(step: _Step, ending: kernels.Ending, values: NDArray[np.uint8]) -> None:
    """Make a stage whose sums are products of matrices, some positions at a time."""
    stage, inputs, columns = step.stage, values.shape[1], step.operands.shape[1]
    at_once = max(1, _GATHERED // (4 * max(columns, stage.lanes) * inputs))
    for p in range(0, stage.positions, at_once):
        operands = step.operands[p : p + at_once]
        gathered = np.empty((columns, len(operands) * inputs), np.float32)
        kernels.gather(values, operands, stage.zero, gathered)
        slot = step.slot + p * stage.lanes * stage.size
        if len(step.parts) == 1:
            kernels.finish_real(step.matrix @ gathered, ending, values, slot)
            continue
        whole = np.zeros((stage.lanes, gathered.shape[1]), np.int32)
        begin = 0
        for end in step.parts:
            whole += (step.matrix[:, begin:end] @ gathered[begin:end]).astype(np.int32)
            begin = end
        kernels.finish_whole(whole, ending, values, slot)


class _Slots:
    """Places of bytes: those that are not needed any more are used again."""

    def __init__(self, identities: int) -> None:
        self.total = CONSTANTS
        self._of = np.full(identities // BLOCK + 2, -1, np.int32)
        self._free: list[tuple[int, int]] = []

    def reserve(self, numbers: NDArray[np.int32]) -> int:
        """Slots of an input, for as long as the program runs."""
        # Numbers of inputs follow each other, and need not begin with a block.
        begin = int(numbers[0]) - CONSTANTS
        first = self.total + begin % BLOCK
        blocks = np.arange(begin // BLOCK, -(-(begin + len(numbers)) // BLOCK))
        self._of[blocks] = first - begin % BLOCK + BLOCK * np.arange(len(blocks))
        self.total = first - begin % BLOCK + BLOCK * len(blocks)
        return first

    def of(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """Slots of bytes."""
        identity = np.maximum(numbers - CONSTANTS, 0)
        slots = self._of[identity // BLOCK] + identity % BLOCK
        # What says nothing is 0; so is what nobody needs.
        known = self._of[identity // BLOCK] >= 0
        return np.where(numbers < CONSTANTS, numbers, np.where(known, slots, 0)).astype(np.int32)

    def placed(self, parts: list[Stage], outputs: NDArray[np.int32]) -> list[_Step]:
        """Stages with slots; one's are free when no later one takes its results."""
        maker = np.full(len(self._of), -1, np.int32)
        for k, stage in enumerate(parts):
            for first, lanes in zip(stage.made.T, stage.blocks, strict=True):
                for block in range(-(-lanes * stage.size // BLOCK)):
                    maker[first // BLOCK + block] = k
        last = np.arange(len(parts))
        for k, stage in enumerate(parts):
            for operands in (stage.operands, stage.others):
                identity = operands[operands >= CONSTANTS] - CONSTANTS
                takes = np.unique(maker[identity // BLOCK])
                last[takes[takes >= 0]] = k
        kept = maker[(outputs - CONSTANTS) // BLOCK]
        last[kept[kept >= 0]] = len(parts)
        ends: dict[int, list[tuple[int, int]]] = {}
        steps = []
        for k, stage in enumerate(parts):
            size = stage.positions * stage.lanes * stage.size
            slot = self._take(size)
            lanes = 0
            for first, count in zip(stage.made.T, stage.blocks, strict=True):
                begin = slot + stage.size * (lanes + stage.lanes * np.arange(stage.positions))
                self._place(first, begin, count * stage.size)
                lanes += count
            steps.append(_step(stage, self.of(stage.operands), self.of(stage.others), slot))
            ends.setdefault(int(last[k]), []).append((slot, size))
            for each in ends.pop(k, []):
                self._give_back(*each)
        return steps

    def _place(self, first: NDArray[np.int64], begin: NDArray[np.int64], size: int) -> None:
        """Blocks of identities from ``first`` on are at slots from ``begin`` on."""
        whole = first % BLOCK == 0
        for block in range(-(-size // BLOCK)):
            self._of[first[whole] // BLOCK + block] = begin[whole] + BLOCK * block

    def _take(self, size: int) -> int:
        for k, (first, room) in enumerate(self._free):
            if room >= size:
                self._free[k] = (first + size, room - size)
                return first
        first = self.total
        if self._free and sum(self._free[-1]) == self.total:
            first = self._free.pop()[0]
        self.total = first + size
        return first

    def _give_back(self, first: int, size: int) -> None:
        joined: list[tuple[int, int]] = []
        for each in sorted([*self._free, (first, size)]):
            if joined and sum(joined[-1]) == each[0]:
                joined[-1] = (joined[-1][0], joined[-1][1] + each[1])
            elif each[1]:
                joined.append(each)
        self._free = joined


def _step(stage: Stage, operands: NDArray[np.int32], others: NDArray[np.int32], slot: int) -> _Step:
    coefficients = chip.TABLE_SEGMENTS * chip.TABLE_COEFFICIENTS
    table = np.zeros(chip.ROW_WORDS, np.int32) if stage.table is None else stage.table
    words = np.ascontiguousarray(table).view(np.float32)
    lane, column = np.nonzero(stage.weights.T)
    parts = split(stage) if stage.how is Made.PRODUCTS else None
    few = len(lane) / _SPARSE
    many = stage.weights.size / _DENSE + len(stage.weights) / _TAKEN
    if few <= many:
        parts = None
    begin = np.searchsorted(lane, np.arange(stage.lanes + 1)).astype(np.int32)
    matrix = np.ascontiguousarray(stage.weights.T, np.float32) if parts else _NO_MATRIX
    return _Step(
        *(stage, operands, others, slot, parts or (), begin, column.astype(np.int32)),
        *(np.ascontiguousarray(stage.weights[column, lane]), matrix),
        *(words[:coefficients].copy(), words[coefficients : coefficients + 7].copy()),
    )


_NO_MATRIX = np.zeros((0, 0), np.float32)


def lift(accelerator: Accelerator, executable: Executable) -> LiftedProgram:
    """What ``executable`` computes on the chip as it is now: with the parameters that are cached.

    It takes about as long as 20 runs; then an input costs a tenth of a run, or less.

    Raises:
        NotLifted: it has to be run for each input by itself; says why.
    """
    walked = walk(accelerator, executable)
    _require_elements(executable, walked)
    return LiftedProgram(runs.find(walked))


def _require_elements(executable: Executable, walked: Walked) -> None:
    """Refuse outputs with elements that the program does not write."""
    stale = {
        name: np.where(numbers == STALE, 0xFF, 0).astype(np.uint8).tobytes()
        for name, numbers in walked.outputs.items()
    }
    written = {name: bytes(len(each)) for name, each in stale.items()}
    if (found := differing_output(executable, stale, written)) is not None:
        raise NotLifted(f"elements of output {found.name!r} are what memories held beforehand")


__all__ = ["LiftedProgram", "NotLifted", "lift"]
