"""The network inside an executable, layer by layer, from nothing but the compiled file.

What a layer reads is seen in a run on marked data (``darwinn_sim.analysis.provenance``); what it
computes follows from its instructions. What neither of them tells is named in ``unknown``: a value
that is given is never a guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from darwinn_formats.files import Source
from darwinn_sim import chip
from darwinn_sim.analysis import provenance
from darwinn_sim.analysis.provenance import Origin, Provenance, Reads
from darwinn_sim.isa.codes import ScalarFunction
from darwinn_sim.machine.completeness import incomplete_note
from darwinn_sim.machine.layers import Layer
from darwinn_sim.units import tensor_unit
from numpy.typing import NDArray

from darwinn_testbench.chip.execution import choose_model
from darwinn_testbench.chip.model import BoundModel, open_models
from darwinn_testbench.layers.shapes import (
    WORD_BYTES,
    Placement,
    Shape,
    Walk,
    Window,
    place_image,
    walk,
    window,
)
from darwinn_testbench.report import Report, Row, Verdict, counted
from darwinn_testbench.report.progress import ProgressCallback, silent

CONVOLUTION, DEPTHWISE, DENSE = "conv", "depthwise", "dense"
ADD, MULTIPLY, AVERAGE_POOL = "add", "multiply", "average pool"
MAXIMUM, SUM, MOVE = "maximum", "sum", "move"
RESIZE, RESIZE_NEAREST = "resize", "resize nearest"
ELEMENTWISE, TABLE, CONSTANT, UNKNOWN = "elementwise", "table", "constant", "unknown"

_WINDOWED = (CONVOLUTION, DEPTHWISE)
_ELEMENTWISE = (ADD, MULTIPLY, ELEMENTWISE, TABLE)
_RESIZES = (RESIZE, RESIZE_NEAREST)
_SOFTMAX = "softmax"
_NORMALISES = tensor_unit.TABLE | tensor_unit.RANGE_REDUCTION


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
    distinct bytes on each tile. ``unknown`` names what the executable does not tell.
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


@dataclass(frozen=True)
class PortFigures:
    """An input or output of the executable, and the layers beside it."""

    name: str
    direction: str
    shape: Shape
    zero_point: int | None
    scale: float | None
    layers: tuple[int, ...]

    def __str__(self) -> str:
        quantised = "" if self.scale is None else f", {self.scale:g} * (q - {self.zero_point})"
        beside = f", layer {', '.join(map(str, self.layers))}" if self.layers else ""
        return f"{self.direction} {self.name}: {'x'.join(map(str, self.shape))}{quantised}{beside}"


def view_layers(
    source: Source,
    *,
    model: int = 0,
    companions: Sequence[Source] = (),
    seed: int = 0,
    assumptions: bool = True,
    progress: ProgressCallback = silent,
) -> Report[LayerRow]:
    """Recover the network of a compiled model.

    Args:
        source: the compiled file.
        model: which of its models.
        companions: files that were compiled together with it (see ``open_models``).
        seed: contents of memory that nothing has written.
        assumptions: execute values whose meaning is assumed.
        progress: told what is being done.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError: there is no such model.
        SimulationError: the program fails, or uses what the model of the chip lacks.
    """
    bound = choose_model(open_models(source, companions), model)
    progress("running on marked data", 0, None)
    found = provenance.trace(
        bound.compiled.caching, bound.compiled.inference, seed=seed, assumptions=assumptions
    )
    rows = _View(bound, found).rows()
    return Report(
        command="layers",
        file=bound.file,
        rows=rows,
        figures={
            "model": model,
            "seed": seed,
            "ports": _ports(bound, rows),
            "scalar_core": _scalar_core(bound, found, rows),
            "assumptions": found.assumed,
        },
        message="; ".join(
            filter(None, [_message(rows), incomplete_note(found.program.chunks), bound.note])
        ),
    )


def _message(rows: Sequence[LayerRow]) -> str:
    partly = sum(bool(row.unknown) for row in rows)
    return counted(len(rows), "layer") + (
        f", {partly} not known in every respect" if partly else ""
    )


def _ports(bound: BoundModel, rows: Sequence[LayerRow]) -> tuple[PortFigures, ...]:
    found: list[PortFigures] = []
    for direction, layers in (("input", bound.inputs), ("output", bound.outputs)):
        for each in layers:
            layer, numerics = each.layer, each.layer.numerics
            name = layer.name
            beside = [row.number for row in rows if name in getattr(row, direction + "s")]
            found.append(
                PortFigures(
                    name,
                    direction,
                    (layer.y_dim, layer.x_dim, layer.z_dim),
                    None if numerics is None else numerics.zero_point,
                    None if numerics is None else numerics.dequantization_factor,
                    tuple(beside),
                )
            )
    return tuple(found)


@dataclass(frozen=True)
class ScalarCoreFigures:
    """What the scalar core computes: ``functions`` of floating point, and its share in the network.

    ``inputs`` are the layers that it reads: those whose results lie in its memory at the end, and
    those that nothing else reads. ``outputs`` are the outputs of the executable that do not come
    from the tiles as they are.
    """

    functions: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def _scalar_core(
    bound: BoundModel, found: Provenance, rows: Sequence[LayerRow]
) -> ScalarCoreFigures | None:
    codes = np.unique(found.program.tables.scalar["function_op"]).tolist()
    functions = [ScalarFunction(code).name.lower() for code in codes if code]
    if not functions:
        return None
    names = [each.layer.name for each in bound.outputs]
    used = {each for row in rows for each in row.inputs}
    unread = {f"layer:{row.number}" for row in rows if not row.outputs} - used
    read = {f"layer:{number}" for number in found.scalar_core.layers} | unread
    return ScalarCoreFigures(
        tuple(functions),
        tuple(row_name for row_name in (f"layer:{row.number}" for row in rows) if row_name in read),
        tuple(name for name in names if name not in found.outputs),
    )


@dataclass(frozen=True, eq=False)
class _Facts:
    """What is read off one layer's instructions and reads alone."""

    layer: Layer
    instruction: NDArray[np.void]
    walks: Mapping[int, Walk]
    reads: Mapping[int, Reads]

    @cached_property
    def activations(self) -> Origin:
        """Where the operands from narrow memory come from."""
        return reduce(Origin.__or__, (each.activations for each in self.reads.values()), Origin())

    @cached_property
    def parameters(self) -> Origin:
        """Where the operands from wide memory come from."""
        return reduce(Origin.__or__, (each.parameters for each in self.reads.values()), Origin())

    @cached_property
    def scales(self) -> Origin:
        """Where scales and biases come from."""
        return reduce(Origin.__or__, (each.scales for each in self.reads.values()), Origin())

    @property
    def has_parameters(self) -> bool:
        """Whether the operands of wide memory are parameters of the file."""
        return bool(self.parameters.cached.size or self.parameters.streamed.size)

    @cached_property
    def same_parameters(self) -> bool:
        """Whether all tiles multiply by the same parameters."""
        found = [(r.parameters.cached, r.parameters.streamed) for r in self.reads.values()]
        return all(
            np.array_equal(one, other)
            for each in found[1:]
            for one, other in zip(found[0], each, strict=True)
        )

    @property
    def each_channel(self) -> bool:
        """Whether a block of results takes only its own channels."""
        (walk_, *_) = self.walks.values()
        return bool((walk_.block_reads != walk_.block_reads[0]).any())


