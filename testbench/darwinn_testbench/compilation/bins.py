"""Coverage of generated networks: what they are made of, and what their programs hold.

The bins of a network are declared below, so that one which never occurs is seen. Those of a
program are what it holds: values of narrow fields, and crosses of an instruction, a flag that it
waits for and how it computes; to be counted against those of other executables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from darwinn_formats.darwinn import Executable
from darwinn_sim.isa.codec import Columns, decode
from darwinn_sim.isa.codes import ScalarFlag, TileFlag
from darwinn_sim.isa.fields import Instruction
from darwinn_sim.isa.table import INSTRUCTIONS
from numpy.typing import NDArray

from darwinn_testbench.compiler.random_networks import OPERATORS, RandomNetwork
from darwinn_testbench.compiler.recipes import Recipe

WELL_MIXED = "10 operators, 4 kinds, a branch"
"""Networks of at least that."""

_NARROW = 4
"""Bits of fields whose values are counted one by one."""
_SWITCHES = frozenset(
    (
        "activation_16bit",
        "parameter_16bit",
        "apply_bias",
        "use_scales",
        "transpose",
        "scale_bias",
        "to_host",
        "load_parameter_zero_point",
    )
)
"""Fields of one bit that decide how an instruction computes or moves."""


@dataclass(frozen=True, kw_only=True)
class Bin:
    """A bin, and how many networks are in it."""

    group: str
    bin: str
    networks: int


@dataclass(frozen=True, kw_only=True)
class Crossed:
    """Values of fields, or crosses, of all generated programs together.

    ``others`` are those of the executables that they are compared with, None without any; of these
    ``both`` occur in generated programs. ``missed`` are the others by name.
    """

    what: str
    generated: int
    others: int | None = None
    both: int | None = None
    missed: tuple[str, ...] = ()


# --- networks -----------------------------------------------------------------------------------


def _branches(recipe: Recipe, network: RandomNetwork) -> int:
    """Values that several operators read."""
    readers = Counter(k for operands in network.operands for k in dict.fromkeys(operands))
    return sum(readers[value.index] > 1 for value in network.values)


def _ranges(*firsts: int) -> tuple[tuple[str, range], ...]:
    """Names of ranges that begin at ``firsts``, the last one without an end."""
    ends = [*firsts[1:], 1 << 30]
    return tuple(
        (
            str(first)
            if end == first + 1
            else f"{first}-{end - 1}"
            if end < 1 << 30
            else f"{first}+",
            range(first, end),
        )
        for first, end in zip(firsts, ends, strict=True)
    )


_Count = Callable[[Recipe, RandomNetwork], int]

_COUNTED: Mapping[str, tuple[_Count, tuple[tuple[str, range], ...]]] = {
    "operators": (lambda recipe, network: len(recipe.steps), _ranges(1, 4, 7, 10, 14, 18)),
    "kinds of operators": (lambda recipe, network: len(set(network.kinds)), _ranges(1, 2, 4, 7)),
    "branches": (_branches, _ranges(0, 1, 2, 4)),
    "inputs": (lambda recipe, network: len(network.inputs), _ranges(1, 2, 3)),
    "outputs": (lambda recipe, network: len(network.outputs), _ranges(1, 2, 4)),
}
"""Numbers of a network, each with the ranges that are its bins."""


def declared() -> Iterator[tuple[str, str]]:
    """All bins of networks, by group."""
    yield from (("operator", name) for name in OPERATORS)
    yield from (("type", name) for name in ("int8", "uint8"))
    for group, (_, ranges) in _COUNTED.items():
        yield from ((group, name) for name, _ in ranges)
    yield "network", WELL_MIXED


def bins_of(recipe: Recipe, network: RandomNetwork) -> Iterator[tuple[str, str]]:
    """The bins that a network is in."""
    names = (*(step.operator for step in recipe.steps), *network.kinds)
    yield from (("operator", name) for name in dict.fromkeys(names))
    yield "type", "int8" if recipe.signed else "uint8"
    for group, (count, ranges) in _COUNTED.items():
        number = count(recipe, network)
        yield from ((group, name) for name, within in ranges if number in within)
    mixed = len(recipe.steps) >= 10 and len(set(network.kinds)) >= 4
    if mixed and _branches(recipe, network):
        yield "network", WELL_MIXED


def hits(found: Iterable[tuple[str, str]]) -> tuple[Bin, ...]:
    """All declared bins with their networks."""
    counts = Counter(found)
    return tuple(
        Bin(group=group, bin=name, networks=counts[group, name]) for group, name in declared()
    )


# --- programs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """What programs hold: values of narrow fields, and crosses."""

    values: frozenset[str] = frozenset()
    crosses: frozenset[str] = frozenset()

    def __or__(self, other: Held) -> Held:
        return Held(self.values | other.values, self.crosses | other.crosses)


def held_by(executables: Iterable[Executable]) -> Held:
    """What the programs of executables hold.

    Raises:
        DecodeError: a chunk does not decode.
    """
    values: set[str] = set()
    crosses: set[str] = set()
    for executable in executables:
        for chunk in executable.instruction_bitstreams:
            for opcode, columns in decode(chunk.bitstream).columns.items():
                instruction = INSTRUCTIONS[opcode]
                values.update(_values(instruction, columns))
                crosses.update(_crosses(instruction, columns))
    return Held(frozenset(values), frozenset(crosses))


def compared(generated: Held, others: Held | None) -> tuple[Crossed, ...]:
    """Both sets of what is held, beside those of other executables."""
    return (
        _compared(
            f"values of fields of up to {_NARROW} bits",
            generated.values,
            None if others is None else others.values,
        ),
        _compared(
            "crosses of instruction, flag that is waited for and mode",
            generated.crosses,
            None if others is None else others.crosses,
        ),
    )


def _compared(what: str, mine: frozenset[str], theirs: frozenset[str] | None) -> Crossed:
    if theirs is None:
        return Crossed(what=what, generated=len(mine))
    missed = tuple(sorted(theirs - mine))
    return Crossed(
        what=what,
        generated=len(mine),
        others=len(theirs),
        both=len(theirs) - len(missed),
        missed=missed,
    )


def _values(instruction: Instruction, columns: Columns) -> Iterator[str]:
    for field in instruction.fields:
        if field.width <= _NARROW:
            for value in np.unique(columns[field.name]).tolist():
                yield f"{instruction.name}.{field.name} = {value}"


def _crosses(instruction: Instruction, columns: Columns) -> Iterator[str]:
    """An instruction in each mode, with each flag that a watcher of it waits for."""
    modes = [
        field.name
        for field in instruction.fields
        if field.name in _SWITCHES
        or (
            (field.codes not in (None, TileFlag, ScalarFlag) and field.width <= _NARROW)
            and field.count == 1
        )
    ]
    mode = np.stack([columns[name] for name in modes], 1) if modes else None
    rows = len(next(iter(columns.values())))
    for flag, waits in _waits(instruction, columns, rows):
        chosen = mode[waits] if mode is not None else np.zeros((int(waits.sum()), 0), np.int64)
        for each in np.unique(chosen, axis=0) if len(chosen) else ():
            yield f"{instruction.name} {flag}: {_mode(modes, each.tolist())}"


def _waits(
    instruction: Instruction, columns: Columns, rows: int
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Each flag that is waited for, and which rows wait for it; first, which wait for none."""
    if not instruction.watchers:
        yield "waits for nothing", np.ones(rows, np.bool_)
        return
    valid = columns["watcher_valid"].reshape(rows, -1) != 0
    flags = columns["watcher_flag"].reshape(rows, -1)
    yield "waits for nothing", ~valid.any(1)
    for flag in np.unique(flags[valid]).tolist():
        yield f"waits for flag {flag}", (valid & (flags == flag)).any(1)


def _mode(names: Sequence[str], values: Sequence[int]) -> str:
    told = [f"{name} {value}" for name, value in zip(names, values, strict=True) if value]
    return ", ".join(told) or "plain"
