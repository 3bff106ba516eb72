"""Show the network inside an executable, layer by layer, from the compiled file alone.

A run on marked data shows the reads of a layer (``darwinn_sim.analysis.provenance``); its
instructions give its computation. ``unknown`` names everything that neither of them tells: a given
value is never a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from darwinn_sim.analysis import provenance
from darwinn_sim.analysis.provenance import Provenance
from darwinn_sim.isa.codes import ScalarFunction
from darwinn_sim.machine.completeness import incomplete_note
from darwinn_sim.machine.lowering import LoweredProgram

from darwinn_testbench.chip.cpu_operators import named_operators
from darwinn_testbench.chip.model import BoundModel, choose_model, open_models
from darwinn_testbench.layers.rows import LayerRow, layer_rows
from darwinn_testbench.layers.shapes import Shape
from darwinn_testbench.report import Report, counted
from darwinn_testbench.report.progress import ProgressCallback, silent
from darwinn_testbench.request.record import takes
from darwinn_testbench.request.records import LayerView


@dataclass(frozen=True)
class PortFigures:
    """An input or output of the executable, and the layers beside it."""

    name: str
    direction: str
    shape: Shape
    zero_point: int | None
    scale: float | None
    layers: tuple[int, ...]

    def __str__(self) -> str:
        quantised = "" if self.scale is None else f", {self.scale:g} * (q - {self.zero_point})"
        beside = f", layer {', '.join(map(str, self.layers))}" if self.layers else ""
        return f"{self.direction} {self.name}: {'x'.join(map(str, self.shape))}{quantised}{beside}"


def layers_of(asked: LayerView) -> Report[LayerRow]:
    """Recover the network of a compiled model.

    Raises:
        FormatError, OSError: a file is not valid or cannot be read.
        InputError: there is no such model.
        SimulationError: the program fails, or uses what the model of the chip lacks.
    """
    return view_bound(
        choose_model(open_models(asked.source, asked.others), asked.model),
        model=asked.model,
        seed=asked.seed,
        chip_only=asked.chip_only,
        assumptions=asked.assumptions,
        progress=asked.progress,
    )


view_layers = takes(LayerView, "view_layers")(layers_of)


def view_bound(
    bound: BoundModel,
    *,
    model: int = 0,
    seed: int = 0,
    chip_only: bool = False,
    assumptions: bool = True,
    program: LoweredProgram | None = None,
    progress: ProgressCallback = silent,
) -> Report[LayerRow]:
    """As :func:`view_layers`, of a model that has been opened; it is number ``model`` of its file.

    ``program`` is its inference, if it has been lowered already; it is linked in place.
    """
    on_cpu = bound.on_cpu
    progress("running on marked data", 0, None)
    found = provenance.trace(
        bound.compiled.caching,
        bound.compiled.inference,
        seed=seed,
        assumptions=assumptions,
        program=program,
    )
    rows = layer_rows(bound, found)
    return Report(
        command="layers",
        file=bound.file,
        rows=rows,
        figures={
            "model": model,
            "seed": seed,
            "ports": _ports(bound, rows),
            "scalar_core": _scalar_core(bound, found, rows),
            "assumptions": found.assumed,
            **({"cpu_operators": on_cpu} if on_cpu and not chip_only else {}),
        },
        message="; ".join(
            filter(
                None,
                [
                    _message(rows),
                    f"on the CPU: {named_operators(on_cpu)}" if on_cpu else "",
                    incomplete_note(found.program.chunks),
                    bound.note,
                ],
            )
        ),
    )


def _message(rows: Sequence[LayerRow]) -> str:
    partly = sum(bool(row.unknown) for row in rows)
    return counted(len(rows), "layer") + (
        f", {partly} not known in every respect" if partly else ""
    )


def _ports(bound: BoundModel, rows: Sequence[LayerRow]) -> tuple[PortFigures, ...]:
    found: list[PortFigures] = []
    for direction, layers in (("input", bound.inputs), ("output", bound.outputs)):
        for each in layers:
            layer, numerics = each.layer, each.layer.numerics
            name = layer.name
            beside = [row.number for row in rows if name in getattr(row, direction + "s")]
            found.append(
                PortFigures(
                    name,
                    direction,
                    (layer.y_dim, layer.x_dim, layer.z_dim),
                    None if numerics is None else numerics.zero_point,
                    None if numerics is None else numerics.dequantization_factor,
                    tuple(beside),
                )
            )
    return tuple(found)


@dataclass(frozen=True)
class ScalarCoreFigures:
    """What the scalar core computes: ``functions`` of floating point, and its share in the network.

    ``inputs`` are the layers that it reads: those whose results lie in its memory at the end, and
    those that nothing else reads. ``outputs`` are the outputs of the executable that do not come
    from the tiles as they are.
    """

    functions: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def _scalar_core(
    bound: BoundModel, found: Provenance, rows: Sequence[LayerRow]
) -> ScalarCoreFigures | None:
    codes = np.unique(found.program.tables.scalar["function_op"]).tolist()
    functions = [ScalarFunction(code).name.lower() for code in codes if code]
    if not functions:
        return None
    names = [each.layer.name for each in bound.outputs]
    used = {each for row in rows for each in row.inputs}
    unread = {f"layer:{row.number}" for row in rows if not row.outputs} - used
    read = {f"layer:{number}" for number in found.scalar_core.layers} | unread
    return ScalarCoreFigures(
        tuple(functions),
        tuple(row_name for row_name in (f"layer:{row.number}" for row in rows) if row_name in read),
        tuple(name for name in names if name not in found.outputs),
    )
