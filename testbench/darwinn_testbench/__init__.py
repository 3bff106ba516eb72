"""CPU references, output comparison, reports and the ``darwinn`` command.

What most programs begin with can be imported from here; it is loaded when it is first asked for.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from darwinn_testbench.moved import MovedModules
from darwinn_testbench.version import __version__

if TYPE_CHECKING:
    from darwinn_formats.errors import FormatError
    from darwinn_reference.errors import ModelError
    from darwinn_sim.errors import SimulationError
    from darwinn_sim.machine.examine import StopPoint, Tap

    from darwinn_testbench.chip.model import open_models
    from darwinn_testbench.chip.session import Device, Session
    from darwinn_testbench.device.interpreter import Interpreter
    from darwinn_testbench.errors import InputError

__all__ = [
    "Device",
    "FormatError",
    "InputError",
    "Interpreter",
    "ModelError",
    "Session",
    "SimulationError",
    "StopPoint",
    "Tap",
    "__version__",
    "open_models",
]

_HOMES = {
    "Device": "darwinn_testbench.chip.session",
    "FormatError": "darwinn_formats.errors",
    "InputError": "darwinn_testbench.errors",
    "Interpreter": "darwinn_testbench.device.interpreter",
    "ModelError": "darwinn_reference.errors",
    "Session": "darwinn_testbench.chip.session",
    "SimulationError": "darwinn_sim.errors",
    "StopPoint": "darwinn_sim.machine.examine",
    "Tap": "darwinn_sim.machine.examine",
    "open_models": "darwinn_testbench.chip.model",
}

sys.meta_path.insert(0, MovedModules)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
