"""Find which layers of a program compute which tensors, by the numbers of elements, not by values.

The results of a program are collected with the instructions that made them. A layer computes, or
moves, a tensor if many of the layer's results are elements of this tensor, by number or by sum. So
a few wrong elements, or a wrong factor, change nothing.

After an operator with wrong elements, the network takes the chip's numbers for these elements. The
results of one run of lanes are consecutive elements, so the right ones tell which elements the
others are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from darwinn_reference.tflite.graph import Operator
from darwinn_sim.kernel.numbering import Made
from darwinn_sim.kernel.structure import Records
from darwinn_sim.lifting.walk import NotLifted
from darwinn_sim.numbering.run import Elements
from numpy.typing import NDArray

from darwinn_testbench.chip import kept
from darwinn_testbench.chip.session import Session
from darwinn_testbench.proof.network import NetworkNumbers
from darwinn_testbench.proof.number_set import NumberSet
from darwinn_testbench.proof.prove import Uncompiled, numbered_inference, path_of
from darwinn_testbench.proof.result_layers import NO_LAYER, ResultLayers
from darwinn_testbench.proof.terms import StageTerms


@dataclass(frozen=True)
class Makers:
    """Numbers of the ``layers`` that compute a tensor, by its index. ``reason``: why none are
    known."""

    layers: Mapping[int, frozenset[int]] = field(default_factory=dict)
    reason: str = ""


class _Results(NumberSet):
    """All results, in the order of time."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[Records[Made]] = []

    def take(self, made: Records[Made]) -> None:
        super().take(made)
        self._parts.append(made.copy())

    def forget(self) -> None:
        super().forget()
        self._parts.clear()

    def streams(self) -> Records[Made]:
        """Those of each instruction on each tile one after another."""
        made = np.concatenate(self._parts) if self._parts else Made.zeros(0)
        return made[np.lexsort((made["tile"], made["instruction"]))]  # type: ignore[return-value]


def makers_of(session: Session, uncompiled: Uncompiled) -> Makers:
    """The layers of each tensor, as far as numbers say it, or what was kept of the same files.

    The chip is left as after another inference.

    Raises:
        SimulationError: the program fails.
    """
    path = path_of("makers", session, uncompiled)
    known = kept.kept(path, Makers)
    if known is not None:
        return known
    found = _found(session, uncompiled)
    kept.keep(path, found)
    return found


def _found(session: Session, uncompiled: Uncompiled) -> Makers:
    results = _Results()
    try:
        program = numbered_inference(session, uncompiled, results)
    except NotLifted as reason:
        return Makers(reason=str(reason))
    streams = _Streams(results.streams(), session)
    network = NetworkNumbers(
        *(uncompiled.network, uncompiled.choices, uncompiled.on_chip, results),
        *(program.numbered.maxima, program.given),
        resolve=streams.substitutes,
    )
    return Makers(streams.makers(network))


class _Streams:
    """Results of a program, by instruction, tile and time, and the layer of each."""

    def __init__(self, made: Records[Made], session: Session) -> None:
        self._numbers, self._totals = (
            np.ascontiguousarray(made[name]) for name in ("number", "total")
        )
        self._lanes = made["lane"].astype(np.int64)
        # A run of lanes ends where the next lane is no higher, or is another stream's.
        begins = np.ones(len(made), np.bool_)
        begins[1:] = self._lanes[1:] <= self._lanes[:-1]
        for name in ("instruction", "tile"):
            begins[1:] |= made[name][1:] != made[name][:-1]
        self._run = np.cumsum(begins) - 1
        self._layers = ResultLayers(made, session.program.chunks)
        self._by_sum: dict[int, frozenset[int]] = {}

    def substitutes(
        self, operator: Operator, missing: NDArray[np.int64], stage: StageTerms
    ) -> Mapping[int, np.uint64]:
        """The chip's numbers in the place of elements that it makes nowhere."""
        place = _places(stage.totals.reshape(-1), self._totals)
        known = np.flatnonzero((place >= 0) & (self._layers.of > NO_LAYER))
        self._by_sum[operator.outputs[0]] = self._layers.made_of(known)
        if not len(known):
            return {}
        # Elements of a run are consecutive: all that are known say where it begins, or none does.
        first = place[known] - self._lanes[known]
        least = np.full(int(self._run[-1]) + 1, np.iinfo(np.int64).max)
        most = np.full(len(least), -1)
        np.minimum.at(least, self._run[known], first)
        np.maximum.at(most, self._run[known], first)
        begin = np.where(least == most, least, -1)[self._run]
        element = np.where(begin >= 0, begin + self._lanes, -1)
        chosen = np.isin(element, missing)
        return dict(zip(element[chosen].tolist(), self._numbers[chosen], strict=True))

    def makers(self, network: NetworkNumbers) -> dict[int, frozenset[int]]:
        """The layers of each tensor. What an operator only moves is that of one before it."""
        computed = [index for each in network.operators for index in each.operator.outputs]
        held = [index for index in computed if index in network.numbers]
        numbers = [network.numbers[index].reshape(-1) for index in held]
        ends = np.cumsum([each.size for each in numbers])
        place = _places(np.concatenate([*numbers, np.empty(0, np.uint64)]), self._numbers)
        tensor = np.searchsorted(ends, place, side="right")
        found = dict(self._by_sum)
        order = np.argsort(tensor, kind="stable")
        bounds = np.searchsorted(tensor[order], np.arange(len(held) + 1))
        for k, index in enumerate(held):
            results = order[bounds[k] : bounds[k + 1]]
            own = self._layers.made_of(results[place[results] >= 0])
            found[index] = found.get(index, frozenset()) | own
        return {index: own for index, own in found.items() if own}


def _places(wanted: Elements, values: Elements) -> NDArray[np.int64]:
    """Where each of ``values`` is in ``wanted``; -1: nowhere."""
    if not wanted.size:
        return np.full(len(values), -1)
    order, asked = np.argsort(wanted, kind="stable"), np.argsort(values)
    # In order, since a search that jumps through gigabytes takes ten times as long.
    at = np.searchsorted(wanted[order], values[asked])
    found = np.empty(len(values), np.int64)
    found[asked] = order[np.minimum(at, wanted.size - 1)]
    return np.where(wanted[found] == values, found, -1)
