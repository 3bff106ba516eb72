"""Where everything that a layer reads comes from: a run in which data carry their maker's mark.

The program runs as it is, with all its moves, flags and descriptors, but on marked data. Every
tensor instruction writes the mark of its layer in place of its results, each input consists of its
own mark, and each word of the parameters holds its place in the file. Whatever a tensor unit finds
in its memories then says which layer, which input and which bytes of the parameters it came from,
however it was moved, packed, broadcast, or parked in the host meanwhile.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
from darwinn_formats.darwinn import DataType, Executable, Layer, to_tensor
from numpy.typing import NDArray

from darwinn_sim.accelerator import Accelerator
from darwinn_sim.analysis import operands
from darwinn_sim.analysis.operands import (
    Look,
    Places,
    Words,
    no_places,
    to_observe,
)
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.host.buffers import batches_of, layer_bytes
from darwinn_sim.isa.codes import TileUnit
from darwinn_sim.isa.grading import Assumption
from darwinn_sim.machine import layers
from darwinn_sim.machine.lowering import LoweredProgram
from darwinn_sim.units import output_stage

_STREAMED = 1 << 23
"""Bit of a parameter word that says which executable brought it; its place is below, in words."""


def _union(one: Places, other: Places) -> Places:
    if not one.size or not other.size:
        return one if one.size else other
    return one if np.array_equal(one, other) else np.union1d(one, other)


def _nothing_made() -> NDArray[np.bool_]:
    return np.zeros(0, np.bool_)


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
    group of results: which of the activations that they take (see :func:`group_operands`) a layer
    or an input has made. Padding and other constants were made by none.
    """

    activations: Origin = field(default_factory=Origin)
    parameters: Origin = field(default_factory=Origin)
    scales: Origin = field(default_factory=Origin)
    first: NDArray[np.bool_] = field(default_factory=_nothing_made)
    last: NDArray[np.bool_] = field(default_factory=_nothing_made)

    def __or__(self, other: Reads) -> Reads:
        """Both together, of the same instruction on the same tile."""
        return Reads(
            self.activations | other.activations,
            self.parameters | other.parameters,
            self.scales | other.scales,
            self.first | other.first,
            self.last | other.last,
        )


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
) -> Provenance:
    """Run a model on marked data, once for every 250 layers or so.

    Args:
        caching: the executable that caches the model's parameters, or None.
        inference: the executable to look at.
        seed, assumptions: see :class:`Accelerator`.

    Raises:
        SimulationError: the program fails, or uses what the model of the chip lacks.
        FormatError: it has no instructions.
    """
    most = operands.PARAMETER_MARK - 1 - len(inference.input_layers)
    runs = [_MarkedRun(caching, inference, range(most), seed, assumptions)]
    for first in range(most, len(runs[0].layers), most):
        window = range(first, first + most)
        runs.append(_MarkedRun(caching, inference, window, seed, assumptions))
    reads = [run.reads() for run in runs]
    return Provenance(
        runs[0].program,
        runs[0].layers,
        {key: reduce(Reads.__or__, (each[key] for each in reads)) for key in reads[0]},
        {
            name: reduce(Origin.__or__, (run.outputs[name] for run in runs))
            for name in runs[0].outputs
            if any(run.outputs[name].computed for run in runs)
        },
        reduce(Origin.__or__, (run.scalar_core for run in runs)),
        runs[0].assumed,
    )


