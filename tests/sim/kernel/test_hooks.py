"""Hooks: compiled where a core has what they are for, under a name of their own."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from darwinn_sim.kernel.hooks import hook_of

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


call_both, call_other = _numba.njit(_call_both), _numba.njit(_call_other)


def test_a_hook_does_nothing_to_a_core_without_its_record() -> None:
    with_record, without = np.zeros(1, RECORD), np.zeros(1, OTHER)
    call_both(with_record[0])
    call_both(without[0])
    assert with_record["seen"][0] == 2 and without["count"][0] == 0


def test_machine_code_of_hooks_has_the_names_of_their_kernels() -> None:
    """numba numbers functions of one name in each process anew: stored kernels of two processes
    would call each other's hooks."""
    call_other(np.zeros(1, RECORD)[0])
    (text,) = call_other.inspect_llvm().values()
    called = {word for word in text.split() if word.startswith("@_ZN") and "call" in word}
    assert any("counts_back" in each for each in called)
    assert not any("lambda" in word for word in text.split())
