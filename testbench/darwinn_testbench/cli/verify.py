"""`darwinn verify`: is every output byte right?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from darwinn_testbench import policy as policies
from darwinn_testbench.cli import compared, options, results
from darwinn_testbench.cli.console import finish
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.comparison.compare import Comparison
from darwinn_testbench.comparison.operator_coverage import OperatorFigures
from darwinn_testbench.comparison.program_verify import verify_against
from darwinn_testbench.comparison.verify import OutputRow, verify
from darwinn_testbench.engine import Engine
from darwinn_testbench.errors import InputError
from darwinn_testbench.layers.check import LEFT_TO_THE_HOST, TensorRow
from darwinn_testbench.programs.formats import format_of
from darwinn_testbench.programs.natives import load_natives
from darwinn_testbench.report import Column, Report, Verdict, seconds, table

EXAMPLES = """**Examples**

`darwinn verify model_edgetpu.tflite --reference model.tflite --runs 5`

`darwinn verify model_edgetpu.tflite --reference model.tflite --inputs photo.png`

`darwinn verify model_edgetpu.tflite --reference model.tflite --policy lsb:1,2%`

`darwinn verify model_edgetpu.tflite --reference model.tflite --layers`

`darwinn verify model_edgetpu.tflite --reference model.tflite --json --junit result.xml`

`darwinn verify model_edgetpu.tflite --reference model.pte --map image=x --localise`

`darwinn verify model_edgetpu.tflite --reference model.tflite --engine rtl`

