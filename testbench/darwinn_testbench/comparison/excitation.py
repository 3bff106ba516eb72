"""Input coverage: how many channels of a network varied with the inputs of a verification.

If a channel had the same value at every place in every run, the comparison says nothing about its
computation: any fault that ends in the same value passes. Channels are those of the last axis.
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
"""If a smaller share of the network's channels varied, a pass is doubtful."""

NETWORK, OUTPUTS = "network", "outputs"
"""The tensors that were examined: all that the CPU references compute, or the outputs alone."""


@dataclass(frozen=True)
class Moved:
    """How many channels of a tensor varied: took more than one value, over all runs and places.

    ``operator`` is the number of its operator in the network before compilation; None for an output
    that is examined by itself. ``name`` is the name of the operator, or of the output.
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
    """How many channels of the examined tensors (``source``: ``network`` or ``outputs``) varied.

    Tensors with one element for each channel do not count while there is one run: one element has
    one value. ``tensors`` are all tensors with channels that did not vary. Each of ``warnings``
    gives in one line a reason to doubt a pass.
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
            return "input coverage unknown: one run shows each channel once; run more inputs"
        what = "" if self.source == NETWORK else " of the outputs"
        share = int(100 * self.moved / self.channels)
        text = f"input coverage: {share} % of {counted(self.channels, 'channel')}{what} varied"
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
        """How many channels varied; None if no channel has two values yet."""
        if self.low is None or self.high is None or self.samples < 2:
            return None
        return Moved(operator, name, len(self.low), int(np.count_nonzero(self.low < self.high)))


class Excitation:
    """Counts the channels that vary in the runs of a verification.

    ``network``: the one whose tensors the references compute, if there is one.
    """

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
        """The counts of all runs so far."""
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
            f"only {figures.moved:,} of {counted(figures.channels, 'channel')} varied: "
            "the comparison would miss a fault in the others"
        )
    for name in figures.unchanged_outputs:
        yield f"output {name} is the same in all runs: no input changed it"


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
