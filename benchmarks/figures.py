"""Figures that a program found, for a page that follows them from run to run.

Who wants them sets ``DARWINN_FIGURES`` to a file's path; without it nothing is kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

FIGURES_VARIABLE = "DARWINN_FIGURES"
"""Environment variable: the file that figures are written to."""


def keep_figures(figures: Mapping[str, float]) -> None:
    """Write figures by name, with their units in it, where somebody wants them."""
    path = os.environ.get(FIGURES_VARIABLE)
    if path:
        Path(path).write_bytes(msgspec.json.encode(figures))


def kept_figures(path: Path) -> dict[str, float]:
    """What was kept; nothing where nothing was, or where it was cut short."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, float])
    except (OSError, msgspec.DecodeError):
        return {}
