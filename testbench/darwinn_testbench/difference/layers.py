"""What both programs compute, layer by layer, and how long each takes.

Layers are put side by side as lines of two texts are: the longest runs of layers of the same
operation and result belong together, and what lies between is paired in order as far as it goes.
Where references tell the network's tensors, layers of the same tensor belong together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import zip_longest

from darwinn_sim.chip import TILES
from darwinn_sim.timing import Cause, LayerTiming, Timing

from darwinn_testbench.comparison.layer_names import LayerName
from darwinn_testbench.difference.rows import Aspect, DifferenceRow, Names, row, unknown
from darwinn_testbench.difference.side import INFERENCE, Side
from darwinn_testbench.layers.graph import operation
from darwinn_testbench.layers.rows import LayerRow
from darwinn_testbench.report import counted

_CAUSES = [cause for cause in Cause if cause is not Cause.FINISHED]
"""What a unit does with its cycles until its last instruction."""

TOTALS = ("cycles", "ms")
"""Names of the rows that say how long an executable takes."""

Pair = tuple[LayerRow | None, LayerRow | None]


def layers(a: Side, b: Side) -> Iterator[DifferenceRow]:
    """The layers of both, and what they have of their own.

    Raises:
        SimulationError: a program does not run.
    """
    yield row(Aspect.LAYERS, "layers", len(a.layers), len(b.layers))
    for left, right in aligned(a.layers, b.layers):
        for what, texts in _told(left, right).items():
            yield row(
                Aspect.LAYERS,
                f"{name_of(left, right)} {what}",
                *texts,
                layer=_number(left, right),
                names=_names(left, right),
            )


def aligned(left: Sequence[LayerRow], right: Sequence[LayerRow]) -> list[Pair]:
    """Layers side by side; one that has no counterpart stands alone.

    What is the same is the tensor of the network, where both sides have it; else operation and
    result.
    """
    shared = {each.tensor for each in left} & {each.tensor for each in right} - {""}
    mine, others = (
        [each.tensor if each.tensor in shared else _result(each) for each in side]
        for side in (left, right)
    )
    pairs: list[Pair] = []
    for _, i, end, j, stop in SequenceMatcher(a=mine, b=others, autojunk=False).get_opcodes():
        pairs += zip_longest(left[i:end], right[j:stop])
    return pairs


def _result(layer: LayerRow) -> tuple[object, ...]:
    return operation(layer), layer.output_shape


def name_of(left: LayerRow | None, right: LayerRow | None) -> str:
    """``layer N``, or ``layer N|M`` where the numbers differ; ``-`` is none."""
    numbers = ["-" if each is None else str(each.number) for each in (left, right)]
    return f"layer {numbers[0] if numbers[0] == numbers[1] else '|'.join(numbers)}"


def _number(left: LayerRow | None, right: LayerRow | None) -> int | None:
    found = left or right
    return None if found is None else found.number


def _names(left: LayerRow | None, right: LayerRow | None) -> Names:
    mine, others = (
        LayerName(each.operator, each.tensor) if each is not None and each.tensor else None
        for each in (left, right)
    )
    return mine, others


def _told(left: LayerRow | None, right: LayerRow | None) -> dict[str, list[str | None]]:
    """What is said of a layer of each side; of two that compute the same thing, what they have."""
    both = (left, right)
    found = {"computes": [None if each is None else _computes(each) for each in both]}
    if left is not None and right is not None and _computes(left) == _computes(right):
        found["has"] = [_has(left), _has(right)]
        found["scales"] = [_scales(left), _scales(right)]
    return found


def _computes(layer: LayerRow) -> str:
    shape = "x".join(map(str, layer.output_shape)) if layer.output_shape else "?"
    return f"{operation(layer)}, {shape}"


def _has(layer: LayerRow) -> str:
    tiles = counted(len(layer.tiles), "tile")
    held = [f"{each.bytes:,} bytes {each.place}" for each in layer.parameters]
    return ", ".join([tiles, *held])


def _scales(layer: LayerRow) -> str:
    zeros = (*layer.input_zero_points, layer.weight_zero_point, layer.output_zero_point)
    scale = "of channels" if layer.channel_scales else f"{layer.scale:.6g}"
    return f"{scale}, zero {'/'.join('-' if each is None else str(each) for each in zeros)}"


def cycles(a: Side, b: Side) -> Iterator[DifferenceRow]:
    """The event model's cycles: of the executables, by cause, and by layer.

    Raises:
        SimulationError: the layers cannot be put side by side, as a program does not run.
    """
    for part in dict.fromkeys((*a.timed, *b.timed)):
        runs = [side.timed.get(part) for side in (a, b)]
        for each in runs:
            if each is not None and each.timing is None:
                yield unknown(Aspect.CYCLES, each.verdict, each.message)
                return
        cycles = [None if each is None else each.cycles for each in runs]
        yield row(Aspect.CYCLES, TOTALS[0], *cycles, part=part)
        times = [None if each is None else each.milliseconds for each in runs]
        spent = [None if each is None else round(each, 3) for each in times]
        yield row(Aspect.CYCLES, TOTALS[1], *spent, part=part)
    left, right = (side.timed[INFERENCE].timing for side in (a, b))
    assert left is not None and right is not None
    for cause in _CAUSES:
        means = [_mean(each, cause) for each in (left, right)]
        if any(means):
            yield row(Aspect.CYCLES, f"tensor units: {cause.label}", *means, part=INFERENCE)
    timings = [{each.number: each for each in side.layers} for side in (left, right)]
    for one, other in aligned(a.layers, b.layers):
        yield _layer(one, other, *timings)


def _mean(timing: Timing, cause: Cause) -> int:
    """Cycles of a tensor unit, mean of all tiles."""
    found = timing.waiting()[cause]
    return round(found / len(timing.tile_usage))


def _layer(
    one: LayerRow | None,
    other: LayerRow | None,
    left: Mapping[int, LayerTiming],
    right: Mapping[int, LayerTiming],
) -> DifferenceRow:
    mine = None if one is None else left.get(one.number)
    others = None if other is None else right.get(other.number)
    spent = [None if each is None else each.end - each.start for each in (mine, others)]
    shown = one or other
    assert shown is not None
    found = row(
        Aspect.CYCLES,
        f"{name_of(one, other)} {operation(shown)}",
        *spent,
        part=INFERENCE,
        layer=_number(one, other),
        names=_names(one, other),
    )
    if found.equal or mine is None or others is None:
        return found
    return replace(found, change=", ".join(filter(None, (found.change, _most(mine, others)))))


def _most(mine: LayerTiming, others: LayerTiming) -> str:
    """The cause that changes most in a layer's tensor units: cycles, mean of all tiles."""
    steps = others.cycles - mine.cycles
    cause = max(_CAUSES, key=lambda each: abs(int(steps[each])))
    return f"{cause.label} {int(steps[cause]) / TILES:+,.0f}" if steps[cause] else ""
