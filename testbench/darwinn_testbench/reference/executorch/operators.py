"""The table of operators: name with overload to how it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from darwinn_testbench.reference.executorch.kernels import (
    elementwise,
    linear,
    movement,
    placement,
    primitives,
    quantised,
    reductions,
    windows,
)


class Convention(Enum):
    """How the arguments of a call are laid out, after those of the kernel."""

    OUT = "output tensors, then what is returned"
    IN_PLACE = "the first argument again"
    VALUE = "where the resulting value goes"
    PLACED = "nothing, or the output again; the kernel takes tensors as they lie"


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator that can be executed.

    ``outputs`` is the number of output arguments, a list of tensors counting as one;
    ``repeated`` that of arguments at the end which repeat outputs.
    """

    name: str
    kernel: Callable[..., Any]
    convention: Convention
    outputs: int = 0
    repeated: int = 0
    least: int = 0
    most: int | None = None

    def accepts(self, count: int) -> bool:
        """Whether a call may have ``count`` arguments."""
        given = count - self.outputs - self.repeated
        return given >= self.least and (self.most is None or given <= self.most)


_SEVERAL_OUTPUTS: Mapping[str, int] = {
    "aten::_native_batch_norm_legit.no_stats_out": 3,
    "aten::_native_batch_norm_legit_no_training.out": 3,
    "aten::max.dim_max": 2,
    "aten::max_pool2d_with_indices.out": 2,
    "aten::min.dim_min": 2,
    "aten::native_group_norm.out": 3,
    "aten::native_layer_norm.out": 3,
    "aten::topk.values": 2,
    "quantized_decomposed::choose_qparams.Tensor_out": 2,
}
"""Operators with more than one output argument."""

_FIXED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _bounds(kernel: Callable[..., Any]) -> tuple[int, int | None]:
    """Least and greatest number of arguments of a kernel; (1, None) where it does not say."""
    try:
        parameters = inspect.signature(kernel).parameters.values()
    except ValueError:
        return 1, None
    fixed = [entry for entry in parameters if entry.kind in _FIXED]
    least = sum(entry.default is entry.empty for entry in fixed)
    is_open = any(entry.kind is entry.VAR_POSITIONAL for entry in parameters)
    return least, None if is_open else len(fixed)


def _table() -> dict[str, Operator]:
    table: dict[str, Operator] = {}
    modules = (elementwise, linear, movement, quantised, reductions, windows)
    for name, kernel in ((n, k) for module in modules for n, k in module.KERNELS.items()):
        outputs = _SEVERAL_OUTPUTS.get(name, 1)
        table[name] = Operator(name, kernel, Convention.OUT, outputs, 1, *_bounds(kernel))
    for name, kernel in movement.IN_PLACE.items():
        table[name] = Operator(name, kernel, Convention.IN_PLACE, 0, 1, *_bounds(kernel))
    for name, kernel in primitives.KERNELS.items():
        table[name] = Operator(name, kernel, Convention.VALUE, 1, 0, *_bounds(kernel))
    for name, (kernel, repeated) in placement.KERNELS.items():
        table[name] = Operator(name, kernel, Convention.PLACED, 0, repeated, *_bounds(kernel))
    return dict(sorted(table.items()))


OPERATORS: Mapping[str, Operator] = _table()
"""Every operator that can be executed, by its full name."""
