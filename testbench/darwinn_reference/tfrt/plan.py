"""Functions as the executor wants them: kernels resolved and bound, everything in flat arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from darwinn_formats.tfrt import FunctionKind, Location

from darwinn_reference.tfrt.definition import KernelDefinition

NativeFunction = Callable[..., Any]
"""A function of operands; gives the result, a tuple of several, or None; raises KernelError."""

GENERAL: Final = -1
"""The way of a kernel that cannot be called simply with its operands."""


class Step(NamedTuple):
    """A kernel as the executor's loop wants it.

    ``way`` is the number of operands of a kernel that gives at most one result, which is there
    at once and is not returned by the function; GENERAL for all other kernels. ``result`` is -1
    where the result is not used.
    """

    way: int
    call: Callable[..., Any]
    arguments: tuple[int, ...]
    operands: tuple[int, ...]
    result: int
    users: tuple[int, ...]


@dataclass(slots=True)
class KernelPlan:
    """What else is to be known of a kernel."""

    number: int
    definition: KernelDefinition
    call: Callable[..., Any]
    passed: tuple[int, ...]
    operands: tuple[int, ...]
    attributes: tuple[Any, ...]
    functions: tuple[FunctionPlan, ...]
    results: tuple[int, ...]
    used_by: tuple[tuple[int, ...], ...]
    location: Location | None
    location_offset: int


@dataclass(slots=True)
class FunctionPlan:
    """A function; number 0 of the lists by kernel is the pseudo kernel.

    ``uses`` counts operands that read a register; ``returned`` are the registers that the
    function returns; ``fresh`` says of each register whether its value is known to be a new one.
    """

    name: str
    kind: FunctionKind
    argument_types: tuple[str, ...]
    result_types: tuple[str, ...]
    native: NativeFunction | None = None
    counts: list[int] = field(default_factory=list)
    streams: list[int] = field(default_factory=list)
    uses: list[int] = field(default_factory=list)
    entry_used_by: tuple[tuple[int, ...], ...] = ()
    returned: tuple[int, ...] = ()
    steps: list[Step] = field(default_factory=list)
    kernels: list[KernelPlan] = field(default_factory=list)
    fresh: list[bool] = field(default_factory=list)
