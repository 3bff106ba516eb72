"""Two programs of one format side by side: what they consist of, and what they compute."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.files import Source, content_of, name_of

from darwinn_testbench.comparison.verify import verify
from darwinn_testbench.difference.rows import (
    DIGEST,
    Aspect,
    DifferenceRow,
    figures_of_both,
    row,
    unknown,
)
from darwinn_testbench.difference.side import Comparing
from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.facts import PROGRAMS, ConstantFacts, ProgramFacts, facts_of
from darwinn_testbench.programs.formats import format_of
from darwinn_testbench.report import Verdict, one_line, verdict_of

GAP = "greatest difference"
"""What rows of outputs call the numeric gap of an output."""
PORTABLE = "left to the runtime's kernels"
SHARE = "executed by delegates, %"
FILE = "file"


class ProgramSide:
    """One of the two programs, loaded.

    Raises:
        FormatError, OSError: it is not valid or cannot be read.
        InputError: it is no program of another format, or has none of the data.
    """

    def __init__(self, source: Source, asked: Comparing) -> None:
        self.source, self.asked = source, asked
        found = format_of(source)
        if found is None:
            raise InputError(f"{name_of(source)}: no program of another format")
        self.format = found
        content = content_of(source)
        self.size, self.sha256 = len(content), hashlib.sha256(content).hexdigest()
        data = [file for file in asked.external if found.is_data(content_of(file)[:16])]
        file: Any = found.handler_with(data).load(source)
        if not isinstance(file, PROGRAMS):
            raise InputError(f"{name_of(source)}: data of a program, and no program")
        self.facts: ProgramFacts = facts_of(file, self.size)


def _counts(
    aspect: Aspect, a: Mapping[str, Any], b: Mapping[str, Any], absent: Any = None
) -> Iterator[DifferenceRow]:
    for name, mine, others in figures_of_both(a, b):
        values = [absent if each is None else each for each in (mine, others)]
        yield row(aspect, name, *values)


def functions(a: ProgramSide, b: ProgramSide) -> Iterator[DifferenceRow]:
    """What can be called, with types and sizes of inputs and outputs."""
    yield from _counts(Aspect.FUNCTIONS, a.facts.functions, b.facts.functions)


def operators(a: ProgramSide, b: ProgramSide) -> Iterator[DifferenceRow]:
    """How many of each operator there are."""
    totals = [sum(side.facts.operators.values()) for side in (a, b)]
    yield row(Aspect.OPERATORS, "all", *totals)
    yield from _counts(Aspect.OPERATORS, a.facts.operators, b.facts.operators, 0)


def delegates(a: ProgramSide, b: ProgramSide) -> Iterator[DifferenceRow]:
    """What executes the operators."""
    yield row(Aspect.DELEGATES, PORTABLE, a.facts.portable, b.facts.portable)
    yield row(Aspect.DELEGATES, SHARE, *map(_share, (a, b)))
    yield from _counts(Aspect.DELEGATES, a.facts.delegates, b.facts.delegates, 0)


def _share(side: ProgramSide) -> float:
    whole = side.facts.delegated + side.facts.portable
    return round(100 * side.facts.delegated / whole, 1) if whole else 0.0


def sizes(a: ProgramSide, b: ProgramSide) -> Iterator[DifferenceRow]:
    """Bytes of the file and of its parts."""
    yield from _counts(Aspect.SIZES, a.facts.sizes, b.facts.sizes, 0)


def memory(a: ProgramSide, b: ProgramSide) -> Iterator[DifferenceRow]:
    """Bytes that the programs plan for their values."""
    totals = [sum(side.facts.memory.values()) for side in (a, b)]
    if any(totals):
        yield row(Aspect.MEMORY, "planned", *totals)
    yield from _counts(Aspect.MEMORY, a.facts.memory, b.facts.memory)


def constants(a: ProgramSide, b: ProgramSide) -> Iterator[DifferenceRow]:
    """Constants of both, aligned by name, type and sizes in their order; equal ones are one row."""
    left, right = a.facts.constants, b.facts.constants
    yield row(Aspect.CONSTANTS, "all", len(left), len(right))
    keys = [[(each.name, each.kind) for each in side] for side in (left, right)]
    matcher = difflib.SequenceMatcher(a=keys[0], b=keys[1], autojunk=False)
    equal = 0
    for _, first, end, start, stop in matcher.get_opcodes():
        mine, others = left[first:end], right[start:stop]
        for at in range(max(len(mine), len(others))):
            one = mine[at] if at < len(mine) else None
            two = others[at] if at < len(others) else None
            if one and two and (one.kind, one.data) == (two.kind, two.data):
                equal += 1
                continue
            number = f"constant {first + at if one else '-'}|{start + at if two else '-'}"
            yield _constant(number, one, two)
    yield row(Aspect.CONSTANTS, "equal", equal, equal)


def _constant(number: str, one: ConstantFacts | None, two: ConstantFacts | None) -> DifferenceRow:
    called = next((each.name for each in (one, two) if each is not None), "")
    name = " ".join(filter(None, (number, called)))
    said = [None if each is None else each.kind for each in (one, two)]
    if one is None or two is None or one.kind != two.kind:
        return row(Aspect.CONSTANTS, name, *said)
    if one.data is None or two.data is None:
        return row(Aspect.CONSTANTS, name, *said, equal=False, change="not at hand")
    octets = [np.frombuffer(each, np.uint8) for each in (one.data, two.data)]
    count = (
        int(np.count_nonzero(octets[0] != octets[1])) if len(octets[0]) == len(octets[1]) else -1
    )
    change = f"{count:,} of {len(octets[0]):,} bytes differ ({one.kind})" if count >= 0 else None
    digests = [DIGEST + hashlib.sha256(each).hexdigest()[:12] for each in (one.data, two.data)]
    return row(Aspect.CONSTANTS, name, *digests, equal=False, change=change)


def outputs(a: ProgramSide, b: ProgramSide) -> Iterator[DifferenceRow]:
    """What comes out for the same inputs: how many elements differ, and by how much at most."""
    asked = a.asked
    try:
        report = verify(
            a.source,
            b.source,
            inputs=asked.inputs,
            seed=asked.seed,
            runs=asked.runs,
            inputs_kind=asked.inputs_kind,
            function=asked.function,
            natives=asked.natives,
            companions=asked.companions,
        )
    except (ExecutionError, InputError) as error:
        yield unknown(Aspect.OUTPUTS, verdict_of(error) or Verdict.FAULT, one_line(error))
        return
    if report.decided is not None and report.decided not in (Verdict.MISMATCH, Verdict.PASS):
        yield unknown(Aspect.OUTPUTS, report.decided, report.message)
        return
    for each in report.rows:
        name, found = f"{each.name}, run {each.run}", each.comparison
        if found is None:
            yield row(Aspect.OUTPUTS, name, "", "", equal=not each.verdict.failed, message="")
            continue
        yield row(Aspect.OUTPUTS, f"{name}: elements that differ", 0, found.differing)
        yield row(Aspect.OUTPUTS, f"{name}: {GAP}", 0, found.max_difference)


LOOKS: Mapping[Aspect, Callable[[ProgramSide, ProgramSide], Iterator[DifferenceRow]]] = {
    Aspect.FUNCTIONS: functions,
    Aspect.OPERATORS: operators,
    Aspect.DELEGATES: delegates,
    Aspect.SIZES: sizes,
    Aspect.MEMORY: memory,
    Aspect.CONSTANTS: constants,
    Aspect.OUTPUTS: outputs,
}
"""What looks at each aspect of programs."""


def sides_of(asked: Comparing) -> tuple[ProgramSide, ProgramSide]:
    """Both programs.

    Raises:
        InputError: they are of two formats.
    """
    left, right = (ProgramSide(each, asked) for each in (asked.a, asked.b))
    if left.format.module != right.format.module:
        raise InputError(
            f"{left.format.name} and {right.format.name}: diff compares programs of one format; "
            "darwinn verify compares what two formats compute"
        )
    return left, right
