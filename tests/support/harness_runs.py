"""Runs cocotb tests of the harness from pytest; skips where the toolchain is not installed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from darwinn_testbench.rtl import toolchain

if TYPE_CHECKING:
    from darwinn_testbench.rtl.build import Design

COCOTB_TESTS = tuple(
    Path(__file__).parents[1] / "rtl" / folder for folder in ("dma", "tile", "chip")
)
"""Folders of the modules that run inside of simulations."""


def require_toolchain(*, waves: bool = False) -> None:
    """Skip the test, with the way to get it, where something is missing (for waves as well)."""
    missing = toolchain.missing(waves=waves)
    if missing:
        pytest.skip("no RTL toolchain: " + "; ".join(missing))


def design(top: str = "harness", c_sources: tuple[str, ...] = (), /, **parameters: int) -> Design:
    """The harness, or another top module around it, with parameters of choice."""
    require_toolchain()
    from darwinn_testbench.rtl.build import Design

    return Design(top, parameters, registers=True, c_sources=c_sources)


def run(
    chosen: Design, module: str, test: str, work: Path, *, seed: int, **environment: object
) -> Path:
    """Run one cocotb test in a process of its own; its random choices depend on ``seed`` alone."""
    from darwinn_testbench.rtl.build import simulate

    sys.path += [str(folder) for folder in COCOTB_TESTS if str(folder) not in sys.path]
    text = {name: str(value) for name, value in environment.items()}
    return simulate(chosen, module, test, seed=seed, work=work, environment=text)
