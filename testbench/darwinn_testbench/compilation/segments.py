"""Cuts a model into segments for several chips, of about the same predicted time.

Segments are consecutive operators. How long each operator takes on the chip is taken from the
event model of the whole model first, and ``balance`` cuts by that. A segment has all of a chip's
memory for its parameters, so its operators may take less time than in the whole: they are measured
again in the segments, and the model is cut anew, as long as the slowest segment becomes faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from darwinn_formats import tflite
from darwinn_formats.files import Source

from darwinn_testbench.chip.stage_times import PipelineTimes
from darwinn_testbench.compilation.balance import Costs, balanced
from darwinn_testbench.compilation.times import (
    CHIP,
    Predicted,
    chip_milliseconds,
    cpu_milliseconds,
    inference_of,
    phase_cycles,
    timed,
    usual_link,
)
from darwinn_testbench.compiler.stages.build import Asked, Built, Piece, Worth, build_together
from darwinn_testbench.compiler.stages.executable import submodel
from darwinn_testbench.errors import InputError
from darwinn_testbench.explain.crossing import link_milliseconds
from darwinn_testbench.explain.graph import graph_of

_ROUNDS = 3
"""How often a model is cut."""

Segment = tuple[str, tflite.Model, bytes, Built]
"""Name, model before compilation and its bytes, and what it became."""


@dataclass(frozen=True)
class CutStage:
    """A segment of a cut: the operators from ``first`` to ``last``, by number in the model.

    ``milliseconds`` is the predicted time of an inference. ``input_bytes`` and ``output_bytes``
    cross its host link; ``handed_on`` are names of the tensors that later segments, or the
    application, take from it.
    """

    stage: int
    first: int
    last: int
    milliseconds: float
    input_bytes: int
    output_bytes: int
    handed_on: tuple[str, ...]


@dataclass(frozen=True)
class Cut:
    """How to cut a model for several chips, and the times that the pipeline would have.

    They are predicted from the times of the operators in the whole model, on the usual chip and
    link of the compiler (``chip``, ``host``); no segment was compiled.
    """

    stages: tuple[CutStage, ...]
    times: PipelineTimes
    chip: str
    host: str


def best_cut(source: Source, count: int) -> Cut:
    """Say how ``compile_models`` with ``num_segments`` would cut a model at first.

    Args:
        source: the model before compilation.
        count: number of chips, 2 or more.

    Raises:
        FormatError, ModelError, OSError: it cannot be read, or is no model.
        InputError: there are fewer operators for the chip than segments, or one segment.
    """
    if count < 2:
        raise InputError(f"a cut is for two chips or more, not for {count}")
    model = tflite.load(source)
    (whole,) = build_together([Asked(model, "cut")], Predicted())
    costs = _costs(model, whole)
    cuts = balanced(costs, _on_chip(whole, count), count)
    stages = []
    for number, (first, behind) in enumerate(pairwise(cuts)):
        moved = costs.moved(first, behind)
        told = (costs.segment(first, behind), moved.taken, moved.given, moved.handed_on)
        stages.append(CutStage(number, first, behind - 1, *told))
    times = PipelineTimes.of(
        [each.milliseconds for each in stages], [f"stage {each.stage}" for each in stages]
    )
    return Cut(tuple(stages), times, CHIP, usual_link().name)


def segmented(model: tflite.Model, name: str, count: int, worth: Worth) -> list[Segment]:
    """Cut a model into ``count`` segments and compile each.

    Raises:
        InputError: there are fewer operators for the chip than segments.
        ModelError: a segment is no model.
    """
    (whole,) = build_together([Asked(model, name)], worth)
    on_chip = _on_chip(whole, count)
    costs = _costs(model, whole)
    best: list[Segment] = []
    least = float("inf")
    seen: set[tuple[int, ...]] = set()
    for _ in range(_ROUNDS):
        cuts = balanced(costs, on_chip, count)
        if cuts in seen:
            break
        seen.add(cuts)
        found = [_segment(model, name, k, count, cuts, worth) for k in range(count)]
        times = [_milliseconds(each) for each in found]
        if max(times) < least:
            least, best = max(times), found
        for (first, behind), now in zip(pairwise(cuts), times, strict=True):
            ratio = now / costs.segment(first, behind)
            costs.operators[first:behind] = [ratio * each for each in costs.operators[first:behind]]
    return best


def _on_chip(whole: Built, count: int) -> list[int]:
    """The operators that go to the chip, if there are enough for so many segments."""
    on_chip = [fate.number for fate in whole.fates if fate.on_chip]
    if len(on_chip) < count:
        raise InputError(f"{count} segments: only {len(on_chip)} operators go to the chip")
    return on_chip


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


def _costs(model: tflite.Model, whole: Built) -> Costs:
    """Times of the operators of a compiled model, a little for those that take no time.

    Each operator of a piece has an equal share of the time that its instructions take on the link.
    """
    graph = graph_of(model)
    link = usual_link()
    operators = [1e-6] * len(graph.nodes)
    for fate in whole.fates:
        if not fate.on_chip:
            operators[fate.number] += cpu_milliseconds(graph, [fate.number])
    costs = Costs(graph, operators, link)
    for piece in whole.pieces:
        result = timed(inference_of(piece))
        ticks = 1e3 / result.chip.clock.value
        numbers = sorted(piece.operators)
        share = _instructions(piece) / len(numbers)
        for number in numbers:
            operators[number] += share
        for phase, cycles in zip(piece.phases, phase_cycles(piece, result), strict=True):
            if phase.operation >= 0:
                operators[phase.operation] += ticks * cycles
    return costs


def _instructions(piece: Piece) -> float:
    """Milliseconds that the host link takes for the instructions of an inference."""
    size = sum(len(each.bitstream) for each in inference_of(piece).instruction_bitstreams)
    return link_milliseconds(usual_link(), size, "in")
