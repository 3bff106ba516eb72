"""Functions of a file prepared for execution: kernels resolved, their attributes bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.tfrt import (
    Aggregate,
    Array,
    Attribute,
    BefFile,
    Body,
    DType,
    Function,
    FunctionKind,
    Kernel,
    Kind,
    Scalar,
    String,
    Untyped,
)
from darwinn_formats.tfrt.attributes import AttributeReader
from darwinn_formats.tfrt.cursor import Cursor
from darwinn_formats.tfrt.encoding import ARRAY_FLAG

from darwinn_reference.errors import Unsupported
from darwinn_reference.tfrt.definition import KernelDefinition, Style
from darwinn_reference.tfrt.host import Host
from darwinn_reference.tfrt.plan import (
    GENERAL,
    FunctionPlan,
    KernelPlan,
    NativeFunction,
    Step,
)
from darwinn_reference.tfrt.values import Value


def prepare(
    file: BefFile,
    host: Host,
    kernels: Mapping[str, KernelDefinition],
    natives: Mapping[str, NativeFunction],
) -> list[FunctionPlan]:
    """Plans of all functions of a file.

    Raises:
        Unsupported: naming all kernels, or native functions, that are missing.
        ExecutionError: when a kernel is called in a way that it does not allow.
    """
    used = {kernel.name for function in file.functions for kernel in _kernels(function)}
    missing = sorted(used - kernels.keys())
    if missing:
        raise Unsupported("kernels", missing)
    wanted = {entry.name for entry in file.functions if entry.kind is FunctionKind.NATIVE}
    absent = sorted(wanted - natives.keys())
    if absent:
        raise Unsupported("native functions", absent)
    plans = [
        FunctionPlan(
            function.name,
            function.kind,
            function.argument_types,
            function.result_types,
            natives.get(function.name) if function.kind is FunctionKind.NATIVE else None,
        )
        for function in file.functions
    ]
    for plan, function in zip(plans, file.functions, strict=True):
        if function.body is not None:
            _Preparation(file, host, kernels, plans).fill(plan, function.body)
    return plans


def _kernels(function: Function) -> tuple[Kernel, ...]:
    return () if function.body is None else function.body.kernels


class _Preparation:
    def __init__(
        self,
        file: BefFile,
        host: Host,
        kernels: Mapping[str, KernelDefinition],
        plans: Sequence[FunctionPlan],
    ) -> None:
        self.file = file
        self.host = host
        self.definitions = kernels
        self.plans = plans

    def fill(self, plan: FunctionPlan, body: Body) -> None:
        returned = set(body.results)
        plan.returned = body.results
        plan.entry_used_by = body.entry_used_by
        plan.uses = [0] * len(body.registers)
        for kernel in body.kernels:
            for register in kernel.arguments:
                plan.uses[register] += 1
        plan.counts = [0, *(kernel.ready_count or 1 for kernel in body.kernels)]
        plan.streams = [body.entry_stream, *(kernel.stream for kernel in body.kernels)]
        plan.fresh = [False] * len(body.registers)
        entry = Step(GENERAL, _nothing, (), (), -1, ())
        plan.steps = [entry]
        for number, kernel in enumerate(body.kernels, 1):
            prepared = self.kernel(plan, number, kernel)
            plan.kernels.append(prepared)
            for register in kernel.results:
                plan.fresh[register] = prepared.definition.fresh and register not in returned
            plan.steps.append(_step(prepared, plan, returned))

    def kernel(self, plan: FunctionPlan, number: int, kernel: Kernel) -> KernelPlan:
        definition = self.definitions[kernel.name]
        where = f"{plan.name or 'a region'}: kernel {number}, {kernel.name}"
        count = definition.operands
        if count is not None and len(kernel.arguments) < count:
            raise ExecutionError(f"{where}: needs {count} operands, has {len(kernel.arguments)}")
        if definition.results not in (None, len(kernel.results)):
            reason = f"gives {definition.results} results, not {len(kernel.results)}"
            raise ExecutionError(f"{where}: {reason}")
        attributes = self.attributes(definition, kernel, where)
        call = definition.call
        if definition.style is not Style.FRAME:
            bound = (self.host, *attributes) if definition.style is Style.HOST else attributes
            call = partial(call, *bound) if bound else call
        return KernelPlan(
            number,
            definition,
            call,
            kernel.arguments if count is None else kernel.arguments[:count],
            kernel.arguments,
            attributes,
            tuple(self.plans[index] for index in kernel.functions),
            kernel.results,
            kernel.used_by,
            kernel.location,
            kernel.location_offset,
        )

    def attributes(
        self, definition: KernelDefinition, kernel: Kernel, where: str
    ) -> tuple[Any, ...]:
        wanted = definition.attributes
        if definition.repeats:
            wanted *= len(kernel.attributes)
        if len(wanted) != len(kernel.attributes):
            reason = f"has {len(wanted)} attributes, not {len(kernel.attributes)}"
            raise ExecutionError(f"{where}: {reason}")
        values = []
        for code, index in zip(wanted, kernel.attributes, strict=True):
            attribute = self.typed(self.file.attributes[index], code)
            if not _fits(attribute, code):
                raise ExecutionError(f"{where}: attribute {index} is of another type")
            values.append(python_value(attribute))
        return tuple(values)

    def typed(self, attribute: Attribute, code: int) -> Attribute:
        """An attribute of a file without types is what the kernel takes it for."""
        if not isinstance(attribute, Untyped):
            return attribute
        data = self.file.attribute_data or b""
        # Alignment holds for offsets in the file, and the section is aligned for all of them.
        reader = AttributeReader(Cursor(data, 0, len(data), "ATTRIBUTES"))
        return reader.read(attribute.offset, code, "attribute")


def _nothing() -> None:
    """The pseudo kernel, which is never called."""


def _step(kernel: KernelPlan, plan: FunctionPlan, returned: set[int]) -> Step:
    definition, results = kernel.definition, kernel.results
    simple = (
        definition.style is not Style.FRAME
        and len(results) <= 1
        and not returned.intersection(results)
    )
    way = len(kernel.passed) if simple else GENERAL
    used = bool(results) and plan.uses[results[0]] > 0
    return Step(
        way,
        kernel.call,
        kernel.passed,
        kernel.operands,
        results[0] if used else -1,
        kernel.used_by[0] if used else (),
    )


def _fits(attribute: Attribute, code: int) -> bool:
    if isinstance(attribute, Untyped):
        return False
    empty = isinstance(attribute, Array) and not attribute.data
    return attribute.code == code or (empty and (code == Kind.AGGREGATE or bool(code & ARRAY_FLAG)))


def python_value(attribute: Attribute) -> Value:
    """An attribute as kernels take it: f32 as NumPy's, lists for arrays and aggregates.

    Tensors, and what Python has no value for, are given as they are.
    """
    match attribute:
        case Scalar(DType.F32, data):
            return np.frombuffer(data, "<f4")[0]
        case Scalar() | String() | Array():
            return attribute.value
        case Aggregate(elements):
            return [python_value(element) for element in elements]
        case _:
            return attribute
