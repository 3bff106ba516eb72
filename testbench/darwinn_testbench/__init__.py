"""CPU references, output comparison, reports and the ``darwinn`` command.

What most programs begin with can be imported from here; it is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from darwinn_sim.examine import StopPoint, Tap

    from darwinn_testbench.execution import Session
    from darwinn_testbench.model import open_models

__all__ = ["Session", "StopPoint", "Tap", "open_models"]
__version__ = "0.1.0"

_HOMES = {
    "Session": "darwinn_testbench.execution",
    "StopPoint": "darwinn_sim.examine",
    "Tap": "darwinn_sim.examine",
    "open_models": "darwinn_testbench.model",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
