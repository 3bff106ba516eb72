"""Where to cut a model for several chips, so that the slowest segment is as fast as possible.

Segments are consecutive operators. A segment takes the time of its operators on the chip, that of
the tensors that it takes from others and gives to others over its own host link, and the host's
fixed cost of a request. What a tensor between two segments takes is often more than what operators
take: a host reads results of the chip an order of magnitude slower than it sends inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from darwinn_sim.timing import HostLink

from darwinn_testbench.explain.crossing import link_milliseconds
from darwinn_testbench.explain.graph import Graph


@dataclass(frozen=True)
class Moved:
    """Bytes that a segment takes and gives at each inference, tensors that later ones take."""

    taken: int
    given: int
    handed_on: tuple[str, ...]


@dataclass
class Costs:
    """Milliseconds of segments of a network: ``operators`` are those of each one on the chip.

    They may be changed when segments were measured. ``link`` is the host link of each chip.
    """

    graph: Graph
    operators: list[float]
    link: HostLink

    def __post_init__(self) -> None:
        count = len(self.graph.nodes)
        self._last = dict.fromkeys(self.graph.outputs, count)
        for node in self.graph.nodes:
            for value in node.data:
                self._last[value.index] = max(self._last.get(value.index, 0), node.index)

    def segment(self, first: int, behind: int) -> float:
        """Milliseconds of the operators from ``first`` to before ``behind``."""
        moved = self.moved(first, behind)
        return self.fixed(moved) + sum(self.operators[first:behind])

    def fixed(self, moved: Moved) -> float:
        """Milliseconds of a request and of so many bytes."""
        taken = link_milliseconds(self.link, moved.taken, "in")
        given = link_milliseconds(self.link, moved.given, "out")
        return 1e3 * self.link.fixed_seconds.value + taken + given

    def moved(self, first: int, behind: int) -> Moved:
        """What crosses the link of a segment."""
        nodes = self.graph.nodes[first:behind]
        made = {each.index: each for node in nodes for each in node.outputs}
        read = {each.index: each for node in nodes for each in node.data}
        given = [each for index, each in made.items() if self._last.get(index, -1) >= behind]
        return Moved(
            sum(each.bytes for index, each in read.items() if index not in made),
            sum(each.bytes for each in given),
            tuple(each.name for each in given),
        )


def balanced(costs: Costs, on_chip: Sequence[int], count: int) -> tuple[int, ...]:
    """Where to cut so that the slowest of ``count`` segments is as fast as possible.

    Each segment begins with an operator of the chip, but for the first one, which begins with the
    first operator.

    Args:
        costs: times of segments.
        on_chip: numbers of the operators that go to the chip; not fewer than segments.
        count: number of segments.

    Returns:
        The first operator of each segment, and the number of operators.
    """
    starts = [0, *on_chip[1:], len(costs.operators)]
    size = len(starts) - 1
    times = {
        (first, behind): costs.segment(starts[first], starts[behind])
        for first in range(size)
        for behind in range(first + 1, size + 1)
    }
    # least[k][b]: time of the slowest of k segments of the first b blocks, and their cut.
    least = {(1, b): (times[0, b], 0) for b in range(1, size + 1)}
    for k in range(2, count + 1):
        for b in range(k, size + 1):
            least[k, b] = min(
                (max(least[k - 1, cut][0], times[cut, b]), cut) for cut in range(k - 1, b)
            )
    cuts = [len(costs.operators)]
    end = size
    for k in range(count, 1, -1):
        end = least[k, end][1]
        cuts.append(starts[end])
    return (0, *reversed(cuts))
