"""What executes a program."""

from __future__ import annotations

from enum import StrEnum


class Engine(StrEnum):
    """The choices of ``--engine``."""

    MODEL = "model"
    """The project's own: the simulated chip, and the CPU references of other formats."""
    ORIGINAL = "original"
    """The original runtime of a program of another format, where it is installed."""
    RTL = "rtl"
    """The simulated chip in SystemVerilog, run beside the model (docs/rtl.md)."""