class _View:
    """Rows of a program, in its order: a layer's sources stand before it."""

    def __init__(self, bound: BoundModel, found: Provenance) -> None:
        self.found = found
        self.tables = found.program.tables
        self.inputs = {
            each.layer.name: (each.layer.y_dim, each.layer.x_dim, each.layer.z_dim)
            for each in bound.inputs
        }
        self.outputs = {
            each.layer.name: (each.layer.y_dim, each.layer.x_dim, each.layer.z_dim)
            for each in bound.outputs
        }
        self.input_zero_points = {
            each.layer.name: None if each.layer.numerics is None else each.layer.numerics.zero_point
            for each in bound.inputs
        }
        self.facts = {layer.number: self._facts(layer) for layer in found.layers}
        self.kinds = {number: self._kind(each) for number, each in self.facts.items()}
        self.parts = dict(_softmax(self.kinds, self.facts))
        self.places: dict[int, Placement | None] = {}
        for number in self.facts:
            if self.kinds[number] == UNKNOWN and self._is_dense(number):
                self.kinds[number] = DENSE
            self.places[number] = self._place(number)

    def rows(self) -> tuple[LayerRow, ...]:
        return tuple(self._row(number) for number in self.facts)

    def _facts(self, layer: Layer) -> _Facts:
        walks: dict[int, Walk] = {}
        reads: dict[int, Reads] = {}
        whole = True
        for instruction in layer.instructions:
            found = walk(self.tables, int(self.tables.row[instruction]))
            for tile in range(chip.TILES):
                if (instruction, tile) in self.found.reads:
                    reads[tile] = self.found.reads[instruction, tile]
                    if found is not None:
                        walks[tile] = found
            whole &= found is not None
        row = int(self.tables.row[layer.last])
        return _Facts(layer, self.tables.tensor[row], walks if whole else {}, reads)

    def _kind(self, facts: _Facts) -> str:
        operation = int(facts.instruction["opcode"])
        if operation != tensor_unit.MAC:
            return {
                tensor_unit.MAXIMUM: MAXIMUM,
                tensor_unit.SUM: SUM,
                tensor_unit.INTERPOLATE: (
                    RESIZE_NEAREST if facts.instruction["nearest_pixel"] else RESIZE
                ),
            }[operation]
        if facts.parameters.computed:
            return MULTIPLY if facts.activations.computed else AVERAGE_POOL
        if not facts.activations.computed:
            return CONSTANT
        if facts.layer.copies and not facts.instruction["function"] & tensor_unit.TABLE:
            return MOVE
        return self._kind_of_products(facts) if facts.walks else UNKNOWN

    def _kind_of_products(self, facts: _Facts) -> str:
        """Activations times what the program brings along."""
        (walk_, *_) = facts.walks.values()
        if not facts.has_parameters:
            words = len(np.unique(walk_.taps >> 2))
            single = TABLE if facts.instruction["function"] & tensor_unit.TABLE else ELEMENTWISE
            return {1: single, 2: ADD}.get(words, UNKNOWN)
        if facts.each_channel:
            return DEPTHWISE
        if len(walk_.block_reads) == 1 and walk_.channels <= WORD_BYTES:
            return UNKNOWN
        one_position = all(each.positions == 1 for each in facts.walks.values())
        if one_position and (not facts.same_parameters or len(facts.reads) == 1):
            return DENSE
        return CONVOLUTION

    def _is_dense(self, number: int) -> bool:
        """Whether a layer takes more than a word of what has one position, for one position."""
        walks = self.facts[number].walks.values()
        shapes = [self._shape(each) for each in self._behind_moves(number)]
        return (
            bool(walks and shapes)
            and all(each.positions == 1 and len(each.taps) > 2 for each in walks)
            and all(shape is not None and shape[:2] == (1, 1) for shape in shapes)
        )

    def _sources(self, number: int) -> tuple[int | str, ...]:
        """Layers and inputs that a layer reads, as they are."""
        facts = self.facts[number]
        both = facts.activations | facts.parameters
        return (*sorted(both.inputs), *sorted(both.layers))

    def _behind_moves(self, number: int) -> tuple[int | str, ...]:
        """The sources, with those of a move in its place."""
        found: dict[int | str, None] = {}
        waiting = list(self._sources(number))
        seen: set[int | str] = {number}
        while waiting:
            each = waiting.pop(0)
            if each in seen:
                continue
            seen.add(each)
            if isinstance(each, int) and self.kinds[each] == MOVE:
                waiting[:0] = self._sources(each)
            else:
                found[each] = None
        return tuple(found)

    def _shape(self, source: int | str) -> Shape | None:
        if isinstance(source, str):
            return self.inputs[source]
        place = self.places.get(source)
        return None if place is None else place.shape

    def _channels(self, number: int) -> int | None:
        """Channels of what a layer reads; None if they are not known."""
        groups: dict[object, int] = {}
        for source in self._behind_moves(number):
            shape = self._shape(source)
            if shape is None:
                return None
            # Passes of one operation are parts of one tensor, others lie beside each other.
            key = source if isinstance(source, str) else self.facts[source].layer.output_stage
            groups[key] = shape[2]
        return sum(groups.values()) if groups else None

    def _place(self, number: int) -> Placement | None:
        facts = self.facts[number]
        if not facts.walks or not self._has_shape(number):
            return None
        if self.kinds[number] in _ELEMENTWISE:
            return self._place_like_source(number)
        spread = self._spread(number)
        if spread is None:
            return None
        if spread:
            channels = sum(each.channels for each in facts.walks.values())
            return Placement((1, 1, channels), (), (), spread=True)
        sources = [
            place
            for each in self._behind_moves(number)
            # The rows of an interpolation do not end where those of its source do.
            if self.kinds[number] not in _RESIZES
            and isinstance(each, int)
            and (place := self.places.get(each)) is not None
        ]
        return place_image(facts.walks, sources)

    def _place_like_source(self, number: int) -> Placement | None:
        """Where an element of a source was is the result: the source with as many on each tile."""
        start = min(
            (k for k in self.parts if self.parts[k] == self.parts.get(number)), default=number
        )
        mine = self._elements(number)
        for source in self._behind_moves(start):
            if isinstance(source, str):
                shape = self.inputs[source]
                if sum(mine.values()) == shape[0] * shape[1] * _padded(shape[2]):
                    return Placement(shape, (), (), spread=True)
            elif (place := self.places.get(source)) and self._elements(source) == mine:
                return place
        return None

    def _elements(self, number: int) -> dict[int, int]:
        """Results that a layer leaves on each tile, those that fill up words included."""
        walks = self.facts[number].walks
        return {tile: each.positions * _padded(each.channels) for tile, each in walks.items()}

    def _has_shape(self, number: int) -> bool:
        """Whether a layer's result is a tensor: no copy, no step inside of a softmax."""
        inner = number in self.parts and self.parts.get(number + 1) == self.parts[number]
        return self.kinds[number] not in (MOVE, CONSTANT) and not inner

    def _spread(self, number: int) -> bool | None:
        """Whether a layer's tiles hold channels of one position; None if that is not known."""
        facts = self.facts[number]
        walks = facts.walks.values()
        if any(each.positions > 1 for each in walks):
            return False
        if len(walks) == 1:
            return True
        if facts.has_parameters:
            return not facts.same_parameters
        channels = {each.channels for each in walks}
        given = self._channels(number)
        if given in channels and len(channels) == 1:
            return False
        return True if given == sum(each.channels for each in walks) else None

    def _row(self, number: int) -> LayerRow:
        facts, kind = self.facts[number], self.kinds[number]
        layer, instruction = facts.layer, facts.instruction
        sources = self._sources(number)
        shapes = tuple(self._input_shape(each) for each in sources)
        found = self._window(number)
        unknown = tuple(self._unknown(number, shapes, found))
        clips = float(instruction["low_clip"]), float(instruction["high_clip"])
        adds = kind in (ADD, ELEMENTWISE)
        return LayerRow(
            name=f"layer {number}",
            verdict=Verdict.PASS,
            message=f"not known: {', '.join(unknown)}" if unknown else "",
            number=number,
            kind=kind,
            part_of=self.parts.get(number, ""),
            inputs=tuple(each if isinstance(each, str) else f"layer:{each}" for each in sources),
            outputs=tuple(
                name for name, origin in self.found.outputs.items() if number in origin.layers
            ),
            input_shapes=shapes,
            output_shape=self._output_shape(number),
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
            clip=None if np.isinf(clips).any() or kind in _RESIZES else clips,
            output_bits=16 if layer.output_16bit else 8,
            parameters=tuple(_ranges(facts)),
            tiles=tuple(sorted(facts.reads)),
            executions=layer.executions,
            bytes_read=self._bytes_read(layer, facts),
            bytes_written=self._bytes_written(layer, facts),
            multiplications=self._multiplications(layer, facts),
            unknown=unknown,
        )

    def _output_shape(self, number: int) -> Shape | None:
        """The shape; an output of the executable that one layer makes alone says it itself.

        Of others all channels count that are computed, those that fill up words included.
        """
        place = self.places[number]
        shape = None if place is None else place.shape
        for name, origin in self.found.outputs.items():
            if origin.layers == {number} and self._has_shape(number):
                said = self.outputs[name]
                if shape is None or (shape[:2] == said[:2] and shape[2] >= said[2]):
                    return said
        return shape

    def _input_shape(self, source: int | str) -> Shape | None:
        if isinstance(source, int) and self.kinds[source] == MOVE:
            behind = {self._shape(each) for each in self._behind_moves(source)}
            return behind.pop() if len(behind) == 1 else None
        return self._shape(source)

    def _input_zero_point(self, number: int, source: int | str) -> int | None:
        facts = self.facts[number]
        if self.kinds[number] in (CONVOLUTION, DEPTHWISE, DENSE):
            return int(facts.instruction["activation_zero_point"])
        behind: tuple[int | str, ...] = (source,)
        if isinstance(source, int) and self.kinds[source] == MOVE:
            behind = self._behind_moves(source)
        found = {
            self.input_zero_points[each]
            if isinstance(each, str)
            else self.facts[each].layer.output_zero_point
            for each in behind
        }
        return found.pop() if len(found) == 1 else None

    def _window(self, number: int) -> Window:
        facts, kind, place = self.facts[number], self.kinds[number], self.places[number]
        if kind == AVERAGE_POOL:
            return self._pool_window(number)
        channels = self._channels(number)
        if kind not in _WINDOWED or channels is None or not facts.walks:
            return Window()
        tile = max(facts.walks, key=lambda each: facts.walks[each].positions)
        row, column = divmod(tile, chip.GRID)
        shapes = {self._shape(each) for each in self._behind_moves(number)}
        given = shapes.pop() if len(shapes) == 1 else None
        image = place is not None and not place.spread
        return window(
            facts.walks,
            {tile: (each.first, each.last) for tile, each in facts.reads.items()},
            pitch=_padded(channels),
            each_channel=kind == DEPTHWISE,
            grid=(place.heights[row], place.widths[column]) if image and place else None,
            sizes=None if given is None or place is None else (given, place.shape),
        )

    def _pool_window(self, number: int) -> Window:
        """A pool is known if it takes all positions of what it reads, each once."""
        facts, place = self.facts[number], self.places[number]
        shapes = {self._shape(each) for each in self._behind_moves(number)}
        given = shapes.pop() if len(shapes) == 1 else None
        (walk_, *_) = facts.walks.values() if facts.walks else (None,)
        if given is None or walk_ is None or place is None or place.shape[:2] != (1, 1):
            return Window()
        if len(walk_.order) * int(facts.instruction["products"]) != given[0] * given[1]:
            return Window()
        return Window((given[0], given[1]), (1, 1), (1, 1))

    def _unknown(self, number: int, shapes: Sequence[Shape | None], found: Window) -> Iterator[str]:
        kind = self.kinds[number]
        if kind == UNKNOWN:
            yield "kind"
        if self._has_shape(number):
            if None in shapes and number not in self.parts:
                yield "input shape"
            if self._output_shape(number) is None:
                yield "output shape"
        if kind in (*_WINDOWED, AVERAGE_POOL):
            if found.kernel is None:
                yield "kernel"
            if found.stride is None:
                yield "stride"

    def _each_execution(self, layer: Layer, facts: _Facts) -> Iterator[int]:
        """The rows of a layer's instructions, once for each tile that executes them."""
        for instruction in layer.instructions:
            row = int(self.tables.row[instruction])
            yield from (row for tile in facts.reads if (instruction, tile) in self.found.reads)

    def _bytes_read(self, layer: Layer, facts: _Facts) -> int:
        plan, total, known = self.tables.tensor_plan, 0, dict[int, int]()
        for row in self._each_execution(layer, facts):
            if row not in known:
                place = plan.place[row]
                first = int(place["iteration"])
                operands = plan.operand[first : first + int(place["iterations"])]
                known[row] = WORD_BYTES * len(np.unique(operands >> 2))
            total += known[row]
        return total

    def _bytes_written(self, layer: Layer, facts: _Facts) -> int:
        place = self.tables.tensor_plan.place
        return sum(
            WORD_BYTES * int(place[row]["writes"]) for row in self._each_execution(layer, facts)
        )

    def _multiplications(self, layer: Layer, facts: _Facts) -> int:
        plan, total = self.tables.tensor_plan, 0
        if facts.instruction["opcode"] != tensor_unit.MAC:
            return 0
        for row in self._each_execution(layer, facts):
            place = plan.place[row]
            first = int(place["segment"])
            segments = plan.segment[first : first + int(place["segments"])]
            lanes = segments["count"].astype(np.int64) @ segments["lanes"].astype(np.int64)
            total += int(lanes) * int(self.tables.tensor[row]["products"])
        return total


