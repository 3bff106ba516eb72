"""How much of a network the inputs of a verification moved.

A channel that had the same value at every place in every run tells nothing of what computes it:
whatever is wrong there and ends in the same value passes. Channels are those of the last axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from darwinn_formats.brief import brief
from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.graph import Network

from darwinn_testbench.layers.on_chip import RENAMING
from darwinn_testbench.report import counted

LOW_SHARE = 0.5
"""Below this share of the network's channels a verification has seen too little to trust it."""

NETWORK, OUTPUTS = "network", "outputs"
"""What was looked at: every tensor that the CPU references compute, or the outputs alone."""


@dataclass(frozen=True)
class Moved:
    """How many channels of a tensor took more than one value, over all runs and places.

    ``operator`` is the number of the one that computes it in the network before compilation, None
    for an output that is looked at by itself; ``name`` is the operator's, or the output's.
    """

    operator: int | None
    name: str
    channels: int
    moved: int

    def __str__(self) -> str:
        where = self.name if self.operator is None else f"operator {self.operator} {self.name}"
        return f"{where} {self.moved:,} of {self.channels:,}"


@brief
@dataclass(frozen=True)
class ExcitationFigures:
    """What was moved of what was looked at (``source``: ``network`` or ``outputs``).

    Tensors with one element for each channel are left out while there is one run: that is one
    value, whatever it is. ``tensors`` are all that have channels which did not move, and
    ``warnings`` says in a line each what makes a pass doubtful.
    """

    source: str
    channels: int
    moved: int
    least: Moved | None = None
    tensors: tuple[Moved, ...] = ()
    unchanged_outputs: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        if not self.channels:
            return "whether the inputs move anything is not known: each channel was seen once"
        what = "" if self.source == NETWORK else " of the outputs"
        share = int(100 * self.moved / self.channels)
        text = f"{share} % of {counted(self.channels, 'channel')}{what} took more than one value"
        return f"{text}; least: {self.least}" if self.least is not None else text


class _Span:
    """Least and greatest value of each channel of a tensor."""

    def __init__(self) -> None:
        self.low: AnyArray | None = None
        self.high: AnyArray | None = None
        self.samples = 0

    def add(self, value: AnyArray) -> None:
        rows = value.reshape(-1, value.shape[-1] if value.ndim else 1)
        if not rows.size:
            return
        # A NaN is no value that a channel leaves.
        low, high = np.fmin.reduce(rows), np.fmax.reduce(rows)
        self.samples += len(rows)
        self.low = low if self.low is None else np.fmin(self.low, low)
        self.high = high if self.high is None else np.fmax(self.high, high)

    def moved(self, operator: int | None, name: str) -> Moved | None:
        """What moved; None if there was nothing that could."""
        if self.low is None or self.high is None or self.samples < 2:
            return None
        return Moved(operator, name, len(self.low), int(np.count_nonzero(self.low < self.high)))


class Excitation:
    """Gathers what the runs of a verification move; ``network`` where references compute it."""

    def __init__(self, network: Network | None = None) -> None:
        self._operators = {} if network is None else dict(_computed(network))
        self._spans: dict[int, _Span] = {}
        self._outputs: dict[tuple[str, int], _Span] = {}
        self._first: dict[str, AnyArray] = {}
        self._changed: dict[str, bool] = {}

    def add(self, outputs: Mapping[str, AnyArray], values: Mapping[int, AnyArray]) -> None:
        """Look at a run: outputs by name, and tensors of the network by index."""
        for index in self._operators:
            if index in values:
                self._spans.setdefault(index, _Span()).add(values[index])
        for name, value in outputs.items():
            if value.dtype.kind not in "biuf" or not value.size:
                continue
            # A program may give an output of another shape at each call.
            key = (name, value.shape[-1] if value.ndim else 1)
            self._outputs.setdefault(key, _Span()).add(value)
            if name in self._first:
                changed = self._changed.get(name, False)
                self._changed[name] = changed or _differ(self._first[name], value)
            else:
                self._first[name] = value

    def figures(self) -> ExcitationFigures:
        """What was moved until now."""
        found = [span.moved(*self._operators[index]) for index, span in sorted(self._spans.items())]
        source = NETWORK if any(found) else OUTPUTS
        if source == OUTPUTS:
            found = [span.moved(None, name) for (name, _), span in self._outputs.items()]
        tensors = [each for each in found if each is not None]
        least = min(tensors, key=lambda each: each.moved / each.channels, default=None)
        still = tuple(each for each in tensors if each.moved < each.channels)
        figures = ExcitationFigures(
            source,
            sum(each.channels for each in tensors),
            sum(each.moved for each in tensors),
            least if still else None,
            still,
            tuple(name for name, changed in self._changed.items() if not changed),
        )
        return replace(figures, warnings=tuple(_warnings(figures)))


def _warnings(figures: ExcitationFigures) -> Iterator[str]:
    if figures.source == NETWORK and figures.moved < LOW_SHARE * figures.channels:
        yield (
            f"only {figures.moved:,} of {counted(figures.channels, 'channel')} took more than one "
            "value: a fault in what the others hold would not be seen"
        )
    for name in figures.unchanged_outputs:
        yield f"output {name} is the same in all runs: none of the inputs changed it"


def _differ(one: AnyArray, other: AnyArray) -> bool:
    same = np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return one.shape != other.shape or not same


def _computed(network: Network) -> Iterator[tuple[int, tuple[int, str]]]:
    """Tensors that follow from the inputs: index, then number and name of the operator."""
    reached = set(network.inputs)
    reached |= {each.index for each in network.tensors if each.variable}
    for operator in network.operators:
        if reached.isdisjoint(operator.inputs):
            continue
        reached.update(operator.outputs)
        if operator.name not in RENAMING:
            for index in operator.outputs:
                tensor = network.tensors[index]
                # Plain integers are places (ARG_MAX) and sizes; their last axis is no channels.
                if tensor.dtype.kind == "f" or tensor.scale.size:
                    yield index, (operator.index, operator.name)
