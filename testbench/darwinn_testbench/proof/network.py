"""A network on value numbers: for each operator, the elements that the chip computes as well."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from darwinn_reference.tflite.call import CompilerChoices
from darwinn_reference.tflite.graph import Network, Operator
from darwinn_sim.numbering.run import Sets
from numpy.typing import NDArray

from darwinn_testbench.proof.maxima import Maxima
from darwinn_testbench.proof.number_set import NumberSet
from darwinn_testbench.proof.terms import (
    Elements,
    NoTerms,
    Program,
    StageTerms,
    begins_alike,
    outputs_of,
)
from darwinn_testbench.proof.unsigned import unsigned

Resolve = Callable[[Operator, NDArray[np.int64], StageTerms], Mapping[int, np.uint64]]
"""Gets elements of an operator (flat indices) whose numbers the chip lacks; returns the chip's
numbers for those that are nevertheless the same.
"""

Watch = Callable[[Network, Operator, Mapping[int, Elements]], None]
"""Gets an operator that has numbers, with those that there are then."""


@dataclass(frozen=True)
class OperatorProof:
    """An operator of the chip's part. ``reason`` says why it has no terms; empty if it has.

    The chip computes all ``elements`` of its outputs except those that are ``missing`` (for each
    output, flat indices in order).
    """

    operator: Operator
    elements: int = 0
    missing: Mapping[int, NDArray[np.int64]] = field(default_factory=dict)
    reason: str = ""

    @property
    def missed(self) -> int:
        """How many elements are missing."""
        return sum(map(len, self.missing.values()))


class NetworkNumbers:
    """The numbers of a network's tensors, operator by operator, beside those of the chip.

    Args:
        network: the uncompiled network.
        choices: what the network leaves to the compiler.
        on_chip: tensors that the chip computes.
        chip: all numbers of the chip.
        taken: maxima that the chip takes.
        inputs: numbers of tensors that the chip is given.
        kept: tensors whose numbers are still there in the end; by default all.
        resolve: asked for elements that the chip makes nowhere.
        watch: told of each operator that has numbers.
    """

    def __init__(
        self,
        network: Network,
        choices: CompilerChoices,
        on_chip: Collection[int],
        chip: NumberSet,
        taken: Sets,
        inputs: Mapping[int, Elements],
        kept: Collection[int] | None = None,
        resolve: Resolve | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.numbers = dict(inputs)
        self.network = unsigned(network)
        self.operators: list[OperatorProof] = []
        self._maxima = Maxima(chip.have, taken)
        self._choices, self._chip, self._resolve = choices, chip, resolve
        self.absent = dict.fromkeys(inputs, 0)
        """Of each tensor, how many elements the chip makes nowhere."""
        last = {} if kept is None else _last_uses(self.network, kept)
        for operator in self.network.operators:
            if not set(operator.outputs).isdisjoint(on_chip):
                self.operators.append(self._prove(operator))
                if watch is not None and not self.operators[-1].reason:
                    watch(self.network, operator, self.numbers)
            for index in operator.inputs:
                if last.get(index) == operator.index:
                    self.numbers.pop(index, None)

    def terms(
        self, operator: Operator, stages: list[StageTerms] | None = None
    ) -> dict[int, Elements]:
        """Numbers of an operator's outputs; ``stages`` as of :func:`outputs_of`."""
        return outputs_of(
            *(self.network, operator, self.numbers, self._choices, self._maxima), stages
        )

    def begins_alike(self, operator: Operator, program: Program) -> bool:
        """As of :func:`terms.begins_alike`."""
        known = self.network, operator, self.numbers, self._choices, self._maxima
        return begins_alike(*known, program)

    def _prove(self, operator: Operator) -> OperatorProof:
        if set(operator.outputs) <= self.numbers.keys():
            return OperatorProof(operator)
        try:
            stages: list[StageTerms] = []
            found = self.terms(operator, None if self._resolve is None else stages)
        except NoTerms as reason:
            return OperatorProof(operator, reason=str(reason))
        self.numbers |= found
        missing = {}
        for index, numbers in found.items():
            absent = np.flatnonzero(~self._chip.have(numbers))
            if len(absent) and self._resolve is not None and len(stages) == 1:
                given = self._resolve(operator, absent, stages[0])
                numbers.reshape(-1)[list(given)] = list(given.values())
                absent = absent[~np.isin(absent, list(given))]
            self.absent[index] = len(absent)
            if len(absent):
                missing[index] = absent
        return OperatorProof(operator, sum(each.size for each in found.values()), missing)


def _last_uses(network: Network, kept: Collection[int]) -> dict[int, int]:
    """The last operator that reads each tensor that is not kept."""
    return {
        index: each.index
        for each in network.operators
        for index in each.inputs
        if index not in kept
    }
