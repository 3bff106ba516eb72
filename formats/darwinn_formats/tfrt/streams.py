"""Streams of a block: which kernels run one after another, decided when a file is written.

A forward pass gives every operation one parent, the operand with the most expensive path from
the root. A backward pass builds streams along this tree, and merges cheap ones until they cost
the threshold. docs/formats-bef.md, "Streams".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from darwinn_formats.tfrt.encoding import INTEGERS
from darwinn_formats.tfrt.model import Scalar
from darwinn_formats.tfrt.text.syntax import Attributes, Block, Operation

COST: Final = "_tfrt_cost"
"""Attribute with the cost of an operation, which BEF files do not hold."""
THRESHOLD: Final = "tfrt.cost_threshold"
UPPER_THRESHOLD: Final = "tfrt.upper_cost_threshold"
MERGE_DEPENDENT: Final = "tfrt.merge_inter_dependent_streams"

_CHEAP: Final = frozenset({"tfrt.merge.chains"})
_WITH_COST: Final = frozenset({"tfrt_test.test_cost"})
"""Operations whose cost the original takes from the attribute."""
_ROOT = -1


@dataclass(frozen=True, slots=True)
class Options:
    """``threshold``: streams that cost less are merged; ``upper``: none grows beyond, if >= 0."""

    threshold: int = 1
    upper: int = -1


def options(*attributes: Attributes) -> Options:
    """Options of a function: the first of the attribute dictionaries that has one counts.

    Raises:
        ValueError: for an option that is not implemented.
    """
    for held in attributes:
        if MERGE_DEPENDENT in held and getattr(held[MERGE_DEPENDENT], "value", True):
            raise ValueError(f"{MERGE_DEPENDENT} is not supported")
    threshold = _number(THRESHOLD, attributes, 1)
    return Options(max(1, threshold), _number(UPPER_THRESHOLD, attributes, -1))


def _number(name: str, attributes: Sequence[Attributes], default: int) -> int:
    for held in attributes:
        value = held.get(name)
        if isinstance(value, Scalar) and value.dtype in INTEGERS:
            return int(value.value.real)
    return default


def streams(block: Block, chosen: Options) -> tuple[int, ...]:
    """Stream of the pseudo kernel, then of each operation."""
    return _Analysis(block, chosen).run()


class _Analysis:
    def __init__(self, block: Block, chosen: Options) -> None:
        self.options = chosen
        self.operands = [operation.operands for operation in block.operations]
        self.operands.append(block.returned)
        self.costs = [self.cost(operation) for operation in block.operations]
        self.costs.append(1)
        self.producer = [_ROOT] * len(block.argument_types)
        for number, operation in enumerate(block.operations):
            self.producer += [number] * len(operation.result_types)
        self.stream_costs: list[int] = []
        self.merged_into: list[int] = []

    def cost(self, operation: Operation) -> int:
        if operation.name in _CHEAP:
            return 1
        declared = operation.attributes.get(COST)
        if operation.name in _WITH_COST and isinstance(declared, Scalar):
            return max(1, int(declared.value.real))
        return self.options.threshold

    def run(self) -> tuple[int, ...]:
        count = len(self.operands)
        children: list[list[int]] = [[] for _ in range(count + 1)]
        for number, parent in enumerate(self.parents()):
            children[parent].append(number)
        stream = [-1] * (count + 1)
        for number in (*reversed(range(count)), _ROOT):
            stream[number] = self.join(
                [stream[child] for child in children[number]], stream[count - 1]
            )
            self.stream_costs[stream[number]] += 1 if number == _ROOT else self.costs[number]
        final = [self.latest(number) for number in stream]
        return (final[_ROOT], *final[: count - 1])

    def parents(self) -> list[int]:
        """The operation that triggers each; the first one where several cost the same."""
        from_root = [0] * len(self.operands) + [1]
        parents = []
        for number, operands in enumerate(self.operands):
            parent = max(
                (self.producer[value] for value in operands),
                key=lambda producer: from_root[producer],
                default=_ROOT,
            )
            parents.append(parent)
            from_root[number] = self.costs[number] + (from_root[parent] if operands else 0)
        return parents

    def join(self, candidates: list[int], returning: int) -> int:
        """The stream of an operation whose children are in these streams."""
        if not candidates:
            return self.open()
        merged: list[int] = []
        best, best_cost = -1, 0
        for candidate in map(self.latest, candidates):
            joined = candidate
            if self.stream_costs[candidate] < self.options.threshold:
                if merged and self.stream_costs[merged[-1]] < self.options.threshold:
                    self.merge(candidate, merged[-1])
                else:
                    merged.append(candidate)
                joined = merged[-1]
            cost = self.stream_costs[joined]
            if best_cost < cost and not 0 <= self.options.upper <= cost:
                best, best_cost = joined, cost
        # What leads to the return of the function runs in the stream that starts the function.
        leads = {self.latest(candidate) for candidate in candidates}
        if returning >= 0 and self.latest(returning) in leads:
            best = self.latest(returning)
        if best < 0:
            return self.open()
        if merged and self.stream_costs[merged[-1]] < self.options.threshold and merged[-1] != best:
            self.merge(merged[-1], best)
        return best

    def open(self) -> int:
        self.stream_costs.append(0)
        self.merged_into.append(-1)
        return len(self.stream_costs) - 1

    def merge(self, stream: int, into: int) -> None:
        self.stream_costs[into] += self.stream_costs[stream]
        self.merged_into[stream] = into

    def latest(self, stream: int) -> int:
        while self.merged_into[stream] >= 0:
            stream = self.merged_into[stream]
        return stream
