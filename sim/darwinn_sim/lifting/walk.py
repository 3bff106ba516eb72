"""Which results a program makes of which operands, byte for byte: it is run on identities.

See ``units.identities``. What is neither an input nor a result is left as it is, so a byte that is
the same in all runs is that constant. What memories hold beforehand is a constant if the run leaves
it there; anything else of them is ``STALE``, a byte that says nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from darwinn_formats.darwinn import Description, Executable
from darwinn_formats.limits import limits
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.errors import SimulationError
from darwinn_sim.host.buffers import Request, batches_of, layer_bytes
from darwinn_sim.kernel import state
from darwinn_sim.kernel.structure import Records, join
from darwinn_sim.lifting import codes
from darwinn_sim.lifting.foundation import CONTROL, Foundation, foundation_of
from darwinn_sim.lifting.tape import CONSTANTS, OPERAND_BYTES, Tape
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.units import identities
from darwinn_sim.units.identities import Execution, Operation
from darwinn_sim.units.observation import new_notebook

STALE = CONSTANTS
"""The number of bytes that say nothing."""

BYTES_OF_AN_ITERATION = 256
"""Memory that lifting takes for a tensor iteration, at most: MobileNet v1 1.0 takes 200 bytes for
each of its 6.7 million."""

MAX_SUM = 1 << 14
"""Iterations of a sum, whose weights are all worked out together; public programs have up to
3,600."""

MAX_IDENTITIES = 1 << 30
"""Bytes that inputs and results have in all."""

NO_TABLE = 0x7FC0_DEAD
"""Coefficients of a function's table that the program has not loaded."""

_ROOM = 1 << 19
_BITS = 8
_ROWS = ("sums", "zero_points", "scales", "biases", "table")

Numbers32 = NDArray[np.int32]


class NotLifted(Exception):
    """A program that is not lifted, and why: it is run for each input by itself."""


def require_short(iterations: int) -> None:
    """Raise ``NotLifted`` for a sum of more iterations than ``MAX_SUM``."""
    if iterations > MAX_SUM:
        raise NotLifted(f"a sum has {iterations:,} iterations, more than {MAX_SUM:,}")


class Walked(NamedTuple):
    """``executions`` of segments in the order of time. ``operands`` has four numbers of bytes an
    iteration of products; ``rows`` numbers of ``distinct``: the bytes of rows, shape (n, 256).
    ``tape``: what the scalar core computes. ``inputs`` and ``outputs``: numbers of their bytes, by
    layer; ``identities``: how many there are, constants included. ``foundation``: of the chip, what
    all this rests on.
    """

    program: LoweredProgram
    executions: Records[Execution]
    operands: Numbers32
    rows: Numbers32
    distinct: Numbers32
    tape: Tape
    inputs: Mapping[str, Numbers32]
    outputs: Mapping[str, Numbers32]
    identities: int
    foundation: Foundation


class _Notes(NamedTuple):
    executions: Records[Execution]
    operands: NDArray[np.uint32]
    rows: Numbers32