`darwinn verify program.pte --expected outputs.npz --inputs x.npy`
"""

Reference = Annotated[
    str | None,
    typer.Option(
        "--reference",
        "-r",
        metavar="MODEL",
        help=(
            "The model before compilation (.tflite), or the same network as ExecuTorch .pte, IREE "
            ".vmfb or BEF: it gives the expected outputs."
        ),
        show_default=False,
    ),
]
PolicyText = Annotated[
    str | None,
    typer.Option(
        "--policy",
        metavar="P",
        help=(
            "How far outputs may be from the reference: exact, lsb:N, lsb:N,F% or "
            "float:ATOL,RTOL. With a .tflite LiteRT then decides, not the chip's arithmetic."
        ),
        show_default=False,
    ),
]

Expected = Annotated[
    str | None,
    typer.Option(
        "--expected",
        metavar="PATH",
        help=(
            "Stored outputs instead of a reference: .npz by output name, .npy, or an .npz of calls "
            "with call0_in0, call0_out0 and so on. Without inputs of its own, or --inputs, of the "
            "drawn ones of --seed: those of `darwinn run --seed N --output PATH`."
        ),
        show_default=False,
    ),
]
MapOption = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="NAME=OTHER",
        help=(
            "Input or output NAME of FILE is OTHER (a name or an index) of the reference; "
            "OTHER:nchw says its layout, OTHER:1x8 its shape. Needed where names differ and shapes "
            "leave it open. Repeat it for several."
        ),
        show_default=False,
    ),
]
Localise = Annotated[
    bool,
    typer.Option(
        "--localise",
        help=(
            "Name the first layer or value that differs, and each further one that differs of "
            "itself: what follows is computed from the same values on both sides."
        ),
    ),
]

RequireReference = Annotated[
    bool,
    typer.Option(
        "--require-reference",
        help=(
            "An output, or an operator before it, that is compared with nothing is a failure "
            "(not-compared, exit code 1)."
        ),
    ),
]

_COLUMNS: tuple[Column[OutputRow], ...] = (
    Column("run", lambda row: row.run, "right"),
    Column("inputs", lambda row: row.origin),
    Column("output", lambda row: row.name, may_shrink=True),
    Column("vs chip", lambda row: compared.difference(row.chip_arithmetic)),
    Column("vs LiteRT", lambda row: compared.difference(row.litert)),
    Column("top-1/5", lambda row: _agreement(row.litert), "right"),
    Column("s", lambda row: seconds(row.seconds), "right"),
    Column("verdict", lambda row: row.verdict),
)
_RTL_COLUMNS: tuple[Column[OutputRow], ...] = (
    *_COLUMNS[:-1],
    Column("RTL", lambda row: compared.difference(row.rtl)),
    Column("cycles", lambda row: row.rtl_cycles, "right"),
    _COLUMNS[-1],
)

Waves = Annotated[
    str | None,
    typer.Option(
        "--waves",
        metavar="FILE.fst",
        help=(
            "With --engine rtl: write the waves of the chip for Surfer and GTKWave; a .gtkw beside "
            "it shows them in groups."
        ),
        show_default=False,
    ),
]

Layers = Annotated[
    bool,
    typer.Option(
        "--layers", help="Also compare every layer in the tiles with the tensors of --reference."
    ),
]

_TENSOR_COLUMNS: tuple[Column[TensorRow], ...] = (
    Column("run", lambda row: row.run, "right"),
    Column("tensor", lambda row: row.tensor, "right"),
    Column("operator", lambda row: row.operator),
    Column("shape", lambda row: "x".join(map(str, row.shape)), "right"),
    Column("layers", lambda row: _holders(row)),
    Column("finding", lambda row: row.finding),
    Column("name", lambda row: row.name, may_shrink=True),
)


def command(
    file: options.AnyFile,
    reference: Reference = None,
    inputs: options.Inputs = None,
    seed: options.Seed = 0,
    runs: options.Runs = None,
    inputs_kind: options.InputsKind = None,
    policy: PolicyText = None,
    model: options.Model = 0,
    companions: options.Companions = None,
    strict: options.Strict = False,
    no_assumptions: options.NoAssumptions = False,
    layers: Layers = False,
    localise: Localise = False,
    maps: MapOption = None,
    expected: Expected = None,
    require_reference: RequireReference = False,
    engine: options.VerifyEngine = Engine.MODEL,
    waves: Waves = None,
    function: options.Function = None,
    natives: options.Natives = None,
    junit: results.JUnit = None,
    sarif: results.Sarif = None,
    markdown: results.Markdown = None,
    github: results.GitHub = False,
    json: options.Json = False,
) -> None:
    """Run a compiled model on the simulated chip and say whether every output byte is right.

    The verdict is pass when every byte that reaches the host equals the chip's own arithmetic,
    computed from the model before compilation. The difference to LiteRT, whose rounding differs a
    little, is always shown and decides only under --policy. Without --reference the program is
    run, and faults, deadlocks and its DMA are judged; the verdict is then ran, not pass, since no
    output was compared, and --require-reference makes that a failure.

    A reference of another format is given the same inputs, dequantised where it computes in
    floating point; its outputs are quantised as FILE's and may then be 1 step off, integers must be
    equal. FILE itself may be of another format; a .bpte brings its expected outputs along.
    """
    written = results.Results(json, junit, sarif, markdown, github)
    if waves is not None and engine is not Engine.RTL:
        raise InputError("--waves is for --engine rtl: only the RTL writes them")
    options.refuse_no_file(waves)
    declared = None if policy is None else policies.parse(policy)
    source = options.source_of(file)
    is_program = format_of(source) is not None
    if is_program or expected or (reference is not None and format_of(reference) is not None):
        options.only_for("compiled models with a .tflite reference", layers=layers)
        options.no_rtl(engine)
        if is_program:
            options.only_for(
                "DarwiNN files",
                with_=companions,
                model=model or None,
                strict=strict,
                no_assumptions=no_assumptions,
            )
        with progress_bar() as progress:
            judged = verify_against(
                source,
                reference,
                inputs,
                expected=expected,
                function=function,
                maps=maps or (),
                model=model,
                companions=companions or (),
                natives=None if natives is None else load_natives(natives),
                engine=engine,
                policy=declared,
                seed=seed,
                runs=runs,
                inputs_kind=inputs_kind or (),
                strict=strict,
                assumptions=not no_assumptions,
                localise=localise,
                require_reference=require_reference,
                progress=progress,
            )
        written.write([judged])
        finish(
            judged,
            file=file,
            as_json=json,
            body=compared.body,
            next_step=compared.next_step(judged, file),
        )
    options.only_for("programs of other formats", function=function, natives=natives)
    options.no_original(engine)
    with progress_bar() as progress:
        report = verify(
            source,
            reference,
            inputs,
            model=model,
            companions=companions or (),
            seed=seed,
            runs=runs,
            inputs_kind=inputs_kind or (),
            policy=declared,
            strict=strict,
            assumptions=not no_assumptions,
            layers=layers,
            localise=localise,
            maps=maps or (),
            engine=engine,
            waves=None if waves is None else Path(waves),
            require_reference=require_reference,
            progress=progress,
        )
    written.write([report])
    finish(
        report,
        file=file,
        as_json=json,
        body=_body,
        next_step=_next_step(report, file, reference, waves),
    )


def _body(report: Report[OutputRow]) -> Sequence[RenderableType]:
    figures = report.figures
    notes = compared.notes(report.rows)
    notes += [f"{row.name}: {row.message}" for row in figures["dma"] if row.message]
    notes += [str(each) for each in figures["divergences"]]
    head = compared.head(figures, "inference")
    tensors = figures["tensors"]
    notes += [
        f"run {row.run} tensor {row.tensor}: {row.message}"
        for row in tensors
        if row.message and row.message != LEFT_TO_THE_HOST
    ]
    notes += [f"warning: {each}" for each in figures["warnings"]]
    if not report.rows:
        return notes
    notes += compared.moved(figures["excitation"])
    operators: OperatorFigures = figures["operators"]
    notes += [f"not byte for byte: {reason}" for reason in operators.reasons]
    if operators.records:
        notes.append(f"operators: {operators}")
    within: list[RenderableType] = [table(_TENSOR_COLUMNS, tensors), ""] if tensors else []
    columns = _RTL_COLUMNS if any(row.rtl for row in report.rows) else _COLUMNS
    return [*within, table(columns, report.rows), *notes, head]


def _holders(row: TensorRow) -> str:
    """The layers that hold a tensor, one for each pass, and the host if it is sent there."""
    names = ["+".join(map(str, row.layers))] if row.layers else []
    return ", ".join([*names, "host"] if row.output else names)


def _agreement(comparison: Comparison | None) -> str:
    """Shares of rows whose greatest, and of the five greatest elements that are the same."""
    shares = () if comparison is None else (comparison.top1, comparison.top5)
    told = [f"{100 * share:.0f}" for share in shares if share is not None]
    return f"{'/'.join(told)} %" if told else "-"


def _next_step(
    report: Report[OutputRow], file: str, reference: str | None, waves: str | None
) -> str:
    on_rtl = any(row.rtl for row in report.rows)
    match report.verdict:
        case Verdict.PASS | Verdict.RAN if waves is not None:
            return f"gtkwave {waves} {Path(waves).with_suffix('.gtkw')} shows the waves in groups"
        case Verdict.PASS if on_rtl and reference is not None:
            return f"darwinn cycles {file} --chip harness predicts the cycles of the RTL"
        case Verdict.RAN | Verdict.NOT_COMPARED:
            return f"darwinn verify {file} --reference MODEL.tflite compares the outputs"
        case Verdict.PASS if reference is None:
            return f"darwinn verify {file} --reference MODEL.tflite compares the outputs"
        case Verdict.PASS if not report.figures["random_inputs"]:
            return "--junit result.xml keeps the result"
        case Verdict.PASS:
            return "--runs 20 tries more inputs; --junit result.xml keeps the result"
        case Verdict.MISMATCH if report.figures["policy"] is not None:
            return "the same with --json says where and by how much it differs"
        case Verdict.MISMATCH if reference is not None and not report.figures["divergences"]:
            return "the same with --localise says in which layer it begins; --json where it differs"
        case Verdict.MISMATCH:
            return f"darwinn run {file} --tap layer:N copies out what a layer computes"
        case _:
            return f"darwinn disasm {file} shows the program"
