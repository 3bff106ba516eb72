"""ExecuTorch programs (.pte, .bpte) and external data (.ptd): read, shown and executed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from darwinn_formats import executorch
from darwinn_formats.files import Source
from darwinn_formats.signatures import is_executorch_data
from darwinn_reference.errors import Unsupported, names_of
from darwinn_reference.executorch import ExecutorchReference
from darwinn_reference.executorch.original import OriginalRuntime, unavailable
from darwinn_reference.executorch.reference import ports_of
from darwinn_reference.protocol import Reference

from darwinn_testbench.errors import InputError
from darwinn_testbench.programs.handler import FunctionFigures, Handler, Opening, texts
from darwinn_testbench.request.inputs import head_of


def _load(
    source: Source, data: Sequence[Source] = ()
) -> executorch.ProgramFile | executorch.DataFile:
    if is_executorch_data(head_of(source)):
        return executorch.load_data(source)
    return executorch.load(source, external=data, incomplete=True)


def _describe(file: executorch.ProgramFile | executorch.DataFile) -> dict[str, Any]:
    if isinstance(file, executorch.DataFile):
        return executorch.describe_data(file)
    return executorch.describe(file)


def _list(file: executorch.ProgramFile | executorch.DataFile) -> Iterable[str]:
    if isinstance(file, executorch.DataFile):
        raise InputError(f"{file.file}: external data (.ptd) holds no instructions")
    return executorch.disassemble(file)


def _functions(
    file: executorch.ProgramFile | executorch.DataFile,
) -> Iterator[FunctionFigures]:
    if isinstance(file, executorch.DataFile):
        return
    for plan in file.program.execution_plan:
        inputs, outputs = ports_of(file, plan.name)
        count = sum(len(chain.instructions) for chain in plan.chains)
        yield FunctionFigures(plan.name, texts(inputs), texts(outputs), count)


def _open(
    source: Source,
    opening: Opening,
    data: Sequence[Source] = (),
    *,
    placeholders: bool = False,
) -> Reference:
    file = executorch.load(source, external=data)
    methods = None if opening.function is None else [opening.function]
    if methods is None:
        return _reference(file, methods, opening, placeholders=placeholders)
    if opening.function not in file.methods:
        known = names_of(file.methods)
        raise InputError(f"{file.file}: there is no method {opening.function}, only {known}")
    return _reference(file, methods, opening, placeholders=placeholders)


def _reference(
    file: executorch.ProgramFile,
    methods: Sequence[str] | None,
    opening: Opening,
    *,
    placeholders: bool,
) -> Reference:
    try:
        return ExecutorchReference(
            file, methods=methods, placeholders=placeholders, natives=opening.natives
        )
    except Unsupported as error:
        if {"operators", "delegates"}.intersection(error.kinds):
            error.args = (f"{error} (--natives MODULE gives them)",)
        raise


def _with_data(
    data: Sequence[Source],
) -> Handler[executorch.ProgramFile | executorch.DataFile]:
    return replace(
        HANDLER,
        load=partial(_load, data=data),
        open=partial(_open, data=data),
        original=partial(OriginalRuntime, external=data),
        sketch=partial(_open, data=data, placeholders=True),
    )


HANDLER = Handler(
    _load,
    _describe,
    _list,
    _functions,
    _open,
    with_data=_with_data,
    original=OriginalRuntime,
    missing=unavailable,
    sketch=partial(_open, placeholders=True),
)
