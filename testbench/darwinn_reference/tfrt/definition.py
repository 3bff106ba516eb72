"""What a kernel is: how it is called, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any


class Style(Enum):
    """How a kernel is called.

    PLAIN: attributes, then operands; gives the result, a tuple of several, or None.
    HOST: the host, then as PLAIN.
    FRAME: a Frame; gives the list of results, which may be errors or values that come later.
    """

    PLAIN = auto()
    HOST = auto()
    FRAME = auto()


@dataclass(frozen=True, slots=True)
class KernelDefinition:
    """A kernel.

    Attributes:
        name: by which files call it.
        call: its function.
        style: how that is called.
        attributes: types of the attributes, in alphabetical order of their names.
        operands: how many are passed on; operands beyond only order. None passes on all.
        results: how many; None where it depends on the call.
        writes: the operand, a tensor, that the kernel fills; None if it fills none.
        fresh: whether results are new values, and not those of operands.
        repeats: whether there may be any number of attributes, all of the one type.
    """

    name: str
    call: Callable[..., Any]
    style: Style
    attributes: tuple[int, ...]
    operands: int | None
    results: int | None
    writes: int | None = None
    fresh: bool = True
    repeats: bool = False
