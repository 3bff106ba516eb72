"""`darwinn harness`: test a design of your own, or take the RTL to other tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

from rich.console import RenderableType

from darwinn_testbench.cli.console import finish
from darwinn_testbench.cli.declared import argument, option
from darwinn_testbench.cli.progress import progress_bar
from darwinn_testbench.cli.results import Results
from darwinn_testbench.errors import InputError
from darwinn_testbench.own_design import (
    HarnessFile,
    HarnessTest,
    begin_design,
    export_design,
    export_program,
    try_design,
)
from darwinn_testbench.report import Column, Report, seconds, table
from darwinn_testbench.report.shell import quote

EXAMPLES = """**Examples**

`darwinn harness new my-engine`

`darwinn harness test my-engine --seed 7 --junit results.xml`

`darwinn harness test my-engine --test RandomPrograms --seed 7 --waves waves`

`darwinn harness export rtl-sources --top chip`

`darwinn harness export rtl-sources --top harness --plain`

`DARWINN_CHIP=harness-2x2 darwinn harness export plain-chip --program model_edgetpu.tflite`
"""


class Action(StrEnum):
    """What `harness` does with its folder."""

    NEW = "new"
    TEST = "test"
    EXPORT = "export"


_OPTIONS = {
    "--test": (Action.TEST,),
    "--data-bytes": (Action.TEST,),
    "--seed": (Action.TEST, Action.EXPORT),
    "--waves": (Action.TEST,),
    "--top": (Action.EXPORT,),
    "--plain": (Action.EXPORT,),
    "--program": (Action.EXPORT,),
}
"""The actions that take an option."""

Do = Annotated[
    Action,
    argument(
        "ACTION",
        "new: write a folder with a DMA engine, tests, a Makefile and a CI workflow; "
        "test: run the cocotb tests of a folder on the harness with the sources in its rtl/; "
        "export: write the sources for other tools, in the order that they need.",
    ),
]
Directory = Annotated[Path, argument("DIR", "The folder; new and export create it.")]
Test = Annotated[list[str] | None, option("--test NAME", "Run only this test; may be repeated.")]
DataBytes = Annotated[
    int | None, option("--data-bytes N", "Bytes of a bus word: 4, 8, 16 or 32; 8 by default.")
]
Seed = Annotated[
    int | None, option("--seed N", "Seed of everything that is random; 1 by default.", min=0)
]
Waves = Annotated[
    Path | None, option("--waves FOLDER", "Also write the waves of each test to FOLDER, as FST.")
]
Top = Annotated[
    str | None,
    option("--top MODULE", "Module to export, with all that it needs; chip_player by default."),
]
Plain = Annotated[
    bool,
    option("--plain", "Also write the module as plain Verilog (IEEE 1364-2005), for Icarus."),
]

Program = Annotated[
    Path | None,
    option(
        "--program MODEL",
        "Write the chip as plain Verilog, and with it host memory, a player, and a recording: a "
        "run of this compiled model in Verilator, which the player repeats. --seed decides the "
        "inputs.",
    ),
]

_WIDTHS = (4, 8, 16, 32)
_FILES: tuple[Column[HarnessFile], ...] = (
    Column("file", lambda row: row.name),
    Column("bytes", lambda row: row.bytes, "right"),
)
_TESTS: tuple[Column[HarnessTest], ...] = (
    Column("test", lambda row: row.name),
    Column("seed", lambda row: row.seed, "right"),
    Column("s", lambda row: seconds(row.seconds), "right"),
    Column("verdict", lambda row: row.verdict),
)


def command(
    action: Do,
    directory: Directory,
    test: Test = None,
    data_bytes: DataBytes = None,
    seed: Seed = None,
    waves: Waves = None,
    top: Top = None,
    plain: Plain = False,
    program: Program = None,
    *,
    written: Results,
) -> None:
    """Test a DMA engine of your own on the harness, or take the RTL to other tools.

    `new` writes a folder with the project's DMA engine in rtl/, three tests, a Makefile and a CI
    workflow. Replace the engine by your own with the same ports. A file in rtl/ replaces the
    project's source of that name; further files are added. `test` builds the harness with
    these sources and runs every cocotb or pyuvm test of test_*.py, each in a simulation of its
    own. The environment checks bytes, order, registers and interrupts against an independent
    model, and every AXI rule in every cycle.

    `export` writes what a module needs: the sources, files.f, a FuseSoC core file, and Verilator's
    waivers. With --program it also writes the chip as plain Verilog, and a player that repeats a
    run of a compiled model in any Verilog simulator, and compares cycles and bytes with
    Verilator's. `darwinn docs rtl-own-design` shows all of it.
    """
    given = {
        "--test": test,
        "--data-bytes": data_bytes,
        "--seed": seed,
        "--waves": waves,
        "--top": top,
        "--plain": plain,
        "--program": program,
    }
    _refuse_others(action, given)
    if action is Action.TEST:
        _test(directory, test or [], data_bytes or 8, 1 if seed is None else seed, waves, written)
    if action is Action.NEW:
        files, step = begin_design(directory), f"darwinn harness test {quote(str(directory))}"
    elif program is not None:
        if top is not None:
            raise InputError("--program is for the whole chip: leave out --top")
        files = export_program(directory, program, seed=1 if seed is None else seed)
        step = f"iverilog -g2005 -o play *.v && vvp -n play, in {quote(str(directory))}"
    else:
        files = export_design(directory, top or "chip_player", plain=plain)
        step = f"verilator --lint-only waivers.vlt -f files.f, in {quote(str(directory))}"
    written.write([files])
    finish(files, file=str(directory), as_json=written.json, body=_files, next_step=step)


def _refuse_others(action: Action, given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if value is not None and value is not False and action not in _OPTIONS[name]:
            raise InputError(f"{name} is for `harness {_OPTIONS[name][0]}`, not for {action}")
    if action is Action.EXPORT and given["--program"] is None and given["--seed"] is not None:
        raise InputError("--seed is for --program: the sources do not depend on it")


def _test(
    directory: Path, names: list[str], width: int, seed: int, waves: Path | None, written: Results
) -> NoReturn:
    if width not in _WIDTHS:
        raise InputError(f"--data-bytes is {width}: there are buses of 4, 8, 16 and 32 bytes")
    with progress_bar() as progress:
        report = try_design(
            directory,
            names=names,
            data_bytes=width,
            seed=seed,
            waves=waves,
            progress=progress,
        )
    written.write([report])
    finish(
        report,
        file=str(directory),
        as_json=written.json,
        body=_tests,
        next_step=_next_step(report, waves),
    )


def _files(report: Report[HarnessFile]) -> Sequence[RenderableType]:
    return [table(_FILES, report.rows)]


def _tests(report: Report[HarnessTest]) -> Sequence[RenderableType]:
    failed = (row for row in report.rows if row.verdict.failed)
    return [table(_TESTS, report.rows), *(f"{row.name}: {row.message}" for row in failed)]


def _next_step(report: Report[HarnessTest], waves: Path | None) -> str:
    failed = next((row for row in report.rows if row.verdict.failed), None)
    if failed is None:
        return "--seed N draws other programs; --junit results.xml keeps the result"
    if waves:
        return f"{failed.log} says more; the waves are in {waves}"
    return f"{failed.command} --waves waves repeats it with waves; {failed.log} says more"
