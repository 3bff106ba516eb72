"""A layer as users see it: its kind, shapes and parameters, and what it reads and writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from darwinn_sim.analysis.operands import distinct
from darwinn_sim.analysis.provenance import Provenance
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.machine.layers import ComputedLayer
from darwinn_sim.units import tensor_cells

from darwinn_testbench.chip.model import BoundModel
from darwinn_testbench.layers.geometry import Geometry
from darwinn_testbench.layers.kinds import (
    ADD,
    AVERAGE_POOL,
    CONVOLUTION,
    DENSE,
    DEPTHWISE,
    ELEMENTWISE,
    MOVE,
    RESIZES,
    UNKNOWN,
    WINDOWED,
    Facts,
)
from darwinn_testbench.layers.shapes import Shape, Window
from darwinn_testbench.report import Row, Verdict

NAMED = {"json": lambda row: bool(row.tensor)}
"""Metadata of fields that only rows of a network whose names are known have."""


@dataclass(frozen=True)
class ParameterRange:
    """Where a layer's parameters are: ``place`` is ``cached`` or ``streamed``.

    ``start`` and ``end`` (exclusive) are byte offsets in the parameters of the executable that
    caches them, or of the one that does the inference; ``bytes`` of them are read.
    """

    place: str
    start: int
    end: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class LayerRow(Row):
    """A layer of the program (``layer:N`` of taps and stop points) as part of a network.

    ``inputs`` are names: ``layer:N``, or of an input of the executable; ``outputs`` those of the
    executable's outputs that hold it. Shapes are (rows, columns, channels). Zero points are those
    of the bytes on the chip, where int8 is 128 higher; ``scale`` is what sums are multiplied by
    (for ``channel_scales`` by one of each channel besides). ``sources_read`` and ``bytes_*`` count
    distinct bytes on each tile. ``unknown`` names what the executable does not tell. ``operator``
    and ``tensor`` are the network's, if it is known besides.
    """

    number: int
    kind: str
    part_of: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_shapes: tuple[Shape | None, ...]
    output_shape: Shape | None
    kernel: tuple[int, int] | None
    stride: tuple[int, int] | None
    dilation: tuple[int, int] | None
    input_zero_points: tuple[int | None, ...]
    weight_zero_point: int | None
    output_zero_point: int | None
    scale: float
    channel_scales: bool
    clip: tuple[float, float] | None
    output_bits: int
    parameters: tuple[ParameterRange, ...]
    tiles: tuple[int, ...]
    executions: int
    bytes_read: int
    bytes_written: int
    multiplications: int
    unknown: tuple[str, ...]
    operator: str = field(default="", metadata=NAMED)
    tensor: str = field(default="", metadata=NAMED)

    drawn = ("multiplications",)
    unit = "multiplications"


_Executions = tuple[int, int]
"""Row of a tensor instruction, and how many tiles execute it."""


def layer_rows(bound: BoundModel, found: Provenance) -> tuple[LayerRow, ...]:
    """Rows of a traced program, in its order: a layer's sources stand before it."""
    rows = _Rows(bound, found)
    return tuple(rows.row(number) for number in rows.geometry.facts)