class _MarkedRun:
    """One run of a model, in which the layers of ``window`` and all inputs write marks."""

    def __init__(
        self,
        caching: Executable | None,
        inference: Executable,
        window: range,
        seed: int,
        assumptions: bool,
    ) -> None:
        accelerator = Accelerator(seed=seed, assumptions=assumptions)
        if caching is not None:
            accelerator.run(_with_places(caching, 0), {})
        self.program = accelerator.load(inference)
        self.assumed = accelerator.assumed
        self.layers = layers.find(self.program.chunks)
        self._window = window
        self._inputs = [layer.name for layer in inference.input_layers]
        self._words = [
            0 if each is None else -(-len(each.parameters) // WORD_BYTES)
            for each in (caching, inference)
        ]
        self._tiles = accelerator.chip.tiles
        self._looks: dict[tuple[int, int], Look] = {}
        self._latest: dict[int, Look] = {}
        self._found: dict[tuple[int, int], _Found] = {}
        self._words_of: dict[tuple[str, int, int], Words] = {}
        self._origins: dict[tuple[int, ...], Origin] = {}
        inputs = {
            layer.name: bytes([self._mark_of_input(k)])
            * (layer_bytes(layer) * batches_of(inference))
            for k, layer in enumerate(inference.input_layers)
        }
        memory = accelerator.chip.core["memory"]
        result = accelerator.run(
            _with_places(inference, _STREAMED),
            inputs,
            look=self._observe,
            program=self._marked(),
            as_far_as_it_goes=True,
        )
        self.outputs = {
            layer.name: self._made_by(_elements(layer, result.outputs[layer.name]))
            for layer in inference.output_layers
            if layer.name in result.outputs
        }
        octets = memory.view(np.uint8).reshape(-1, WORD_BYTES)
        # Words of results; numbers that the scalar core has computed hardly look like that.
        self.scalar_core = self._origin([memory[(octets == octets[:, :1]).all(axis=1)]])

    def reads(self) -> dict[tuple[int, int], Reads]:
        """What was seen, by instruction and tile."""
        return {
            key: Reads(
                activations=self._origin_once(found.activations),
                parameters=self._origin_once(found.parameters),
                scales=self._origin_once(found.scales),
                first=found.first,
                last=found.last,
            )
            for key, found in self._found.items()
        }

    def _mark_of_input(self, number: int) -> int:
        return operands.PARAMETER_MARK - 1 - number

    def _marked(self) -> LoweredProgram:
        """The program with marks in place of results, and segments to be observed."""
        tables = self.program.tables
        tensor, mesh = tables.tensor.copy(), tables.mesh.copy()
        segment = tables.tensor_plan.segment.copy()
        for name in _OUTPUT_STAGE:
            tensor[name] = 0
        tensor["function"] &= output_stage.OUTPUT_16BIT
        # Sums that are put aside in wide memory would look like marks where rows are read whole.
        tensor["working"] = 0
        for layer in self.layers:
            if layer.number in self._window:
                rows = tables.row[list(layer.instructions)]
                mark = layer.number - self._window.start + 1
                # A 16-bit result is two marks.
                marks = mark * np.where(tensor["function"][rows], 257, 1)
                tensor["output_zero_point"][rows] = marks
        # What replaces received words is constant: padding, zero points.
        mesh["immediate"] = 0
        for row, place in enumerate(tables.tensor_plan.place):
            observed = to_observe(tables, row)
            # Instructions that share a plan are alike but for what they do with scales.
            segment["observed"][int(place["segment"]) + observed.positions] |= observed.bits
        plan = tables.tensor_plan._replace(segment=segment)
        return self.program._replace(
            tables=tables._replace(tensor=tensor, mesh=mesh, tensor_plan=plan)
        )

    def _observe(self, number: int) -> None:
        """Look at what ``number``, a tile, is about to read."""
        tile = self._tiles[number]
        unit = tile["units"][TileUnit.TENSOR]
        instruction, position = int(unit["current"]), int(unit["position"])
        row = int(self.program.tables.row[instruction])
        plan = int(self.program.tables.tensor_plan.place[row]["segment"])
        if (plan, position) not in self._looks:
            before = self._latest.get(plan)
            look = Look.at(self.program.tables, row, position, before)
            self._looks[plan, position] = self._latest[plan] = look
        look = self._looks[plan, position]
        found = self._found.setdefault((instruction, number), _Found())
        scales = look.scales(self.program.tables.tensor[row], unit["waited"])
        key = instruction, position
        found.activations.append(self._shared("a", key, look.operands.take(tile["narrow"])))
        found.parameters.append(self._shared("p", key, look.parameters.take(tile["wide"])))
        found.scales.append(self._shared("s", key, tile["scale_bias"][scales]))
        if look.first is not None:
            found.first = found.first | look.first.made(tile["narrow"])
        if look.last is not None:
            found.last = found.last | look.last.made(tile["narrow"])

    def _shared(self, memory: str, key: tuple[int, int], words: Words) -> Words:
        """The words, as the array in which another tile has found the same ones."""
        known = self._words_of.setdefault((memory, *key), words)
        return known if np.array_equal(known, words) else words

    def _made_by(self, data: bytes) -> Origin:
        """Makers of an output; none if it is not all marks, so that something computed it."""
        if 0 in data and not self._window.start:
            return Origin()
        return self._origin([np.frombuffer(data + bytes(-len(data) % WORD_BYTES), "<u4")])

    def _origin_once(self, words: Sequence[Words]) -> Origin:
        """Makers of words that several tiles may share; the arrays live as long as this run."""
        key = tuple(map(id, words))
        if key not in self._origins:
            self._origins[key] = self._origin(words)
        return self._origins[key]

    def _origin(self, words: Sequence[Words]) -> Origin:
        """Makers of words: of each byte, or of a word of parameters."""
        every = np.unique(np.concatenate(words))
        of_parameters = every >> 24 == operands.PARAMETER_MARK
        # Wider than a byte: numbers of layers go beyond it.
        marks = np.unique(every[~of_parameters].view(np.uint8)).astype(np.int64)
        first_input = self._mark_of_input(len(self._inputs) - 1)
        codes = every[of_parameters].astype(np.int64) & 0xFFFFFF
        cached, streamed = codes[codes < _STREAMED], codes[codes >= _STREAMED] - _STREAMED
        numbers = marks[(marks > 0) & (marks < first_input)] - 1 + self._window.start
        return Origin(
            frozenset(numbers[numbers < len(self.layers)].tolist()),
            frozenset(self._inputs[self._mark_of_input(0) - k] for k in marks if k >= first_input),
            # What is no place in the parameters was computed: a negative number.
            cached[cached < self._words[0]],
            streamed[streamed < self._words[1]],
        )


_OUTPUT_STAGE = (
    "output_scale",
    "high_clip",
    "low_clip",
    "immediate_bias",
    "apply_bias",
    "use_scales",
    "output_zero_point",
)
"""Without these, and without a function, a tensor instruction writes zeros."""


class _Found:
    """Words that a tile has read for an instruction, by memory, with what it does not take as 0."""

    def __init__(self) -> None:
        self.activations: list[Words] = []
        self.parameters: list[Words] = []
        self.scales: list[Words] = []
        self.first: NDArray[np.bool_] = np.zeros(1, np.bool_)
        self.last: NDArray[np.bool_] = np.zeros(1, np.bool_)


_UNSIGNED = {
    DataType.SIGNED_FIXED_POINT8: DataType.FIXED_POINT8,
    DataType.SIGNED_FIXED_POINT16: DataType.FIXED_POINT16,
}


def _elements(layer: Layer, data: bytes) -> bytes:
    """The bytes of an output that are results, as the chip sent them; the host receives more."""
    plain = dataclasses.replace(layer, data_type=_UNSIGNED.get(layer.data_type, layer.data_type))
    size = layer_bytes(layer)
    parts = [to_tensor(plain, data[k : k + size]) for k in range(0, len(data), size)]
    return b"".join(part.tobytes() for part in parts)


def _with_places(executable: Executable, flags: int) -> Executable:
    """The executable with each word of its parameters replaced by its place in them."""
    size = len(executable.parameters)
    places = np.arange(-(-size // WORD_BYTES), dtype="<u4") | flags | operands.PARAMETER_MARK << 24
    return dataclasses.replace(executable, parameters=places.astype("<u4").tobytes()[:size])
