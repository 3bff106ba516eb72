"""Where everything that a layer reads comes from: a run in which data carry their maker's mark.

The program runs as it is, with all its moves, flags and descriptors, but on marked data
(``darwinn_sim.units.marks``). Every tensor instruction writes the mark of its layer in place of its
results, each input consists of its own mark, and each word of the parameters holds its place in the
file. Whatever a tensor unit finds in its memories then says which layer, which input and which
bytes of the parameters it came from, however it was moved, packed, broadcast, or parked in the host
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from operator import attrgetter

import numpy as np
from darwinn_formats.darwinn import DataType, Executable, Layer, to_tensor
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.analysis import operands
from darwinn_sim.analysis.operands import Groups, Places, distinct
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.host.buffers import batches_of, layer_bytes
from darwinn_sim.isa.grading import Assumption
from darwinn_sim.machine import layers
from darwinn_sim.machine.layers import ComputedLayer
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.units.marks import (
    ACTIVATIONS,
    COUNT_BITS,
    KINDS,
    MADE,
    PARAMETER_MARK,
    PARAMETERS,
    PLACE_BITS,
    SCALES,
    SECOND_HALF,
    Sweeps,
    new_marks,
)
from darwinn_sim.units.observation import new_notebook
from darwinn_sim.units.sweeps import sweeps
from darwinn_sim.units.tables import Tables

_STREAMED = 1 << 23
"""Bit of a parameter word that says which executable brought it; its place is below, in words."""

MARKS = PARAMETER_MARK - 1
"""Of each half. Layers of a run have marks from 1 on, first those of the first half; inputs have
those from the highest of the first half down."""


def no_places() -> Places:
    """None at all."""
    return np.zeros(0, np.int64)


_NOWHERE = no_places()


def _union(one: Places, other: Places) -> Places:
    if not one.size or not other.size:
        return one if one.size else other
    return one if np.array_equal(one, other) else distinct(np.concatenate([one, other]))


def _nothing_made() -> NDArray[np.bool_]:
    return np.zeros(0, np.bool_)


_NONE_MADE = np.zeros(1, np.bool_), np.zeros(1, np.bool_)


@dataclass(frozen=True, eq=False)
class Origin:
    """Makers of data: numbers of ``layers``, names of ``inputs``, and words of the parameters.

    ``cached`` and ``streamed`` are places in words, ascending, in the parameters of the executable
    that caches them and of the one that does the inference.
    """

    layers: frozenset[int] = frozenset()
    inputs: frozenset[str] = frozenset()
    cached: Places = field(default_factory=no_places)
    streamed: Places = field(default_factory=no_places)

    @property
    def computed(self) -> bool:
        """Whether any of it follows from an input."""
        return bool(self.layers or self.inputs)

    def __or__(self, other: Origin) -> Origin:
        """Both together."""
        if self is other:
            return self
        return Origin(
            self.layers | other.layers,
            self.inputs | other.inputs,
            _union(self.cached, other.cached),
            _union(self.streamed, other.streamed),
        )


@dataclass(frozen=True, eq=False)
class Reads:
    """What one tile reads for a tensor instruction, in all executions of it.

    ``activations`` come from narrow memory, ``parameters`` from wide memory, ``scales`` (and
    biases) from the scale/bias buffer. ``first`` and ``last`` belong to the first and the last
    group of results (``operands.group_iterations``): which of the activations that they take a
    layer or an input has made. Padding and other constants were made by none. A layer that computes
    in place may go over a place again: what it has written itself does not count.
    """

    activations: Origin = field(default_factory=Origin)
    parameters: Origin = field(default_factory=Origin)
    scales: Origin = field(default_factory=Origin)
    first: NDArray[np.bool_] = field(default_factory=_nothing_made)
    last: NDArray[np.bool_] = field(default_factory=_nothing_made)


@dataclass(frozen=True, eq=False)
class Provenance:
    """The layers of a program, what each instruction reads on each tile, and what outputs are.

    ``reads`` is indexed by (instruction, tile); an instruction that is never executed there has no
    entry. ``outputs`` holds those that come from the tiles as they are; the others are computed by
    the scalar core, from what ``scalar_core`` tells. ``assumed`` is what the run assumed.
    """

    program: LoweredProgram
    layers: tuple[layers.ComputedLayer, ...]
    reads: Mapping[tuple[int, int], Reads]
    outputs: Mapping[str, Origin]
    scalar_core: Origin
    assumed: tuple[Assumption, ...] = ()


def trace(
    caching: Executable | None,
    inference: Executable,
    *,
    seed: int = 0,
    assumptions: bool = True,
    program: LoweredProgram | None = None,
) -> Provenance:
    """Run a model on marked data, once for every 500 layers or so.

    Args:
        caching: the executable that caches the model's parameters, or None.
        inference: the executable to look at.
        seed, assumptions: see :class:`Accelerator`.
        program: the executable to look at, if it has been lowered already; it is linked in place.

    Raises:
        SimulationError: the program fails, or uses what the model of the chip lacks.
        FormatError: it has no instructions.
    """
    accelerator = Accelerator(seed=seed, assumptions=assumptions)
    if caching is not None:
        accelerator.run(_with_places(caching, 0), {})
    if program is not None:
        accelerator.take(program)
    program = accelerator.load(inference)
    found = layers.find(program.chunks)
    groups = operands.groups(program.tables)
    swept = sweeps(program.tables, operands.in_groups(program.tables, groups))
    most = 2 * _marks_beside(inference)
    windows = [found[first : first + most] for first in range(0, max(len(found), 1), most)]
    before = accelerator.chip.contents() if len(windows) > 1 else None
    runs = []
    for number, window in enumerate(windows, 1):
        if before is not None and number > 1:
            accelerator.chip.restore(before)
        if number == len(windows):
            # A copy of all memories, where no run begins any more.
            before = None
        runs.append(_MarkedRun(accelerator, caching, inference, found, window, swept, groups))
    reads = [run.reads() for run in runs]
    join = cache(Origin.__or__)
    return Provenance(
        program,
        found,
        {key: _joined([each[key] for each in reads], join) for key in reads[0]},
        {
            name: reduce(Origin.__or__, (run.outputs[name] for run in runs))
            for name in runs[0].outputs
            if any(run.outputs[name].computed for run in runs)
        },
        reduce(Origin.__or__, (run.scalar_core for run in runs)),
        accelerator.assumed,
    )


def _joined(found: Sequence[Reads], join: Callable[[Origin, Origin], Origin]) -> Reads:
    """What all runs have found of one instruction on one tile; ``join`` joins two origins, which
    tiles share, once.
    """
    if len(found) == 1:
        return found[0]
    return Reads(
        *(reduce(join, each) for each in zip(*map(_ORIGINS, found), strict=True)),
        *(np.bitwise_or.reduce(each) for each in zip(*map(_MADE, found), strict=True)),
    )


_ORIGINS = attrgetter("activations", "parameters", "scales")
_MADE = attrgetter("first", "last")


class _Marker:
    """Marks of layers, and what is noted in the run (``observer.Noting``)."""

    def __init__(self, tables: Tables, found: Sweeps, by_mark: Mapping[int, ComputedLayer]) -> None:
        mark = np.zeros(len(tables.tensor), np.uint16)
        for number, layer in by_mark.items():
            mark[tables.row[list(layer.instructions)]] = number
        self.marks = new_marks(mark, found)
        self.seen = new_notebook(marked=self.marks)
        self._parts: list[Places] = []

    def take(self) -> None:
        """Take out what has been noted."""
        count = int(self.marks.marking["notes"][0])
        self._parts.append(distinct(self.marks.notes[:count]))
        self.marks.marking["notes"] = 0

    def ranges(self) -> dict[int, Places]:
        """Places by reader: ascending, the first of some and how many they are."""
        self.take()
        notes = self._parts[0] if len(self._parts) == 1 else distinct(np.concatenate(self._parts))
        bits = PLACE_BITS + COUNT_BITS
        readers, begins = np.unique(notes >> bits, return_index=True)
        ends = [*begins.tolist(), len(notes)][1:]
        ranges = notes & (1 << bits) - 1
        return {
            reader: ranges[begin:end]
            for reader, begin, end in zip(readers.tolist(), begins.tolist(), ends, strict=True)
        }


class _MarkedRun:
    """One run of a model, in which the layers of ``window`` and all inputs write marks."""

    def __init__(
        self,
        accelerator: Accelerator,
        caching: Executable | None,
        inference: Executable,
        found: Sequence[ComputedLayer],
        window: Sequence[ComputedLayer],
        swept: Sweeps,
        groups: Groups,
    ) -> None:
        self._groups = groups
        self._layers, self._window = found, window
        self._program = accelerator.load(inference)
        self._by_mark = _marked(window, _marks_beside(inference))
        self._marker = _Marker(self._program.tables, swept, self._by_mark)
        self._inputs = {
            _mark_of_input(k): layer.name for k, layer in enumerate(inference.input_layers)
        }
        self._words = [
            0 if each is None else -(-len(each.parameters) // WORD_BYTES)
            for each in (caching, inference)
        ]
        inputs = {
            layer.name: bytes([_mark_of_input(k)]) * (layer_bytes(layer) * batches_of(inference))
            for k, layer in enumerate(inference.input_layers)
        }
        core = accelerator.chip.core
        result = accelerator.run(
            _with_places(inference, _STREAMED),
            inputs,
            noting=self._marker,
            program=_without_constants(self._program),
            as_far_as_it_goes=True,
        )
        self.outputs = {
            layer.name: self._made_by(
                _elements(layer, result.outputs[layer.name]),
                _elements(layer, result.known[layer.name]),
            )
            for layer in inference.output_layers
            if layer.name in result.outputs
        }
        self._ranges = self._marker.ranges()
        met = self._marker.marks.met
        self._met, self._met_bytes = met.tobytes(), met.shape[1]
        self._origins: dict[tuple[int, bytes, bytes], Origin] = {}
        self._made: dict[tuple[int, bytes], tuple[NDArray[np.bool_], NDArray[np.bool_]]] = {}
        octets = core["memory"].view(np.uint8)
        marks = _marks_of(octets, core["memory_written"].view(np.uint8)).reshape(-1, WORD_BYTES)
        # Words of results; numbers that the scalar core has computed hardly look like that.
        results = (marks == marks[:, :1]).all(axis=1)
        self.scalar_core = self._of_words(core["memory"][results], marks[results])

    def reads(self) -> dict[tuple[int, int], Reads]:
        """What was seen, by instruction and tile."""
        met, tables = self._marker.marks.met, self._program.tables
        executed = (met[ACTIVATIONS::KINDS, 0] & 1).reshape(-1, chip.TILES)
        found: dict[tuple[int, int], Reads] = {}
        for layer in self._layers:
            for instruction in layer.instructions:
                row = int(tables.row[instruction])
                place = tables.tensor_plan.place[row]
                begin, iterations = int(place["iteration"]), int(place["iterations"])
                for tile in np.flatnonzero(executed[row]).tolist():
                    reader = (row * chip.TILES + tile) * KINDS
                    first, last = self._made_in_groups(begin, iterations, reader + MADE)
                    found[instruction, tile] = Reads(
                        activations=self._read_by(reader + ACTIVATIONS, layer),
                        parameters=self._read_by(reader + PARAMETERS, layer),
                        scales=self._read_by(reader + SCALES, layer),
                        first=first,
                        last=last,
                    )
        return found

    def _read_by(self, reader: int, layer: ComputedLayer) -> Origin:
        """Makers of what was read, but for the layer itself. Tiles often read the same."""
        places = self._ranges.get(reader, _NOWHERE)
        met = self._met[reader * self._met_bytes : (reader + 1) * self._met_bytes]
        key = layer.number, met, places.tobytes()
        if key not in self._origins:
            bits = np.unpackbits(np.frombuffer(met, np.uint8), bitorder="little")
            origin = self._origin(np.flatnonzero(bits), _expanded(places))
            self._origins[key] = replace(origin, layers=origin.layers - {layer.number})
        return self._origins[key]

    def _made_in_groups(
        self, begin: int, iterations: int, reader: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which operands of the first and of the last group have been made, of an instruction whose
        iterations ``begin`` there in the plan. One that does not multiply has no groups.
        """
        if begin not in self._groups:
            return _NONE_MADE
        made = self._ranges.get(reader, _NOWHERE)
        key = begin, made.tobytes()
        if key not in self._made:
            is_made = np.zeros(iterations, np.bool_)
            is_made[made >> COUNT_BITS] = True
            first, last = self._groups[begin]
            self._made[key] = is_made[first], is_made[last]
        return self._made[key]

    def _made_by(self, data: bytes, known: bytes) -> Origin:
        """Makers of an output; none if it is not all marks, so that something computed it."""
        if 0 in data and self._window[:1] == self._layers[:1]:
            return Origin()
        more = bytes(-len(data) % WORD_BYTES)
        octets, written = (np.frombuffer(each + more, np.uint8) for each in (data, known))
        return self._of_words(octets.view("<u4"), _marks_of(octets, written))

    def _of_words(self, words: NDArray[np.uint32], marks: NDArray[np.uint16]) -> Origin:
        """Makers of words: of each byte, whose ``marks`` are given, or of a word of parameters."""
        of_parameters = words >> 24 == PARAMETER_MARK
        return self._origin(
            distinct(marks.reshape(-1, WORD_BYTES)[~of_parameters].ravel()),
            distinct(words[of_parameters]).astype(np.int64) & 0xFFFFFF,
        )

    def _origin(self, marks: NDArray[np.integer], places: Places) -> Origin:
        """Who has these marks; ``places`` of parameters, of both executables, ascending."""
        met = marks.tolist()
        streamed = places[places >= _STREAMED] - _STREAMED
        return Origin(
            frozenset(self._by_mark[mark].number for mark in met if mark in self._by_mark),
            frozenset(self._inputs[mark] for mark in met if mark in self._inputs),
            # What is no place in the parameters was computed: a negative number.
            places[places < self._words[0]],
            streamed[streamed < self._words[1]],
        )