class _Rows:
    def __init__(self, bound: BoundModel, found: Provenance) -> None:
        self.found = found
        self.tables = found.program.tables
        self.geometry = Geometry(bound, found)
        self.words_read: dict[tuple[int, int], int] = {}
        self.lanes: dict[tuple[int, int], int] = {}
        self.input_zero_points = {
            each.layer.name: None if each.layer.numerics is None else each.layer.numerics.zero_point
            for each in bound.inputs
        }

    def row(self, number: int) -> LayerRow:
        facts, kind = self.geometry.facts[number], self.geometry.kinds[number]
        layer, instruction = facts.layer, facts.instruction
        sources = self.geometry.sources(number)
        shapes = tuple(self.geometry.input_shape(each) for each in sources)
        found = self.geometry.window(number)
        unknown = tuple(self._unknown(number, shapes, found))
        executions = tuple(self._executions(layer, facts))
        clips = float(instruction["low_clip"]), float(instruction["high_clip"])
        adds = kind in (ADD, ELEMENTWISE)
        return LayerRow(
            name=f"layer {number}",
            verdict=Verdict.PASS,
            message=f"not known: {', '.join(unknown)}" if unknown else "",
            number=number,
            kind=kind,
            part_of=self.geometry.parts.get(number, ""),
            inputs=tuple(each if isinstance(each, str) else f"layer:{each}" for each in sources),
            outputs=tuple(
                name for name, origin in self.found.outputs.items() if number in origin.layers
            ),
            input_shapes=shapes,
            output_shape=self.geometry.output_shape(number),
            kernel=found.kernel,
            stride=found.stride,
            dilation=found.dilation,
            input_zero_points=tuple(self._input_zero_point(number, each) for each in sources),
            weight_zero_point=int(instruction["parameter_zero_point"])
            if facts.has_parameters and not instruction["load_parameter_zero_point"] and not adds
            else None,
            output_zero_point=layer.output_zero_point,
            scale=float(instruction["output_scale"]),
            channel_scales=bool(instruction["use_scales"]),
            clip=None if np.isinf(clips).any() or kind in RESIZES else clips,
            output_bits=16 if layer.output_16bit else 8,
            parameters=tuple(_ranges(facts)),
            tiles=tuple(sorted(facts.reads)),
            executions=layer.executions,
            bytes_read=self._bytes_read(executions),
            bytes_written=self._bytes_written(executions),
            multiplications=self._multiplications(facts, executions),
            unknown=unknown,
        )

    def _input_zero_point(self, number: int, source: int | str) -> int | None:
        facts = self.geometry.facts[number]
        if self.geometry.kinds[number] in (CONVOLUTION, DEPTHWISE, DENSE):
            return int(facts.instruction["activation_zero_point"])
        behind: tuple[int | str, ...] = (source,)
        if isinstance(source, int) and self.geometry.kinds[source] == MOVE:
            behind = self.geometry.behind_moves(source)
        found = {
            self.input_zero_points[each]
            if isinstance(each, str)
            else self.geometry.facts[each].layer.output_zero_point
            for each in behind
        }
        return found.pop() if len(found) == 1 else None

    def _unknown(self, number: int, shapes: Sequence[Shape | None], found: Window) -> Iterator[str]:
        kind = self.geometry.kinds[number]
        if kind == UNKNOWN:
            yield "kind"
        if self.geometry.has_shape(number):
            if None in shapes and number not in self.geometry.parts:
                yield "input shape"
            if self.geometry.output_shape(number) is None:
                yield "output shape"
        if kind in (*WINDOWED, AVERAGE_POOL):
            if found.kernel is None:
                yield "kernel"
            if found.stride is None:
                yield "stride"

    def _executions(self, layer: ComputedLayer, facts: Facts) -> Iterator[_Executions]:
        """Those of each of a layer's instructions."""
        for instruction in layer.instructions:
            tiles = sum((instruction, tile) in self.found.reads for tile in facts.reads)
            yield int(self.tables.row[instruction]), tiles

    def _bytes_read(self, executions: Sequence[_Executions]) -> int:
        words = (tiles * self._words_read(row) for row, tiles in executions)
        return WORD_BYTES * sum(words)

    def _words_read(self, row: int) -> int:
        """Words that an instruction reads; those that walk alike share a place in the plan."""
        plan = self.tables.tensor_plan
        place = plan.place[row]
        first, count = key = int(place["iteration"]), int(place["iterations"])
        if key not in self.words_read:
            self.words_read[key] = len(distinct(plan.operand[first : first + count] >> 2))
        return self.words_read[key]

    def _bytes_written(self, executions: Sequence[_Executions]) -> int:
        place = self.tables.tensor_plan.place
        words = (tiles * int(place[row]["writes"]) for row, tiles in executions)
        return WORD_BYTES * sum(words)

    def _multiplications(self, facts: Facts, executions: Sequence[_Executions]) -> int:
        if facts.instruction["opcode"] != tensor_cells.MAC:
            return 0
        return sum(
            tiles * self._lanes(row) * int(self.tables.tensor[row]["products"])
            for row, tiles in executions
        )

    def _lanes(self, row: int) -> int:
        """Lanes that are in use in all iterations of an instruction together."""
        plan = self.tables.tensor_plan
        place = plan.place[row]
        first, count = key = int(place["segment"]), int(place["segments"])
        if key not in self.lanes:
            segments = plan.segment[first : first + count]
            lanes = segments["count"].astype(np.int64) @ segments["lanes"].astype(np.int64)
            self.lanes[key] = int(lanes)
        return self.lanes[key]


def _ranges(facts: Facts) -> Iterator[ParameterRange]:
    found = facts.parameters | facts.scales
    for place, words in (("cached", found.cached), ("streamed", found.streamed)):
        if words.size:
            first, last = int(words[0]), int(words[-1])
            yield ParameterRange(
                place, WORD_BYTES * first, WORD_BYTES * (last + 1), WORD_BYTES * len(words)
            )
