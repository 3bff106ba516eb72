"""Sizes and indices of generated inputs that a program does not state: found by calling it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_reference.arrays import AnyArray
from darwinn_reference.protocol import Port, Reference

from darwinn_testbench.chip.inputs import TensorPort

_OPEN_SIZE = 1
"""Size of generated inputs in a dimension for which no greater one was found."""
_TRIED_SIZES = (8, 4, 3, 2)
"""Sizes that are tried in turn where a program leaves a size open and names no bound."""
_MOST_PROBED = 1 << 21
"""Elements of all inputs of a program whose sizes and indices are looked for: each takes a call."""
_MOST_PROBES = 4
_SECONDS = 20.0
"""For which indices are looked for."""


def settled_ports(program: Reference, ports: Sequence[Port], function: str | None) -> list[Port]:
    """The ports with sizes where the program states no bound, and with limits of what it indexes.

    Sizes are the greatest of a few that the program takes, the same in every open dimension; they
    stand as ``bounds``. An integer is an index if the program faults with the greatest number of
    its type and not with 0: its limit is where faults begin.
    """
    known = all(port.shape is not None and port.dtype is not None for port in ports)
    if not known:
        return list(ports)
    found = _opened(program, ports, function)
    if _elements(found) > _MOST_PROBED:
        return found
    end = time.monotonic() + _SECONDS
    for number, port in enumerate(found):
        if _may_index(port):
            limit = _limit(program, found, number, function, end)
            found[number] = replace(port, limit=limit)
    return found


def _opened(program: Reference, ports: Sequence[Port], function: str | None) -> list[Port]:
    if not any(port.bounds is None and None in (port.shape or ()) for port in ports):
        return list(ports)
    for size in _TRIED_SIZES:
        tried = [_of_size(port, size) for port in ports]
        if _elements(tried) <= _MOST_PROBED and _takes(program, map(_zeros, tried), function):
            return tried
    return list(ports)


def _of_size(port: Port, size: int) -> Port:
    if port.bounds is not None or port.shape is None or None not in port.shape:
        return port
    return replace(port, bounds=tuple(size if each is None else each for each in port.shape))


def _may_index(port: Port) -> bool:
    """Whether a port is of plain integers, of which the program does not say what they index.

    A single number is rather a count of steps, with which a program may run for long.
    """
    is_integer = port.dtype is not None and port.dtype.kind in "iu" and bool(port.shape)
    return is_integer and port.limit is None and port.scale is None and port.steps is None


def _limit(
    program: Reference, ports: Sequence[Port], number: int, function: str | None, end: float
) -> int | None:
    """The least number with which the program faults, if it does not with 0; else None.

    None also if it is not found before ``end``.
    """
    port = ports[number]
    assert port.dtype is not None

    def faults(value: int) -> bool:
        given = [_zeros(each) for each in ports]
        given[number] = np.full_like(given[number], value)
        return not _takes(program, given, function)

    low, high = 0, int(np.iinfo(port.dtype).max)
    if not faults(high) or faults(low):
        return None
    while high - low > 1:
        if time.monotonic() > end:
            return None
        middle = (low + high) // 2
        low, high = (low, middle) if faults(middle) else (middle, high)
    return high


def smaller_ports(program: Reference, ports: Sequence[Port], function: str | None) -> list[Port]:
    """The ports in smaller sizes that the program takes, where it bounds sizes; else none.

    Of the bounds in a file some are the only size. So each bound is halved wherever it stands, and
    the program called with zeros.
    """
    bounded = [port.bounds or () for port in ports]
    known = all(port.shape is not None and port.dtype is not None for port in ports)
    if not any(bounded) or not known or sum(map(math.prod, bounded)) > _MOST_PROBED:
        return []
    found = list(ports)
    sizes = sorted({size for bounds in bounded for size in bounds if size > 1}, reverse=True)
    for size in sizes[:_MOST_PROBES]:
        tried = [_halved(port, size) for port in found]
        if _takes(program, map(_zeros, tried), function):
            found = tried
    return found if found != list(ports) else []


def _takes(program: Reference, inputs: Iterable[AnyArray], function: str | None) -> bool:
    """Whether a call of a program as it was loaded does not fault."""
    try:
        program.run(list(inputs), function=function)
    except ExecutionError:
        return False
    finally:
        program.reset()
    return True


def _elements(ports: Sequence[Port]) -> int:
    return sum(math.prod(reading_port(port).shape) for port in ports)


def _halved(port: Port, size: int) -> Port:
    """The port with a bound of this size halved, as its shape."""
    if port.bounds is None:
        return port
    shape = reading_port(port).shape
    together = zip(shape, port.bounds, strict=True)
    halved = tuple(-(-own // 2) if own == bound == size else own for own, bound in together)
    return replace(port, shape=halved)


def _zeros(port: Port) -> AnyArray:
    return np.zeros(reading_port(port).shape, port.dtype)


def reading_port(port: Port) -> TensorPort:
    """The port for what reads files: with a size and a type where they are open."""
    bounds = port.bounds or (_OPEN_SIZE,) * len(port.shape or ())
    together = zip(port.shape or (), bounds, strict=True)
    shape = tuple(bound if size is None else size for size, bound in together)
    dtype = np.dtype(np.uint8) if port.dtype is None else port.dtype
    known = port.scale or 0.0, port.zero_point or 0
    limits = None if port.limit is None or not port.limit else (0, port.limit - 1)
    return TensorPort(port.name, shape, dtype, *known, limits=limits, steps=port.steps)
