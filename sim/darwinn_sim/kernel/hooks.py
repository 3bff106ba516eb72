"""Hooks that units call, of which nothing is compiled where nobody asks for them.

A core that carries a further record (clocks, value numbers) is of another type. For it numba
compiles a variant of all kernels in which the hooks of that record do something.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from numba.extending import overload

from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import OPTIONS

_P = ParamSpec("_P")
_C = TypeVar("_C", bound=state.Core)
_overload: Any = overload


def hook_of(
    record: str,
) -> Callable[[Callable[Concatenate[_C, _P], None]], Callable[Concatenate[state.Core, _P], None]]:
    """A decorator: the kernel for a core that has the field ``record``, and nothing for others."""

    def decorated(
        kernel: Callable[Concatenate[_C, _P], None],
    ) -> Callable[Concatenate[state.Core, _P], None]:
        def nothing(core: Any, *arguments: Any) -> None:
            """What units call; numba takes what ``choose`` gives for the type of their core."""

        called: Any = kernel

        def call(core: Any, *arguments: Any) -> None:
            called(core, *arguments)

        # numba names machine code by module, name, types, and a number that counts in each process.
        # Of two kernels that different processes have stored, one would call the hook of the other.
        function = inspect.unwrap(kernel)
        for each in (call, nothing):
            each.__module__ = function.__module__
            each.__qualname__ = f"{function.__qualname__}.{each.__name__}"
            # It compares signatures, annotations included.
            each.__annotations__ = {}

        def choose(core: Any) -> Callable[..., None]:
            return call if record in core.fields else nothing

        _overload(nothing, jit_options={**OPTIONS, "forceinline": True})(
            lambda core, *arguments: choose(core)
        )
        return cast("Callable[Concatenate[state.Core, _P], None]", nothing)

    return decorated