def _mark_of_input(number: int) -> int:
    return PARAMETER_MARK - 1 - number


def _marks_beside(inference: Executable) -> int:
    """Marks of each half that inputs leave."""
    return MARKS - len(inference.input_layers)


def _marked(window: Sequence[ComputedLayer], most: int) -> dict[int, ComputedLayer]:
    """Layers by their marks, of which there are so many in each half."""
    return {SECOND_HALF * (k // most) + k % most + 1: layer for k, layer in enumerate(window)}


def _marks_of(octets: NDArray[np.uint8], written: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """The marks of bytes with such shadows."""
    halves = np.where(written, np.uint16(0), np.uint16(SECOND_HALF))
    return octets.astype(np.uint16) | halves


def _expanded(ranges: Places) -> Places:
    """All places of ranges, ascending."""
    first, count = ranges >> COUNT_BITS, ranges & (1 << COUNT_BITS) - 1
    ends = np.cumsum(count)
    places = np.repeat(first - ends + count, count) + np.arange(int(count.sum()))
    if (first[1:] >= first[:-1] + count[:-1]).all():
        return places
    return distinct(places)


def _without_constants(program: LoweredProgram) -> LoweredProgram:
    """Padding and zero points, which replace received words, are made by nobody."""
    mesh = program.tables.mesh.copy()
    mesh["immediate"] = 0
    return program._replace(tables=program.tables._replace(mesh=mesh))


_UNSIGNED = {
    DataType.SIGNED_FIXED_POINT8: DataType.FIXED_POINT8,
    DataType.SIGNED_FIXED_POINT16: DataType.FIXED_POINT16,
}


def _elements(layer: Layer, data: bytes) -> bytes:
    """The bytes of an output that are results, as the chip sent them; the host receives more."""
    plain = replace(layer, data_type=_UNSIGNED.get(layer.data_type, layer.data_type))
    size = layer_bytes(layer)
    parts = [to_tensor(plain, data[k : k + size]) for k in range(0, len(data), size)]
    return b"".join(part.tobytes() for part in parts)


def _with_places(executable: Executable, flags: int) -> Executable:
    """The executable with each word of its parameters replaced by its place in them."""
    size = len(executable.parameters)
    places = np.arange(-(-size // WORD_BYTES), dtype="<u4") | flags | PARAMETER_MARK << 24
    return replace(executable, parameters=places.astype("<u4").tobytes()[:size])
