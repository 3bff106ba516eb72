"""With what a page was made: versions, the machine, the parameters of the chip."""

from __future__ import annotations

import platform
import sys

from darwinn_testbench.pages import Section, Table
from darwinn_testbench.profile.profile import ProfileFigures
from darwinn_testbench.version import __version__, version_of

_LIBRARIES = ("numpy", "numba", "ai-edge-litert", "vl-convert-python")


def environment(found: ProfileFigures) -> Section:
    """The last section of a page with times."""
    timing = found.profiled.timing
    parameters = {
        **timing.chip.as_json(),
        **({} if timing.host is None else timing.host.as_json()),
    }
    rows: list[tuple[object, ...]] = [
        ("darwinn-testbench", __version__, "", ""),
        ("Python", sys.version.split()[0], "", ""),
        ("machine", platform.platform(), "", ""),
        *((name, version_of(name), "", "") for name in _LIBRARIES),
    ]
    for name, parameter in parameters.items():
        assert isinstance(parameter, dict)
        rows.append((name, parameter["value"], parameter["unit"], parameter["source"]))
    table = Table(("what", "value", "unit", "source"), rows)
    return Section("Environment, versions and parameters", parts=[table])
