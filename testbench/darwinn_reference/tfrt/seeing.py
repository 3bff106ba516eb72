"""What a tap and an observer see of functions that run: kernels, and native functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from darwinn_formats.errors import ExecutionError
from darwinn_formats.tfrt.text.location_text import location_text

from darwinn_reference.observation import (
    Observer,
    Operator,
    Place,
    number_place,
    place_of,
)
from darwinn_reference.protocol import Intermediate, Tap
from darwinn_reference.tfrt.kernels.tensors import DenseHostTensor
from darwinn_reference.tfrt.plan import FunctionPlan, KernelPlan
from darwinn_reference.tfrt.values import AsyncValue, Chain, ErrorValue, Value

_NO_VALUES = (Chain, AsyncValue, ErrorValue, type(None))


def operator_of(plan: FunctionPlan, kernel: KernelPlan) -> Operator:
    """A kernel by its number in its function; in a region, which has no name, by its offset too."""
    name = f"{plan.name}.k{kernel.number}" if plan.name else _in_region(kernel)
    location = "" if kernel.location is None else location_text(kernel.location)
    return Operator(name, kernel.definition.name, location)


def _in_region(kernel: KernelPlan) -> str:
    return f"region.k{kernel.number}@{kernel.location_offset}"


def value_places(registers: Iterable[tuple[Any, Value]]) -> Iterator[Place]:
    """Where values are: tensors in memory, all others in their registers; chains are none."""
    for register, value in registers:
        if isinstance(value, DenseHostTensor):
            yield place_of(value.data)
        elif not isinstance(value, _NO_VALUES):
            yield number_place(register, value)


class KernelWatch:
    """Shows an observer the kernels that run (``host.Watch``)."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer

    def begin(self, plan: FunctionPlan, kernel: KernelPlan) -> None:
        """See ``host.Watch``."""
        self.observer.begin(operator_of(plan, kernel))

    def end(
        self, kernel: KernelPlan, results: list[Value], operands: list[Value], serial: int
    ) -> None:
        """See ``host.Watch``."""
        reads = [((serial, each), value) for each, value in _pairs(kernel.operands, operands)]
        made = [((serial, each), value) for each, value in _pairs(kernel.results, results)]
        writes = kernel.definition.writes
        if writes is not None:
            made.append(reads[writes])
        self.observer.end(lambda: (value_places(reads), value_places(made)))

    def native(self, plan: FunctionPlan, values: list[Value]) -> Any:
        """See ``host.Watch``."""
        assert plan.native is not None
        self.observer.begin(Operator(plan.name, "native function"))
        given: Any = None
        try:
            given = plan.native(*values)
        finally:
            made = given if isinstance(given, tuple) else (given,)
            tensors = [(0, each) for each in made if isinstance(each, DenseHostTensor)]
            read = [(0, each) for each in values if isinstance(each, DenseHostTensor)]
            self.observer.end(lambda: (value_places(read), value_places(tensors)))
        return given


def _pairs(registers: Iterable[int], values: Iterable[Value]) -> Iterator[tuple[int, Value]]:
    return zip(registers, values, strict=False)


class KernelTap:
    """Shows a tap the dense tensors that kernels make, and those that they fill."""

    def __init__(self, tap: Tap) -> None:
        self.tap = tap
        self.step = 0

    def __call__(
        self, plan: FunctionPlan, kernel: KernelPlan, results: list[Value], operands: list[Value]
    ) -> list[Value]:
        """See ``host.KernelTap``."""
        location = "" if kernel.location is None else location_text(kernel.location)
        writes = kernel.definition.writes
        written = [] if writes is None else [operands[writes]]
        for number, value in enumerate((*results, *written)):
            if not isinstance(value, DenseHostTensor):
                continue
            name = f"{plan.name or 'region'}.k{kernel.number}.{number}"
            seen = Intermediate(name, self.step, kernel.definition.name, value.data, location)
            replacement = self.tap(seen)
            if replacement is not None:
                if replacement.shape != value.data.shape:
                    raise ExecutionError(f"{name}: the replacement is of another shape")
                np.copyto(value.data, replacement, casting="same_kind")
        self.step += 1
        return results
