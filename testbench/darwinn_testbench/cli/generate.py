"""`darwinn generate`: networks by chance, compiled, and judged by everything that runs programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from rich.console import RenderableType

from darwinn_testbench.cli.console import finish, wrapped
from darwinn_testbench.cli.declared import option
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.compilation.bins import Bin, Crossed
from darwinn_testbench.compilation.generate import GeneratedRow, GenerateOptions, generate
from darwinn_testbench.compiler.recipes import Shape
from darwinn_testbench.engine import Engine
from darwinn_testbench.errors import InputError
from darwinn_testbench.report import Column, Report, table
from darwinn_testbench.request import settings

EXAMPLES = """**Examples**

`darwinn generate --seed 7 --out build`

`darwinn generate --seed 1 --count 100 --check`

`darwinn generate --seed 3 --operators CONV_2D,ADD --size 12 --check --engine rtl`

`darwinn generate --seed 1 --count 50 --against mobilenet_v2_1.0_224_quant_edgetpu.tflite --json`
"""

Seed = Annotated[int, option("--seed N", "Seed of the first network; others follow it.", min=0)]
Count = Annotated[
    int, option("--count K", "Number of networks, one for each seed from N on.", min=1, max=1 << 20)
]
Operators = Annotated[
    str | None,
    option("--operators NAMES", "Operators to choose from, separated by commas; by default all."),
]
Size = Annotated[
    int | None,
    option("--size N", "Operators of each network; by default the seed decides.", min=1, max=200),
]
Out = Annotated[
    Path | None,
    option("--out -o DIR", "Write the models here: NAME.tflite and NAME_edgetpu.tflite."),
]
Check = Annotated[
    bool,
    option(
        "--check",
        "Judge each network: verdict with proof, hazards, lifted program, cycles. One that fails "
        "is made as small as possible.",
    ),
]
EngineChoice = Annotated[
    Literal["model", "rtl"],
    option("--engine", "rtl: with --check, run each network in SystemVerilog, too."),
]
Keep = Annotated[
    str | None,
    option(
        "--keep NUMBERS",
        "Make only these steps of the network, as in the command printed for a network that fails.",
    ),
]
Shapes = Annotated[
    str | None,
    option("--shapes SHAPES", "Shapes of the inputs, instead of random ones: 8x8x3,1x1x4."),
]
Against = Annotated[
    list[str] | None,
    option("--against FILE", "Compare coverage with that of this compiled model; repeatable."),
]

_COLUMNS: tuple[Column[GeneratedRow], ...] = (
    Column("network", lambda row: row.name),
    Column("operators", lambda row: len(row.operators), "right"),
    Column("on chip", lambda row: row.on_chip, "right"),
    Column("in", lambda row: row.inputs, "right"),
    Column("out", lambda row: row.outputs, "right"),
    Column("cycles", lambda row: row.cycles, "right"),
    Column("RTL", lambda row: row.rtl_cycles, "right"),
    Column("verdict", lambda row: row.verdict),
    Column("why", lambda row: row.message, may_shrink=True),
)
_BINS: tuple[Column[Bin], ...] = (
    Column("bin", lambda each: each.group),
    Column("", lambda each: each.bin),
    Column("networks", lambda each: each.networks, "right"),
)
_PROGRAMS: tuple[Column[Crossed], ...] = (
    Column("in the programs", lambda each: each.what),
    Column("generated", lambda each: each.generated, "right"),
    Column("others", lambda each: each.others, "right"),
    Column("both", lambda each: each.both, "right"),
)


def command(
    seed: Seed = 0,
    count: Count = 1,
    operators: Operators = None,
    size: Size = None,
    out: Out = None,
    check: Check = False,
    engine: EngineChoice = "model",
    keep: Keep = None,
    shapes: Shapes = None,
    against: Against = None,
    json: settings.Json = False,
) -> None:
    """Generate random networks and compile them; with --check, judge the programs.

    A seed determines a network: its operators and branches, shapes, windows, strides, scales and
    zero points at the edges of their ranges, inputs and outputs. With --check the chip's outputs
    must be right on every byte, the lifted program must give the same bytes, no hazard may be
    found, and cycles must repeat. If a network fails, the command reduces it, and prints
    the command that repeats it. The tables of bins say what the networks cover.
    """
    wanted = GenerateOptions(
        seed=seed,
        count=count,
        size=size,
        operators=_names(operators),
        keep=None if keep is None else tuple(_number(each, "--keep") for each in _names(keep)),
        inputs=tuple(map(_shape, _names(shapes))),
        check=check,
        engine=Engine(engine),
        out=out,
        against=tuple(against or ()),
    )
    with progress_bar() as progress:
        report = generate(wanted, progress=progress)
    finish(
        report,
        file=report.file,
        as_json=json,
        body=_body,
        next_step=_next(report, wanted),
    )


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (text or "").split(",")))


def _number(text: str, option_name: str) -> int:
    if not text.isdecimal():
        raise InputError(f"{option_name}: {text!r} is no number")
    return int(text)


def _shape(text: str) -> Shape:
    extents = tuple(_number(each, "--shapes") for each in text.split("x"))
    if len(extents) != 3 or not all(extents):
        raise InputError(f"--shapes: {text!r} is no shape HEIGHTxWIDTHxCHANNELS")
    return extents[0], extents[1], extents[2]


def _next(report: Report[GeneratedRow], wanted: GenerateOptions) -> str:
    failed = [row for row in report.rows if row.verdict.failed]
    if failed:
        return f"{failed[0].repeat} repeats the failure; --out DIR writes its models"
    if not wanted.check:
        return "the same with --check judges what was compiled"
    return f"the same with --seed {wanted.seed + wanted.count} draws others"


def _body(report: Report[GeneratedRow]) -> Sequence[RenderableType]:
    shown: list[RenderableType] = [table(_COLUMNS, report.rows)]
    if len(report.rows) > 1:
        shown.append(table(_BINS, report.figures["bins"]))
    shown.append(table(_PROGRAMS, report.figures["programs"]))
    shown += [
        wrapped(f"{row.name} fails, smallest with {row.smallest} operators: {row.repeat}")
        for row in report.rows
        if row.smallest is not None
    ]
    return shown
