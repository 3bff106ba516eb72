"""IREE modules (.vmfb) and their parameters (.irpa): read, shown and executed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from darwinn_formats import iree
from darwinn_formats.files import Source, name_of
from darwinn_formats.signatures import is_iree_parameters
from darwinn_reference.errors import Unsupported
from darwinn_reference.iree import IreeReference, OriginalIree, why_not
from darwinn_reference.iree.interface import signature_of
from darwinn_reference.protocol import Reference

from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.handler import FunctionFigures, Handler, Opening, texts
from darwinn_testbench.request.inputs import head_of

Loaded = iree.VmfbFile | iree.ParameterFile


def _load(source: Source) -> Loaded:
    if is_iree_parameters(head_of(source)):
        return iree.load_parameters(source)
    return iree.load(source)


def _describe(file: Loaded) -> dict[str, Any]:
    if isinstance(file, iree.ParameterFile):
        return iree.describe_parameters(file)
    return iree.describe(file)


def _list(file: Loaded) -> Iterable[str]:
    if isinstance(file, iree.ParameterFile):
        raise InputError(f"{file.file}: parameters (.irpa) hold no instructions")
    return iree.disassemble(file)


def _functions(file: Loaded) -> Iterator[FunctionFigures]:
    if isinstance(file, iree.ParameterFile):
        return
    for name, function in file.module.exports.items():
        signature = signature_of(file.module, function)
        inputs, outputs = (
            tuple(declared.port for _, declared in side)
            for side in (signature.arguments, signature.results)
        )
        count = sum(1 for _ in function.instructions())
        yield FunctionFigures(name, texts(inputs), texts(outputs), count)


def _open(source: Source, opening: Opening, data: Sequence[Source] = ()) -> Reference:
    """The reference, or, of machine code, the original runtime where it is installed."""
    if is_iree_parameters(head_of(source)):
        raise InputError(f"{name_of(source)}: parameters (.irpa) are no program")
    try:
        parameters = data or _beside(source)
        return IreeReference(source, natives=opening.natives, parameters=parameters)
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


def _sketch(source: Source, opening: Opening, data: Sequence[Source] = ()) -> Reference:
    parameters = data or _beside(source)
    return IreeReference(source, natives=opening.natives, parameters=parameters, placeholders=True)


def _beside(source: Source) -> Sequence[Source]:
    """The parameters that lie beside a module, in a file of its name."""
    if isinstance(source, bytes):
        return ()
    path = Path(source).with_suffix(".irpa")
    return (path,) if path.is_file() else ()


def _with_data(data: Sequence[Source]) -> Handler[Loaded]:
    return replace(
        HANDLER,
        open=partial(_open, data=data),
        original=_original_with_data,
        sketch=partial(_sketch, data=data),
    )


def _original_with_data(source: Source) -> Reference:
    raise Unsupported("parameters", ["files (--data)"], "the interface to the original runtime")


HANDLER = Handler(
    _load,
    _describe,
    _list,
    _functions,
    _open,
    with_data=_with_data,
    original=OriginalIree,
    missing=why_not,
    sketch=_sketch,
)
