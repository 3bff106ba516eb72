"""What the scalar core computes: results of operations, and which of their bits are known.

A number stands for each: that of the ALU's operation, or ``FUNCTION`` plus that of a function.
"""

from __future__ import annotations

import numpy as np

from darwinn_sim.isa.codes import AluOperation, ScalarFunction
from darwinn_sim.kernel import state
from darwinn_sim.kernel.compiled import compiled, inner

FUNCTION = 32
"""Numbers from this on are those of functions, which have one operand."""

_NO_NUMBER = np.uint32(0x7FC00000)

_SHIFT = np.uint32(31)
"""Bits of an operand that say how far the other one is shifted."""


@inner
def _signed(value: np.uint32) -> np.int64:
    return np.int64(np.int32(value))


@compiled
def result_written(
    operation: int, a: np.uint32, a_written: np.uint32, b: np.uint32, b_written: np.uint32
) -> np.uint32:
    """Bits of an ALU result that follow from written bits, so that words can be put together.

    Programs load a word that nothing has written, mask it and put one byte in its place.
    """
    both = np.uint32(a_written & b_written)
    if operation == AluOperation.MOVE:
        return b_written
    if operation == AluOperation.AND:
        return np.uint32(both | (~a & a_written) | (~b & b_written))
    if operation == AluOperation.OR:
        return np.uint32(both | (a & a_written) | (b & b_written))
    if operation == AluOperation.XOR:
        return both
    if operation == AluOperation.ADD or operation == AluOperation.SUBTRACT:
        # Carries go upwards: what lies below the lowest unwritten bit is known.
        unwritten = np.uint64(both ^ state.ALL_BITS)
        lowest = unwritten & (~unwritten + np.uint64(1))
        known = lowest - np.uint64(1) if unwritten else np.uint64(0xFFFFFFFF)
        return np.uint32(known & np.uint64(0xFFFFFFFF))
    if operation == AluOperation.SHIFT_LEFT or operation == AluOperation.SHIFT_RIGHT:
        if b_written & _SHIFT != _SHIFT:
            return np.uint32(0)
        shift = np.uint64(b & _SHIFT)
        # Zeros are shifted in, so the shadow is that of the complement: unwritten bits move.
        unwritten = np.uint64(a_written ^ state.ALL_BITS)
        moved = unwritten << shift if operation == AluOperation.SHIFT_LEFT else unwritten >> shift
        return np.uint32(~moved & np.uint64(0xFFFFFFFF))
    if operation == AluOperation.TO_FLOAT or operation == AluOperation.TO_INTEGER:
        return state.ALL_BITS if b_written == state.ALL_BITS else np.uint32(0)
    return state.ALL_BITS if both == state.ALL_BITS else np.uint32(0)


@compiled
def moved_bytes(
    operation: int, a: np.uint32, a_written: np.uint32, b: np.uint32, b_written: np.uint32
) -> np.uint32:
    """Bytes of a result (all bits of each) that are those of an operand as they are.

    The other one says so where it is known: programs put words together and take them apart with
    masks and shifts.
    """
    if operation == AluOperation.MOVE:
        return state.ALL_BITS
    if operation == AluOperation.AND:
        return np.uint32(_whole(a & a_written) | _whole(b & b_written))
    if operation == AluOperation.OR or operation == AluOperation.XOR:
        return np.uint32(_whole(~a & a_written) | _whole(~b & b_written))
    if operation == AluOperation.SHIFT_LEFT or operation == AluOperation.SHIFT_RIGHT:
        by_bytes = ~b & b_written & np.uint32(7) == np.uint32(7) and b_written & _SHIFT == _SHIFT
        return state.ALL_BITS if by_bytes else np.uint32(0)
    return np.uint32(0)


@inner
def _whole(bits: np.uint32) -> np.uint32:
    """Bytes all bits of which are set."""
    return state.bits_of(state.bytes_of(bits))


