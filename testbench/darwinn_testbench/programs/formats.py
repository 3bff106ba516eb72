"""Program files of other formats than DarwiNN: which one a file is, by content, and opening it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from darwinn_formats import executorch, iree, tfrt
from darwinn_formats.errors import FormatError
from darwinn_formats.files import read_file

from darwinn_testbench.engine import Engine
from darwinn_testbench.model import Source
from darwinn_testbench.reference.executorch import ExecutorchReference
from darwinn_testbench.reference.executorch.interpreter import ports_of as executorch_ports
from darwinn_testbench.reference.executorch.original import OriginalRuntime
from darwinn_testbench.reference.executorch.original import unavailable as executorch_unavailable
from darwinn_testbench.reference.iree import IreeReference, OriginalIree
from darwinn_testbench.reference.iree import why_not as iree_unavailable
from darwinn_testbench.reference.iree.reference import ports_of as iree_ports
from darwinn_testbench.reference.protocol import (
    ExecutionError,
    Port,
    Reference,
    Unavailable,
    Unsupported,
)
from darwinn_testbench.reference.tfrt import Driver, TfrtReference
from darwinn_testbench.report import InputError

Natives = Mapping[str, Callable[..., Any]]
"""Native functions of a BEF file by name (``TfrtReference``)."""

_HEAD_BYTES = 1 << 18
"""How much of a file says what it is: a zip archive has names before the module."""

_TEXT_START = re.compile(rb"(?:\s|//[^\n]*\n)*(?:module|func)\b[^\0]*\Z")
"""The text form of BEF: comments, then a module or a function."""


DEFAULT_FUNCTIONS = frozenset({"forward", "main"})
"""Functions that are called where none is chosen."""


REGION = "(region)"
"""How functions within kernels are called, which have no names."""


@dataclass(frozen=True)
class Opening:
    """How a program is to be opened: the function that will be called, native functions, and where
    what it prints goes."""

    function: str | None = None
    natives: Natives | None = None
    output: TextIO | None = None


Suite = Callable[[Source, Opening, TextIO], int]
"""Runs all functions of a file as a test; see :class:`Format`."""


@dataclass(frozen=True)
class FunctionFigures:
    """A function of a program: ``inputs`` and ``outputs`` as text, and number of instructions."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    instructions: int


@dataclass(frozen=True)
class Format:
    """A kind of program file.

    Attributes:
        name: as messages call it.
        looks_like: whether the first bytes of a file say that it is one.
        load: reads and checks a file.
        describe: what is in a loaded file, as JSON values.
        listing: lines of the program of a loaded file; those of a part are indented.
        functions: what can be called in a loaded file.
        open: the CPU reference of a file.
        suite: runs every function of a loaded file as a test, prints as the original does, gives
            the exit status and writes what was not expected to the last argument; None where
            programs are no tests.
        original: the original runtime of a file; None if there is none to be installed.
        missing: why the original runtime cannot be used, or nothing.
        extra: of the package, that installs the original runtime.
    """

    name: str
    looks_like: Callable[[bytes], bool]
    load: Callable[[Source], Any]
    describe: Callable[[Any], dict[str, Any]]
    listing: Callable[[Any], Iterable[str]]
    functions: Callable[[Any], Iterable[FunctionFigures]]
    open: Callable[[Source, Opening], Reference]
    suite: Suite | None = None
    original: Callable[[Source], Reference] | None = None
    missing: Callable[[], str | None] = lambda: None
    extra: str = ""


def _load_executorch(source: Source) -> executorch.ProgramFile | executorch.DataFile:
    if executorch.is_data(_head(source)):
        return executorch.load_data(source)
    return executorch.load(source)


def _describe_executorch(file: executorch.ProgramFile | executorch.DataFile) -> dict[str, Any]:
    if isinstance(file, executorch.DataFile):
        return executorch.describe_data(file)
    return executorch.describe(file)


def _list_executorch(file: executorch.ProgramFile | executorch.DataFile) -> Iterable[str]:
    if isinstance(file, executorch.DataFile):
        raise InputError(f"{file.file}: external data (.ptd) holds no instructions")
    return executorch.disassemble(file)


def _executorch_functions(
    file: executorch.ProgramFile | executorch.DataFile,
) -> Iterator[FunctionFigures]:
    if isinstance(file, executorch.DataFile):
        return
    for plan in file.program.execution_plan:
        inputs, outputs = executorch_ports(file, plan.name)
        count = sum(len(chain.instructions) for chain in plan.chains)
        yield FunctionFigures(plan.name, _texts(inputs), _texts(outputs), count)


def _iree_functions(file: iree.VmfbFile) -> Iterator[FunctionFigures]:
    for name, function in file.module.exports.items():
        inputs, outputs = (tuple(each.port for each in side) for side in iree_ports(function))
        count = sum(1 for _ in function.instructions())
        yield FunctionFigures(name, _texts(inputs), _texts(outputs), count)


def _bef_functions(file: tfrt.BefFile) -> Iterator[FunctionFigures]:
    for function in file.functions:
        count = 0 if function.body is None else len(function.body.kernels)
        name = function.name or REGION
        yield FunctionFigures(name, function.argument_types, function.result_types, count)


