"""Hooks: compiled where a core has what they are for, under a name of their own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from darwinn_sim.kernel.hooks import either, hook_of

_numba: Any = numba
RECORD: Any = np.dtype([("count", "i8"), ("seen", "i8")], align=True)
OTHER: Any = np.dtype([("count", "i8")], align=True)


def _counts(core: Any, step: int) -> None:
    core.seen += step


def _counts_back(core: Any, step: int) -> None:
    core.seen -= step


one, other = hook_of("seen")(_numba.njit(_counts)), hook_of("seen")(_numba.njit(_counts_back))


def _call_both(core: Any) -> None:
    one(core, 3)
    other(core, 1)


def _call_other(core: Any) -> None:
    other(core, 1)


class Plain(NamedTuple):
    counts: Any


class Noted(NamedTuple):
    counts: Any
    notes: Any


def _computes(plain: Any, number: int) -> int:
    return int(plain.counts[0] + number)


def _notes(noted: Any, number: int) -> int:
    noted.notes[0] = number
    return -1


takes = either("notes", _numba.njit(_notes), _numba.njit(_computes))
only_notes = either("notes", _numba.njit(_notes), None)


def _take(first: Any) -> int:
    only_notes(first, 8)
    number: int = takes(first, 7)
    return number


take = _numba.njit(_take)


call_both, call_other = _numba.njit(_call_both), _numba.njit(_call_other)


def test_a_hook_does_nothing_to_a_core_without_its_record() -> None:
    with_record, without = np.zeros(1, RECORD), np.zeros(1, OTHER)
    call_both(with_record[0])
    call_both(without[0])
    assert with_record["seen"][0] == 2 and without["count"][0] == 0


def test_one_kernel_or_the_other_is_called_by_the_type_of_the_first_argument() -> None:
    plain, noted = Plain(np.full(1, 30)), Noted(np.full(1, 30), np.zeros(1, np.int64))
    assert take(plain) == 37
    assert take(noted) == -1 and noted.notes[0] == 7
    # numba writes how long a name is before it.
    texts = {str(each).count("Noted") > 0: text for each, text in take.inspect_llvm().items()}
    assert "_notes4call" in texts[True] and "_computes4call" not in texts[True]
    assert "_computes4call" in texts[False] and "_notes4call" not in texts[False]


def test_machine_code_of_hooks_has_the_names_of_their_kernels() -> None:
    """numba numbers functions of one name in each process anew: stored kernels of two processes
    would call each other's hooks."""
    call_other(np.zeros(1, RECORD)[0])
    (text,) = call_other.inspect_llvm().values()
    called = {word for word in text.split() if word.startswith("@_ZN") and "call" in word}
    assert any("counts_back" in each for each in called)
    assert not any("lambda" in word for word in text.split())