class _Recorder:
    """Takes notes out of the kernels."""

    def __init__(self, notes: identities.Notes) -> None:
        self.notes = notes
        self.seen = new_notebook(notes)
        self._parts: list[_Notes] = []
        self._distinct: list[NDArray[np.uint32]] = []
        self._operands = self._rows = self._earlier = 0

    def take(self) -> None:
        """Take out what has been noted."""
        walk = self.notes.walk[0]
        operands, rows = int(walk["operands"]), int(walk["rows"])
        part = _Notes(
            self.notes.executions[: int(walk["segments"])].copy(),
            self.notes.operands[:operands].copy(),
            self.notes.rows[:rows] + np.int32(self._earlier),
        )
        for name in _ROWS:
            part.executions[name] += np.where(part.executions[name] < 0, 0, self._earlier)
        part.executions["operands"] += self._operands
        part.executions["rows"] += self._rows
        self._operands += operands
        self._rows += rows
        iterations = max(self._operands, self._rows)
        if iterations * BYTES_OF_AN_ITERATION > limits().memory:
            raise NotLifted(f"{iterations} tensor iterations take more than the limit of memory")
        self._parts.append(part)
        identities.forget(self.notes)
        if identities.lacks_rows(self.notes):
            self._take_rows()

    def _take_rows(self) -> None:
        count = int(self.notes.walk["distinct"][0])
        self._distinct.append(self.notes.distinct[:count].copy())
        self._earlier += count
        identities.forget_rows(self.notes)

    def operations(self) -> Records[Operation]:
        """What the scalar core has computed from data in this run."""
        count, room = int(self.notes.walk["operations"][0]), len(self.notes.operations)
        if count > room:
            raise NotLifted(f"its scalar core computes with data in more than {room} operations")
        return self.notes.operations[:count]

    def all(self) -> tuple[_Notes, NDArray[np.uint32]]:
        """All that has been noted in this run, and the distinct rows."""
        self.take()
        self._take_rows()
        notes = _Notes(
            join([part.executions for part in self._parts]),
            np.concatenate([part.operands for part in self._parts]),
            np.concatenate([part.rows for part in self._parts]),
        )
        return notes, np.concatenate(self._distinct)


def walk(accelerator: Accelerator, executable: Executable) -> Walked:
    """Run ``executable`` on identities; the chip holds afterwards what it held before.

    Raises:
        NotLifted: it does not do the same whatever its inputs are, or is too long.
        SimulationError: its program fails.
    """
    return _Walk(accelerator, executable).walked()


