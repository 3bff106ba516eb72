"""Constants of the chip and sizes of the harness as SystemVerilog packages, and as a C++ header.

``chip_pkg`` has the constants of :mod:`darwinn_sim.chip`, the sizes of the chip that this process
simulates, and ``harness_pkg`` those of the timing models. So RTL and models cannot disagree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from darwinn_sim import chip
from darwinn_sim.chips.description import read_chip
from darwinn_sim.chips.selected import selected

from darwinn_rtl.harness import NAME, HarnessDescription, harness_chip

RATIO = "memory_clock_ratio"
"""The size that decides whether a tile's memories are arrays or block RAM."""

_SIZES = (
    "ring_row_cycles",
    "outfeed_rows",
    "mesh_fifo_words",
    "tile_queue",
    "unit_queue",
    "scalar_queue",
    RATIO,
)
"""Parameters of the harness's chip description that the RTL takes. The others (cycles of its
pipelines) follow from the RTL's sources."""

_OF_THE_MODEL = frozenset(
    {"RING_FIFO_ROWS", "MESH_FIFO_WORDS", "UNIT_QUEUE", "TILE_QUEUE", "HOST_FIFO_BYTES"}
)
"""Capacities of the functional model on which results do not depend; the harness has its own."""


def packages(changed: Mapping[str, int] | None = None) -> dict[str, str]:
    """Source text of each package by its name; sizes of the harness may be ``changed``."""
    harness = asdict(HarnessDescription()) | harness_sizes() | dict(changed or {})
    return {
        "chip_pkg": _package("chip_pkg", "darwinn_sim.chip", _of_the_chip()),
        "harness_pkg": _package("harness_pkg", "the description of the harness", harness),
    }


def harness_sizes() -> dict[str, int]:
    """The part of the chip description that the RTL takes."""
    harness = harness_chip()
    return {name: int(getattr(harness, name).value) for name in _SIZES}


def differences() -> tuple[tuple[str, int], ...]:
    """The sizes of this process's chip that are not those of the built-in harness."""
    built_in, own = read_chip(NAME), harness_chip()
    chip_sizes = selected().sizes
    return (
        *(
            (name, chip_sizes[name])
            for name in chip_sizes
            if chip_sizes[name] != built_in.sizes[name]
        ),
        *(
            (name, int(getattr(own, name).value))
            for name in _SIZES
            if getattr(own, name) != getattr(built_in, name)
        ),
    )


HEADER = "chip_sizes.h"
"""File name of the header."""


def header() -> str:
    """Source text of the header: the constants of ``chip_pkg``, for the C++ around the RTL."""
    lines = [
        "// Generated from darwinn_sim.chip; do not edit.",
        "#pragma once",
        "namespace chip_sizes {",
        *(f"constexpr int {_constant(key)} = {value};" for key, value in _of_the_chip().items()),
        "}  // namespace chip_sizes",
    ]
    return "\n".join(lines) + "\n"


def _of_the_chip() -> dict[str, int]:
    return {name: value for name, value in chip.constants().items() if name not in _OF_THE_MODEL}


def _package(name: str, source: str, constants: Mapping[str, int]) -> str:
    lines = [
        f"// Generated from {source}; do not edit.",
        f"package {name};",
        *(f"  localparam int {_constant(key)} = {value};" for key, value in constants.items()),
        f"endpackage : {name}",
    ]
    return "\n".join(lines) + "\n"


def _constant(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
