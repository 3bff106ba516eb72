"""IREE modules (.vmfb): read, shown and executed."""

from __future__ import annotations

from collections.abc import Iterator

from darwinn_formats import iree

from darwinn_testbench.programs.handler import FunctionFigures, Handler, texts
from darwinn_testbench.reference.iree import IreeReference, OriginalIree, why_not
from darwinn_testbench.reference.iree.interface import signature_of


def _functions(file: iree.VmfbFile) -> Iterator[FunctionFigures]:
    for name, function in file.module.exports.items():
        signature = signature_of(function)
        inputs, outputs = (
            tuple(declared.port for _, declared in side)
            for side in (signature.arguments, signature.results)
        )
        count = sum(1 for _ in function.instructions())
        yield FunctionFigures(name, texts(inputs), texts(outputs), count)


HANDLER = Handler(
    iree.load,
    iree.describe,
    iree.disassemble,
    _functions,
    lambda source, _: IreeReference(source),
    original=OriginalIree,
    missing=why_not,
)