@compiled
def compared_written(
    operation: int, a: np.uint32, a_written: np.uint32, b: np.uint32, b_written: np.uint32
) -> bool:
    """Whether a comparison follows from written bits: one that differs decides an equality."""
    both = np.uint32(a_written & b_written)
    if both == state.ALL_BITS:
        return True
    return (operation == AluOperation.EQUAL or operation == AluOperation.NOT_EQUAL) and (
        a ^ b
    ) & both != np.uint32(0)


@inner
def compare(operation: int, a: np.uint32, b: np.uint32) -> bool:
    """Result of a comparison."""
    if operation == AluOperation.EQUAL:
        return bool(a == b)
    if operation == AluOperation.NOT_EQUAL:
        return bool(a != b)
    if operation == AluOperation.GREATER:
        return bool(_signed(a) > _signed(b))
    if operation == AluOperation.LESS:
        return bool(_signed(a) < _signed(b))
    if operation == AluOperation.GREATER_EQUAL_UNSIGNED:
        return bool(a >= b)
    return bool(_signed(a) >= _signed(b))


@compiled
def integer_alu(operation: int, a: np.uint32, b: np.uint32) -> np.uint32:
    """Result of an integer operation of the ALU that is no comparison."""
    shift = np.uint64(b & _SHIFT)
    if operation == AluOperation.ADD:
        return np.uint32(a + b)
    if operation == AluOperation.SUBTRACT:
        return np.uint32(np.int64(a) - np.int64(b))
    if operation == AluOperation.AND:
        return np.uint32(a & b)
    if operation == AluOperation.OR:
        return np.uint32(a | b)
    if operation == AluOperation.XOR:
        return np.uint32(a ^ b)
    if operation == AluOperation.SHIFT_LEFT:
        return np.uint32(np.uint64(a) << shift)
    if operation == AluOperation.SHIFT_RIGHT:
        return np.uint32(np.uint64(a) >> shift)
    if operation == AluOperation.ARITHMETIC_SHIFT_RIGHT:
        return np.uint32((_signed(a) >> np.int64(shift)) & np.int64(0xFFFFFFFF))
    return b


@inner
def result(operation: int, a: np.uint32, b: np.uint32) -> np.uint32:
    """Result of any operation that is no comparison, or of a function; floats by their words."""
    if operation < AluOperation.TO_FLOAT:
        return integer_alu(operation, a, b)
    if operation == AluOperation.TO_INTEGER:
        return np.uint32(np.int64(np.rint(_float_of(b))))
    if operation < FUNCTION:
        return _word_of(_float_alu(operation, _float_of(a), _float_of(b), b))
    return _word_of(_function(operation - FUNCTION, _float_of(a)))


@inner
def _float_of(word: np.uint32) -> np.float32:
    return np.float32(np.uint32(word).view(np.float32))


@inner
def _word_of(value: np.float32) -> np.uint32:
    """The word of a float. There is one for all that are no number: which one an operation gives
    depends on the machine, and on how a compiler orders operands.
    """
    return _NO_NUMBER if value != value else np.uint32(np.float32(value).view(np.uint32))


@inner
def _function(function: int, x: np.float32) -> np.float32:
    if function == ScalarFunction.RECIPROCAL:
        return np.float32(np.float32(1) / x)
    # By way of float64, so that every machine's library rounds to the same float32.
    return np.float32(np.exp2(np.float64(x)))


@inner
def _float_alu(operation: int, x: np.float32, y: np.float32, b: np.uint32) -> np.float32:
    """Result of a float operation on x and y, the float32 of a and b."""
    if operation == AluOperation.TO_FLOAT:
        return np.float32(_signed(b))
    if operation == AluOperation.FLOAT_ADD:
        return np.float32(x + y)
    if operation == AluOperation.FLOAT_SUBTRACT:
        return np.float32(x - y)
    if operation == AluOperation.FLOAT_MULTIPLY:
        return np.float32(x * y)
    if operation == AluOperation.FLOAT_MAXIMUM:
        return max(x, y)
    return min(x, y)
