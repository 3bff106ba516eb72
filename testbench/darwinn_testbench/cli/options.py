"""Arguments and options that several commands share."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from darwinn_formats.files import Content, Source, read_file, read_stream

from darwinn_testbench.chip.input_kinds import InputKind
from darwinn_testbench.engine import Engine
from darwinn_testbench.errors import InputError, Unavailable
from darwinn_testbench.programs.formats import format_of

_STDIN = "<stdin>"
"""How messages call standard input."""

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Edge TPU .tflite, DarwiNN package or instruction stream; - is standard input.",
        show_default=False,
    ),
]
AnyFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help=(
            "Edge TPU .tflite, DarwiNN package or instruction stream; ExecuTorch .pte, .bpte; "
            "IREE .vmfb; TFRT BEF or its text. - is standard input."
        ),
        show_default=False,
    ),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json", help="Print one JSON object (docs/cli.md describes it) instead of tables."
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="N",
        min=0,
        help="Seed of drawn inputs and of memory that nothing has written; it is printed.",
    ),
]
Runs = Annotated[
    int | None,
    typer.Option(
        "--runs",
        metavar="K",
        min=1,
        max=1_000_000_000,
        help=(
            "Inferences with drawn inputs, each of the next kind. By default one of each kind, or "
            "for run, stored outputs and the Verilog engine one of noise."
        ),
        show_default=False,
    ),
]
InputsKind = Annotated[
    list[InputKind] | None,
    typer.Option(
        "--inputs-kind",
        metavar="KIND",
        help=(
            "What drawn inputs look like: noise, gradients, extremes, constants or edges. Repeat "
            "it for several. A row of the table is repeated alone by its own kind and seed: "
            "--inputs-kind KIND --seed N."
        ),
        show_default=False,
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Reading memory that nothing has written is a fault."),
]
NoAssumptions = Annotated[
    bool,
    typer.Option(
        "--no-assumptions",
        help=(
            "Refuse values of instruction fields that no known program holds and that are executed "
            "by an assumed rule."
        ),
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--inputs",
        "-i",
        metavar="[NAME=]PATH",
        help=(
            "Input data: .npy, .npz (arrays by tensor name), an image, or any other file as raw "
            "bytes. Repeat it for several inputs, with NAME= or in the order of the model."
        ),
        show_default=False,
    ),
]
Executable = Annotated[
    int | None,
    typer.Option(
        "--executable",
        metavar="N",
        min=0,
        help="Only this executable (numbers as `darwinn inspect` prints them).",
        show_default=False,
    ),
]
Function = Annotated[
    str | None,
    typer.Option(
        "--function",
        metavar="NAME",
        help="Which method or function of an ExecuTorch, IREE or BEF program.",
        show_default=False,
    ),
]
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
_ENGINES = (
    "model: the simulated chip, and the project's CPU references of other formats; original: the "
    "original runtime of an ExecuTorch or IREE program, if it is installed"
)
RunEngine = Annotated[
    Engine, typer.Option("--engine", metavar="model|original", help=f"{_ENGINES}.")
]
VerifyEngine = Annotated[
    Engine,
    typer.Option(
        "--engine",
        help=(
            f"{_ENGINES}; rtl: verify a compiled model also on the chip in SystemVerilog, if a C++ "
            "compiler is installed."
        ),
    ),
]
Natives = Annotated[
    str | None,
    typer.Option(
        "--natives",
        metavar="MODULE",
        help=(
            "Python module, or .py file, whose NATIVES are the native functions of a BEF file by "
            "name. It is executed."
        ),
        show_default=False,
    ),
]
Model = Annotated[
    int,
    typer.Option("--model", metavar="N", min=0, help="Which compiled model of the file."),
]
Companions = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="FILE",
        help="A file compiled together with FILE, which may hold its parameters.",
        show_default=False,
    ),
]


Out = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="DIR",
        help="Where finished work is kept: the same command goes on after a kill.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        min=1,
        max=1024,
        help="Processes on this machine; one for each core by default.",
        show_default=False,
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Do again what is finished already.")]


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
            f"{file}: {other.name}: inspect, disasm, run and verify take it, this command takes "
            "compiled Edge TPU models"
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
