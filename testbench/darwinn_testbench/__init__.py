"""CPU references, output comparison, reports and the ``darwinn`` command.

What most programs begin with can be imported from here; it is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from darwinn_testbench.version import __version__

if TYPE_CHECKING:
    from darwinn_formats.errors import FormatError
    from darwinn_reference.errors import ModelError
    from darwinn_sim.errors import SimulationError
    from darwinn_sim.machine.examine import StopPoint, Tap

    from darwinn_testbench.chip.cycles import measure as cycles
    from darwinn_testbench.chip.execution import run
    from darwinn_testbench.chip.inspection import inspect
    from darwinn_testbench.chip.model import open_models
    from darwinn_testbench.chip.session import Device, Session
    from darwinn_testbench.comparison.verify import verify
    from darwinn_testbench.device.interpreter import Interpreter
    from darwinn_testbench.difference.difference import difference as diff
    from darwinn_testbench.errors import InputError
    from darwinn_testbench.explain.explain import explain
    from darwinn_testbench.layers.view import view_layers as layers
    from darwinn_testbench.profile.profile import profile

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
    "cycles",
    "diff",
    "explain",
    "inspect",
    "layers",
    "open_models",
    "profile",
    "run",
    "verify",
]

_HOMES = {
    "Device": "darwinn_testbench.chip.session.Device",
    "FormatError": "darwinn_formats.errors.FormatError",
    "InputError": "darwinn_testbench.errors.InputError",
    "Interpreter": "darwinn_testbench.device.interpreter.Interpreter",
    "ModelError": "darwinn_reference.errors.ModelError",
    "Session": "darwinn_testbench.chip.session.Session",
    "SimulationError": "darwinn_sim.errors.SimulationError",
    "StopPoint": "darwinn_sim.machine.examine.StopPoint",
    "Tap": "darwinn_sim.machine.examine.Tap",
    "cycles": "darwinn_testbench.chip.cycles.measure",
    "diff": "darwinn_testbench.difference.difference.difference",
    "inspect": "darwinn_testbench.chip.inspection.inspect",
    "open_models": "darwinn_testbench.chip.model.open_models",
    "run": "darwinn_testbench.chip.execution.run",
    "verify": "darwinn_testbench.comparison.verify.verify",
}
"""Where what is not here yet comes from."""

_FOLDERS = ("explain", "layers", "profile")
"""Folders that are called as functions (``called``)."""


def __getattr__(name: str) -> Any:
    if name in _FOLDERS:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _HOMES[name].rpartition(".")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    """What a user completes: the public names, and what every module has."""
    return sorted({*__all__, *filter(_is_special, globals())})


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
