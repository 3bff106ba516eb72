"""What both models answer to the same inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from darwinn_reference.arrays import AnyArray

from darwinn_testbench.chip.execution import digest
from darwinn_testbench.chip.inputs import TensorPort, choose_inputs, origin_of
from darwinn_testbench.chip.pipeline import Segment
from darwinn_testbench.chip.whole import open_segment
from darwinn_testbench.comparison.compare import compare
from darwinn_testbench.difference.rows import DIGEST, Aspect, DifferenceRow, row
from darwinn_testbench.difference.side import Side
from darwinn_testbench.policy import Exact


def outputs(a: Side, b: Side) -> Iterator[DifferenceRow]:
    """A row for each output of each inference: drawn inputs, or given ones.

    Inputs go to B by their place; outputs belong together by name, or else by place.

    Raises:
        InputError: an input that does not fit A.
        ModelError, Unavailable: operators on the CPU cannot be run.
        OSError: a file of inputs cannot be read.
        SimulationError: an inference fails.
    """
    left, right = (_open(side) for side in (a, b))
    for what, ends in (
        ("inputs", (left.ports, right.ports)),
        ("outputs", (left.results, right.results)),
    ):
        texts = [", ".join(map(_kind, each)) or "none" for each in ends]
        if texts[0] != texts[1]:
            change = "not to be compared: other types or sizes"
            yield row(Aspect.OUTPUTS, what, *texts, change=change)
            return
    asked = a.asked
    kinds = asked.inputs_kind
    sets = choose_inputs(
        asked.inputs, left.ports, seed=asked.seed, runs=asked.runs, inputs_kind=kinds
    )
    for number, tensors in enumerate(sets):
        asked.progress(f"inference {number + 1} of {len(sets)}", number, len(sets))
        theirs = {
            other.name: tensors[port.name].reshape(other.shape)
            for port, other in zip(left.ports, right.ports, strict=True)
        }
        origin = origin_of(sets, number)
        drawn = "given" if origin is None else f"{origin.kind.value} {origin.seed}"
        mine, others = left.infer(tensors).outputs, right.infer(theirs).outputs
        for name, counterpart in _counterparts(mine, others).items():
            yield _compared(name, f"run {number} ({drawn})", mine[name], others[counterpart])


def _open(side: Side) -> Segment:
    asked = side.asked
    return open_segment(
        side.source,
        asked.others,
        model=asked.model,
        chip_only=asked.chip_only,
        seed=asked.seed,
        strict=asked.strict,
        assumptions=asked.assumptions,
    )


def _kind(port: TensorPort) -> str:
    """Type and dimensions; those of one element, which a package has more of, do not count."""
    return f"{port.dtype} {'x'.join(str(size) for size in port.shape if size != 1) or 1}"


def _counterparts(mine: Mapping[str, AnyArray], others: Mapping[str, AnyArray]) -> dict[str, str]:
    """The name of B's output for each of A's."""
    if mine.keys() == others.keys():
        return {name: name for name in mine}
    return dict(zip(mine, others, strict=True))


def _compared(name: str, part: str, mine: AnyArray, others: AnyArray) -> DifferenceRow:
    if mine.size == others.size:
        others = others.reshape(mine.shape)
    found = compare(others, mine, Exact())
    share = 100 * found.differing / max(found.elements, 1)
    change = (
        f"{found.differing:,} of {found.elements:,} ({share:.3g} %), by {found.max_difference:g}"
        if found.elements
        else found.reason
    )
    digests = [f"{DIGEST}{digest(each)[:16]}" for each in (mine, others)]
    return row(Aspect.OUTPUTS, name, *digests, part=part, change=change, equal=found.passed)