def _texts(ports: Sequence[Port]) -> tuple[str, ...]:
    return tuple(map(str, ports))


def _open_executorch(source: Source, opening: Opening) -> Reference:
    if opening.function is None:
        return ExecutorchReference(source)
    file = executorch.load(source)
    if opening.function not in file.methods:
        known = ", ".join(file.methods)
        raise InputError(f"{file.file}: there is no method {opening.function}, only {known}")
    return ExecutorchReference(file, methods=[opening.function])


def _open_bef(source: Source, opening: Opening) -> Reference:
    return _open_functions(tfrt.load(source), opening)


def _open_functions(file: tfrt.BefFile, opening: Opening) -> Reference:
    try:
        return TfrtReference(file, natives=opening.natives, output=opening.output)
    except Unsupported as error:
        if "native" in error.what:
            error.args = (f"{error} (--natives MODULE gives them)",)
        raise


def _load_text(source: Source) -> tfrt.BefFile:
    name, text = _text_of(source)
    return tfrt.from_text(text, name)


def _text_of(source: Source) -> tuple[str, str]:
    """Name and text of a file."""
    data = source if isinstance(source, bytes) else read_file(source)
    try:
        return name_of(source), data.decode()
    except UnicodeDecodeError as error:
        reason = "is not UTF-8"
        raise FormatError("text", reason, offset=error.start, file=name_of(source)) from None


def _run_suite(source: Source, opening: Opening, complaints: TextIO) -> int:
    is_text = not tfrt.looks_like(_head(source))
    driver = Driver(
        _load_text(source) if is_text else tfrt.load(source),
        _text_of(source)[1] if is_text else None,
        output=opening.output,
        log=complaints,
        natives=dict(opening.natives or {}),
    )
    return driver.run()


def _open_text(source: Source, opening: Opening) -> Reference:
    return _open_functions(_load_text(source), opening)


FORMATS: tuple[Format, ...] = (
    Format(
        "ExecuTorch",
        executorch.looks_like,
        _load_executorch,
        _describe_executorch,
        _list_executorch,
        _executorch_functions,
        _open_executorch,
        original=OriginalRuntime,
        missing=executorch_unavailable,
        extra="executorch",
    ),
    Format(
        "IREE",
        iree.looks_like,
        iree.load,
        iree.describe,
        iree.disassemble,
        _iree_functions,
        lambda source, _: IreeReference(source),
        original=OriginalIree,
        missing=iree_unavailable,
        extra="iree",
    ),
    Format(
        "BEF",
        tfrt.looks_like,
        tfrt.load,
        tfrt.describe,
        tfrt.disassemble,
        _bef_functions,
        _open_bef,
        _run_suite,
    ),
    Format(
        "BEF as text",
        lambda head: _TEXT_START.match(head) is not None,
        _load_text,
        tfrt.describe,
        tfrt.disassemble,
        _bef_functions,
        _open_text,
        _run_suite,
    ),
)


def format_of(source: Source) -> Format | None:
    """The format of a program file, by its content; None if it is none of them.

    Raises:
        OSError: the file cannot be read.
    """
    head = _head(source)
    return next((entry for entry in FORMATS if entry.looks_like(head)), None)


def open_program(
    source: Source,
    *,
    function: str | None = None,
    natives: Natives | None = None,
    engine: Engine = Engine.MODEL,
    output: TextIO | None = None,
) -> Reference:
    """A program on the CPU: the project's reference of its format, or its original runtime.

    ``function`` is what will be called, where that matters for what the program needs; ``natives``
    are native functions of a BEF file, and ``output`` takes what its kernels print (by default
    standard error).

    Raises:
        FormatError: the file is not valid.
        InputError: it is a program of none of the formats.
        Unsupported: it needs what the reference does not have; all of it is named.
        Unavailable: there is no original runtime, or it refuses the program.
        OSError: the file cannot be read.
    """
    found = format_of(source)
    if found is None:
        raise InputError(f"{name_of(source)}: no program of {', '.join(e.name for e in FORMATS)}")
    if engine is not Engine.ORIGINAL:
        return found.open(source, Opening(function, natives, output or sys.stderr))
    if found.original is None:
        raise Unavailable(f"{name_of(source)}: {found.name} has no original runtime to install")
    reason = found.missing()
    if reason:
        raise Unavailable(
            f"the original runtime of {found.name} is not installed: "
            f"pip install 'darwinn-testbench[{found.extra}]'"
        )
    try:
        return found.original(source)
    except ExecutionError as error:
        raise Unavailable(f"{name_of(source)}: {error}") from error


def name_of(source: Source) -> str:
    """How messages call a file."""
    return "<bytes>" if isinstance(source, bytes) else os.fspath(source)


def _head(source: Source) -> bytes:
    """The first bytes; none of what is no regular file, since that can be read only once."""
    if isinstance(source, bytes):
        return source[:_HEAD_BYTES]
    path = Path(source)
    if not path.is_file():
        return b""
    with path.open("rb") as stream:
        return stream.read(_HEAD_BYTES)
