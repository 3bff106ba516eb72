"""The numbers of an IREE module whose only dispatch is a quantised matrix product in fixed point.

Weights are data of the dispatch; the rest are constants of its bytecode, found by what uses them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from darwinn_formats.iree import Function, load
from numpy.typing import NDArray

_SECOND = 1


def weights_of(path: Path, inner: int) -> NDArray[np.int8]:
    """The matrix of weights, shape (``inner``, columns)."""
    (module,) = load(path).module.nested.values()
    return np.frombuffer(module.rodata[0].data, np.int8).reshape(inner, -1)


def constants_of(path: Path) -> dict[str, int]:
    """Zero points, multiplier and shift, as the arguments of ``matrix_product``."""
    (module,) = load(path).module.nested.values()
    (function,) = module.functions
    (shift,) = constant_operands(function, "shr.i64.s")
    (output_zero_point,) = constant_operands(function, "add.i32")
    # Taken from each sum, times the sum of the weights, or else from every input.
    (input_zero_point,) = constant_operands(function, "mul.i32") or constant_operands(
        function, "sub.i32"
    )
    (rounding,) = {1 << (shift - 1)} & constant_operands(function, "fma.i64", 2)
    assert constant_operands(function, "max.i32.s") == {-128}
    assert constant_operands(function, "min.i32.s") == {127}
    multipliers = constant_operands(function, "fma.i64", _SECOND, addend=rounding)
    (multiplier,) = multipliers
    return {
        "input_zero_point": input_zero_point,
        "output_zero_point": output_zero_point,
        "multiplier": multiplier,
        "shift": shift,
    }


def constant_operands(
    function: Function, mnemonic: str, position: int = _SECOND, addend: int | None = None
) -> set[int]:
    """Constants that are an operand of an operation; ``addend`` is what its third has to be."""
    return {
        constants[operands[position]]
        for constants, operands in _uses(function, mnemonic)
        if operands[position] in constants
        and (addend is None or constants.get(operands[2]) == addend)
    }


def _uses(function: Function, mnemonic: str) -> Iterator[tuple[dict[int, int], tuple[Any, ...]]]:
    """Constants in registers, and operands, of each use of an operation."""
    constants: dict[int, int] = {}
    for step in function.instructions():
        match step.mnemonic.split("."):
            case ["const", "i32" | "i64"]:
                value, register = step.operands
                constants[register] = value
        if step.mnemonic == mnemonic:
            yield constants, step.operands
