"""The table of operators: name with overload to how it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib import resources
from typing import Any

from darwinn_reference.executorch.kernels import (
    distances,
    elementwise,
    gradients,
    linear,
    movement,
    placement,
    primitives,
    quantised,
    quantised_weights,
    random_numbers,
    reductions,
    resampling,
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
    ``repeated`` that of arguments at the end which repeat outputs. ``keeps_category``: floats do
    not become integers in an output, nor integers truth values. ``rounds``: with an output of half
    precision the kernel is given ``rounded``, which rounds to its type.
    """

    name: str
    kernel: Callable[..., Any]
    convention: Convention
    outputs: int = 0
    repeated: int = 0
    least: int = 0
    most: int | None = None
    keeps_category: bool = False
    rounds: bool = False

    def accepts(self, count: int) -> bool:
        """Whether a call may have ``count`` arguments."""
        given = count - self.outputs - self.repeated
        return given >= self.least and (self.most is None or given <= self.most)


_SEVERAL_OUTPUTS: Mapping[str, int] = {
    "aten::_native_batch_norm_legit.no_stats_out": 3,
    "aten::_native_batch_norm_legit.out": 3,
    "aten::_native_batch_norm_legit_no_training.out": 3,
    "aten::convolution_backward.out": 3,
    "aten::max.dim_max": 2,
    "aten::max_pool2d_with_indices.out": 2,
    "aten::min.dim_min": 2,
    "aten::native_dropout.out": 2,
    "aten::native_group_norm.out": 3,
    "aten::native_layer_norm.out": 3,
    "aten::topk.values": 2,
    "aten::var_mean.correction_out": 2,
    "quantized_decomposed::choose_qparams.Tensor_out": 2,
    "quantized_decomposed::choose_qparams_per_token_asymmetric.out": 2,
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


def _names_of(kernel: Callable[..., Any]) -> tuple[str, ...]:
    """Names of the arguments of a kernel; none of a function of NumPy's, which does not say."""
    try:
        return tuple(inspect.signature(kernel).parameters)
    except ValueError:
        return ()


_MODULES = (
    distances,
    elementwise,
    gradients,
    linear,
    movement,
    quantised,
    quantised_weights,
    random_numbers,
    reductions,
    resampling,
    windows,
)
"""Modules of kernels that give the contents of outputs."""


_KEEPS_CATEGORY = {
    *(set(elementwise.KERNELS) - set(elementwise.IN_FLOAT64)),
    *(name for name in reductions.KERNELS if name.startswith(("aten::mean", "aten::var"))),
    "aten::cat.out",
    "aten::stack.out",
}
"""Operators whose results the original runtime does not convert to a lower category of types.

Found by asking it, version 1.5.1, for outputs of integers and of truth values.
"""


def _table() -> dict[str, Operator]:
    table: dict[str, Operator] = {}
    for name, kernel in ((n, k) for module in _MODULES for n, k in module.KERNELS.items()):
        outputs = _SEVERAL_OUTPUTS.get(name, 1)
        keeps = name in _KEEPS_CATEGORY
        rounds = "rounded" in _names_of(kernel)
        table[name] = Operator(
            name, kernel, Convention.OUT, outputs, 1, *_bounds(kernel), keeps, rounds
        )
    for name, kernel in movement.IN_PLACE.items():
        table[name] = Operator(name, kernel, Convention.IN_PLACE, 0, 1, *_bounds(kernel))
    for name, kernel in primitives.KERNELS.items():
        table[name] = Operator(name, kernel, Convention.VALUE, 1, 0, *_bounds(kernel))
    for name, (kernel, repeated) in placement.KERNELS.items():
        table[name] = Operator(name, kernel, Convention.PLACED, 0, repeated, *_bounds(kernel))
    return dict(sorted(table.items()))


OPERATORS: Mapping[str, Operator] = _table()
"""Every operator that can be executed, by its full name."""

_COMPLEX = "complex numbers"
_DEVICE = "memory of a device"

REFUSED: Mapping[str, str] = {
    "aten::_conj_physical.out": _COMPLEX,
    "aten::_fft_c2r.out": _COMPLEX,
    "aten::_fft_r2c.out": _COMPLEX,
    "aten::view_as_real_copy.out": _COMPLEX,
    "et_copy::_d2h_copy.out": _DEVICE,
    "et_copy::_h2d_copy.out": _DEVICE,
}
"""Operators of the original runtime that are not there, with the reason."""

LISTS: Mapping[str, str] = {
    "portable.txt": "portable library",
    "quantised.txt": "quantised library",
    "primitive.txt": "runtime itself",
}
"""Lists of the operators of the original runtime, in the folder ``lists``."""


def listed(name: str) -> tuple[str, ...]:
    """Full names of the operators in a list of ``LISTS``."""
    text = resources.files(__package__).joinpath("lists", name).read_text()
    return tuple(line for line in text.splitlines() if not line.startswith("#"))
