"""Watchers that are let pass exactly as often as they wait, or once less: every watcher of an
instruction, every depth, every flag, and every bit of what is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from darwinn_sim.isa.table import BY_NAME

_EXPECTED = 0x1234
_STRIDES = (0x5555, 0x2AAA)
_EACH_FLAG = ((-1, 0xFFFF, True), (1, 0, False), (5, 5, True))
"""What is awaited, the flag, and whether it passes: were any bit of the flag 0 or 1, it would not,
or would; and were it another flag, of which all are 0, it would not either."""


@dataclass(frozen=True)
class Wait:
    """Fields of the watchers of an instruction, and the flag that one of them waits for."""

    fields: dict[str, Any]
    flag: int
    value: int
    passes: bool

    @property
    def flags(self) -> dict[int, int]:
        """Values of flags by their numbers."""
        return {self.flag: self.value}


def exact_waits(
    name: str, sides: Sequence[str], flags: int, begins: Callable[[str, int], int]
) -> Iterator[Wait]:
    """Of instruction ``name``, whose traversals are ``sides``; as many blocks of a depth begin with
    elements of a traversal as ``begins`` says. ``flags``: how many there are."""
    watchers = BY_NAME[name].field("watcher_valid").count
    depths = range(1 << BY_NAME[name].field("watcher_depth").width)
    places = list(product(range(watchers), enumerate(sides)))
    for (watcher, (side, traversal)), depth in product(places, depths):
        flag = (len(depths) * watcher + depth) % flags
        more = begins(traversal, depth) - 1
        for stride in _STRIDES:
            stride >>= more.bit_length() if more > 1 else 0  # 16 bits compare as signed numbers
            fields = _fields(name, watcher, side, flag, depth, _EXPECTED, stride)
            enough = _EXPECTED + stride * more
            yield Wait(fields, flag, enough, passes=True)
            yield Wait(fields, flag, enough - 1, passes=False)
    for flag in range(flags):
        watcher, (side, _) = places[flag % len(places)]
        for expected, value, passes in _EACH_FLAG:
            fields = _fields(name, watcher, side, flag, depths[-1], expected, 0)
            yield Wait(fields, flag, value, passes)


def _fields(
    name: str, watcher: int, side: int, flag: int, depth: int, expected: int, stride: int
) -> dict[str, Any]:
    values = {
        "valid": 1,
        "side": side,
        "flag": flag,
        "depth": depth,
        "expected": expected,
        "stride": stride,
    }
    found: dict[str, Any] = {}
    for field in BY_NAME[name].fields:
        part = field.name.removeprefix("watcher_")
        if part in values and part != field.name:
            here = [values[part] * (k == watcher) for k in range(field.count)]
            found[field.name] = here if field.count > 1 else here[0]
    return found
