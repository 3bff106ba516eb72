"""Cuts a model into segments for several chips, of about the same predicted time.

Segments are consecutive operators. How long each operator takes on the chip is taken from the
event model of the whole model first. A segment has all of a chip's memory for its parameters, so
its operators may take less time than in the whole: they are measured again in the segments, and the
model is cut anew, as long as the slowest segment becomes faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from darwinn_formats import tflite

from darwinn_testbench.compilation.times import (
    chip_milliseconds,
    cpu_milliseconds,
    inference_of,
    phase_cycles,
    timed,
)
from darwinn_testbench.compiler.stages.build import Asked, Built, Worth, build_together
from darwinn_testbench.compiler.stages.executable import submodel
from darwinn_testbench.errors import InputError
from darwinn_testbench.explain.graph import graph_of

_ROUNDS = 3
"""How often a model is cut."""

Segment = tuple[str, tflite.Model, bytes, Built]
"""Name, model before compilation and its bytes, and what it became."""


def segmented(model: tflite.Model, name: str, count: int, worth: Worth) -> list[Segment]:
    """Cut a model into ``count`` segments and compile each.

    Raises:
        InputError: there are fewer operators for the chip than segments.
        ModelError: a segment is no model.
    """
    (whole,) = build_together([Asked(model, name)], worth)
    on_chip = [fate.number for fate in whole.fates if fate.on_chip]
    if len(on_chip) < count:
        raise InputError(f"--num_segments {count}: only {len(on_chip)} operators go to the chip")
    costs = _costs(model, whole)
    best: list[Segment] = []
    least = float("inf")
    seen: set[tuple[int, ...]] = set()
    for _ in range(_ROUNDS):
        cuts = _balanced(costs, on_chip, count)
        if cuts in seen:
            break
        seen.add(cuts)
        found = [_segment(model, name, k, count, cuts, worth) for k in range(count)]
        times = [_milliseconds(each) for each in found]
        if max(times) < least:
            least, best = max(times), found
        for (first, behind), now in zip(pairwise(cuts), times, strict=True):
            before = sum(costs[first:behind])
            costs[first:behind] = [each * now / before for each in costs[first:behind]]
    return best


def _segment(
    model: tflite.Model, name: str, number: int, count: int, cuts: Sequence[int], worth: Worth
) -> Segment:
    data = submodel(model, range(cuts[number], cuts[number + 1]))
    part = tflite.load(data)
    called = f"{name}_segment_{number}_of_{count}"
    (built,) = build_together([Asked(part, called)], worth)
    return called, part, data, built


def _milliseconds(segment: Segment) -> float:
    """Predicted time of a segment: of its pieces, and of its operators on the CPU."""
    _, model, _, built = segment
    on_cpu = [fate.number for fate in built.fates if not fate.on_chip]
    return chip_milliseconds(built.pieces) + cpu_milliseconds(graph_of(model), on_cpu)


def _costs(model: tflite.Model, whole: Built) -> list[float]:
    """Milliseconds of each operator, a little for those that take no time."""
    graph = graph_of(model)
    costs = [1e-6] * len(graph.nodes)
    for fate in whole.fates:
        if not fate.on_chip:
            costs[fate.number] += cpu_milliseconds(graph, [fate.number])
    for piece in whole.pieces:
        result = timed(inference_of(piece))
        for phase, cycles in zip(piece.phases, phase_cycles(piece, result), strict=True):
            if phase.operation >= 0:
                costs[phase.operation] += 1e3 * cycles / result.chip.clock.value
    return costs


def _balanced(costs: Sequence[float], on_chip: Sequence[int], count: int) -> tuple[int, ...]:
    """Where to cut so that the most expensive segment is as cheap as possible.

    Each segment begins with an operator of the chip, but for the first one, which begins with the
    first operator.
    """
    starts = [0, *on_chip[1:]]
    ends = [*starts[1:], len(costs)]
    blocks = [sum(costs[first:behind]) for first, behind in zip(starts, ends, strict=True)]
    total = [0.0]
    for each in blocks:
        total.append(total[-1] + each)
    size = len(blocks)
    # least[k][b]: cost of the most expensive of k segments of the first b blocks, and their cut.
    least = {(1, b): (total[b], 0) for b in range(1, size + 1)}
    for k in range(2, count + 1):
        for b in range(k, size + 1):
            least[k, b] = min(
                (max(least[k - 1, cut][0], total[b] - total[cut]), cut) for cut in range(k - 1, b)
            )
    cuts = [len(costs)]
    end = size
    for k in range(count, 1, -1):
        end = least[k, end][1]
        cuts.append(starts[end])
    return (0, *reversed(cuts))
