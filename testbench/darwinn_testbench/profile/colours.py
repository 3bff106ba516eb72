"""The colours of what a page tells of time: each means the same in all charts of all pages."""

from __future__ import annotations

from collections.abc import Mapping

from darwinn_sim.timing import Cause

from darwinn_testbench.pages import Chart, Columns
from darwinn_testbench.pages.charts import COLOURS, bars
from darwinn_testbench.profile.profile import NO_LAYER

CAUSE_COLOURS: Mapping[str, str] = {
    Cause.BUSY.label: COLOURS[0],
    Cause.PARAMETERS.label: COLOURS[1],
    Cause.ACTIVATIONS.label: COLOURS[2],
    Cause.RING.label: COLOURS[5],
    Cause.MESH.label: COLOURS[6],
    Cause.FENCE.label: COLOURS[8],
    Cause.HOST_LINK.label: COLOURS[3],
    Cause.INSTRUCTION_FETCH.label: COLOURS[4],
    Cause.COMPUTE.label: COLOURS[9],
    Cause.DISPATCH.label: COLOURS[7],
    Cause.FINISHED.label: "#8a8f9855",
    NO_LAYER: "#8a8f9822",
}
"""By what a unit does with its cycles, in the order of bars; faint where it has nothing to do."""


def by_cause(columns: Columns, *, unit: str, label: str) -> Chart:
    """Bars whose ``part`` is a cause, which has the same colour in all charts."""
    used = [cause for cause in CAUSE_COLOURS if cause in columns["part"]]
    return bars(columns, unit=unit, label=label, parts=used, colours=CAUSE_COLOURS)
