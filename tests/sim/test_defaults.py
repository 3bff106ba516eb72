"""What holds where nothing is said: a part of the interface, as docs/library.md uses it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from darwinn_sim.accelerator import Accelerator, compile_kernels
from darwinn_sim.analysis.provenance import trace
from darwinn_sim.device.chip import Chip
from darwinn_sim.device.run import ProgramRun
from darwinn_sim.host.driver import Driver
from darwinn_sim.host.memory import HostMemory, Region
from darwinn_sim.host.register_file import RegisterFile
from darwinn_sim.isa.builder import frame, traversal
from darwinn_sim.lifting.program import LiftedProgram
from darwinn_sim.machine.lowering import lower, patch
from darwinn_sim.machine.programs import Programs
from darwinn_sim.timing.event_model import simulate, simulate_program

USUAL: dict[str, object] = {
    "strict": False,
    "seed": 0,
    "dma_only": False,
    "hazards": False,
    "numbered": False,
    "assumptions": True,
}
"""Of a chip: nothing is checked that takes time, and everything is executed that has a rule."""

DEFAULTS: dict[Callable[..., Any], dict[str, object]] = {
    Accelerator: USUAL,
    Accelerator.run: {"taps": (), "as_far_as_it_goes": False, "number": 0},
    Chip: USUAL | {"by_usb": False},
    Driver: {"seed": 0, "scatter": True},
    HostMemory: {"strict": False},
    HostMemory.allocate: {"page_offset": 0},
    LiftedProgram.inputs_at_once: {"threads": 1},
    LiftedProgram.run: {"threads": 1},
    ProgramRun: {"recognised": False},
    Programs: {"dma_only": False, "assumptions": True},
    Region.store: {"offset": 0},
    RegisterFile.read: {"width": 64},
    RegisterFile.write: {"width": 64},
    compile_kernels: {"hazards": False},
    frame: {"last": True},
    lower: {"dma_only": False, "assumptions": True, "addresses": True},
    patch: {"assumptions": True},
    simulate: {"spans": False, "assumptions": True},
    simulate_program: {"spans": False},
    trace: {"seed": 0, "assumptions": True},
    traversal: {"double": (0, 0), "alternate": (0, 0)},
}


@pytest.mark.parametrize("called", DEFAULTS, ids=lambda called: str(called.__qualname__))
def test_what_holds_where_nothing_is_said(called: Callable[..., Any]) -> None:
    parameters = inspect.signature(called).parameters
    expected = DEFAULTS[called]
    assert {name: parameters[name].default for name in expected} == expected
    others = [
        each.name
        for each in parameters.values()
        if each.name not in expected and isinstance(each.default, bool | tuple)
    ]
    assert not others
