"""What each byte of an executable's parameters is to its program: a weight, a bias, or padding.

The program is run on identities, as a lifted one is (``darwinn_sim.lifting.walk``), but that bytes
of parameters have identities as well: what an instruction takes then says which bytes it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from darwinn_formats.darwinn import CompiledModel, Description
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.device.chip import Contents
from darwinn_sim.host.buffers import Request
from darwinn_sim.lifting import codes, runs
from darwinn_sim.lifting.tape import CONSTANTS
from darwinn_sim.lifting.walk import Walked, _Recorder, _Walk
from darwinn_sim.units import identities
from darwinn_sim.units.tensor_cells import MAC
from darwinn_sim.units.tensor_records import Parameters
from numpy.typing import NDArray
from program_faults import executables_of


class Role(IntEnum):
    """What a byte is read as; OTHER: by anything but a product, or an output stage."""

    PADDING = 0
    WEIGHT = 1
    ZERO_POINT = 2
    SCALE = 3
    BIAS = 4
    OTHER = 5


class _ParameterWalk(_Walk):
    """A walk in which parameters are no constants: those of ``model.caching``, which lie in the
    chip before, and those that the inference brings along."""

    def __init__(self, accelerator: Accelerator, model: CompiledModel) -> None:
        super().__init__(accelerator, model.inference)
        self._model, self._empty = model, self._before
        self.first = self._first
        self._contents: dict[int, Contents] = {}
        self.sizes = tuple(len(each.parameters) for each in executables_of(model))
        self._first += -(-sum(self.sizes) // identities.BLOCK) * identities.BLOCK

    def _run(self, shift: int, recorder: _Recorder | None = None) -> dict[str, bytes]:
        self._before = self._cached(shift)
        return dict(super()._run(shift, recorder))

    def _cached(self, shift: int) -> Contents:
        """What the chip holds when identities have been cached in place of parameters, and an
        inference has left its flags as every other one finds them."""
        if shift not in self._contents:
            self._accelerator.chip.restore(self._empty)
            if self._model.caching is not None:
                begin = self.sizes[0]
                self._accelerator.walk(
                    self._model.caching, lambda request: self._give(request, shift, begin), None
                )
            self._accelerator.walk(
                self._model.inference, lambda request: self._fill(request, shift), None
            )
            self._contents[shift] = self._accelerator.chip.contents()
        return self._contents[shift]

    def _fill(self, request: Request, shift: int) -> None:
        super()._fill(request, shift)
        self._give(request, shift, 0)

    def _give(self, request: Request, shift: int, begin: int) -> None:
        """Identities in the place of the parameters of a request, the ``begin``-th first."""
        for buffer, mapped in request.buffers.items():
            if buffer.desc == Description.BASE_ADDRESS_PARAMETER:
                size = len(request.executable.parameters)
                numbers = np.arange(size) + self.first + begin
                mapped.region.follow()
                mapped.region.payload[:size] = codes.octets(numbers, shift)


@dataclass(frozen=True)
class Roles:
    """Roles of the bytes of the parameters of each executable, numbered as in program_faults."""

    of: tuple[NDArray[np.uint8], ...]

    def places(self, role: Role) -> NDArray[np.int64]:
        """Executable and byte of all that have a role: (n, 2)."""
        found = [
            np.stack([np.full(len(at), number), at], axis=1)
            for number, each in enumerate(self.of)
            for at in [np.flatnonzero(each == role)]
        ]
        return np.concatenate(found)


def roles_of(model: CompiledModel) -> Roles:
    """The roles of all bytes of a model's parameters; of several roles the greatest.

    Raises:
        NotLifted, SimulationError: the program is not walked.
    """
    walk = _ParameterWalk(Accelerator(), model)
    walked = walk.walked()
    roles = np.zeros(sum(walk.sizes), np.uint8)

    def mark(numbers: NDArray[np.integer], role: Role) -> None:
        at = numbers.reshape(-1).astype(np.int64) - CONSTANTS - walk.first
        at = at[(at >= 0) & (at < len(roles))]
        roles[at] = np.maximum(roles[at], role)

    for numbers in _weights(walked):
        mark(numbers, Role.WEIGHT)
    others = {"zero_points": Role.ZERO_POINT, "scales": Role.SCALE, "biases": Role.BIAS}
    for name, role in others.items():
        rows = np.unique(walked.executions[name])
        mark(walked.distinct[rows[rows >= 0]], role)
    for name in ("sums", "table"):
        rows = np.unique(walked.executions[name])
        mark(walked.distinct[rows[rows >= 0]], Role.OTHER)
    for each in (walked.operands, walked.tape.operands, *walked.outputs.values()):
        mark(each, Role.OTHER)
    bounds = np.cumsum(walk.sizes)[:-1]
    return Roles(tuple(np.split(roles, bounds)))


def _weights(walked: Walked) -> Iterator[NDArray[np.int32]]:
    """Numbers of the bytes that products take, of each tensor instruction; all of other rows."""
    tables = walked.program.tables
    notes = walked.executions[np.argsort(walked.executions["tile"], kind="stable")]
    rows = tables.row[notes["instruction"]]
    iterations, begins = runs._iterations(walked, notes, rows)
    of = np.repeat(rows, np.diff(begins))
    for row in np.unique(of):
        parameters = tables.tensor[row]
        which = np.flatnonzero(of == row)
        if parameters["opcode"] != MAC:
            taken = iterations.row[which]
            spans = [taken + k for k in range(int(iterations.rows[which].max(initial=1)))]
            yield walked.distinct[np.unique(walked.rows[np.concatenate(spans)])]
            continue
        lanes = walked.distinct.reshape(-1, chip.LANES, 4)
        for plane in _planes(parameters):
            at = iterations.place[which].astype(np.int64) + plane
            number = walked.rows[iterations.row[which] + (at >> 2)].astype(np.int64)
            for pair in np.unique(number * 4 + (at & 3)):
                yield lanes[pair >> 2, :, pair & 3]


def _planes(parameters: Parameters) -> list[int]:
    """Planes of an iteration of products that are multiplied."""
    width = 2 if parameters["parameter_16bit"] else 1
    return [width * k + byte for k in runs.working(parameters) for byte in range(width)]
