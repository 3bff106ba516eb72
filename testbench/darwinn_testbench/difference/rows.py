"""What two compiled models, or two programs, are compared in, and a row of such a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from darwinn_testbench.comparison.layer_names import LayerName
from darwinn_testbench.report import Row, Verdict

Value = int | float | str | bool | None
"""A figure of one side; None is something that it lacks."""

Names = tuple[LayerName | None, LayerName | None]
"""The network's operators that a layer of A and one of B compute; None of one that is not known."""


DIGEST = "sha256 "
"""What a figure begins with that stands for many bytes: the change alone says something."""


DIFFERS = "differs"
"""The change of a text."""
NOT_KNOWN = "not known"
"""The name of a row that says why an aspect cannot be looked at."""


class Aspect(StrEnum):
    """What is compared, in the order in which it is shown; ``--only`` chooses among them."""

    EXECUTABLES = "executables"
    """Kinds of executables, chunks, batch, inputs and outputs, operators on the CPU."""
    INSTRUCTIONS = "instructions"
    """Counts by unit and opcode, and the first instruction that differs."""
    LAYERS = "layers"
    """What the programs compute, layer by layer."""
    MEMORY = "memory"
    """Bytes of the host's buffers and of the tiles' memories."""
    PARAMETERS = "parameters"
    """Bytes of the parameters, cached and streamed."""
    DMA = "dma"
    """Hints, and the bytes that they move."""
    CYCLES = "cycles"
    """The event model: of executables, by cause, by layer."""
    FUNCTIONS = "functions"
    """Of a program of another format: what can be called, with inputs and outputs."""
    OPERATORS = "operators"
    """Of a program: counts by operator."""
    DELEGATES = "delegates"
    """Of a program: what executes the operators, and how many are left."""
    SIZES = "sizes"
    """Of a program: bytes of the file and its parts."""
    CONSTANTS = "constants"
    """Of a program: its constants, byte by byte."""
    OUTPUTS = "outputs"
    """What comes out for the same inputs."""
    GATES = "gates"
    """Bounds that are asked for (``--gate``)."""


BY_WEIGHT = (
    Aspect.GATES,
    Aspect.CYCLES,
    Aspect.OUTPUTS,
    Aspect.DELEGATES,
    Aspect.SIZES,
    Aspect.FUNCTIONS,
    Aspect.CONSTANTS,
    Aspect.OPERATORS,
    Aspect.LAYERS,
    Aspect.PARAMETERS,
    Aspect.MEMORY,
    Aspect.DMA,
    Aspect.EXECUTABLES,
    Aspect.INSTRUCTIONS,
)
"""What matters to who uses the models comes first, counts of opcodes last."""


@dataclass(frozen=True, kw_only=True)
class DifferenceRow(Row):
    """One figure of both sides: ``name`` says which, in ``part`` of the model.

    ``part`` is ``inference``, ``parameter caching`` or empty; ``change`` says in a few words how B
    differs from A, nothing if it does not. ``layer`` is the number of A's layer that a row is
    about, or of B's where A has none; ``names`` are the network's operators that the layers of A
    and B compute, if a reference tells them.
    """

    aspect: Aspect
    part: str
    a: Value
    b: Value
    change: str = ""
    layer: int | None = None
    names: Names = field(default=(None, None), metadata={"json": lambda row: any(row.names)})

    listed: ClassVar[tuple[str, ...]] = (
        "verdict",
        "aspect",
        "part",
        "name",
        "network",
        "a",
        "b",
        "change",
        "message",
    )

    @property
    def rank(self) -> int:
        """What differs first, of that what weighs most."""
        return len(BY_WEIGHT) * self.equal + BY_WEIGHT.index(self.aspect)

    @classmethod
    def tables(cls, figures: Mapping[str, Any]) -> Mapping[str, Sequence[Any]]:
        """How much of each aspect differs."""
        return {"aspects": figures.get("aspects", ())}

    @property
    def network(self) -> str:
        """The network's operator, or both where A's and B's are not the same; empty if unknown."""
        return " | ".join(dict.fromkeys(str(each) for each in self.names if each is not None))

    @property
    def case(self) -> str:
        """A figure occurs in several parts."""
        return " ".join(filter(None, (self.aspect.value, self.part, self.name)))

    @property
    def equal(self) -> bool:
        """Whether both sides have the same."""
        return self.verdict is Verdict.PASS

    @property
    def is_number(self) -> bool:
        """Whether both sides have a number, or nothing in the place of one."""
        found = [each for each in (self.a, self.b) if each is not None]
        return bool(found) and all(isinstance(each, int | float) for each in found)

    @property
    def delta(self) -> float | None:
        """B less A; None of what is no number on both sides."""
        numbers = [each for each in (self.a, self.b) if isinstance(each, int | float)]
        return numbers[1] - numbers[0] if len(numbers) == 2 else None


def row(
    aspect: Aspect,
    name: str,
    a: Value,
    b: Value,
    *,
    part: str = "",
    change: str | None = None,
    equal: bool | None = None,
    layer: int | None = None,
    names: Names = (None, None),
    message: str = "",
) -> DifferenceRow:
    """A row of two figures; they differ if they are not equal, or as ``equal`` says."""
    same = a == b if equal is None else equal
    return DifferenceRow(
        name=name,
        verdict=Verdict.PASS if same else Verdict.MISMATCH,
        message=message,
        aspect=aspect,
        part=part,
        a=a,
        b=b,
        change="" if same else changed(a, b) if change is None else change,
        layer=layer,
        names=names,
    )


def unknown(aspect: Aspect, verdict: Verdict, message: str) -> DifferenceRow:
    """The row of an aspect that cannot be looked at, with the reason."""
    return DifferenceRow(
        name=NOT_KNOWN, verdict=verdict, message=message, aspect=aspect, part="", a=None, b=None
    )


def figures_of_both(
    left: Mapping[str, Value], right: Mapping[str, Value]
) -> Iterator[tuple[str, Value, Value]]:
    """Figures of both by name, in the order of A, then what only B has."""
    for name in dict.fromkeys((*left, *right)):
        yield name, left.get(name), right.get(name)


_MANY = 10
"""From so many times as much on per cent say nothing."""


def changed(a: Value, b: Value) -> str:
    """How B differs from A, in a few words."""
    if a is None:
        return "only in B"
    if b is None:
        return "only in A"
    if isinstance(a, bool) or isinstance(b, bool):
        return DIFFERS
    if isinstance(a, int | float) and isinstance(b, int | float):
        step = f"{b - a:+,}" if isinstance(b - a, int) else f"{b - a:+,.3g}"
        if not a:
            return step
        many = b / a >= _MANY
        return f"{step} ({b / a:,.0f} times)" if many else f"{step} ({100 * (b - a) / a:+.1f} %)"
    return DIFFERS
