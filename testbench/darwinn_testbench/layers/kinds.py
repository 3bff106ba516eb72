"""Derive the kind of a layer from its instructions and from the data that they read.

A given kind is never a guess: if the instructions do not tell, it stays ``unknown``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from darwinn_sim import chip
from darwinn_sim.analysis.provenance import Origin, Provenance, Reads
from darwinn_sim.chip import WORD_BYTES
from darwinn_sim.machine.layers import ComputedLayer
from darwinn_sim.units import output_stage, tensor_cells
from darwinn_sim.units.tensor_records import Parameters

from darwinn_testbench.layers.shapes import Walk, walk

CONVOLUTION, DEPTHWISE, DENSE = "conv", "depthwise", "dense"
ADD, MULTIPLY, AVERAGE_POOL = "add", "multiply", "average pool"
MAXIMUM, SUM, MOVE = "maximum", "sum", "move"
RESIZE, RESIZE_NEAREST = "resize", "resize nearest"
ELEMENTWISE, TABLE, CONSTANT, UNKNOWN = "elementwise", "table", "constant", "unknown"


WINDOWED = (CONVOLUTION, DEPTHWISE)
LIKE_SOURCE = (ADD, MULTIPLY, ELEMENTWISE, TABLE)
"""Kinds whose results lie where their operands lay."""
RESIZES = (RESIZE, RESIZE_NEAREST)
SOFTMAX = "softmax"
_NORMALISES = output_stage.TABLE | output_stage.RANGE_REDUCTION


@dataclass(frozen=True, eq=False)
class Facts:
    """What is read off one layer's instructions and reads alone."""

    layer: ComputedLayer
    instruction: Parameters
    walks: Mapping[int, Walk]
    reads: Mapping[int, Reads]

    @cached_property
    def activations(self) -> Origin:
        """Where the operands from narrow memory come from."""
        return _together(each.activations for each in self.reads.values())

    @cached_property
    def parameters(self) -> Origin:
        """Where the operands from wide memory come from."""
        return _together(each.parameters for each in self.reads.values())

    @cached_property
    def scales(self) -> Origin:
        """Where scales and biases come from."""
        return _together(each.scales for each in self.reads.values())

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


def _together(origins: Iterable[Origin]) -> Origin:
    """Of all tiles; those that read the same share it, and it counts once."""
    return reduce(Origin.__or__, dict.fromkeys(origins), Origin())


def facts_of(found: Provenance, layer: ComputedLayer) -> Facts:
    """The facts of a layer of the traced program."""
    walks: dict[int, Walk] = {}
    reads: dict[int, Reads] = {}
    whole = True
    for instruction in layer.instructions:
        walked = walk(found.program.tables, int(found.program.tables.row[instruction]))
        for tile in range(chip.TILES):
            if (instruction, tile) in found.reads:
                reads[tile] = found.reads[instruction, tile]
                if walked is not None:
                    walks[tile] = walked
        whole &= walked is not None
    row = int(found.program.tables.row[layer.last])
    return Facts(layer, found.program.tables.tensor[row], walks if whole else {}, reads)


def kind_of(facts: Facts) -> str:
    """The kind of a layer, from what it computes with what."""
    operation = int(facts.instruction["opcode"])
    if operation != tensor_cells.MAC:
        return {
            tensor_cells.MAXIMUM: MAXIMUM,
            tensor_cells.SUM: SUM,
            tensor_cells.INTERPOLATE: (
                RESIZE_NEAREST if facts.instruction["nearest_pixel"] else RESIZE
            ),
        }[operation]
    if facts.parameters.computed:
        return MULTIPLY if facts.activations.computed else AVERAGE_POOL
    if not facts.activations.computed:
        return CONSTANT
    if facts.layer.copies and not facts.instruction["function"] & output_stage.TABLE:
        return MOVE
    return _kind_of_products(facts) if facts.walks else UNKNOWN


def _kind_of_products(facts: Facts) -> str:
    """Activations times what the program brings along."""
    (walk_, *_) = facts.walks.values()
    if not facts.has_parameters:
        words = len(np.unique(walk_.taps >> 2))
        single = TABLE if facts.instruction["function"] & output_stage.TABLE else ELEMENTWISE
        return {1: single, 2: ADD}.get(words, UNKNOWN)
    if facts.each_channel:
        return DEPTHWISE
    if len(walk_.block_reads) == 1 and walk_.channels <= WORD_BYTES:
        return UNKNOWN
    one_position = all(each.positions == 1 for each in facts.walks.values())
    if one_position and (not facts.same_parameters or len(facts.reads) == 1):
        return DENSE
    return CONVOLUTION


def softmax(kinds: Mapping[int, str], facts: Mapping[int, Facts]) -> Iterator[tuple[int, str]]:
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
            yield from ((each, SOFTMAX) for each in range(begin, number + 1))
            begin = None
