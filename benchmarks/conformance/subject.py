"""What is compared: a program, how it is called, and how far results may be apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True)
class Call:
    """Inputs of one call of a function; of None, the only one or ``forward``."""

    inputs: Sequence[NDArray[Any]]
    function: str | None = None


@dataclass(frozen=True)
class Subject:
    """A program with its calls, one after another on one instance.

    Attributes:
        data: the file of the program.
        calls: the calls.
        policy: how far float results may be apart, by the name of a policy; the rest is exact.
        beside: files of external data, by name.
    """

    data: bytes
    calls: Sequence[Call]
    policy: str = "float32-reassociated"
    beside: Mapping[str, bytes] = field(default_factory=dict)


Maker = Callable[[], Subject]
"""Makes a program; what it needs is imported when it is called."""
