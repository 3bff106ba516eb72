"""`darwinn layers`: the network inside an executable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from darwinn_formats.names import short_name
from rich.console import RenderableType

from darwinn_testbench.chip.cpu_operators import CPU_COLUMNS, CpuOperator
from darwinn_testbench.cli import options
from darwinn_testbench.cli.console import finish
from darwinn_testbench.cli.declared import option
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.errors import InputError
from darwinn_testbench.layers.graph import FORMATS, draw, operation
from darwinn_testbench.layers.rows import LayerRow
from darwinn_testbench.layers.view import layers_of
from darwinn_testbench.programs.formats import format_of
from darwinn_testbench.report import Column, Report, table
from darwinn_testbench.report.files import write_result
from darwinn_testbench.report.shell import quote
from darwinn_testbench.request import settings
from darwinn_testbench.request.record import Wanted
from darwinn_testbench.request.records import Call, Layers, LayerView, Naming
from darwinn_testbench.request.scope import Scope

EXAMPLES = """**Examples**

`darwinn layers model_edgetpu.tflite`

`darwinn layers model_edgetpu.tflite --reference model.tflite`

`darwinn layers --graph network.svg model_edgetpu.tflite`

`darwinn layers program.pte --graph network.svg`

`darwinn layers --json model_edgetpu.tflite | jq '.rows[] | {number, kind, output_shape}'`

`darwinn run --tap layer:3 --output words.npz model_edgetpu.tflite`
"""

Graph = Annotated[
    Path | None,
    option("--graph PATH", f"Also draw the network: .{', .'.join(FORMATS)} (text for Graphviz)."),
]

_COLUMNS: tuple[Column[LayerRow], ...] = (
    Column("#", lambda row: row.number, "right"),
    Column("operation", operation, may_shrink=True),
    Column("reads", lambda row: _sources(row)),
    Column("result", lambda row: _shape(row), "right"),
    Column("zero", lambda row: _zero_points(row), "right"),
    Column("scale", lambda row: _scale(row), "right"),
    Column("weights", lambda row: _parameters(row), "right"),
    Column("tiles", lambda row: len(row.tiles), "right"),
)

_NETWORK: Column[LayerRow] = Column(
    "network", lambda row: f"{row.operator} {short_name(row.tensor)}", may_shrink=True
)


def command(
    file: options.AnyFile,
    asked: Wanted[Layers],
    graph: Graph = None,
    json: settings.Json = False,
) -> None:
    """Recover the network from the executable alone, or list the operators of another format.

    Numbers are those of layer:N. "reads" names the layers or inputs that a layer reads; "zero" has
    the zero points of input, weights and result; "scale" is the factor of the sums; "weights" are
    bytes of parameters, with c if they are cached on the chip, and s if they are streamed at each
    inference. Operators on the CPU follow. "?" marks a property that the executable does not
    reveal: the command guesses nothing.

    For an ExecuTorch, IREE or BEF program, the rows are the operators that a call executes: how
    often each runs, which values it reads, and its results.
    """
    kind = "" if graph is None else graph.suffix.removeprefix(".").lower()
    if graph is not None and kind not in FORMATS:
        raise InputError(f"{graph}: a graph is written as .{', .'.join(FORMATS)}")
    request = asked(options.source_of(file))
    is_program = format_of(request.source) is not None
    request.refuse(Scope.CHIP if is_program else Scope.PROGRAM)
    if is_program:
        # Imported here: no other call should wait for what shows programs.
        from darwinn_testbench.cli.program_views import finish_layers
        from darwinn_testbench.programs.operators import operators_in

        with progress_bar() as progress:
            call = request.part(Call, data=request.external, progress=progress)
            operators = operators_in(call)
        finish_layers(operators, file, graph, as_json=json)
    with progress_bar() as progress:
        request = request.but(progress=progress)
        report = layers_of(request.part(LayerView))
        if request.reference is not None:
            # Imported here: no other call should wait for what compares.
            from darwinn_testbench.comparison.layer_names import named_layers, with_names

            names = named_layers(request.part(Naming))
            report = replace(report, rows=with_names(report.rows, names))
    if graph is not None:
        write_result(graph, draw(report, kind))
    finish(
        report,
        file=file,
        as_json=json,
        body=_body,
        next_step=f"darwinn run {quote(file)} --tap layer:N --output words.npz copies out "
        "a layer's words",
    )


def _body(report: Report[LayerRow]) -> Sequence[RenderableType]:
    ports = map(str, report.figures["ports"])
    on_cpu: Sequence[CpuOperator] = report.figures.get("cpu_operators", ())
    beside: list[RenderableType] = ["", table(CPU_COLUMNS, on_cpu)] if on_cpu else []
    named = any(row.tensor for row in report.rows)
    columns = (*_COLUMNS, _NETWORK) if named else _COLUMNS
    return [table(columns, report.rows), *_scalar_core(report), *ports, *beside]


def _scalar_core(report: Report[LayerRow]) -> list[str]:
    core = report.figures["scalar_core"]
    if core is None:
        return []
    read = ", ".join(core.inputs) or "what is not known"
    return [f"scalar core: {', '.join(core.functions)} of {read}, gives {', '.join(core.outputs)}"]


_LONGEST = 12
"""Characters of what is read, and of zero points; --json has all of it."""


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _sources(row: LayerRow) -> str:
    return _short("+".join(each.removeprefix("layer:") for each in row.inputs) or "-")


def _shape(row: LayerRow) -> str:
    if "output shape" in row.unknown:
        return "?"
    return "" if row.output_shape is None else "x".join(map(str, row.output_shape))


def _zero_points(row: LayerRow) -> str:
    given = dict.fromkeys(row.input_zero_points)
    values = ("/".join(map(_number, given)), _number(row.weight_zero_point))
    return _short(f"{' '.join(values)} {_number(row.output_zero_point)}")


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _scale(row: LayerRow) -> str:
    return "channels" if row.channel_scales else f"{row.scale:.3g}"


def _parameters(row: LayerRow) -> str:
    return ", ".join(f"{each.bytes:,} {each.place[0]}" for each in row.parameters)
