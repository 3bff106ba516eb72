"""All kernels by their names, and how a module of kernels registers its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from darwinn_formats.tfrt import DType, Kind

from darwinn_reference.tfrt.definition import KernelDefinition, Style
from darwinn_reference.tfrt.executor import Frame
from darwinn_reference.tfrt.values import Value

_F = TypeVar("_F", bound=Callable[..., Any])


KERNELS: dict[str, KernelDefinition] = {}
"""All kernels that the reference has."""

I1, I32, I64, F32, F64 = (
    int(kind) for kind in (DType.I1, DType.I32, DType.I64, DType.F32, DType.F64)
)
STRING = int(DType.STRING)
AGGREGATE = int(Kind.AGGREGATE)
DENSE = int(Kind.DENSE)


def kernel(
    *names: str,
    attributes: tuple[int, ...] = (),
    results: int = 1,
    host: bool = False,
    writes: int | None = None,
    fresh: bool = True,
) -> Callable[[_F], _F]:
    """Register a function of attributes and operands; a variadic one gets all operands."""

    def register(function: _F) -> _F:
        parameters = inspect.signature(function).parameters.values()
        variadic = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
        operands = None if variadic else len(parameters) - len(attributes) - host
        style = Style.HOST if host else Style.PLAIN
        for name in names:
            KERNELS[name] = KernelDefinition(
                name, function, style, attributes, operands, results, writes, fresh
            )
        return function

    return register


def frame_kernel(
    *names: str,
    attributes: tuple[int, ...] = (),
    results: int | None = None,
    repeats: bool = False,
) -> Callable[[Callable[[Frame], list[Value]]], Callable[[Frame], list[Value]]]:
    """Register a function of a frame: it calls functions, or gives results that come later."""

    def register(function: Callable[[Frame], list[Value]]) -> Callable[[Frame], list[Value]]:
        for name in names:
            KERNELS[name] = KernelDefinition(
                name, function, Style.FRAME, attributes, None, results, None, False, repeats
            )
        return function

    return register


def kernels(table: Mapping[str, Callable[..., Any]], **told: Any) -> None:
    """Register functions by names, several of one function apart by spaces; see ``kernel``."""
    for names, function in table.items():
        kernel(*names.split(), **told)(function)


def frame_kernels(table: Mapping[str, Callable[[Frame], list[Value]]], **told: Any) -> None:
    """As ``kernels``, for functions of a frame; see ``frame_kernel``."""
    for names, function in table.items():
        frame_kernel(*names.split(), **told)(function)
