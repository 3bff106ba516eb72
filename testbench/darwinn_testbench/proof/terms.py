"""Compute an operator on value numbers, by the same function that computes values.

A rule of the oracle defines the output elements. For a sum of products, the rule's own function
adds up the parts of value numbers as it adds up bytes, one part at a time. A hash of the whole sum
replaces the output stage. Moves move numbers. Each rule names the way in which its function is
called (``Terms`` in ``darwinn_reference.tflite.rules``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from darwinn_reference.arrays import AnyArray
from darwinn_reference.tflite import constant_operands, layers, operators, reductions
from darwinn_reference.tflite.call import (
    Call,
    CompilerChoices,
    Operand,
    require_same_quantisation,
)
from darwinn_reference.tflite.coefficient_tables import CoefficientTable
from darwinn_reference.tflite.factors import MIDDLE, halved_difference
from darwinn_reference.tflite.graph import ABSENT, Network, NetworkTensor, Operator
from darwinn_reference.tflite.output_stage import (
    FLOAT64_INTEGERS,
    NotComputableError,
    clip_bounds,
    reciprocal,
)
from darwinn_reference.tflite.rules import RULES, Rule, Terms, rule_of
from darwinn_sim.kernel.field import CONSTANTS, LOW_BITS
from darwinn_sim.numbering import kernels
from numpy.typing import NDArray

from darwinn_testbench.proof import prelu, softmax
from darwinn_testbench.proof.maxima import Maxima, TooMany
from darwinn_testbench.proof.steps import (
    INT32_SPAN,
    Steps,
    constants_of,
    form_of,
    results_of_form,
    scaled_bytes,
    signed_parts,
    sum_of_two,
    sums,
)

Elements = NDArray[np.uint64]

_BYTE_SPAN = 255
_MOST_PRODUCTS = 2**30
"""Half of the span of an accumulator; numbers of programs say if constants fill the other half."""
_MAY_KEEP = 1 / 128
"""A byte may come out unchanged only if the factor is this near to the reciprocal of its weight."""
_LEAST_FACTOR = 2.0**-20
"""No weight is the reciprocal of less."""


NOT_REACHED = "operators before it have no proof"


_MOST_FIRST_SUMS = 16
"""First sums of a table that are looked for."""


class Program(Protocol):
    """What is asked about the results of a program."""

    def have(self, numbers: Elements) -> NDArray[np.bool_]:
        """Which numbers are results."""

    def multiplies(self, sums: Elements) -> bool:
        """Whether it makes another result than the network's of a multiple of one of the sums."""


class NoTerms(Exception):
    """There is no rule of proof for an operator, or for this form of it; the text says which."""


def outputs_of(
    network: Network,
    operator: Operator,
    numbers: Mapping[int, Elements],
    choices: CompilerChoices,
    maxima: Maxima,
    stages: list[StageTerms] | None = None,
) -> dict[int, Elements]:
    """Numbers of an operator's outputs, by tensor, from those of its inputs.

    ``network`` is unsigned (``proof.unsigned``). Constants are their values. ``maxima`` remembers
    those of operators before. ``stages`` gets what the output stages are given.

    Raises:
        NoTerms: there is no rule of proof for it.
    """
    rule = rule_of(network, operator)
    if rule is None or rule.terms not in _WAYS:
        raise NoTerms("there is no rule of proof for this operator")
    if rule.state_inputs:
        raise NoTerms("it keeps a state from one inference to the next")
    if operator.unread_options:
        raise NoTerms(f"options {operator.unread_options} are not read")
    subject = _Subject(network, operator, numbers, choices, rule, maxima, stages)
    try:
        with np.errstate(all="ignore"):
            found = _WAYS[rule.terms](subject)
        parts = found if isinstance(found, tuple) else (found,)
        shapes = (network.tensors[index].shape for index in operator.outputs)
        return {
            index: np.ascontiguousarray(each.reshape(shape), np.uint64)
            for index, each, shape in zip(operator.outputs, parts, shapes, strict=True)
        }
    except NotComputableError as fault:
        raise NoTerms(str(fault)) from None
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as fault:
        # Attributes and shapes of a hostile model that contradict each other, as for the oracle.
        raise NoTerms(f"it is malformed: {fault}") from None


