"""Constrained-random stimulus: valid traversals, watchers and producers that love boundaries.

Everything is drawn by hypothesis, which prints how to reproduce a failure and shrinks it. In the
gate the examples are the same in every run, so that functional coverage can be asserted; the
nightly profile draws new ones.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
from darwinn_sim.isa.strides import normalised
from darwinn_sim.isa.table import BY_NAME
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from slow_model import traversal as slow_traversal

Draw = Any
"""The ``draw`` function of a composite strategy."""

Fields = dict[str, Any]
"""Fields of an instruction by their names."""


PHASES = (
    (Phase.explicit, Phase.generate)
    if "DARWINN_RTL_SOURCES" in os.environ or settings.get_current_profile_name() == "mutation"
    else (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
)
"""What a random test does: where a deliberate fault is to be caught, the first failure will do."""


def constrained_random(examples: int) -> settings:
    """Settings of a random test of the gate: ``examples`` examples, the same in every run.

    The nightly profile draws ten times as many, and new ones.
    """
    nightly = settings.get_current_profile_name() == "nightly"
    return settings(
        max_examples=10 * examples if nightly else examples,
        derandomize=not nightly,
        database=None,
        report_multiple_bugs=False,
        deadline=None,
        phases=PHASES,
        suppress_health_check=list(HealthCheck),
    )


def nothing(instruction: str) -> dict[str, Any]:
    """Every field of an instruction but its opcode, all 0."""
    return {
        field.name: [0] * field.count if field.count > 1 else 0
        for field in BY_NAME[instruction].fields
        if field.name != "opcode"
    }


def around_powers(places: int) -> list[int]:
    """Numbers of places that between them have every bit 1 and 0, and carry into each: the powers
    of two, those before them, and the last."""
    powers = [1 << bit for bit in range(places.bit_length())]
    found = {0, places - 1, *powers, *(power - 1 for power in powers)}
    return sorted(place for place in found if place < places)


def signed_powers(instruction: str, name: str, unit: int = 1) -> list[int]:
    """The powers of two and their negatives of which so many units are what a field can hold."""
    half = 1 << BY_NAME[instruction].field(name).width - 1
    powers = [1 << bit for bit in range(half.bit_length())]
    return [
        step for step in (*powers, *(-power for power in powers)) if -half <= unit * step < half
    ]


@dataclass(frozen=True)
class Walk:
    """A traversal by real numbers: iterations and steps of its loops, innermost first.

    ``double`` is (loop, distance, start), ``alternate`` (loop, iterations of the target loop),
    ``prologue`` (loop, base, elements, last base, step of the base).
    """

    counts: tuple[int, ...]
    steps: tuple[int, ...]
    base: int = 0
    double: tuple[int, int, int] = (0, 0, 0)
    alternate: tuple[int, int] = (0, 0)
    prologue: tuple[int, int, int, int, int] | None = None
    target: int = 0
    odd_stride: int = 0

    def fields(self, instruction: str, name: str) -> dict[str, Any]:
        """The encoded fields of traversal ``name`` of ``instruction``."""
        loops = len(self.counts)
        limit = np.array(self.counts) - 1
        mask = sum(1 << k for k, step in enumerate(self.steps) if step)
        stride = normalised(np.array(self.steps), limit, np.array(mask))
        # The stride of a loop that runs once is never added, and compilers leave any value there.
        stride = np.where((limit == 0) & (np.arange(loops) > 0), stride + self.odd_stride, stride)
        loop, count = self.alternate
        out: dict[str, Any] = {
            "base": self.base,
            "stride": [int(v) for v in stride],
            "limit": limit.tolist(),
            "mask": mask,
            "double_loop": self.double[0],
            "double_offset": self.double[1],
            "double_start": self.double[2],
            "alternate_loop": loop,
            "alternate_limit": count - 1 if loop else 0,
            "alternate_reset": self._reset(count) if loop else 0,
        }
        if f"{name}_prologue_enable" in {f.name for f in BY_NAME[instruction].fields}:
            on = self.prologue is not None
            values = self.prologue or (0, 0, 1, 0, 0)
            out |= {
                "prologue_enable": int(on),
                "prologue_loop": values[0],
                "prologue_base": values[1],
                "prologue_inner_limit": values[2] - 1,
                "prologue_outer_limit": values[3],
                "prologue_outer_stride": values[4],
            }
        return {f"{name}_{part}": value for part, value in out.items()}

    def _reset(self, count: int) -> int:
        return self.steps[self.target] * (self.counts[self.target] - count)

    def elements(self, instruction: str, name: str) -> list[slow_traversal.Element]:
        """The elements, by the slow model."""
        return slow_traversal.walk(self.fields(instruction, name), name, target=self.target)


@dataclass(frozen=True)
class Kind:
    """What a traversal shall be like: loops that iterate (0, 1, 2; 3: or more), and the rest."""

    depth: int
    backward: bool
    double: bool
    alternate: bool


KINDS = (
    *(Kind(n, *others) for n in (1, 2, 3) for others in product((False, True), repeat=3)),
    *(Kind(0, False, double, False) for double in (False, True)),
)
"""Every kind; a traversal of one element has neither a direction nor an alternate limit."""

Aims = Mapping[str, Kind]
"""Traversals, by name, that shall be of a kind; a test aims at one of an instruction at a time."""

NO_AIMS: Aims = MappingProxyType({})


def aims(*names: str) -> st.SearchStrategy[Aims]:
    """Each kind for each of the traversals ``names``, one at a time."""
    return st.sampled_from([{name: kind} for name in names for kind in KINDS])


def line(instruction: str, traversal: str, count: int, base: int = 0, step: int = 1) -> Fields:
    """Traversal of ``count`` addresses, ``step`` apart, from ``base`` on."""
    rest = BY_NAME[instruction].field(f"{traversal}_limit").count - 1
    walked = Walk((count, *[1] * rest), (step, *[0] * rest), base=base)
    return walked.fields(instruction, traversal)


def near_edges(low: int, high: int) -> st.SearchStrategy[int]:
    """Integers of a range, its ends drawn often."""
    edges = sorted({low, min(low + 1, high), max(high - 1, low), high})
    return st.one_of(st.sampled_from(edges), st.integers(low, high))


def shape(
    draw: Draw, loops: int, count: int, *, alternate: bool = True, target: int = 0
) -> tuple[tuple[int, ...], tuple[int, int]]:
    """Loop counts, and an alternate limit, that make exactly ``count`` elements."""
    counts = [1] * loops
    if alternate and loops > target + 1 and count > 1 and draw(st.booleans()):
        inner = draw(near_edges(1, count))
        whole, rest = divmod(count, inner)
        loop = draw(st.integers(target + 1, loops - 1))
        counts[target] = inner
        if rest:
            counts[loop] = whole + 1
            return tuple(counts), (loop, rest)
        counts[loop] = whole
        # An alternate limit that equals the limit changes nothing.
        return tuple(counts), (loop, inner) if draw(st.booleans()) else (0, 0)
    left = count
    for loop in draw(st.permutations(range(loops)))[:-1]:
        divisors = [d for d in range(1, left + 1) if left % d == 0]
        counts[loop] = draw(st.sampled_from(divisors))
        left //= counts[loop]
        if left == 1:
            break
    if left > 1:
        free = [k for k in range(loops) if counts[k] == 1] or [0]
        counts[free[0]] *= left
    return tuple(counts), (0, 0)


def free_shape(
    draw: Draw, loops: int, most: int, *, alternate: bool = True, target: int = 0
) -> tuple[tuple[int, ...], tuple[int, int]]:
    """Loop counts with a product of at most ``most``, and perhaps an alternate limit."""
    counts = [1] * loops
    left = most
    for loop in draw(st.permutations(range(loops))):
        if left > 1 and draw(st.booleans()):
            counts[loop] = draw(near_edges(1, min(left, 9)))
            left //= counts[loop]
    if alternate and loops > target + 1 and draw(st.booleans()):
        loop = draw(st.integers(target + 1, loops - 1))
        return tuple(counts), (loop, draw(near_edges(1, counts[target])))
    return tuple(counts), (0, 0)


def walk(
    draw: Draw,
    instruction: str,
    name: str,
    *,
    low: int,
    high: int,
    count: int | None = None,
    most: int = 64,
    unit: int = 1,
    double: bool = True,
    alternate: bool = True,
    target: int = 0,
    kind: Kind | None = None,
) -> Walk:
    """A traversal whose addresses are multiples of ``unit`` from ``low`` to ``high``.

    ``count``: exactly so many elements; otherwise at most ``most``. With a ``kind`` the traversal
    is of that kind, and has as many elements as it likes.
    """
    loops = BY_NAME[instruction].field(f"{name}_limit").count
    if kind is not None:
        candidate = _of_kind(draw, kind, loops, target, unit)
        return placed(draw, candidate, instruction, name, low, high, unit)
    if count is None:
        counts, other = free_shape(draw, loops, most, alternate=alternate, target=target)
    else:
        counts, other = shape(draw, loops, count, alternate=alternate, target=target)
    span = (high - low) // unit
    reach = max(1, span // (2 * sum(counts)))
    reach = min(reach, draw(st.sampled_from([1, 2, 5, 64, 1000])))
    steps = tuple(unit * draw(near_edges(-reach, reach)) for _ in range(loops))
    candidate = Walk(counts, steps, alternate=other, target=target)
    candidate = replace(candidate, odd_stride=draw(st.sampled_from([0, 0, 1, -3])))
    if double and draw(st.booleans()):
        distance = unit * draw(st.integers(1, max(1, min(span // 4, 300))))
        loop = draw(st.integers(0, loops - 1))
        candidate = replace(candidate, double=(loop, distance, draw(st.integers(0, 1))))
    return placed(draw, candidate, instruction, name, low, high, unit)


def _of_kind(draw: Draw, kind: Kind, loops: int, target: int, unit: int) -> Walk:
    """A traversal of few elements and short steps, to be placed anywhere."""
    depth = kind.depth if kind.depth < 3 else draw(st.integers(3, min(loops, 4)))
    moving = set(draw(st.permutations(range(loops)))[:depth])
    if kind.alternate:
        moving = {target, *sorted(moving - {target})[: depth - 1]}
    counts = [draw(st.integers(2, 4)) if k in moving else 1 for k in range(loops)]
    steps = [draw(st.integers(0, 6)) if k in moving else 0 for k in range(loops)]
    if moving:
        first = draw(st.sampled_from(sorted(moving)))
        steps[first] = -draw(st.integers(1, 6)) if kind.backward else draw(st.integers(1, 6))
    else:
        # Never added, but a side of the mesh with a first stride of 0 would be off.
        steps[0] = draw(st.integers(1, 6))
    candidate = Walk(tuple(counts), tuple(unit * step for step in steps), target=target)
    if kind.alternate:
        loop = draw(st.integers(target + 1, loops - 1))
        shorter = draw(st.integers(1, counts[target] - 1))
        candidate = replace(candidate, alternate=(loop, shorter))
    if kind.double:
        loop = draw(st.integers(0, loops - 1))
        double = (loop, unit * draw(st.integers(1, 20)), draw(st.integers(0, 1)))
        candidate = replace(candidate, double=double)
    return replace(candidate, odd_stride=draw(st.sampled_from([0, 0, 1, -3])))


def placed(
    draw: Draw, candidate: Walk, instruction: str, name: str, low: int, high: int, unit: int
) -> Walk:
    """The same walk with a base that brings all addresses into the range."""
    offsets = [0, *(e.address for e in candidate.elements(instruction, name) if not e.prologue)]
    first, last = low - min(offsets), high - max(offsets)
    if first > last:
        # Too far for the range: walk on the spot.
        flat = replace(candidate, steps=(0,) * len(candidate.steps), double=(0, 0, 0))
        return replace(flat, base=low)
    return replace(candidate, base=first + unit * draw(near_edges(0, (last - first) // unit)))


def watchers(
    draw: Draw,
    instruction: str,
    flags: Sequence[int],
    depths: int,
    *,
    most: int | None = None,
) -> dict[str, Any]:
    """Watchers of an instruction on any of ``flags``, with depths 0 to ``depths``."""
    fields = BY_NAME[instruction]
    slots = fields.field("watcher_flag").count
    selector = (1 << fields.field("watcher_depth").width) - 1
    has_side = any(f.name == "watcher_side" for f in fields.fields)
    used = draw(st.integers(0, min(slots, most or slots)))
    chosen = set(draw(st.permutations(range(slots)))[:used])
    out: dict[str, list[int]] = {
        f"watcher_{part}": [0] * slots for part in ("flag", "depth", "expected", "stride", "valid")
    }
    if has_side:
        out["watcher_side"] = [0] * slots
    for k in sorted(chosen):
        out["watcher_valid"][k] = 1
        out["watcher_flag"][k] = draw(st.sampled_from(list(flags)))
        out["watcher_depth"][k] = draw(st.integers(0, min(depths, selector)))
        out["watcher_expected"][k] = draw(
            st.one_of(st.integers(-3, 40), st.sampled_from([-32768, 32767, -300]))
        )
        out["watcher_stride"][k] = draw(st.sampled_from([0, 1, 1, 2, 64]))
        if has_side:
            out["watcher_side"][k] = draw(st.integers(0, 1))
    if slots == 1:
        return {name: values[0] for name, values in out.items()}
    return dict(out)


def producer(draw: Draw, name: str, loops: int) -> dict[str, int]:
    """A producer with any depth that its traversal has."""
    return {
        f"{name}_increment": draw(st.integers(0, 1)),
        f"{name}_depth": draw(st.integers(0, loops)),
    }
