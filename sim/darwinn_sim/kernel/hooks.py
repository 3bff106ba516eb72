"""Kernels that units call, chosen when the units are compiled, and of which nothing may be left.

The first argument of such a call decides by its type: a core, or what sees a run. If it has a
record that others lack (clocks, value numbers, notes), numba compiles a variant of all kernels, in
which other kernels are called, or which calls kernels where others call none.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from numba.extending import overload

from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import OPTIONS

_P = ParamSpec("_P")
_R = TypeVar("_R")
_C = TypeVar("_C", bound=state.Core)
_With = TypeVar("_With")
_Without = TypeVar("_Without")
_overload: Any = overload


def hook_of(
    record: str,
) -> Callable[[Callable[Concatenate[_C, _P], None]], Callable[Concatenate[state.Core, _P], None]]:
    """A decorator: the kernel for a core that has the field ``record``, and nothing for others."""

    def decorated(
        kernel: Callable[Concatenate[_C, _P], None],
    ) -> Callable[Concatenate[state.Core, _P], None]:
        return cast("Callable[Concatenate[state.Core, _P], None]", _chosen(record, kernel, None))

    return decorated


def either(
    record: str,
    kernel: Callable[Concatenate[_With, _P], _R],
    other: Callable[Concatenate[_Without, _P], _R] | None,
) -> Callable[Concatenate[_With | _Without, _P], _R]:
    """``kernel`` where the first argument has the field ``record``, and ``other`` where it has
    not.
    """
    chosen: Callable[Concatenate[_With | _Without, _P], _R] = _chosen(record, kernel, other)
    return chosen


def _chosen(record: str, kernel: Callable[..., Any], other: Callable[..., Any] | None) -> Any:
    def nothing(first: Any, *arguments: Any) -> None:
        """What units call; numba takes what ``choose`` gives for the type of the first argument."""

    _rename(nothing, kernel)
    with_record = _call_of(kernel)
    without = nothing if other is None else _call_of(other)

    def choose(first: Any) -> Callable[..., Any]:
        return with_record if record in first.fields else without

    _overload(nothing, jit_options={**OPTIONS, "forceinline": True})(
        lambda first, *arguments: choose(first)
    )
    return nothing


def _call_of(kernel: Callable[..., Any]) -> Callable[..., Any]:
    called: Any = kernel

    def call(first: Any, *arguments: Any) -> Any:
        return called(first, *arguments)

    _rename(call, kernel)
    return call


def _rename(function: Any, kernel: Callable[..., Any]) -> None:
    """Name a function after a kernel.

    numba names machine code by module, name, types, and a number that counts in each process. Of
    two kernels that different processes have stored, one would call the hook of the other.
    """
    source = inspect.unwrap(kernel)
    function.__module__ = source.__module__
    function.__qualname__ = f"{source.__qualname__}.{function.__name__}"
    # It compares signatures, annotations included.
    function.__annotations__ = {}
