"""One operator with the values of its inputs, and what a function of it may ask.

Functions refuse what they do not know with :class:`NotComputableError`, before they compute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite.factors import Factors
from darwinn_reference.tflite.graph import NetworkTensor, Operator
from darwinn_reference.tflite.output_stage import (
    NotComputableError,
    accumulated,
    biased,
    low_bytes,
    output_stage,
    reciprocal,
    summing_dtype,
)
from darwinn_reference.tflite.roundings import (
    REQUANTISATION,
    Quantities,
    Rounding,
    values,
)

MAXIMUM_PRODUCTS = 2**37
"""Products of one operator, at most: bounds the time that a damaged model can take."""

SAME_AMPLITUDE = 1e-3
"""Amplitudes of tables differ by their fit; 127.5 and 128 are still told apart."""


def _sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logistic function, without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def _inverse_root(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / sqrt(x), a number beyond every tensor where x is not positive."""
    return np.where(x > 0, 1.0 / np.sqrt(np.where(x > 0, x, 1.0)), 2.0**31)


RealFunction = Callable[[NDArray[np.float64]], NDArray[np.float64]]

IDEAL_FUNCTIONS: Mapping[str, RealFunction] = {
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
    "rsqrt": _inverse_root,
}
"""Real functions of operators, by name."""


TableFunction = Callable[[NDArray[np.float32]], NDArray[np.float32]]


@dataclass(frozen=True, slots=True, eq=False)
class ScaledFunction:
    """The chip's approximation of ``amplitude`` times a real function."""

    amplitude: float
    function: TableFunction


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxFunctions:
    """The chip's approximations of 65535 exp(x), x <= 0, and of 46340 / sqrt(x), x > 0."""

    exponential: TableFunction
    inverse_root: TableFunction


