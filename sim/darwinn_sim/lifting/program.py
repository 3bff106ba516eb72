"""A lifted program: what many inputs of it give, equal on every byte to what runs of them give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from darwinn_formats.darwinn import Executable
from numpy.typing import NDArray

from darwinn_sim.accelerator import Accelerator
from darwinn_sim.host.output_check import differing_output
from darwinn_sim.lifting import kernels, runs
from darwinn_sim.lifting.kernels import StepRoom, room_of
from darwinn_sim.lifting.slots import Slots
from darwinn_sim.lifting.stage import Stage
from darwinn_sim.lifting.stages import stages
from darwinn_sim.lifting.steps import Matrix, planned
from darwinn_sim.lifting.tape import CONSTANTS
from darwinn_sim.lifting.walk import STALE, NotLifted, Walked, walk
from darwinn_sim.matrix_threads import one_matrix_thread

MOST_INPUTS = 64
"""Inputs that go through a program at once, in one thread."""

VALUES_BYTES = 1 << 28
"""Bytes of values that are there at once, which bounds how many inputs go through together."""

_GATHERED = 1 << 20
"""Bytes gathered at once: they are used while they are in a cache."""

_SHARED = 1 << 28
"""Products for each of several threads, at least: some 5 ms. What is shorter than that takes longer
in two threads than in one."""


class _Room(NamedTuple):
    """``values``: a byte of each input for each slot; and what kernels need beside them."""

    values: NDArray[np.uint8]
    steps: StepRoom


class LiftedProgram:
    """What an executable computes, without its moves. Made by :func:`lift`."""

    def __init__(self, walked: Walked, parts: list[Stage]) -> None:
        slots = Slots(walked.identities)
        self._inputs: dict[str, int] = {}
        for name, numbers in walked.inputs.items():
            self._inputs[name] = slots.reserve(numbers)
        outputs = np.concatenate([each[each >= CONSTANTS] for each in walked.outputs.values()])
        self._plan, self._matrices = planned(
            slots.placed(parts, outputs), walked.program.tables.tensor
        )
        self._outputs = {name: slots.of(each) for name, each in walked.outputs.items()}
        steps = self._plan.steps
        columns = (steps["columns"] + steps["others"]).astype(np.int64)
        self.products = int((steps["positions"] * columns * steps["lanes"]).sum())
        self.products += len(self._plan.operations)
        """Of an input, those with weights that are 0 and operations of the scalar core included."""
        self.slots = slots.total
        """Bytes of each input that there are at once."""
        self.foundation = walked.foundation
        """What has to be so on a chip for this to stand in for runs on it."""
        self._rooms: list[_Room] = []

    def __getstate__(self) -> dict[str, Any]:
        """All but room for values."""
        return {**self.__dict__, "_rooms": []}

    @property
    def operations(self) -> int:
        """How many stages it has."""
        return len(self._plan.steps)

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
        threads = min(threads, 1 + self.products * len(inputs) // _SHARED)
        ends = [len(inputs) * k // threads for k in range(threads + 1)]
        parts = [inputs[begin:end] for begin, end in pairwise(ends) if begin < end]
        self._make_rooms([len(part) for part in parts])
        with one_matrix_thread():
            if len(parts) <= 1:
                return list(chain.from_iterable(map(self._run, parts, self._rooms)))
            with ThreadPoolExecutor(len(parts)) as pool:
                return list(chain.from_iterable(pool.map(self._run, parts, self._rooms)))

    def _make_rooms(self, counts: list[int]) -> None:
        """Have values for as many inputs in each thread."""
        if [room.values.shape[1] for room in self._rooms] == counts:
            return
        self._rooms = []
        for count in counts:
            values = np.zeros((self.slots, count), np.uint8)
            values[:CONSTANTS] = np.arange(CONSTANTS, dtype=np.uint8)[:, None]
            self._rooms.append(_Room(values, room_of(self._plan, count)))

    def _run(self, inputs: Sequence[Mapping[str, bytes]], room: _Room) -> list[dict[str, bytes]]:
        values = room.values
        for name, first in self._inputs.items():
            for k, each in enumerate(inputs):
                octets = np.frombuffer(each[name], np.uint8)
                values[first : first + octets.size, k] = octets
        self._make(room)
        found = {name: values[slots].T for name, slots in self._outputs.items()}
        return [
            {name: np.ascontiguousarray(each[k]).tobytes() for name, each in found.items()}
            for k in range(len(inputs))
        ]

    def _make(self, room: _Room) -> None:
        """All steps, in their order; kernels make those between two products of matrices."""
        values, inputs, first = room.values.reshape(-1), room.values.shape[1], 0
        for matrix in self._matrices:
            kernels.make(self._plan, first, matrix.step, inputs, room.steps, values)
            self._multiply(matrix, room)
            first = matrix.step + 1
        kernels.make(self._plan, first, self.operations, inputs, room.steps, values)

    def _multiply(self, matrix: Matrix, room: _Room) -> None:
        """Make a step whose sums are products of matrices, some positions at a time."""
        lanes, columns = matrix.weights.shape
        values, inputs = room.values.reshape(-1), room.values.shape[1]
        positions = int(self._plan.steps["positions"][matrix.step])
        at_once = max(1, _GATHERED // (4 * max(columns, lanes) * inputs))
        kernels.begin(self._plan, matrix.step, room.steps)
        for p in range(0, positions, at_once):
            gathered = np.empty((columns, min(at_once, positions - p) * inputs), np.float32)
            step = (self._plan, matrix.step, p, inputs, room.steps)
            kernels.gather(*step, values, gathered)
            kernels.finish(*step, _sums(matrix, gathered), values)


def _sums(matrix: Matrix, gathered: NDArray[np.float32]) -> NDArray[np.float32] | NDArray[np.int32]:
    """Products of a matrix, exact: float32, or int32 of the parts that are added up."""
    if len(matrix.parts) == 1:
        return matrix.weights @ gathered
    whole = np.zeros((len(matrix.weights), gathered.shape[1]), np.int32)
    for begin, end in pairwise((0, *matrix.parts)):
        whole += (matrix.weights[:, begin:end] @ gathered[begin:end]).astype(np.int32)
    return whole


def lift(accelerator: Accelerator, executable: Executable) -> LiftedProgram:
    """What ``executable`` computes on the chip as it is now: with the parameters that are cached.

    It takes about as long as 36 runs; then an input costs a quarter of a run, or less.

    Raises:
        NotLifted: it has to be run for each input by itself; says why.
    """
    walked = walk(accelerator, executable)
    _require_elements(executable, walked)
    return LiftedProgram(walked, stages(runs.find(walked)))


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
