"""Coverage of traversals: depth, sign of strides, double buffer and alternate limit, crossed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from darwinn_sim.isa.strides import steps
from functional_coverage import Coverage
from stimulus import KINDS, Kind

_LOOPS = ("no loop", "1 loop", "2 loops", "3 loops or more")


def bins(*traversals: str) -> tuple[str, ...]:
    """The whole cross for each of ``traversals``."""
    return tuple(_bin(name, kind) for name in traversals for kind in KINDS)


def cover(coverage: Coverage, fields: Mapping[str, Any], name: str, *, target: int = 0) -> None:
    """Count traversal ``name`` of an instruction; one that never moves is in no bin of the cross.

    ``target`` is the loop that the alternate limit shortens.
    """
    limit = np.array(fields[f"{name}_limit"])
    step = steps(np.array(fields[f"{name}_stride"]), limit, np.array(fields[f"{name}_mask"]))
    moves = step[limit > 0]
    kind = Kind(
        min(len(moves), 3),
        bool((moves < 0).any()),
        bool(fields[f"{name}_double_offset"]),
        fields[f"{name}_alternate_loop"] > target
        and bool(fields[f"{name}_alternate_limit"] < limit[target]),
    )
    coverage.hit(_bin(name, kind), when=not len(moves) or moves.any())


def _bin(name: str, kind: Kind) -> str:
    buffer = "double buffer" if kind.double else "single buffer"
    if not kind.depth:
        return f"{name}: {_LOOPS[0]}, {buffer}"
    sign = "backward" if kind.backward else "forward"
    limit = "alternate limit" if kind.alternate else "one limit"
    return f"{name}: {_LOOPS[kind.depth]}, {sign}, {buffer}, {limit}"