def begins_alike(
    network: Network,
    operator: Operator,
    numbers: Mapping[int, Elements],
    choices: CompilerChoices,
    maxima: Maxima,
    program: Program,
) -> bool:
    """A program takes the first steps of an operator without stages of its own, or some elements
    of one step, and goes on otherwise: it computes another function. The steps of a softmax and of
    a table are the compiler's, so that a program may take other ones from the start."""
    rule = rule_of(network, operator)
    if rule is None:
        return False
    subject = _Subject(network, operator, numbers, choices, rule, maxima)
    if rule.terms in _STEPS:
        taken = _STEPS[rule.terms](subject)
        computed = (each[each >= CONSTANTS] for each in (*taken.before, *taken.settled))
        have = [program.have(each) for each in computed]
        # Of a softmax the sum of the powers is no result; the root of it is the first one behind.
        partly = any(each.any() and not each.all() for each in have)
        return partly or bool(have[len(taken.before)].all())
    if rule.terms is Terms.LOOKUP:
        operand = network.tensors[operator.inputs[0]]
        given = numbers[operand.index].reshape(-1)
        sums = np.empty(given.size, np.uint64)
        kernels.subtracted(given, np.uint64(operand.zero_point[0]), sums)
        return program.multiplies(np.unique(sums[given >= CONSTANTS])[:_MOST_FIRST_SUMS])
    return False


def takes_own_ways(name: str) -> bool:
    """Whether programs compute an operator of this name in other ways than the rule's, too."""
    rule = RULES.get(name)
    return rule is not None and rule.terms is Terms.EXTREME


@dataclass(frozen=True)
class StageTerms:
    """What an output stage is given: the element of each sum and its factor, in the shape of the
    results, and the number of its bounds (``form``; only if ``bounded`` it has some); and what it
    makes of sums that are known, with a factor each."""

    totals: Elements
    factors: NDArray[np.float32]
    form: np.uint64
    bounded: bool
    values: Callable[[NDArray[np.int64], NDArray[np.float32]], AnyArray]


@dataclass(frozen=True)
class _Subject:
    network: Network
    operator: Operator
    numbers: Mapping[int, Elements]
    choices: CompilerChoices
    rule: Rule
    maxima: Maxima
    stages: list[StageTerms] | None = None

    @property
    def outputs(self) -> tuple[NetworkTensor, ...]:
        return tuple(self.network.tensors[index] for index in self.operator.outputs)

    def operand(self, index: int) -> Operand | None:
        """A constant as it is, anything else by its numbers."""
        if index == ABSENT:
            return None
        tensor = self.network.tensors[index]
        if tensor.constant is not None:
            return Operand(tensor, tensor.constant)
        if index not in self.numbers:
            raise NoTerms(NOT_REACHED)
        return Operand(tensor, self.numbers[index])

    def operands(self) -> tuple[Operand | None, ...]:
        return tuple(map(self.operand, self.operator.inputs))

    def call(self) -> Call:
        return Call(self.operator, self.operands(), self.outputs, self.choices)


def as_numbers(operand: Operand) -> Elements:
    """Numbers of an operand; of a constant its bytes."""
    found: Elements = operand.value.astype(np.uint64)
    return found


# --- moves ---------------------------------------------------------------------------------------


def _moved(subject: _Subject) -> AnyArray | tuple[AnyArray, ...]:
    return subject.rule.function(subject.call())


