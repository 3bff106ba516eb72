"""The colours of what a page tells of time: each means the same in all charts of all pages."""

from __future__ import annotations

from collections.abc import Mapping

from darwinn_sim.timing import Cause

from darwinn_testbench.pages.charts import COLOURS

NO_LAYER = "no layer"
"""The part of a bar that is time without a layer."""

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
    NO_LAYER: "#c9ced466",
}
"""By what a unit does with its cycles until its last instruction, in the order of bars."""