def _padded(channels: int) -> int:
    """Channels that whole words hold."""
    return WORD_BYTES * -(-channels // WORD_BYTES)


def _ranges(facts: _Facts) -> Iterator[ParameterRange]:
    for place in ("cached", "streamed"):
        words = np.union1d(getattr(facts.parameters, place), getattr(facts.scales, place))
        if words.size:
            first, last = int(words[0]), int(words[-1])
            yield ParameterRange(
                place, WORD_BYTES * first, WORD_BYTES * (last + 1), WORD_BYTES * len(words)
            )


def _softmax(kinds: Mapping[int, str], facts: Mapping[int, _Facts]) -> Iterator[tuple[int, str]]:
    """Layers of a softmax: from the search for the greatest to the product with the reciprocal.

    It is known by its steps (docs/chip-facts.md, "How operators are expressed").
    """
    numbers = sorted(kinds)
    begin: int | None = None
    normalised = False
    for number in numbers:
        instruction = facts[number].instruction
        if kinds[number] == MAXIMUM and begin is None:
            begin, normalised = number, False
        if begin is None:
            continue
        if kinds[number] == SUM and instruction["function"] & _NORMALISES == _NORMALISES:
            normalised = True
        if normalised and not facts[number].layer.output_16bit and kinds[number] == MULTIPLY:
            yield from ((each, _SOFTMAX) for each in range(begin, number + 1))
            begin = None
