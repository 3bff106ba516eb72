"""The RTL's tile for tests: one for the whole process."""

from __future__ import annotations

from functools import cache
from typing import Any

from harness_runs import require_toolchain


@cache
def rtl_tile(memory_clock_ratio: int | None = None) -> Any:
    """The tile of this process; building it takes half a minute if it is not there yet.

    With a ratio of more than 1 its memories are block RAM.
    """
    require_toolchain()
    from darwinn_rtl.tile.bench import TileBench

    return TileBench(seed=2026, memory_clock_ratio=memory_clock_ratio)
