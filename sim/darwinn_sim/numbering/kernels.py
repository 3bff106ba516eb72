"""Value numbers of whole arrays: what a model of a network does with them, beside the chip."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.isa.codes import AluOperation, ScalarFunction
from darwinn_sim.kernel import field
from darwinn_sim.kernel.compiled import compiled, inner
from darwinn_sim.units import numbered_scalar, numbered_sums
from darwinn_sim.units.scalar_alu import FUNCTION

Elements = NDArray[np.uint64]

_UNKNOWN = np.uint64(0x556E6B6E6F776E)
"""What is hashed of bytes that nothing is known of."""


@compiled
def split(elements: Elements, low: NDArray[np.int64], high: NDArray[np.int64]) -> None:
    """The two parts of all elements."""
    for i in range(len(elements)):
        low[i], high[i] = field.low_part(elements[i]), field.high_part(elements[i])


@compiled
def joined(low: NDArray[np.int64], high: NDArray[np.int64], found: Elements) -> None:
    """The elements that sums of both parts make up."""
    for i in range(len(found)):
        found[i] = field.of_parts(low[i], high[i])


@compiled
def unknown(memory: int, found: Elements) -> None:
    """Numbers of all bytes that a memory may hold: of its own for each place."""
    for i in range(len(found)):
        found[i] = _unknown(memory, i)


@compiled
def unknown_words(memory: int, words: NDArray[np.bool_], found: Elements) -> None:
    """The same of all bytes of some words."""
    for i in range(len(words)):
        if words[i]:
            for k in range(4 * i, 4 * i + 4):
                found[k] = _unknown(memory, k)


@inner
def _unknown(memory: int, place: int) -> np.uint64:
    return field.mixed(field.mixed(_UNKNOWN, np.uint64(memory)), np.uint64(place))


@compiled
def products(one: Elements, first: int, other: Elements, second: int, found: Elements) -> None:
    """Products of values less zero points: variables of their own, or multiples of constants."""
    for i in range(len(found)):
        a = field.subtracted(one[i], field.of_integer(first))
        b = field.subtracted(other[i], field.of_integer(second))
        constant = min(one[i], other[i]) < np.uint64(field.CONSTANTS)
        found[i] = field.multiplied(a, b) if constant else numbered_sums.product_of(a, b)


@compiled
def form(low: int, high: int, zero_point: int) -> np.uint64:
    """Bounds of a result and its zero point (``numbered_sums.form_of``)."""
    return numbered_sums.form_of(low, high, zero_point)


@compiled
def table_form(
    coefficients: NDArray[np.uint32],
    bounds: NDArray[np.uint32],
    function: int,
    low: np.float32,
    high: np.float32,
    symmetry: int,
) -> np.uint64:
    """A function by its table (``numbered_sums.table_form``), with a zero point of 0."""
    table = numbered_sums.table_number(coefficients, bounds)
    return numbered_sums.table_form(table, function, low, high, symmetry, 0)


@compiled
def expanded(
    values: Elements,
    ends: NDArray[np.int64],
    sets: Elements,
    firsts: NDArray[np.int64],
    counts: NDArray[np.int64],
    pool: Elements,
    found: Elements,
    found_ends: NDArray[np.int64],
) -> int:
    """Values with those of maxima (``sets``, in order) in their place; how many there are, of which
    as many are written as there is room for."""
    total, begin = 0, 0
    for i in range(len(ends)):
        for k in range(begin, ends[i]):
            at = np.searchsorted(sets, values[k])
            known = at < len(sets) and sets[at] == values[k]
            for j in range(counts[at] if known else 1):
                if total < len(found):
                    found[total] = pool[firsts[at] + j] if known else values[k]
                total += 1
        found_ends[i] = total
        begin = ends[i]
    return total


@compiled
def results(
    totals: Elements, scales: NDArray[np.float32], form: np.uint64, found: Elements
) -> None:
    """What an output stage makes of sums."""
    for i in range(len(found)):
        found[i] = numbered_sums.result_number(totals[i], scales[i], form)


@compiled
def function_of_byte(values: NDArray[np.int32]) -> np.uint64:
    """The number of a function by its 256 values (``numbered_sums.function_number``)."""
    return numbered_sums.function_number(values)


@compiled
def apply(function: np.uint64, values: NDArray[np.int32], of: Elements, found: Elements) -> None:
    """A function of one byte, of all of ``of``; of a constant it is a constant."""
    for i in range(len(found)):
        if of[i] < np.uint64(field.CONSTANTS):
            found[i] = np.uint64(values[np.int64(of[i])])
        elif function == 0:
            found[i] = of[i]
        elif numbered_sums.is_constant(function):
            found[i] = np.uint64(values[0])
        else:
            found[i] = field.mixed(function, of[i])


@compiled
def maxima(
    values: Elements, ends: NDArray[np.int64], found: Elements, counts: NDArray[np.int64]
) -> None:
    """Numbers of the greatest of the values up to each end, which are put in order on the way, and
    how many different ones there are."""
    begin = 0
    for i in range(len(found)):
        count = 0
        constant = np.uint64(0)
        for k in range(begin, ends[i]):
            value = values[k]
            if value < np.uint64(field.CONSTANTS):
                constant = max(constant, value)
                continue
            at = begin + count
            while at > begin and values[at - 1] > value:
                at -= 1
            if at > begin and values[at - 1] == value:
                continue
            for j in range(begin + count, at, -1):
                values[j] = values[j - 1]
            values[at] = value
            count += 1
        if constant > 0 and count:
            # There is room: the constant itself was one of the values.
            for j in range(begin + count, begin, -1):
                values[j] = values[j - 1]
            values[begin] = constant
            count += 1
        if count == 0:
            found[i] = constant
        elif count == 1:
            found[i] = values[begin]
        else:
            found[i] = numbered_sums.set_number(values[begin:], count)
        counts[i] = count
        begin = ends[i]


SHARES_WORDS = 4
"""Words that :func:`shares_by_scalar_core` computes with."""

_LOG2_E = np.float32(np.log2(np.e))


@compiled
def shares_by_scalar_core(
    rows: NDArray[np.uint64], zero_point: int, scale: np.float32, words: Elements, found: Elements
) -> None:
    """The softmax of each row of bytes that are not known, as the loops of the scalar core compute
    it: 256 times each share, from 0 to 255. ``words``: room for ``SHARES_WORDS``, of four bytes."""
    word, other, greatest, total = words[0], words[1], words[2], words[3]
    for row in range(len(rows)):
        _known(np.float32(-np.inf), greatest)
        for i in range(rows.shape[1]):
            _real(rows[row, i], zero_point, scale, word, other)
            _computed(AluOperation.FLOAT_MAXIMUM, greatest, word, greatest)
        _known(np.float32(0), total)
        for i in range(rows.shape[1]):
            _power(rows[row, i], zero_point, scale, greatest, word, other)
            _computed(AluOperation.FLOAT_ADD, total, word, total)
        _function_of(ScalarFunction.RECIPROCAL, total)
        for i in range(rows.shape[1]):
            _power(rows[row, i], zero_point, scale, greatest, word, other)
            _computed(AluOperation.FLOAT_MULTIPLY, word, total, word)
            _with_constant(AluOperation.FLOAT_MULTIPLY, word, np.float32(256), other)
            _with_constant(AluOperation.FLOAT_MINIMUM, word, np.float32(255), other)
            _with_constant(AluOperation.FLOAT_MAXIMUM, word, np.float32(0), other)
            _computed(AluOperation.TO_INTEGER, word, word, word)
            found[row, i] = word[0]


@inner
def _power(
    number: np.uint64,
    zero_point: int,
    scale: np.float32,
    greatest: Elements,
    word: Elements,
    other: Elements,
) -> None:
    """The exponential of a value less the greatest."""
    _real(number, zero_point, scale, word, other)
    _computed(AluOperation.FLOAT_SUBTRACT, word, greatest, word)
    _with_constant(AluOperation.FLOAT_MULTIPLY, word, _LOG2_E, other)
    _function_of(ScalarFunction.EXP2, word)


@inner
def _real(
    number: np.uint64, zero_point: int, scale: np.float32, word: Elements, other: Elements
) -> None:
    """A byte as a float: less its zero point, times its scale."""
    for k in range(4):
        word[k] = other[k] = np.uint64(0)
    word[0], other[0] = number, np.uint64(zero_point)
    _computed(AluOperation.SUBTRACT, word, other, word)
    _computed(AluOperation.TO_FLOAT, word, word, word)
    _with_constant(AluOperation.FLOAT_MULTIPLY, word, scale, other)


@inner
def _with_constant(operation: int, word: Elements, constant: np.float32, other: Elements) -> None:
    _known(constant, other)
    _computed(operation, word, other, word)


@inner
def _known(value: np.float32, word: Elements) -> None:
    """The bytes of a float."""
    bits = np.uint32(np.float32(value).view(np.uint32))
    for k in range(4):
        word[k] = np.uint64((bits >> np.uint32(8 * k)) & np.uint32(0xFF))


@inner
def _computed(operation: int, one: Elements, other: Elements, found: Elements) -> None:
    """A result of the ALU of which no byte is known."""
    key = numbered_scalar.key_of(operation)
    for k in range(4):
        key = numbered_scalar.with_bytes(key, operation, one[k], other[k])
    for k in range(4):
        found[k] = numbered_scalar.result_byte(key, k)


@inner
def _function_of(function: int, word: Elements) -> None:
    key = numbered_scalar.key_of(FUNCTION + function)
    for k in range(4):
        key = numbered_scalar.with_byte(key, word[k])
    for k in range(4):
        word[k] = numbered_scalar.result_byte(key, k)


@compiled
def copied(
    totals: Elements, fixed: NDArray[np.int64], inverses: Elements, zero_point: int, found: Elements
) -> None:
    """The elements whose product with a weight, and a constant, sums would be; by the weights'
    inverses."""
    for i in range(len(found)):
        rest = field.subtracted(totals[i], field.of_integer(fixed[i]))
        value = field.multiplied(rest, inverses[i])
        found[i] = field.added(value, field.of_integer(zero_point))


@compiled
def subtracted(values: Elements, other: np.uint64, found: Elements) -> None:
    """Differences to one element."""
    for i in range(len(found)):
        found[i] = field.subtracted(values[i], other)


@compiled
def multiple_of_one(values: Elements, of: Elements, most: int, found: NDArray[np.int64]) -> None:
    """Into ``found``: the place of one in ``of`` of which a value is a multiple by less than
    ``most``, and the factor; -1 and 0 if there is none."""
    found[0], found[1] = -1, 0
    for k in range(len(of)):
        inverse = field.inverse(of[k])
        for i in range(len(values)):
            factor = field.multiplied(values[i], inverse)
            if factor < np.uint64(most):
                found[0], found[1] = k, np.int64(factor)
                return
            if np.uint64(field.MODULUS) - factor < np.uint64(most):
                found[0], found[1] = k, -np.int64(np.uint64(field.MODULUS) - factor)
                return


@compiled
def inverse(weight: int) -> np.uint64:
    """What gives 1 with a weight that is not 0."""
    return field.inverse(field.of_integer(weight))


@compiled
def enter(table: Elements, numbers: Elements, new: NDArray[np.bool_]) -> int:
    """Put numbers into a table of which a quarter stays empty (0): which were ``new``, and how
    many."""
    mask, count = len(table) - 1, 0
    for i in range(len(numbers)):
        slot = np.int64(numbers[i] & np.uint64(mask))
        while table[slot] != 0 and table[slot] != numbers[i]:
            slot = (slot + 1) & mask
        new[i] = table[slot] == 0
        if new[i]:
            table[slot] = numbers[i]
            count += 1
    return count


@compiled
def look_up(table: Elements, numbers: Elements, found: NDArray[np.bool_]) -> None:
    """Which numbers are in a table, or constants."""
    mask = len(table) - 1
    for i in range(len(numbers)):
        slot = np.int64(numbers[i] & np.uint64(mask))
        while table[slot] != 0 and table[slot] != numbers[i]:
            slot = (slot + 1) & mask
        found[i] = table[slot] != 0 or numbers[i] < np.uint64(field.CONSTANTS)
