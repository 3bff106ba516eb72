"""TFRT programs, in the binary executable format and in its text form: read, shown, executed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from darwinn_formats import tfrt
from darwinn_formats.errors import FormatError
from darwinn_formats.files import Source, content_of, name_of
from darwinn_formats.signatures import is_bef

from darwinn_testbench.errors import Unsupported
from darwinn_testbench.programs.handler import (
    REGION,
    FunctionFigures,
    Handler,
    Opening,
    head_of,
)
from darwinn_testbench.reference.protocol import Reference
from darwinn_testbench.reference.tfrt import Driver, TfrtReference


def _functions(file: tfrt.BefFile) -> Iterator[FunctionFigures]:
    for function in file.functions:
        count = 0 if function.body is None else len(function.body.kernels)
        name = function.name or REGION
        yield FunctionFigures(name, function.argument_types, function.result_types, count)


def _open(source: Source, opening: Opening) -> Reference:
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
    data = content_of(source)
    try:
        return name_of(source), data.decode()
    except UnicodeDecodeError as error:
        reason = "is not UTF-8"
        raise FormatError("text", reason, offset=error.start, file=name_of(source)) from None


def _run_suite(source: Source, opening: Opening, complaints: TextIO) -> int:
    is_text = not is_bef(head_of(source))
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


HANDLER = Handler(tfrt.load, tfrt.describe, tfrt.disassemble, _functions, _open, suite=_run_suite)

TEXT_HANDLER = Handler(
    _load_text, tfrt.describe, tfrt.disassemble, _functions, _open_text, suite=_run_suite
)
