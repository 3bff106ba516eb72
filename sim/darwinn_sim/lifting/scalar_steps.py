"""Operations of the scalar core in a lifted program: as stages, and for many inputs at once."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from darwinn_sim.kernel.compiled import inner, unchecked
from darwinn_sim.kernel.structure import Int32, Record, Records
from darwinn_sim.units import scalar_alu

WORD = 4
"""Bytes of a word."""


class WordOperation(Record):
    """An operation of ``scalar_alu`` on two words: slots of their bytes; those of the bytes of the
    result follow each other from ``slot`` on."""

    operation: Int32
    operands: Annotated[NDArray[np.int32], 2 * WORD]
    slot: Int32


def placed_operations(
    operation: NDArray[np.int32], operands: NDArray[np.int32], slot: int
) -> Records[WordOperation]:
    """Operations with the slots of their operands, (operations, 8), and those of all results."""
    placed = WordOperation.zeros(len(operation))
    placed["operation"], placed["operands"] = operation, operands
    placed["slot"] = slot + WORD * np.arange(len(operation))
    return placed


@inner
def perform(
    operations: Records[WordOperation],
    first: int,
    last: int,
    inputs: int,
    values: NDArray[np.uint8],
) -> None:
    """Perform the operations from ``first`` on, before ``last``, one after another."""
    for n in range(first, last):
        each = operations[n]
        _perform(each.operation, each.operands, each.slot, inputs, values)


@unchecked
def _perform(
    operation: int,
    operands: NDArray[np.int32],
    slot: int,
    inputs: int,
    values: NDArray[np.uint8],
) -> None:
    """Of all inputs; the program has numbered the slots."""
    for i in range(inputs):
        a = _word(operands, 0, i, inputs, values)
        b = _word(operands, WORD, i, inputs, values)
        word = scalar_alu.result(operation, a, b)
        for k in range(WORD):
            values[(slot + k) * inputs + i] = np.uint8(word >> np.uint32(8 * k))


@unchecked
def _word(
    operands: NDArray[np.int32], first: int, number: int, inputs: int, values: NDArray[np.uint8]
) -> np.uint32:
    """The word of an input; the program has numbered the slots."""
    word = np.uint32(0)
    for k in range(WORD):
        octet = values[operands[first + k] * inputs + number]
        word |= np.uint32(octet) << np.uint32(8 * k)
    return word
