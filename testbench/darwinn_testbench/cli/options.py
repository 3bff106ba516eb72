"""Arguments and options that several commands share."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from darwinn_formats.files import Content, Source, read_file, read_stream

from darwinn_testbench.chip.input_kinds import InputKind
from darwinn_testbench.cli.declared import argument, option
from darwinn_testbench.engine import Engine
from darwinn_testbench.errors import InputError, Unavailable
from darwinn_testbench.programs.formats import format_of

_STDIN = "<stdin>"
"""How messages call standard input."""

File = Annotated[
    str,
    argument(
        "FILE", "Edge TPU .tflite, DarwiNN package or instruction stream; - is standard input."
    ),
]
AnyFile = Annotated[
    str,
    argument(
        "FILE",
        "Edge TPU .tflite, DarwiNN package or instruction stream; ExecuTorch .pte, .bpte; "
        "IREE .vmfb; TFRT BEF or its text. - is standard input.",
    ),
]
Json = Annotated[
    bool, option("--json", "Print one JSON object (docs/cli.md describes it) instead of tables.")
]
Seed = Annotated[
    int,
    option(
        "--seed N",
        "Seed of drawn inputs and of memory that nothing has written; it is printed.",
        min=0,
    ),
]
Runs = Annotated[
    int | None,
    option(
        "--runs K",
        "Inferences with drawn inputs, each of the next kind. By default one of each kind, or "
        "for run, stored outputs and the Verilog engine one of noise.",
        min=1,
        max=1_000_000_000,
    ),
]
InputsKind = Annotated[
    list[InputKind] | None,
    option(
        "--inputs-kind KIND",
        "What drawn inputs look like: noise, gradients, extremes, constants or edges. Repeat "
        "it for several. A row of the table is repeated alone by its own kind and seed: "
        "--inputs-kind KIND --seed N.",
    ),
]
Schedules = Annotated[
    int,
    option(
        "--schedules N",
        "Make the inferences again in N random legal orders of the chip's units: bytes that "
        "differ show a synchronisation that is missing (race, exit code 1).",
        min=0,
        max=1_000_000,
    ),
]
NoHazards = Annotated[
    bool,
    option(
        "--no-hazards",
        "Do not say whether every legal timing gives this result: look for no accesses to the "
        "chip's memories that no flag, fence or queue orders, and for no deadlocks.",
    ),
]
ScheduleSeed = Annotated[
    int | None,
    option(
        "--schedule-seed N",
        "Seed of the first of these orders, the next has one more; that of --seed by default.",
        min=0,
    ),
]
Anyway = Annotated[
    bool,
    option(
        "--anyway",
        "Compare with a .tflite reference even if FILE was compiled from another model: of other "
        "weights, biases, scales or zero points.",
    ),
]
NoProof = Annotated[
    bool,
    option(
        "--no-proof",
        "Only sample: compare what the inputs of this run give, and prove nothing for others.",
    ),
]
RequireProof = Annotated[
    bool,
    option(
        "--require-proof",
        "Fail (exit code 1) unless every output is proved for every input and every legal timing.",
    ),
]
Parameters = Annotated[
    bool,
    option(
        "--parameters",
        "Also say what each byte of the parameters is: an element of a tensor of --reference, "
        "padding, or unexplained.",
    ),
]
ChipOnly = Annotated[
    bool,
    option(
        "--chip-only",
        "Leave out the operators that the compiler has left to the CPU: what goes to the chip and "
        "comes from it is all there is.",
    ),
]
Strict = Annotated[bool, option("--strict", "Reading memory that nothing has written is a fault.")]
NoAssumptions = Annotated[
    bool,
    option(
        "--no-assumptions",
        "Refuse values of instruction fields that no known program holds and that are executed "
        "by an assumed rule.",
    ),
]
Inputs = Annotated[
    list[str] | None,
    option(
        "--inputs -i [NAME=]PATH",
        "Input data: .npy, .npz (arrays by tensor name), an image, or any other file as raw "
        "bytes. Repeat it for several inputs, with NAME= or in the order of the model.",
    ),
]
Executable = Annotated[
    int | None,
    option(
        "--executable N",
        "Only this executable (numbers as `darwinn inspect` prints them).",
        min=0,
    ),
]
Function = Annotated[
    str | None,
    option("--function NAME", "Which method or function of an ExecuTorch, IREE or BEF program."),
]
Reference = Annotated[
    str | None,
    option(
        "--reference -r MODEL",
        "The model before compilation (.tflite), or the same network as ExecuTorch .pte, IREE "
        ".vmfb or BEF: it gives the expected outputs.",
    ),
]
Names = Annotated[
    str | None,
    option(
        "--reference -r MODEL",
        "The model before compilation (.tflite): layers are called by its operators. An inference "
        "on drawn inputs finds which is which.",
    ),
]
Maps = Annotated[
    list[str] | None,
    option(
        "--map NAME=OTHER",
        "Input or output NAME of FILE is OTHER (a name or an index) of the reference; "
        "OTHER:nchw says its layout, OTHER:1x8 its shape. Needed where names differ and shapes "
        "leave it open. Repeat it for several.",
    ),
]
RequireReference = Annotated[
    bool,
    option(
        "--require-reference",
        "An output, or an operator before it, that is compared with nothing is a failure "
        "(not-compared, exit code 1).",
    ),
]
_ENGINES = (
    "model: the simulated chip, and the project's CPU references of other formats; original: the "
    "original runtime of an ExecuTorch or IREE program, if it is installed"
)
RunEngine = Annotated[Engine, option("--engine model|original", f"{_ENGINES}.")]
VerifyEngine = Annotated[
    Engine,
    option(
        "--engine",
        f"{_ENGINES}; rtl: verify a compiled model also on the chip in SystemVerilog, if a C++ "
        "compiler is installed.",
    ),
]
Natives = Annotated[
    str | None,
    option(
        "--natives MODULE",
        "Python module, or .py file, whose NATIVES are the native functions of a BEF file, or "
        "the imports of an IREE module, by name. It is executed.",
    ),
]
WorkQueue = Annotated[
    str | None,
    option(
        "--work-queue TYPE",
        "What runs queued kernels of a BEF file: s (default), or mstd, mstd:THREADS or "
        "mstd:THREADS,BLOCKING. Threads take turns, so that every run is the same.",
    ),
]
InitFunction = Annotated[
    str | None,
    option("--init-function NAME", "A function of a BEF file that is called before any other."),
]
ErrorCodes = Annotated[
    bool, option("--error-codes", "Errors that functions of a BEF file return show their code.")
]
Model = Annotated[int, option("--model N", "Which compiled model of the file.", min=0)]
Companions = Annotated[
    list[str] | None,
    option(
        "--with FILE", "A file compiled together with the model, which may hold its parameters."
    ),
]
FurtherFiles = Annotated[
    list[str] | None,
    option(
        "--with --data FILE",
        "A file compiled together with the model, which may hold its parameters; of an ExecuTorch "
        "program external data (.ptd).",
    ),
]
DataFiles = Annotated[
    list[str] | None,
    option("--data FILE", "External data (.ptd) of an ExecuTorch program."),
]


Out = Annotated[
    Path,
    option("--out -o DIR", "Where finished work is kept: the same command goes on after a kill."),
]
Jobs = Annotated[
    int | None,
    option(
        "--jobs -j N",
        "Processes on this machine; one for each core by default.",
        min=1,
        max=1024,
    ),
]
Scheduler = Annotated[
    str | None,
    option(
        "--scheduler ADDRESS",
        "Hand the work to the Dask cluster with this scheduler; it must see the same paths.",
    ),
]
Fresh = Annotated[bool, option("--fresh", "Do again what is finished already.")]


def source_of(file: str) -> Source:
    """What the library should load for FILE: the path, or the bytes of standard input for ``-``."""
    if file != "-":
        # A pipe can be read only once, and its content says what it is.
        return Content(read_file(file), file) if Path(file).is_fifo() else file
    if sys.stdin is None:
        raise InputError("standard input is closed")
    return Content(read_stream(typer.get_binary_stream("stdin"), _STDIN), _STDIN)


def only_for(what: str, **given: object) -> None:
    """Refuse options that are not for the kind of file that FILE is.

    Raises:
        InputError: naming the options.
    """
    names = [
        f"--{name.rstrip('_').replace('_', '-')}"
        for name, value in given.items()
        if value is not None and value is not False
    ]
    if names:
        raise InputError(f"{', '.join(names)}: only for {what}")


def maps_of(maps: Sequence[str] | None, reference: str | None) -> Sequence[str]:
    """What --map says.

    Raises:
        InputError: there is no reference whose inputs and outputs it could name.
    """
    if maps and reference is None:
        raise InputError(
            f"--map {maps[0]}: it names an input or output of --reference MODEL: give one"
        )
    return maps or ()


def schedule_of(schedules: int, seed: int | None) -> None:
    """Refuse the seed of orders where none is asked for.

    Raises:
        InputError: that is so.
    """
    if seed is not None and not schedules:
        raise InputError("--schedule-seed is for --schedules N: say how many orders")


def no_original(engine: Engine) -> None:
    """Refuse the original runtime for files of the Edge TPU.

    Raises:
        Unavailable: it was asked for.
    """
    if engine is Engine.ORIGINAL:
        raise Unavailable(
            "--engine original is for ExecuTorch and IREE programs: the original of a DarwiNN file "
            "is an Edge TPU"
        )


def refuse_no_file(path: str | None) -> None:
    """Refuse a place where no file can be written, before the work that leads to it.

    Raises:
        OSError: it is a folder, or in none.
    """
    if path is None:
        return
    if Path(path).is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def no_rtl(engine: Engine) -> None:
    """Refuse the RTL for what only the model does.

    Raises:
        Unavailable: it was asked for.
    """
    if engine is Engine.RTL:
        raise Unavailable(
            "--engine rtl is for `darwinn verify` of a compiled model, alone or with a .tflite "
            "reference"
        )


def compiled_source_of(file: str) -> Source:
    """``source_of`` for a command that takes compiled models only.

    Raises:
        InputError: FILE is a program of another format.
    """
    source = source_of(file)
    other = format_of(source)
    if other is not None:
        raise InputError(
            f"{file}: {other.name}: inspect, disasm, layers, run, verify, profile, report and view "
            "take it, this command takes compiled Edge TPU models"
        )
    return source


def only_one_on_stdout(**outputs: object) -> None:
    """Refuse a command line that sends two results to standard output.

    Raises:
        InputError: naming the options.
    """
    taken = [f"--{name}" for name, value in outputs.items() if value is True or str(value) == "-"]
    if len(taken) > 1:
        raise InputError(f"{' and '.join(taken)} both write to standard output: choose one")
