"""Products of four 8-bit activations and the four bytes of each lane: what takes most of the time.

Processors multiply pairs of 16-bit numbers and add them up in one instruction, which compilers do
not find in a loop over lanes. So a block of lanes is a vector here, by LLVM code of its own: no
instruction of a certain processor, but the form in which LLVM knows what each of them has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from darwinn_sim import chip
from darwinn_sim.kernel.compiled import unchecked
from darwinn_sim.units.memories import NARROW_MASK

MOST_ZERO = (1 << 15) - 1
"""Zero points up to this can be subtracted in 16 bits."""

NONE, SOME, ALL = range(3)
"""Iterations of an instruction whose products are added here: those of ``SOME`` that are plain."""

_FEW, _MANY = 4, 32
"""Lanes of a block: of a depthwise convolution, whose lanes are few, and of others."""

_ROW_SHIFT = (chip.ROW_WORDS // 4).bit_length() - 1
"""From a granule that begins a row to the first word of that row."""

# The types of numba and of LLVM's builder are not known to a checker.
_ir: Any = ir
_types: Any = types
_intrinsic: Any = intrinsic

_HALF, _WORD = _ir.IntType(16), _ir.IntType(32)


@unchecked
def add_products(
    sums: NDArray[np.int32],
    lanes: int,
    narrow: NDArray[np.uint32],
    operands: NDArray[np.int32],
    wide: NDArray[np.uint32],
    granules: NDArray[np.int16],
    count: int,
    zero: np.int32,
    parameter_zero: np.int32,
) -> None:
    """Add the products of the first ``count`` iterations to the sums of lanes, modulo 2^32.

    Each of them is plain (:func:`plain_iterations`); no zero point is above ``MOST_ZERO``.
    """
    if count and lanes <= _FEW:
        _add_few(sums, 0, lanes, narrow, operands, wide, granules, count, zero, parameter_zero)
    elif count:
        for first in range(0, lanes, _MANY):
            _add_many(
                sums, first, lanes, narrow, operands, wide, granules, count, zero, parameter_zero
            )


@unchecked
def plain_iterations(operands: NDArray[np.int32], granules: NDArray[np.int16]) -> int:
    """How many iterations, from the first one on, are plain: their activations are in one piece,
    where addresses wrap, and their granule begins a row that exists."""
    count = 0
    while count < len(operands) and _is_plain(operands[count], granules[count]):
        count += 1
    return count


@unchecked
def _is_plain(operand: int, granule: int) -> bool:
    in_one_piece = operand & NARROW_MASK <= NARROW_MASK - 3
    return bool(in_one_piece and granule & 3 == 0 and 0 <= granule < 4 * chip.WIDE_ROWS)


class _Block:
    """Code for the sums of so many lanes."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.words = _ir.VectorType(_WORD, lanes)
        self.halves = _ir.VectorType(_HALF, 2 * lanes)
        self.products = _ir.VectorType(_WORD, 2 * lanes)

    def generate(self, context: Any, builder: Any, signature: Any, arguments: Sequence[Any]) -> Any:
        """Code that adds products to the sums of lanes from ``first`` on, but not of those from
        ``lanes`` on."""
        # Only the compiler needs these, which take long to load.
        from numba.core import cgutils
        from numba.np import arrayobj

        make_array: Any = arrayobj.make_array
        helpers: Any = cgutils
        data = {
            name: make_array(signature.args[k])(context, builder, arguments[k]).data
            for name, k in _ARRAYS.items()
        }
        first, lanes, count = (arguments[k] for k in (1, 2, 7))
        zeros, parameter_zeros = (self._halves_of(builder, arguments[k]) for k in (8, 9))
        target = builder.bitcast(builder.gep(data["sums"], [first]), self.words.as_pointer())
        old = builder.load(target, align=4)
        total = helpers.alloca_once_value(builder, old)
        octets = builder.bitcast(data["narrow"], _ir.IntType(8).as_pointer())
        with helpers.for_range(builder, count) as loop:
            operand = builder.load(builder.gep(data["operands"], [loop.index]))
            place = builder.and_(operand, _WORD(NARROW_MASK))
            at = builder.bitcast(builder.gep(octets, [place]), _WORD.as_pointer())
            group = self._splat(builder, builder.load(at, align=1), self.words)
            granule = builder.load(builder.gep(data["granules"], [loop.index]))
            row = builder.shl(builder.sext(granule, first.type), first.type(_ROW_SHIFT))
            at = builder.gep(data["wide"], [builder.add(row, first)])
            at = builder.bitcast(at, self.halves.as_pointer())
            factors = self._bytes(builder, builder.bitcast(group, self.halves), zeros)
            parameters = self._bytes(builder, builder.load(at, align=4), parameter_zeros)
            even, odd = (self._dot(builder, a, b) for a, b in zip(factors, parameters, strict=True))
            grown = builder.add(builder.load(total), builder.add(even, odd))
            builder.store(grown, total)
        lane = self._splat(builder, builder.trunc(first, _WORD), self.words)
        lane = builder.add(lane, self.words(list(range(self.lanes))))
        last = self._splat(builder, builder.trunc(lanes, _WORD), self.words)
        counts = builder.icmp_signed("<", lane, last)
        builder.store(builder.select(counts, builder.load(total), old), target, align=4)
        return context.get_dummy_value()

    def _splat(self, builder: Any, number: Any, vector: Any) -> Any:
        none = vector(_ir.Undefined)
        one = builder.insert_element(none, number, _WORD(0))
        return builder.shuffle_vector(one, none, _ir.VectorType(_WORD, vector.count)(None))

    def _halves_of(self, builder: Any, number: Any) -> Any:
        return self._splat(builder, builder.trunc(number, _HALF), self.halves)

    def _bytes(self, builder: Any, halves: Any, zeros: Any) -> tuple[Any, Any]:
        """The low and the high byte of each half of a word, minus their zero point."""
        low = builder.and_(halves, self.halves([0xFF] * self.halves.count))
        high = builder.lshr(halves, self.halves([8] * self.halves.count))
        return builder.sub(low, zeros), builder.sub(high, zeros)

    def _dot(self, builder: Any, a: Any, b: Any) -> Any:
        """The sum of the products of both halves of each word."""
        products = builder.mul(builder.sext(a, self.products), builder.sext(b, self.products))
        none = self.products(_ir.Undefined)
        even, odd = (
            builder.shuffle_vector(products, none, self.words(list(range(side, 2 * self.lanes, 2))))
            for side in range(2)
        )
        return builder.add(even, odd)


_ARRAYS = {"sums": 0, "narrow": 3, "operands": 4, "wide": 5, "granules": 6}
"""Which of the arguments are arrays."""


def _adder(block: int) -> Any:
    """What adds the products of the first ``count`` iterations to the sums of a block of lanes."""

    def add(
        _context: Any,
        sums: Any,
        first: Any,
        lanes: Any,
        narrow: Any,
        operands: Any,
        wide: Any,
        granules: Any,
        count: Any,
        zero: Any,
        parameter_zero: Any,
    ) -> Any:
        """The types of the arguments, as they are to be given, and the code for them."""
        number, word = _types.int64, _types.int32
        given = (sums, number, number, narrow, operands, wide, granules, number, word, word)
        return _types.void(*given), _Block(block).generate

    return _intrinsic(add)


_add_few, _add_many = _adder(_FEW), _adder(_MANY)