# --- sums ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Part(Operand):
    """One of the parts of the numbers of an operand; what is constant is in the first."""

    numbers: Elements
    first: bool

    @property
    def zero_point(self) -> int:
        # By name: a class with slots is made anew, and ``super()`` knows the one before.
        return Operand.zero_point.fget(self) if self.first else 0  # type: ignore[attr-defined]

    def centred(self, dtype: type[np.generic] = np.int64) -> AnyArray:
        whole = np.float64 if np.dtype(dtype).kind == "f" else np.int64
        return self.value.astype(whole) - whole(self.zero_point)


@dataclass
class _Sums:
    """The sums of all parts, for each time that the function has asked for an output stage."""

    bits: tuple[int, ...]
    totals: list[list[AnyArray]] = field(default_factory=list)
    stages: list[StageTerms] | None = None
    fixed: AnyArray = field(default_factory=lambda: np.zeros(1, np.int64))
    weights: AnyArray | None = None
    """Of each sum with known numbers the weights of all others together."""


@dataclass(frozen=True, slots=True, eq=False)
class _SumsCall(Call):
    """Adds up one part of numbers; the last part gives the results."""

    part: int = 0
    sums: _Sums = field(default_factory=lambda: _Sums(()))
    asked: list[None] = field(default_factory=list)

    def finish(
        self,
        total: AnyArray,
        factor: NDArray[np.float32] | np.float32,
        output: NetworkTensor | None = None,
        activation: str | None = None,
        *,
        bounded: bool = True,
    ) -> AnyArray:
        """Numbers of the results, in the end."""
        number = len(self.asked)
        self.asked.append(None)
        if number == len(self.sums.totals):
            self.sums.totals.append([])
        self.sums.totals[number].append(np.asarray(total).astype(np.int64))
        if self.part < len(self.sums.bits) - 1:
            return np.zeros(np.shape(total), np.uint64)
        output = self.output if output is None else output
        activation = self.activation if activation is None else activation
        stage = _Stage(self, output, activation, bounded)
        return stage.results(self.sums, number, np.asarray(factor, np.float32))

    def fixed(self, term: AnyArray) -> AnyArray:
        """In the first part alone."""
        if self.part:
            return np.zeros_like(term)
        self.sums.fixed = np.asarray(term).astype(np.int64)
        return term

    def accumulated(
        self, sums: AnyArray, factor: NDArray[np.float32], reach: float
    ) -> tuple[AnyArray, bool]:
        """As they are: so much is held by 32 bits in whatever way it is added up."""
        if reach > _MOST_PRODUCTS:
            raise NoTerms("a sum of its products may go beyond 32 bits")
        return sums, False

    def biased(
        self, sums: AnyArray, factor: NDArray[np.float32], reach: float
    ) -> tuple[AnyArray, bool]:
        """As they are: what 32 bits hold of a sum with its bias follows from both together."""
        return sums, False

    def summing_dtype(self, bound: float) -> type[np.float32] | type[np.float64]:
        """Large enough for sums of parts."""
        if bound / _BYTE_SPAN * 2.0 ** max(self.sums.bits) > FLOAT64_INTEGERS:
            raise _PartsTooLarge
        return np.float64


class _PartsTooLarge(Exception):
    """Sums of parts of so many bits are not exact."""


_TWO_PARTS = (LOW_BITS, 61 - LOW_BITS)
_FOUR_PARTS = (16, LOW_BITS - 16, 15, 15)


