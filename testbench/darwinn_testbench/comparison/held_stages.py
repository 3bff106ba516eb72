"""What the tensor instructions of an executable hold, and which of them computes which operator.

Whether a stage is held is asked of all instructions. Which layer of the program is an operator is
known by the weights that it reads: it takes a run on marked data (``analysis.provenance``), and is
asked only where something is not held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_formats.errors import FormatError
from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.graph import Network
from darwinn_reference.tflite.stored_weights import (
    LayerShare,
    held_groups,
)
from darwinn_reference.tflite.stored_words import StoredWords
from darwinn_sim.analysis import provenance
from darwinn_sim.analysis.provenance import Origin
from darwinn_sim.errors import SimulationError
from darwinn_sim.isa.codec import decode
from darwinn_sim.isa.table import BY_NAME
from numpy.typing import NDArray

from darwinn_testbench.comparison.expected_stages import ExpectedStage, Factor
from darwinn_testbench.layers.candidates import zero_point_of
from darwinn_testbench.layers.kinds import Facts, facts_of

SAME_FACTOR = 1e-5
"""Two factors are the same if they are relatively no further apart: a calibration of other pictures
moves them more, and another order of rounding less."""

_MULTIPLIER = BY_NAME["TensorMac"].opcode
_FIELDS = ("activation_zero_point", "output_zero_point", "output_scale", "use_scales")
_CHANNELS = 4
"""Channels whose scales are compared to know the ratio of all."""
_LEAST_VOTES = 0.5
"""Of the groups of weights that are somewhere once, those that a layer has to read to be it."""


class HeldStages:
    """The stages that instructions of an executable hold; ``stored`` are its parameters' words."""

    def __init__(self, executable: Executable, stored: StoredWords) -> None:
        self._rows = np.unique(np.concatenate([*_rows(executable)] or [_NO_ROWS]), axis=0)
        self._stored = stored

    def holds(self, stage: ExpectedStage) -> bool:
        """Whether some instruction, with the scales that it reads, is that of an operator."""
        rows = self._rows[self._rows[:, 1] == zero_point_of(stage.output)]
        if stage.weighted:
            rows = rows[rows[:, 0] == zero_point_of(stage.sources[0])]
        by_channel = rows[:, 3] != 0
        factors = rows[~by_channel, 2].astype(np.uint32).view(np.float32)
        one = stage.factor[:1]
        if same_factors(stage.factor, one) and np.isclose(factors, one, SAME_FACTOR, 0).any():
            return True
        return bool(by_channel.any()) and stage.weighted and not self.scales_of(stage).differs

    def scales_of(self, stage: ExpectedStage) -> LayerShare:
        """How many of the different scales of the channels are among the parameters."""
        words = np.unique(stage.factor.view(np.uint32))
        return LayerShare(stage.operator, len(words), self._stored.count(words[:, None]))


def same_factors(one: Factor, other: Factor) -> bool:
    """Whether factors are the same but for rounding."""
    return bool(np.isclose(one, other, SAME_FACTOR, 0).all())


_NO_ROWS: NDArray[np.int64] = np.zeros((0, len(_FIELDS)), np.int64)


def _rows(executable: Executable) -> Iterator[NDArray[np.int64]]:
    for chunk in executable.instruction_bitstreams:
        columns = decode(chunk.bitstream).columns.get(_MULTIPLIER)
        if columns is not None:
            yield np.stack([np.asarray(columns[name], np.int64) for name in _FIELDS], axis=1)


@dataclass(frozen=True, slots=True)
class HeldLayer:
    """A layer of the program that computes an operator.

    Zero points are those of the bytes on the chip. ``ratio`` is the held factor divided by the
    expected one; None if it is not the same for all channels that were looked at.
    """

    input_zero_point: int
    output_zero_point: int | None
    ratio: float | None


class HeldLayers:
    """The layers of a program by the weights that they read.

    ``caching`` and ``inference`` are the executables whose parameters ``stored`` has, the second
    one first.
    """

    def __init__(
        self, caching: Executable | None, inference: Executable, stored: StoredWords
    ) -> None:
        self._caching, self._inference = caching, inference
        self._stored = stored

    def layer(self, network: Network, stage: ExpectedStage) -> HeldLayer | None:
        """The layer that reads the weights of an operator, if one is known to."""
        groups = held_groups(network, self._stored, stage.operator)
        if not stage.weighted or not self._facts or not groups.size:
            return None
        readers = self._readers[self._stored.places(groups)]
        votes = np.bincount(readers[readers >= 0], minlength=1)
        number = int(np.argmax(votes))
        if votes[number] < max(1.0, _LEAST_VOTES * len(readers)):
            return None
        facts = self._facts[number]
        return HeldLayer(
            int(facts.instruction["activation_zero_point"]),
            facts.layer.output_zero_point,
            self._ratio(facts, stage.factor),
        )

    def _ratio(self, facts: Facts, expected: Factor) -> float | None:
        held: AnyArray = np.full(1, facts.instruction["output_scale"], np.float32)
        if facts.instruction["use_scales"]:
            # The scales of the first four channels are what the lowest places hold.
            places = self._places(facts.scales)[:_CHANNELS]
            held = self._stored.words(places).view(np.float32)
        count = min(len(held), len(expected))
        if not count:
            return None
        ratios: Factor = (held[:count] / expected[:count]).astype(np.float32)
        usable = np.isfinite(ratios).all() and ratios[0] > 0 and same_factors(ratios, ratios[:1])
        return float(ratios[0]) if usable else None

    @cached_property
    def _facts(self) -> tuple[Facts, ...]:
        """Of all layers; none where the program cannot be run on marked data."""
        try:
            found = provenance.trace(self._caching, self._inference)
        except (SimulationError, FormatError):
            return ()
        return tuple(facts_of(found, layer) for layer in found.layers)

    @cached_property
    def _readers(self) -> NDArray[np.int64]:
        """Which layer, by its index, reads each word of the parameters; -1 for none."""
        readers = np.full(self._stored.size // 4 + 1, -1)
        for index, facts in enumerate(self._facts):
            readers[self._places(facts.parameters)] = index
        return readers

    def _places(self, origin: Origin) -> NDArray[np.int64]:
        """Places of words as ``stored`` counts them."""
        parts = [origin.streamed, origin.cached]
        begins = self._stored.begins
        places = [each + begin for each, begin in zip(parts, begins, strict=False)]
        every = np.concatenate(places)
        return every[every < self._stored.size // 4]
