"""Which activations belong to the first and to the last group of results of an instruction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel.structure import Records
from darwinn_sim.units import marks
from darwinn_sim.units.tables import Tables
from darwinn_sim.units.tensor_cells import MAC
from darwinn_sim.units.tensor_records import Segment

Places = NDArray[np.int64]
_Number = TypeVar("_Number", bound=np.integer)

_MANY = 1 << 12
_SPREAD = 4
"""Places between the least and the greatest value, for each of the values."""


def distinct(values: NDArray[_Number]) -> NDArray[_Number]:
    """As ``np.unique``, which looks each of them up in a table: ten times as long for most here.

    Many of few are marked instead of sorted, which takes a tenth of that again.
    """
    if len(values) > _MANY:
        least = int(values.min())
        places = int(values.max()) - least + 1
        if places <= _SPREAD * len(values):
            there = np.zeros(places, np.bool_)
            there[values - least] = True
            return (np.flatnonzero(there) + least).astype(values.dtype)
    ordered = np.sort(values)
    found: NDArray[_Number] = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return found


def group_operands(tables: Tables, row: int) -> Places:
    """Byte addresses of the activations that the first group of results takes, in order.

    ``row`` is that of a tensor instruction. A group is what one run of sums gives, or several that
    partial sums join.
    """
    begin = int(tables.tensor_plan.place[row]["iteration"])
    return tables.tensor_plan.operand[begin + group_iterations(tables, row)].astype(np.int64)


def group_iterations(tables: Tables, row: int, *, last: bool = False) -> Places:
    """Iterations of the instruction that belong to the first (last) group of results, in order."""
    instruction, place = tables.tensor[row], tables.tensor_plan.place[row]
    main = instruction["main"]
    sizes = [int(limit) + 1 for limit in main["limit"][: int(main["loops"])]]
    if main["alternate_loop"] or math.prod(sizes) != int(place["iterations"]):
        return _run_of_sums(tables, row, last)
    chosen = np.zeros(1, np.int64)
    step = 1
    for loop, size in enumerate(sizes):
        if size == 1:
            continue
        if instruction["reduction_loops"] >> loop & 1:
            chosen = np.add.outer(step * np.arange(size), chosen).ravel()
        elif last:
            chosen += step * (size - 1)
        step *= size
    return chosen


def _run_of_sums(tables: Tables, row: int, last: bool) -> Places:
    """Iterations of the first or last run of sums."""
    segments = _segments(tables, row)
    ends = (segments["first"] + segments["count"])[segments["ends"] != 0].astype(np.int64)
    begin = ends[-2] if last and len(ends) > 1 else 0
    return np.arange(begin, ends[-1] if last else ends[0])


def _segments(tables: Tables, row: int) -> Records[Segment]:
    place = tables.tensor_plan.place[row]
    first = int(place["segment"])
    return tables.tensor_plan.segment[first : first + int(place["segments"])]


Groups = Mapping[int, tuple[Places, Places]]
"""Iterations of the first and of the last group of results, by where those of the instruction begin
in the plan."""


def groups(tables: Tables) -> Groups:
    """The groups of the instructions that multiply; those that walk alike share theirs."""
    (rows,) = np.nonzero(tables.tensor["opcode"] == MAC)
    begins, which = np.unique(tables.tensor_plan.place["iteration"][rows], return_index=True)
    return {
        begin: (group_iterations(tables, row), group_iterations(tables, row, last=True))
        for begin, row in zip(begins.tolist(), rows[which].tolist(), strict=True)
    }


def in_groups(tables: Tables, found: Groups) -> NDArray[np.uint8]:
    """To which groups each iteration of the plan belongs: bits of ``units.marks``."""
    bits = np.zeros(len(tables.tensor_plan.operand), np.uint8)
    for begin, (first, last) in found.items():
        bits[begin + first] |= np.uint8(marks.FIRST_GROUP)
        bits[begin + last] |= np.uint8(marks.LAST_GROUP)
    return bits