@dataclass(frozen=True, slots=True, eq=False)
class CompilerChoices:
    """What the uncompiled network leaves to the compiler.

    ``functions`` holds the approximations that a program loads, by the name of the real function
    (see ``coefficient_tables``); where none has the amplitude that is asked for, the ideal
    function is taken. ``softmax`` is None where the scalar core computes it, in float32, so that
    the ideal value decides.

    ``unclipped`` are the factors of the program's instructions that bound nothing: early compilers
    write pools and means so, of which the low byte is then kept.

    ``factors`` are those of the program's tensor instructions. Where no public file tells two
    rules of rounding apart, or elder compilers took another addition's weights, they say which of
    the two it is.

    ``stages`` are pairs of factors: of an instruction that keeps unbounded sums in 16 bits, and of
    the next, which adds them up. Large means are made so, one axis after the other.

    ``steps`` are those of the program's interpolating instructions, in 1/128 pixel.

    ``parabolas`` are the tables that square their argument, by the factor of the square.
    """

    functions: Mapping[str, tuple[ScaledFunction, ...]] = field(default_factory=dict)
    softmax: SoftmaxFunctions | None = None
    unclipped: frozenset[float] = frozenset()
    factors: frozenset[float] = frozenset()
    stages: frozenset[tuple[float, float]] = frozenset()
    steps: frozenset[int] = frozenset()
    parabolas: Mapping[float, TableFunction] = field(default_factory=dict)

    def parabola(self, output: NetworkTensor) -> TableFunction | None:
        """The table that squares into the unit of ``output``, if the program has it."""
        return self.parabolas.get(float(reciprocal(output.scale[0])))

    def levels(self, name: str, real: AnyArray, output: NetworkTensor) -> NDArray[np.int64]:
        """round(function(real) / scale of ``output``), without clip and zero point.

        ``real`` is the float32 that the function unit is given.
        """
        argument = real.astype(np.float32)
        table = self.table(name, output)
        if table is not None:
            return np.rint(table(argument)).astype(np.int64)
        ideal = IDEAL_FUNCTIONS[name](argument.astype(np.float64))
        return np.rint(1 / float(output.scale[0]) * ideal).astype(np.int64)

    def table(self, name: str, output: NetworkTensor) -> TableFunction | None:
        """The table of a function in the unit of ``output``, if the program has it."""
        amplitude = 1 / float(output.scale[0])
        tables = self.functions.get(name, ())
        nearest = min(tables, key=lambda each: abs(each.amplitude - amplitude), default=None)
        if nearest and abs(nearest.amplitude - amplitude) < SAME_AMPLITUDE * amplitude:
            return nearest.function
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """An input of an operator: the tensor and its value."""

    tensor: NetworkTensor
    value: AnyArray

    @property
    def scale(self) -> np.float32:
        """The one scale of the tensor."""
        return np.float32(quantised(self.tensor).scale[0])

    @property
    def zero_point(self) -> int:
        """The one zero point of the tensor."""
        return int(quantised(self.tensor).zero_point[0])

    def centred(self, dtype: type[np.generic] = np.int64) -> AnyArray:
        """``value - zero_point``; exact in every dtype that holds 17-bit integers."""
        centred: AnyArray = self.value.astype(dtype)
        centred -= np.dtype(dtype).type(self.zero_point)
        return centred


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One operator with the values of its inputs (None: absent).

    ``assumptions`` are the rules that were applied without a file that shows them.
    """

    operator: Operator
    inputs: tuple[Operand | None, ...]
    outputs: tuple[NetworkTensor, ...]
    choices: CompilerChoices
    assumptions: list[str] = field(default_factory=list)

    def assume(self, text: str) -> None:
        """Note that this form of the operator is computed by a rule that no file has shown."""
        if text not in self.assumptions:
            self.assumptions.append(text)

    def operand(self, position: int) -> Operand:
        """Input at ``position``; refused if it is absent."""
        found = self.optional(position)
        if found is None:
            raise NotComputableError(f"input {position} is absent")
        return found

    def optional(self, position: int) -> Operand | None:
        """Input at ``position``, or None."""
        return self.inputs[position] if position < len(self.inputs) else None

    def constant(self, position: int) -> AnyArray:
        """Value of the parameter at ``position``; refused if it is computed at run time."""
        found = self.operand(position)
        if found.tensor.constant is None:
            raise NotComputableError(f"input {position} is not a constant")
        return found.tensor.constant

    def option(self, name: str, default: Any) -> Any:
        """Attribute ``name`` of the operator."""
        return self.operator.options.get(name, default)

    @property
    def output(self) -> NetworkTensor:
        """The only output, quantised to 8 bits."""
        return quantised(self.outputs[0])

    def expect(self, shape: tuple[int, ...], products: int = 0) -> None:
        """Refuse, before anything is computed, another output shape or excessive work."""
        if shape != self.outputs[0].shape:
            raise NotComputableError(f"gives shape {shape}, the output {self.outputs[0].shape}")
        if products > MAXIMUM_PRODUCTS:
            raise NotComputableError(f"{products} products, more than {MAXIMUM_PRODUCTS}")

    def rounded(self, rounding: Rounding, given: Quantities) -> Factors:
        """The factor by the rule; where no file tells it from another, or an elder compiler had
        another, the one of the program.

        It is an assumption where no file tells them apart, and the program holds neither.
        """
        by_rule = values(rounding.formula, given)
        rivals = rounding.rivals(given)
        if not rivals or self.holds(by_rule):
            return by_rule
        for rival in rivals.values():
            if self.holds(rival):
                return rival
        unknown = [each.text for each in rounding.open_against if each.text in rivals]
        if unknown:
            self.assume(f"the factor is {rounding.text}, not {' or '.join(unknown)}")
        return by_rule

    def holds(self, factors: Factors | np.float32) -> bool:
        """Whether the program has instructions with all these factors."""
        return self.choices.factors.issuperset(np.atleast_1d(factors).tolist())

    def requantisation(self, operand: Operand) -> Factors:
        """Factor from the scale of ``operand`` to the output's."""
        return self.rounded(REQUANTISATION, Quantities(operand.scale, self.output))

    # Another arithmetic than that of values does these in its own way (``proof.terms``).

    def finish(
        self,
        total: AnyArray,
        factor: NDArray[np.float32] | np.float32,
        output: NetworkTensor | None = None,
        activation: str | None = None,
        *,
        bounded: bool = True,
    ) -> AnyArray:
        """The output stage of sums: see :func:`output_stage`.

        ``output`` and ``activation`` are the operator's, unless they are given. Not ``bounded``:
        see :func:`low_bytes`.
        """
        output = self.output if output is None else output
        activation = self.activation if activation is None else activation
        if not bounded:
            return low_bytes(total, np.asarray(factor), output)
        return output_stage(total, factor, output, activation)

    def fixed(self, term: AnyArray) -> AnyArray:
        """A term of a sum in which no operand is: a bias."""
        return term

    def accumulated(
        self, sums: AnyArray, factor: NDArray[np.float32], reach: float
    ) -> tuple[AnyArray, bool]:
        """What 32 bits hold of sums, and whether it matters: see :func:`accumulated`."""
        return accumulated(sums, factor, reach)

    def biased(
        self, sums: AnyArray, factor: NDArray[np.float32], reach: float
    ) -> tuple[AnyArray, bool]:
        """What 32 bits hold of sums with biases, and whether it matters: see :func:`biased`."""
        return biased(sums, factor, reach)

    def summing_dtype(self, bound: float) -> type[np.float32] | type[np.float64]:
        """The float type for sums up to ``bound``: see :func:`summing_dtype`."""
        return summing_dtype(bound)

    @property
    def activation(self) -> str:
        """Name of the fused activation."""
        return str(self.option("fused_activation_function", "NONE"))


OperatorFunction = Callable[[Call], AnyArray | tuple[AnyArray, ...]]


def quantised(tensor: NetworkTensor) -> NetworkTensor:
    """The tensor itself; refused unless it has 8 bits and one scale and zero point."""
    if tensor.dtype == np.int16:
        raise NotComputableError(
            f"tensor {tensor.index} ({tensor.name}) is int16: no chip arithmetic is known for "
            "16-bit activations"
        )
    if tensor.dtype not in (np.uint8, np.int8):
        raise NotComputableError(f"tensor {tensor.index} ({tensor.name}) is {tensor.dtype}")
    if not tensor.quantised or not usable(tensor.scale):
        raise NotComputableError(f"tensor {tensor.index} ({tensor.name}) has no single scale")
    return tensor


def usable(scale: NDArray[np.float32]) -> bool:
    """True if there are scales and each is a positive number."""
    return len(scale) > 0 and bool((np.isfinite(scale) & (scale > 0)).all())


def require_image(operand: Operand) -> None:
    """Refuse an operand that is not of shape (n, h, w, c)."""
    if operand.value.ndim != 4:
        raise NotComputableError(f"input of {operand.value.ndim} dimensions")


def same_quantisation(source: NetworkTensor, output: NetworkTensor) -> bool:
    """Whether the bytes of two tensors mean the same values."""
    return (
        source.dtype == output.dtype
        and np.array_equal(source.scale, output.scale)
        and np.array_equal(source.zero_point, output.zero_point)
    )


def require_same_quantisation(source: NetworkTensor, output: NetworkTensor) -> None:
    """Refuse an operator that moves bytes between tensors whose bytes mean different values."""
    if not same_quantisation(source, output):
        raise NotComputableError("input and output differ in their quantisation")