class _Walk:
    def __init__(self, accelerator: Accelerator, executable: Executable) -> None:
        self._accelerator, self._executable = accelerator, executable
        self._program = accelerator.load(executable)
        self._before = accelerator.chip.contents()
        self._stale = np.zeros(self._before.tiles["wide"].shape, np.bool_)
        self._inputs: dict[str, NDArray[np.int64]] = {}
        first = identities.BLOCK
        for layer in executable.input_layers:
            size = layer_bytes(layer) * batches_of(executable)
            self._inputs[layer.name] = np.arange(first, first + size)
            # A block has one maker: the next layer begins another one.
            first = -(-(first + size) // identities.BLOCK) * identities.BLOCK
        self._first = first

    def walked(self) -> Walked:
        """All runs."""
        try:
            return self._runs()
        finally:
            if self._accelerator.chip.fault is None:
                self._accelerator.chip.restore(self._before)

    def _runs(self) -> Walked:
        """One run for each octet."""
        segments = self._program.tables.tensor_plan.segment
        require_short(int(segments["count"].max(initial=0)))
        joined: _Joined | None = None
        octets = run = number = 0
        # On data, which takes a third of the time: most of what will have been no constant.
        self._run(0)
        self._finds_stale()
        while run < max(octets, 1):
            recorder = self._recorder(_BITS * run)
            sent = self._run(_BITS * run, recorder)
            if self._finds_stale():
                # What has been taken for a constant is none: once more, with that known.
                joined, run = None, 0
                continue
            number = int(recorder.notes.walk["identity"][0])
            octets = codes.octets_needed(number)
            if number > MAX_IDENTITIES:
                raise NotLifted("it makes more bytes than have an identity")
            joined = joined or _Joined()
            joined.add(*recorder.all(), recorder.operations(), sent, _BITS * run)
            run += 1
        assert joined is not None
        joined.identify(number + CONSTANTS)
        return Walked(
            self._program,
            joined.executions,
            joined.operands.reshape(-1, 4),
            joined.rows,
            joined.distinct,
            joined.tape(),
            {name: (each + CONSTANTS).astype(np.int32) for name, each in self._inputs.items()},
            joined.outputs,
            number + CONSTANTS,
            foundation_of(self._before, self._stale),
        )

    def _recorder(self, shift: int) -> _Recorder:
        segments = self._program.tables.tensor_plan.segment
        notes = identities.new_notes(_ROOM, int(segments["count"].max(initial=1)))
        notes.walk["shift"], notes.walk["identity"] = shift, self._first
        return _Recorder(notes)

    def _run(self, shift: int, recorder: _Recorder | None = None) -> Mapping[str, bytes]:
        device = self._accelerator.chip
        device.restore(self._before)
        stale = codes.octets(np.zeros(1, np.int64), shift)[0]
        self._forget(device.tiles, device.core_array, stale)
        device.core_array["noting"] = recorder is not None

        def fill(request: Request) -> None:
            self._fill(request, shift)

        try:
            sent = self._accelerator.walk(self._executable, fill, recorder)
        except SimulationError as error:
            # An identity is no address, for one.
            if device.core["uninitialised"]:
                raise NotLifted(_COURSE) from error
            raise
        self._check(device.core)
        return sent

    def _forget(
        self, tiles: Records[state.Tile], core: Records[state.Core], stale: np.uint8
    ) -> None:
        """Make stale what the chip holds, but for rows of wide memory that stay as they are."""
        word = np.uint32(stale * np.uint32(state.WRITTEN))
        for name in ("narrow", "scale_bias"):
            tiles[name] = word
            tiles[f"{name}_written"] = 0
        tiles["coefficient"] = np.uint32(NO_TABLE).view(np.float32)
        tiles["wide"][self._stale] = word
        tiles["wide_written"] = _UNTOUCHED
        for name in ("activations", "parameters"):
            core[name] = stale
            core[f"{name}_written"] = 0
        for name in ("memory", "registers"):
            core[name] = word
            core[f"{name}_written"] = 0
        core["predicates_written"] = 0
        for rows in (tiles["units"]["row"], tiles["ring"]["rows"], core["ring"]["rows"]):
            rows["data"], rows["written"] = word, 0
        core["units"]["row"]["data"] = tiles["mesh"]["data"] = word

    def _fill(self, request: Request, shift: int) -> None:
        """Identities of inputs, of which nothing that decides anything may follow."""
        stale = codes.octets(np.zeros(1, np.int64), shift)[0]
        batches = batches_of(self._executable)
        for buffer, mapped in request.buffers.items():
            region = mapped.region
            region.follow()
            known = region.payload_known
            if buffer.desc == Description.BASE_ADDRESS_INPUT_ACTIVATION:
                numbers = self._inputs[buffer.name].reshape(batches, -1)[buffer.batch]
                region.payload[: numbers.size] = codes.octets(numbers, shift)
                if known is not None:
                    known[: numbers.size] = False
            elif buffer.desc in (
                Description.BASE_ADDRESS_OUTPUT_ACTIVATION,
                Description.BASE_ADDRESS_SCRATCH,
            ):
                region.payload[:] = stale
                if known is not None:
                    known[:] = False

    def _check(self, core: state.Core) -> None:
        """Nothing that a run leaves behind, or decides, depends on its data."""
        if core["uninitialised"]:
            raise NotLifted(_COURSE)
        after = self._accelerator.chip
        for name in CONTROL:
            if not np.array_equal(after.tiles[name], self._before.tiles[name]):
                raise NotLifted(f"it leaves {name.replace('_', ' ')} otherwise than it found them")
        if not np.array_equal(core["flags"], self._before.core["flags"][0]):
            raise NotLifted("it leaves flags otherwise than it found them")

    def _finds_stale(self) -> bool:
        """Words of wide memory are not what they were, and were not known for it."""
        tiles = self._accelerator.chip.tiles
        before = self._before.tiles["wide"]
        changed = (tiles["wide"] != before) | (tiles["wide_written"] != _UNTOUCHED)
        changed &= ~self._stale
        self._stale |= changed
        return bool(changed.any())


class _Joined:
    """What the runs have noted, put together: codes of bytes, and rows that differ in any run."""

    def __init__(self) -> None:
        self.executions = Execution.zeros(0)
        self.operands = np.zeros(0, np.int32)
        self.rows = np.zeros(0, np.int32)
        self.distinct = np.zeros((0, chip.ROW_BYTES), np.int32)
        self.operations = Operation.zeros(0)
        self.words = np.zeros(0, np.int32)
        self.outputs: dict[str, Numbers32] = {}
        self._parts: list[tuple[NDArray[np.uint32], NDArray[np.integer]]] = []
        """Distinct rows of each run, and which of them those that differ in any run are."""

    def add(
        self,
        notes: _Notes,
        distinct: NDArray[np.uint32],
        operations: Records[Operation],
        outputs: Mapping[str, bytes],
        shift: int,
    ) -> None:
        """Take in another run."""
        rows = np.concatenate([notes.rows, *(notes.executions[name] for name in _ROWS)])
        first = not shift
        if first:
            self.executions = notes.executions
            self.operands = np.zeros(4 * len(notes.operands), np.int32)
            self.outputs = {name: np.zeros(len(each), np.int32) for name, each in outputs.items()}
            self.operations = operations
            self.words = np.zeros(OPERAND_BYTES * len(operations), np.int32)
            self.rows = rows
        codes.add_octets(self.operands, notes.operands.view(np.uint8), shift)
        words = np.ascontiguousarray(operations["operands"]).view(np.uint8).reshape(-1)
        codes.add_octets(self.words, words, shift)
        for name, each in outputs.items():
            codes.add_octets(self.outputs[name], np.frombuffer(each, np.uint8), shift)
        which: NDArray[np.integer] = np.arange(len(distinct))
        if not first:
            # Rows that are equal in one octet may differ in another.
            pairs = _joined(self.rows, rows)
            self._parts = [(each, places[pairs[:, 0]]) for each, places in self._parts]
            which = pairs[:, 1]
        self._parts.append((distinct, which))

    def identify(self, numbers: int) -> None:
        """Replace codes by numbers, which are below ``numbers``, when all runs are there."""
        self.distinct = np.zeros((len(self._parts[0][1]), chip.ROW_BYTES), np.int32)
        for run, (distinct, which) in enumerate(self._parts):
            octets = distinct[which].view(np.uint8).reshape(-1)
            codes.add_octets(self.distinct.reshape(-1), octets, _BITS * run)
        self._parts.clear()
        coded = (self.operands, self.words, self.distinct.reshape(-1), *self.outputs.values())
        for each in coded:
            codes.identify(each, CONSTANTS)
            if each.view(np.uint32).max(initial=0) >= numbers:
                # As of memory of the host around a buffer, which lies elsewhere in each run.
                raise NotLifted("it takes bytes that are another's in each run")
        begin = len(self.rows) - len(_ROWS) * len(self.executions)
        for k, name in enumerate(_ROWS):
            first = begin + k * len(self.executions)
            self.executions[name] = self.rows[first : first + len(self.executions)]
        self.rows = self.rows[:begin]

    def tape(self) -> Tape:
        """What the scalar core has computed, when numbers are known."""
        operations = self.operations
        operation, identity = (operations[name].copy() for name in ("operation", "identity"))
        return Tape(operation, self.words.reshape(-1, OPERAND_BYTES), identity)


def _joined(one: Numbers32, other: Numbers32) -> Numbers32:
    """Number pairs in the place of ``one``; the pairs, by their numbers."""
    room = 1 << 16
    while True:
        slots = np.full(4 * room, identities.NOTHING, np.int32)
        pairs = np.empty((room, 2), np.int32)
        numbers = one.copy()
        count = codes.join(numbers, other, slots, pairs)
        if count >= 0:
            one[:] = numbers
            return pairs[:count]
        room *= 4


_COURSE = "its course may depend on data, or on what came before"

_UNTOUCHED = 0x02020202
"""Shadow of words of wide memory that hold what they held before the run."""
