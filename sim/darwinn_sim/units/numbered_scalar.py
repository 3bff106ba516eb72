"""Value numbers of what the scalar core computes from bytes that are not known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.isa.codes import AluOperation
from darwinn_sim.kernel import field, numbering, state
from darwinn_sim.kernel.compiled import inner
from darwinn_sim.kernel.instructions import Scalar
from darwinn_sim.kernel.numbering import NumberedCore
from darwinn_sim.units.scalar_alu import FUNCTION

_NONE = -1
_REGISTER = np.int64(31)


@numbering.hook
@inner
def computes(
    core: NumberedCore,
    bundle: Scalar,
    a: np.uint32,
    a_written: np.uint32,
    b: np.uint32,
    b_written: np.uint32,
) -> None:
    """The ALU gives a register a result; the operands are words with shadows by bits."""
    numbers = core.numbering
    operation = bundle.alu_op
    written = core.registers_written[bundle.alu_destination]
    first = numbers.operands[bundle.alu_a]
    second = numbers.operands[bundle.alu_b & _REGISTER]
    key = key_of(operation)
    for k in range(4):
        one = numbering.number_of(a, state.bytes_of(a_written), first, k)
        other = numbering.number_of(b, state.bytes_of(b_written), second, k)
        key = with_bytes(key, operation, one, other)
        if operation == AluOperation.XOR and one == other:
            written |= np.uint32(0xFF) << np.uint32(8 * k)
    written |= _bounds(numbers.bounded, bundle, operation, b, b_written)
    core.registers_written[bundle.alu_destination] = written
    for k in range(4):
        target = numbers.registers[bundle.alu_destination]
        if _whole(written, k):
            continue
        target[k] = result_byte(key, k)
        place = _byte_of_a(operation, k, b, b_written)
        if 0 <= place < 4:
            target[k] = numbering.number_of(a, state.bytes_of(a_written), first, place)
        elif _is_b(operation, k, a, a_written):
            target[k] = numbering.number_of(b, state.bytes_of(b_written), second, k)


@numbering.hook
@inner
def computes_function(core: NumberedCore, bundle: Scalar) -> None:
    """A function gives a register a result of one that is not known."""
    numbers = core.numbering
    source = bundle.function_source
    operation = FUNCTION + bundle.function_op
    key = key_of(operation)
    shadow = state.bytes_of(core.operands_written[source])
    for k in range(4):
        number = numbering.number_of(core.operands[source], shadow, numbers.operands[source], k)
        key = with_byte(key, number)
    numbers.bounded[bundle.function_destination] = numbering.ANY
    for k in range(4):
        numbers.registers[bundle.function_destination, k] = result_byte(key, k)


@inner
def key_of(operation: int) -> np.uint64:
    """The key of an operation before it has operands (:func:`with_bytes`, :func:`result_byte`)."""
    return field.mixed(np.uint64(0), np.uint64(operation))


@inner
def with_bytes(key: np.uint64, operation: int, one: np.uint64, other: np.uint64) -> np.uint64:
    """A key with a byte of both operands. A conversion has the second one alone."""
    if operation != AluOperation.TO_FLOAT and operation != AluOperation.TO_INTEGER:
        key = with_byte(key, one)
    return with_byte(key, other)


@inner
def with_byte(key: np.uint64, number: np.uint64) -> np.uint64:
    """A key with a byte of the only operand."""
    return field.mixed(key, number)


@inner
def result_byte(key: np.uint64, k: int) -> np.uint64:
    """The number of byte ``k`` of a result, by its key."""
    return field.mixed(key, np.uint64(k))


@inner
def _bounds(
    bounded: NDArray[np.uint8], bundle: Scalar, operation: int, b: np.uint32, b_written: np.uint32
) -> np.uint32:
    """Note whether the result is a float that becomes a byte, and return the bits that are 0 if it
    is an integer made of such a float. A float that is no number becomes 0."""
    known = b_written == state.ALL_BITS
    constant = np.float32(np.uint32(b).view(np.float32))
    is_byte = known and np.float32(0) <= constant <= np.float32(0xFF)
    before, after = bounded[bundle.alu_a], numbering.ANY
    if operation == AluOperation.FLOAT_MINIMUM and is_byte:
        after = numbering.AT_MOST_A_BYTE
    elif operation == AluOperation.FLOAT_MAXIMUM and is_byte and before != numbering.ANY:
        after = numbering.A_BYTE
    integer = operation == AluOperation.TO_INTEGER and not bundle.alu_immediate
    made_of_byte = integer and bounded[bundle.alu_b & _REGISTER] == numbering.A_BYTE
    bounded[bundle.alu_destination] = after
    return np.uint32(0xFFFFFF00) if made_of_byte else np.uint32(0)


@inner
def _byte(word: np.uint32, k: int) -> np.uint32:
    return np.uint32((word >> np.uint32(8 * k)) & np.uint32(0xFF))


@inner
def _whole(bits: np.uint32, k: int) -> bool:
    return bool(_byte(bits, k) == np.uint32(0xFF))


@inner
def _byte_of_a(operation: int, k: int, b: np.uint32, b_written: np.uint32) -> int:
    """The byte of the first operand that byte ``k`` of the result is, as it is; or none.

    The second operand says so where it is known (``scalar_alu.moved_bytes``).
    """
    known = _whole(b_written, k)
    if operation == AluOperation.AND:
        return k if known and _whole(b, k) else _NONE
    if operation == AluOperation.OR or operation == AluOperation.XOR:
        return k if known and _byte(b, k) == np.uint32(0) else _NONE
    left, right = operation == AluOperation.SHIFT_LEFT, operation == AluOperation.SHIFT_RIGHT
    if (left or right) and _whole(b_written, 0) and b & np.uint32(7) == np.uint32(0):
        by = int(np.int64((b & np.uint32(31)) >> np.uint32(3)))
        return k - by if left else k + by
    return _NONE


@inner
def _is_b(operation: int, k: int, a: np.uint32, a_written: np.uint32) -> bool:
    """Byte ``k`` of the result is that of the second operand, as it is."""
    if operation == AluOperation.MOVE:
        return True
    known = _whole(a_written, k)
    if operation == AluOperation.AND:
        return known and _whole(a, k)
    if operation == AluOperation.OR or operation == AluOperation.XOR:
        return known and _byte(a, k) == np.uint32(0)
    return False
