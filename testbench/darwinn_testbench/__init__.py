"""CPU references, output comparison, reports and the ``darwinn`` command.

What most programs begin with can be imported from here; it is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from darwinn_testbench.version import __version__

if TYPE_CHECKING:
    from darwinn_sim.machine.examine import StopPoint, Tap

    from darwinn_testbench.chip.model import open_models
    from darwinn_testbench.chip.session import Session
    from darwinn_testbench.device.interpreter import Interpreter

__all__ = ["Interpreter", "Session", "StopPoint", "Tap", "__version__", "open_models"]

_HOMES = {
    "Interpreter": "darwinn_testbench.device.interpreter",
    "Session": "darwinn_testbench.chip.session",
    "StopPoint": "darwinn_sim.machine.examine",
    "Tap": "darwinn_sim.machine.examine",
    "open_models": "darwinn_testbench.chip.model",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
