"""IREE modules (.vmfb): read, shown and executed."""

from __future__ import annotations

from collections.abc import Iterator

from darwinn_formats import iree
from darwinn_formats.files import Source
from darwinn_reference.errors import Unsupported
from darwinn_reference.iree import IreeReference, OriginalIree, why_not
from darwinn_reference.iree.interface import signature_of
from darwinn_reference.protocol import Reference

from darwinn_testbench.programs.handler import FunctionFigures, Handler, Opening, texts


def _functions(file: iree.VmfbFile) -> Iterator[FunctionFigures]:
    for name, function in file.module.exports.items():
        signature = signature_of(function)
        inputs, outputs = (
            tuple(declared.port for _, declared in side)
            for side in (signature.arguments, signature.results)
        )
        count = sum(1 for _ in function.instructions())
        yield FunctionFigures(name, texts(inputs), texts(outputs), count)


def _open(source: Source, opening: Opening) -> Reference:
    """The reference, or, of machine code, the original runtime where it is installed."""
    try:
        return IreeReference(source, natives=opening.natives)
    except Unsupported as error:
        if error.what == "imports":
            error.args = (f"{error} (--natives MODULE gives them)",)
        if error.what != "executables":
            raise
        if why_not() is None:
            return OriginalIree(source)
        hint = "the original runtime executes machine code: pip install 'darwinn-testbench[iree]'"
        error.args = (f"{error} ({hint})",)
        raise


HANDLER = Handler(
    iree.load,
    iree.describe,
    iree.disassemble,
    _functions,
    _open,
    original=OriginalIree,
    missing=why_not,
)
