"""Shapes, places and windows of a program's layers, each from those of its sources."""

from __future__ import annotations

from collections.abc import Iterator

from darwinn_sim import chip
from darwinn_sim.analysis.provenance import Provenance
from darwinn_sim.chip import WORD_BYTES

from darwinn_testbench.chip.model import BoundModel
from darwinn_testbench.layers.kinds import (
    AVERAGE_POOL,
    CONSTANT,
    DENSE,
    DEPTHWISE,
    LIKE_SOURCE,
    MOVE,
    RESIZES,
    UNKNOWN,
    WINDOWED,
    Facts,
    facts_of,
    kind_of,
    softmax,
)
from darwinn_testbench.layers.shapes import (
    Placement,
    Shape,
    Window,
    place_image,
    window,
)


class Geometry:
    """Shapes of a program, whose layers stand in an order in which sources come first.

    ``facts``, ``kinds`` and ``places`` are by number of a layer; ``parts`` names the operation that
    a layer is a step of, if it is one. Sources are numbers of layers, or names of inputs.
    """

    def __init__(self, bound: BoundModel, found: Provenance) -> None:
        self.found = found
        self.inputs = {
            each.layer.name: (each.layer.y_dim, each.layer.x_dim, each.layer.z_dim)
            for each in bound.inputs
        }
        self.outputs = {
            each.layer.name: (each.layer.y_dim, each.layer.x_dim, each.layer.z_dim)
            for each in bound.outputs
        }
        self.facts = {layer.number: facts_of(found, layer) for layer in found.layers}
        self._sources = {number: _sources(each) for number, each in self.facts.items()}
        self._behind_moves: dict[int, tuple[int | str, ...]] = {}
        self.kinds = {number: kind_of(each) for number, each in self.facts.items()}
        self.parts = dict(softmax(self.kinds, self.facts))
        self.places: dict[int, Placement | None] = {}
        for number in self.facts:
            if self.kinds[number] == UNKNOWN and self._is_dense(number):
                self.kinds[number] = DENSE
            self.places[number] = self._place(number)

    def _is_dense(self, number: int) -> bool:
        """Whether a layer takes more than a word of what has one position, for one position."""
        walks = self.facts[number].walks.values()
        shapes = [self._shape(each) for each in self.behind_moves(number)]
        return (
            bool(walks and shapes)
            and all(each.positions == 1 and len(each.taps) > 2 for each in walks)
            and all(shape is not None and shape[:2] == (1, 1) for shape in shapes)
        )

    def sources(self, number: int) -> tuple[int | str, ...]:
        """Layers and inputs that a layer reads, as they are."""
        return self._sources[number]

    def behind_moves(self, number: int) -> tuple[int | str, ...]:
        """The sources, with those of a move in its place."""
        if number not in self._behind_moves:
            self._behind_moves[number] = tuple(self._found_behind_moves(number))
        return self._behind_moves[number]

    def _found_behind_moves(self, number: int) -> Iterator[int | str]:
        waiting = list(self.sources(number))
        seen: set[int | str] = {number}
        while waiting:
            each = waiting.pop(0)
            if each in seen:
                continue
            seen.add(each)
            if isinstance(each, int) and self.kinds[each] == MOVE:
                waiting[:0] = self.sources(each)
            else:
                yield each

    def _shape(self, source: int | str) -> Shape | None:
        if isinstance(source, str):
            return self.inputs[source]
        place = self.places.get(source)
        return None if place is None else place.shape

    def _channels(self, number: int) -> int | None:
        """Channels of what a layer reads; None if they are not known."""
        groups: dict[object, int] = {}
        for source in self.behind_moves(number):
            shape = self._shape(source)
            if shape is None:
                return None
            # Passes of one operation are parts of one tensor, others lie beside each other.
            key = source if isinstance(source, str) else self.facts[source].layer.output_stage
            groups[key] = shape[2]
        return sum(groups.values()) if groups else None

    def _place(self, number: int) -> Placement | None:
        facts = self.facts[number]
        if not facts.walks or not self.has_shape(number):
            return None
        if self.kinds[number] in LIKE_SOURCE:
            return self._place_like_source(number)
        spread = self._spread(number)
        if spread is None:
            return None
        if spread:
            channels = sum(each.channels for each in facts.walks.values())
            return Placement((1, 1, channels), (), (), spread=True)
        sources = [
            place
            for each in self.behind_moves(number)
            # The rows of an interpolation do not end where those of its source do.
            if self.kinds[number] not in RESIZES
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
        for source in self.behind_moves(start):
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

    def has_shape(self, number: int) -> bool:
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

    def output_shape(self, number: int) -> Shape | None:
        """The shape; an output of the executable that one layer makes alone says it itself.

        Of others all channels count that are computed, those that fill up words included.
        """
        place = self.places[number]
        shape = None if place is None else place.shape
        for name, origin in self.found.outputs.items():
            if origin.layers == {number} and self.has_shape(number):
                said = self.outputs[name]
                if shape is None or (shape[:2] == said[:2] and shape[2] >= said[2]):
                    return said
        return shape

    def input_shape(self, source: int | str) -> Shape | None:
        """The shape of a source; of a move that of what it moves, where that is one tensor."""
        if isinstance(source, int) and self.kinds[source] == MOVE:
            behind = {self._shape(each) for each in self.behind_moves(source)}
            return behind.pop() if len(behind) == 1 else None
        return self._shape(source)

    def window(self, number: int) -> Window:
        """Kernel, stride and dilation of a layer, as far as they are known."""
        facts, kind, place = self.facts[number], self.kinds[number], self.places[number]
        if kind == AVERAGE_POOL:
            return self._pool_window(number)
        channels = self._channels(number)
        if kind not in WINDOWED or channels is None or not facts.walks:
            return Window()
        tile = max(facts.walks, key=lambda each: facts.walks[each].positions)
        row, column = divmod(tile, chip.GRID_COLUMNS)
        shapes = {self._shape(each) for each in self.behind_moves(number)}
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
        shapes = {self._shape(each) for each in self.behind_moves(number)}
        given = shapes.pop() if len(shapes) == 1 else None
        (walk_, *_) = facts.walks.values() if facts.walks else (None,)
        if given is None or walk_ is None or place is None or place.shape[:2] != (1, 1):
            return Window()
        if len(walk_.order) * int(facts.instruction["products"]) != given[0] * given[1]:
            return Window()
        return Window((given[0], given[1]), (1, 1), (1, 1))


def _sources(facts: Facts) -> tuple[int | str, ...]:
    """Layers and inputs that a layer reads, as they are."""
    one, other = facts.activations, facts.parameters
    return (*sorted(one.inputs | other.inputs), *sorted(one.layers | other.layers))


def _padded(channels: int) -> int:
    """Channels that whole words hold."""
    return WORD_BYTES * -(-channels // WORD_BYTES)
