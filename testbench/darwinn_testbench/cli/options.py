"""Arguments and options that several commands share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from darwinn_formats.files import Content, Source, read_file, read_stream

from darwinn_testbench.cli.declared import argument
from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.formats import format_of
from darwinn_testbench.request import scope as scopes
from darwinn_testbench.request.scope import Scope

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


def source_of(file: str) -> Source:
    """What the library should load for FILE: the path, or the bytes of standard input for ``-``."""
    if file != "-":
        # A pipe can be read only once, and its content says what it is.
        return Content(read_file(file), file) if Path(file).is_fifo() else file
    if sys.stdin is None:
        raise InputError("standard input is closed")
    return Content(read_stream(typer.get_binary_stream("stdin"), _STDIN), _STDIN)


def only_for(scope: Scope, **given: object) -> None:
    """Refuse options of one command that are not for the kind of file that FILE is.

    Raises:
        InputError: naming the options.
    """
    nothing: tuple[object, ...] = (None, (), [])
    scopes.only_for(scope, (f"--{name}" for name, value in given.items() if value not in nothing))


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