@dataclass(frozen=True)
class _Stage:
    call: _SumsCall
    output: NetworkTensor
    activation: str
    bounded: bool

    def results(self, sums: _Sums, number: int, factor: NDArray[np.float32]) -> Elements:
        low, high = _two(sums.bits, sums.totals[number])
        shape = low.shape
        scales = np.ascontiguousarray(np.broadcast_to(factor, shape)).reshape(-1)
        flat_low, flat_high = low.reshape(-1), high.reshape(-1)
        totals, found = np.empty(low.size, np.uint64), np.empty(low.size, np.uint64)
        kernels.joined(flat_low, flat_high, totals)
        if sums.stages is not None:
            each = totals.reshape(shape), scales.reshape(shape), self.form()
            sums.stages.append(StageTerms(*each, self.bounded, self.values))
        kernels.results(totals, scales, self.form(), found)
        # Constants have no upper part, and sums of others have some but for a chance of 2^-40. A
        # factor of 0 leaves nothing of any sum.
        constant = (scales == 0) | (flat_high == 0) & (np.abs(flat_low) < INT32_SPAN)
        if constant.any():
            found[constant] = self.values(flat_low[constant], scales[constant])
        fixed = np.ascontiguousarray(np.broadcast_to(sums.fixed, shape)).reshape(-1)
        weights = None if sums.weights is None else sums.weights.reshape(-1)
        self._keep(found, totals, scales, fixed, weights)
        return found.reshape(shape)

    def values(self, totals: NDArray[np.int64], factor: NDArray[np.float32]) -> AnyArray:
        """What the output stage makes of sums that are known."""
        held = np.clip(totals, -INT32_SPAN, INT32_SPAN - 1)
        return Call.finish(
            self.call, held, factor, self.output, self.activation, bounded=self.bounded
        )

    def form(self) -> np.uint64:
        """The number of the bounds."""
        zero_point = int(self.output.zero_point[0])
        if not self.bounded:
            return np.uint64(kernels.form(-1, _BYTE_SPAN, zero_point))
        bounds = clip_bounds(self.output, self.activation)
        if bounds[0] > bounds[1]:
            raise NoTerms("its lower bound is above the upper one")
        low, high = (
            int(np.clip(np.rint(np.clip(bound, -1e6, 1e6)) + zero_point, 0, _BYTE_SPAN))
            for bound in bounds
        )
        return np.uint64(kernels.form(low, high, zero_point))

    def _keep(
        self,
        found: Elements,
        totals: Elements,
        scales: NDArray[np.float32],
        fixed: NDArray[np.int64],
        weights: NDArray[np.int64] | None,
    ) -> None:
        """If a sum has only one byte and this byte comes out unchanged, the result is that byte.

        The byte is one of the operands'. Where its weight is not among ``weights``, it is the
        reciprocal of the factor: a weight of 8 bits has no other near it.
        """
        parts = [each for each in self.call.inputs if isinstance(each, _Part)]
        points = {Operand.zero_point.fget(each) for each in parts}  # type: ignore[attr-defined]
        kinds, which = _distinct(fixed, scales, self.output.shape[-1:])
        known = np.zeros(len(kinds), np.int64)
        if weights is not None:
            different, places = np.unique(weights, return_inverse=True)
            both, which = np.unique(which * len(different) + places, return_inverse=True)
            kinds, known = kinds[both // len(different)], different[both % len(different)]
        # Bytes are taken less their zero point, or as they are.
        for zero_point in sorted(points | {0}) if points else ():
            keeps, inverses = self._keeping(kinds, known, zero_point)
            places = np.flatnonzero(keeps[which])
            if not len(places):
                continue
            copies = np.empty(len(places), np.uint64)
            kernels.copied(
                *(totals[places], fixed[places], inverses[which[places]], zero_point, copies)
            )
            there = np.isin(copies, np.concatenate([each.numbers.reshape(-1) for each in parts]))
            found[places[there]] = copies[there]

    def _keeping(
        self, kinds: NDArray[np.int64], weights: NDArray[np.int64], zero_point: int
    ) -> tuple[NDArray[np.bool_], Elements]:
        """For which constants and factors (:func:`_distinct`), each with a weight or 0, a byte
        comes out as it went in, and the inverses of the weights."""
        keeps, inverses = np.zeros(len(kinds), np.bool_), np.ones(len(kinds), np.uint64)
        every = np.arange(_BYTE_SPAN + 1)
        factors = (kinds & 0xFFFF_FFFF).astype(np.uint32).view(np.float32)
        scales = np.where(factors > _LEAST_FACTOR, factors, np.inf).astype(np.float64)
        by_weight = np.where(weights, weights, np.rint(1 / scales).astype(np.int64))
        may_keep = np.abs(factors.astype(np.float64) * by_weight - 1) <= _MAY_KEEP
        for k in np.flatnonzero(may_keep).tolist():
            weight, term = int(by_weight[k]), int(kinds[k] >> 32)
            results = self.values(weight * (every - zero_point) + term, factors[k : k + 1])
            keeps[k] = np.array_equal(results, every)
            inverses[k] = kernels.inverse(weight)
        return keeps, inverses


def _distinct(
    fixed: NDArray[np.int64], scales: NDArray[np.float32], channels: tuple[int, ...]
) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """The different pairs of a constant and a factor, in one number each, and of each element the
    place of its own: most often they are those of channels."""
    pairs = fixed << 32 | scales.view(np.uint32).astype(np.int64)
    depth = channels[0] if channels else 1
    of_channels = pairs[:depth]
    rows = pairs.reshape(-1, depth) if depth and not pairs.size % depth else None
    if rows is not None and len(rows) > 1 and bool((rows == of_channels).all()):
        kinds, which = np.unique(of_channels, return_inverse=True)
        return kinds, np.tile(which, len(rows))
    return np.unique(pairs, return_inverse=True)


def _two(bits: tuple[int, ...], totals: list[AnyArray]) -> tuple[AnyArray, AnyArray]:
    """The sums of the two parts of numbers, from those of as many parts as were made."""
    if len(bits) == len(_TWO_PARTS):
        return totals[0], totals[1]
    return totals[0] + (totals[1] << bits[0]), totals[2] + (totals[3] << bits[2])


def _parts(numbers: Elements, bits: tuple[int, ...]) -> list[NDArray[np.int64]]:
    """The parts of numbers, the lowest first."""
    parts, rest = [], numbers
    for width in bits:
        parts.append((rest & np.uint64((1 << width) - 1)).astype(np.int64))
        rest = rest >> np.uint64(width)
    return parts


def _summed(subject: _Subject) -> AnyArray | tuple[AnyArray, ...]:
    """Constants are factors: those of a layer, or of a channel."""
    if sum(map(_is_computed, subject.operands())) > 1:
        raise NoTerms("its weights are computed")
    try:
        return _added_up(subject, _TWO_PARTS, values=False)
    except _PartsTooLarge:
        return _added_up(subject, _FOUR_PARTS, values=False)


def _is_computed(operand: Operand | None) -> bool:
    return operand is not None and operand.tensor.constant is None


_OF_CHANNELS = ("ADD", "SUB")
"""Operators whose constants may be those of channels."""


def _summed_elements(subject: _Subject) -> AnyArray | tuple[AnyArray, ...]:
    """Constants are values like any other, but for those of channels."""
    named = subject.operator.name
    of_channels = named in _OF_CHANNELS and constant_operands.sides(subject.call())
    return _added_up(subject, _TWO_PARTS, values=not of_channels)


def _added_up(
    subject: _Subject, bits: tuple[int, ...], *, values: bool
) -> AnyArray | tuple[AnyArray, ...]:
    operands = subject.operands()
    moving = [
        each is not None
        and each.tensor.dtype == np.uint8
        and (each.tensor.constant is None or values)
        for each in operands
    ]
    split = [
        _parts(as_numbers(each), bits) if moves and each is not None else []
        for each, moves in zip(operands, moving, strict=True)
    ]
    sums = _Sums(bits, stages=subject.stages)
    known = _known_totals(subject, bits, moving)
    for part in range(len(bits)):
        if known is not None and part == len(bits) - 1:
            sums.fixed, sums.weights = known
        inputs = tuple(
            _Part(each.tensor, parts[part], as_numbers(each), part == 0)
            if each is not None and parts
            else each
            for each, parts in zip(operands, split, strict=True)
        )
        call = _SumsCall(
            *(subject.operator, inputs, subject.outputs, subject.choices), part=part, sums=sums
        )
        found = subject.rule.function(call)
    return found


def _known_totals(
    subject: _Subject, bits: tuple[int, ...], moving: Sequence[bool]
) -> tuple[AnyArray, AnyArray] | None:
    """What is known of each sum, and the weights of all else, where some of the numbers that it
    adds up are bytes."""
    operands = subject.operands()
    moved = [each for each, moves in zip(operands, moving, strict=True) if moves and each]
    if not any((as_numbers(each) < CONSTANTS).any() for each in moved):
        return None
    totals = []
    for step in (0, 1):
        sums = _Sums(bits)
        inputs = tuple(
            _with_others(each, step) if moves and each is not None else each
            for each, moves in zip(operands, moving, strict=True)
        )
        call = _SumsCall(
            *(subject.operator, inputs, subject.outputs, subject.choices), part=0, sums=sums
        )
        subject.rule.function(call)
        if len(sums.totals) != 1:
            return None
        totals.append(sums.totals[0][0])
    return totals[0], totals[1] - totals[0]


def _with_others(operand: Operand, step: int) -> _Part:
    """The known bytes of an operand; all other numbers are ``step`` above its zero point."""
    numbers = as_numbers(operand)
    others = np.uint64(operand.zero_point + step)
    values = np.where(numbers < CONSTANTS, numbers, others).astype(np.int64)
    return _Part(operand.tensor, values, numbers, first=True)


# --- others --------------------------------------------------------------------------------------


def _looked_up(subject: _Subject) -> Elements:
    """A function of one byte, by its 256 values."""
    (operand,) = (each for each in subject.operands()[:1] if each is not None)
    every = np.arange(CONSTANTS, dtype=np.uint8)
    inputs = (Operand(replace(operand.tensor, shape=every.shape), every),)
    outputs = (replace(subject.outputs[0], shape=every.shape),)
    call = Call(subject.operator, inputs, outputs, subject.choices)
    table = np.asarray(subject.rule.function(call)).astype(np.int32)
    numbers = as_numbers(operand)
    found = np.empty(numbers.size, np.uint64)
    kernels.apply(
        np.uint64(kernels.function_of_byte(table)), table, numbers.reshape(-1).copy(), found
    )
    return found.reshape(numbers.shape)


def _multiplied(subject: _Subject) -> AnyArray | tuple[AnyArray, ...]:
    """Values times values, or times constants."""
    call = subject.call()
    left, right = call.operand(0), call.operand(1)
    if not (_is_computed(left) and _is_computed(right)):
        return _summed(subject)
    numbers = [
        np.ascontiguousarray(np.broadcast_to(as_numbers(each), call.output.shape)).reshape(-1)
        for each in (left, right)
    ]
    found = np.empty(numbers[0].size, np.uint64)
    kernels.products(numbers[0], left.zero_point, numbers[1], right.zero_point, found)
    factor = operators.product_factor(call, left, right)
    return _finished(subject, found, factor).reshape(call.output.shape)


def _finished(
    subject: _Subject, totals: Elements, factor: NDArray[np.float32], activation: str | None = None
) -> Elements:
    """Results of sums that are there as elements."""
    call = _SumsCall(subject.operator, (), subject.outputs, subject.choices, part=1)
    chosen = call.activation if activation is None else activation
    sums = _Sums(_TWO_PARTS, [[*signed_parts(totals)]], subject.stages)
    return _Stage(call, call.output, chosen, True).results(sums, 0, factor)


def _greatest(subject: _Subject) -> Elements:
    """A maximum of bytes as they are."""
    call = subject.call()
    windows = _GREATEST[subject.operator.name](call)
    shape = call.outputs[0].shape
    return _maxima(subject, windows.reshape(int(np.prod(shape)), -1)).reshape(shape)


def _maxima(subject: _Subject, rows: Elements) -> Elements:
    try:
        return subject.maxima.of(rows)
    except TooMany as fault:
        raise NoTerms(str(fault)) from None


def _pool_windows(call: Call) -> AnyArray:
    if call.activation != "NONE":
        raise NoTerms("a maximum with bounds")
    require_same_quantisation(call.operand(0).tensor, call.outputs[0])
    return layers.max_pool_windows(call)


def _reduced(call: Call) -> AnyArray:
    operand = call.operand(0)
    require_same_quantisation(operand.tensor, call.outputs[0])
    axes = reductions.axes_of(call)
    kept = [axis for axis in range(operand.value.ndim) if axis not in axes]
    return operand.value.transpose(*kept, *axes)


def _stepwise(subject: _Subject) -> Elements:
    return _STEPS[subject.rule.terms](subject).last


def _prelu_steps(subject: _Subject) -> Steps:
    call = subject.call()
    factors = operators.prelu_factors(call)
    if factors is None:
        raise NoTerms("its slopes are not those of channels")
    operand, output = call.operand(0), call.output
    numbers = as_numbers(operand)
    above, below = (
        np.ascontiguousarray(np.broadcast_to(each, numbers.shape)).reshape(-1)
        for each in (call.requantisation(operand), factors)
    )
    points = int(operand.zero_point), int(output.zero_point[0])
    own, other = (np.float32(k * reciprocal(k)) for k in (operand.scale, output.scale[0]))
    flat = np.ascontiguousarray(numbers).reshape(-1)
    return prelu.steps(flat, points, above, below, (own, other))


def _both(call: Call) -> list[Elements]:
    """Flat numbers of two operands that are computed, in the shape of the output."""
    sides = [
        np.ascontiguousarray(np.broadcast_to(as_numbers(each), call.output.shape)).reshape(-1)
        for each in (call.operand(0), call.operand(1))
    ]
    if any((each < CONSTANTS).any() for each in sides):
        raise NoTerms("some elements of an operand are constant")
    return sides


def _squared(subject: _Subject) -> Elements:
    """The square of a difference, by the table of the program that is its parabola."""
    call = subject.call()
    left, right = call.operand(0), call.operand(1)
    first, second, unit = operators.difference_terms(call)
    parabola = call.choices.parabola(call.output)
    if parabola is None or call.output.zero_point[0]:
        raise NoTerms("the program has no table that is its parabola")
    constant = second * right.zero_point - first * left.zero_point
    totals = sums(_both(call), [first, -second], int(constant))
    found = results_of_form(totals, unit, form_of(parabola, wide=False))
    # A tensor less itself, in another operator's words, is known.
    where, known = constants_of(totals)
    squares = np.rint(parabola(known.astype(np.float32) * unit))
    if operators.squares_keep_low_bytes(call):
        squares %= _BYTE_SPAN + 1
    found[where] = np.clip(squares, 0, _BYTE_SPAN).astype(np.uint64)
    return found


def _bounded_difference(subject: _Subject) -> Elements:
    """MAXIMUM, MINIMUM: one number is a bound; else an element, and what the other one has more."""
    call = subject.call()
    greatest = subject.operator.name == "MAXIMUM"
    for place in (0, 1):
        if _is_number(call.operand(place)):
            return _bounded(call, call.operand(place), call.operand(1 - place), greatest)
    left, right = (_in_units_of(call, each) for each in (call.operand(0), call.operand(1)))
    zero_point = int(call.output.zero_point[0])
    kept = right if greatest else left
    if greatest and operators.is_halved(call):
        factor, most = halved_difference(call.operand(0).scale)
        bounds = MIDDLE - int(most), MIDDLE, MIDDLE
        more, weight = sum_of_two((right, left), (1, -1), 0, factor, bounds), -2
    else:
        bounds = 0, _BYTE_SPAN, 0
        more = sum_of_two((left, right), (1, -1), 0, np.float32(1), bounds)
        weight = 1 if greatest else -1
    *_, none = bounds
    whole = (0, _BYTE_SPAN, zero_point)
    constant = -weight * none - zero_point
    return sum_of_two((kept, more), (1, weight), constant, np.float32(1), whole)


def _is_number(operand: Operand) -> bool:
    return operand.tensor.constant is not None and operand.value.size == 1


def _bounded(call: Call, number: Operand, operand: Operand, greatest: bool) -> Elements:
    """Elements that are brought to the output's scale, with a number as one more bound."""
    level = int(operators.requantised(call, number).reshape(-1)[0])
    return _in_units_of(call, operand, (level, _BYTE_SPAN) if greatest else (0, level))


def _in_units_of(
    call: Call, operand: Operand, limits: tuple[int, int] = (0, _BYTE_SPAN)
) -> Elements:
    """Flat numbers of an operand in the quantisation of the output, of its shape."""
    numbers = np.broadcast_to(as_numbers(operand), call.output.shape)
    flat = np.ascontiguousarray(numbers).reshape(-1)
    factor = np.float32(1)
    if operand.scale != call.output.scale[0]:
        factor = call.requantisation(operand)[0]
    bounds = (*limits, int(call.output.zero_point[0]))
    scales = np.full(flat.shape, factor, np.float32)
    return scaled_bytes(flat, operand.zero_point, scales, bounds)


def _unit_vector(subject: _Subject) -> Elements:
    """Each element times the reciprocal root of the sum of squares, by the table of the program."""
    call = subject.call()
    operand = call.operand(0)
    table = call.choices.table("rsqrt", operators.root_steps(call))
    if not isinstance(table, CoefficientTable):
        raise NoTerms("the program has no table that is its root")
    numbers = np.ascontiguousarray(as_numbers(operand))
    if (numbers < CONSTANTS).any():
        raise NoTerms("some elements of the operand are constant")
    flat, zero_point = numbers.reshape(-1), operand.zero_point
    depth = numbers.shape[-1]
    squares = np.empty(flat.size, np.uint64)
    kernels.products(flat, zero_point, flat, zero_point, squares)
    totals = sums(list(squares.reshape(-1, depth).T), [1] * depth, 0)
    form = form_of(table, wide=True)
    roots = results_of_form(totals, operand.scale * operand.scale, form)
    found = np.empty(flat.size, np.uint64)
    kernels.products(flat, zero_point, np.repeat(roots, depth), 0, found)
    return _finished(subject, found, operators.unit_vector_factor(call))


def _softmax_steps(subject: _Subject) -> Steps:
    call = subject.call()
    functions = call.choices.softmax
    operators.require_shares(call)
    operand = call.operand(0)
    numbers = as_numbers(operand)
    if functions is None:
        if call.option("beta", 1.0) != 1 or (numbers < CONSTANTS).any():
            raise NoTerms("the scalar core computes the softmax")
        return softmax.by_scalar_core(numbers, int(operand.zero_point), operand.scale)
    unit = operators.difference_unit(call)
    try:
        return softmax.steps(numbers, unit, functions, subject.maxima)
    except TooMany as fault:
        raise NoTerms(str(fault)) from None


_GREATEST: Mapping[str, Callable[[Call], AnyArray]] = {
    "MAX_POOL_2D": _pool_windows,
    "REDUCE_MAX": _reduced,
}

_WAYS: Mapping[Terms, Callable[[_Subject], AnyArray | tuple[AnyArray, ...]]] = {
    Terms.MOVES: _moved,
    Terms.WEIGHTS: _summed,
    Terms.SUMS: _summed_elements,
    Terms.LOOKUP: _looked_up,
    Terms.PRODUCT: _multiplied,
    Terms.MAXIMUM: _greatest,
    Terms.SOFTMAX: _stepwise,
    Terms.PRELU: _stepwise,
    Terms.EXTREME: _bounded_difference,
    Terms.SQUARE: _squared,
    Terms.UNIT_VECTOR: _unit_vector,
}

_STEPS: Mapping[Terms, Callable[[_Subject], Steps]] = {
    Terms.SOFTMAX: _softmax_steps,
    Terms.PRELU: _prelu_steps,
}
