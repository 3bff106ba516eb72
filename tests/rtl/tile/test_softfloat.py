"""The tile's arithmetic, number by number, against Berkeley SoftFloat: every function of the float
package, and the output stage.

In the gate a sample of each class of operands; nightly every pair of the corners, and ten million
drawn cases of each. Where 16 bits say all there is, all of them are tried.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from darwinn_sim import chip
from harness_runs import require_toolchain
from nightly import nightly_seed, note
from numpy.typing import NDArray

if TYPE_CHECKING:
    from softfloat_reference import Words

PIECE = 1 << 18
GATE, NIGHT = 1 << 18, 10_000_000
"""Drawn cases."""

sizes = pytest.mark.parametrize(
    "cases", [GATE, pytest.param(NIGHT, marks=pytest.mark.nightly)], ids=["gate", "nightly"]
)


@pytest.fixture(autouse=True)
def _tools() -> None:
    require_toolchain()
    pytest.importorskip("softfloatpy", reason="no SoftFloat: pip install 'darwinn-testbench[dev]'")


@cache
def _rtl() -> ctypes.CDLL:
    from darwinn_rtl.build import Design, library, simulation_argument

    opened = ctypes.CDLL(str(library(Design("arithmetic", c_sources=("arithmetic.cpp",)))))
    opened.arithmetic_open(simulation_argument().encode())
    return opened


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


def compare_functions(a: NDArray[Any], b: NDArray[Any]) -> None:
    """Every function of each pair of operands."""
    from softfloat_reference import RESULTS, functions

    a, b = np.ascontiguousarray(a, np.uint32), np.ascontiguousarray(b, np.uint32)
    found = np.zeros(a.size, RESULTS)
    _rtl().arithmetic_functions(_pointer(a), _pointer(b), _pointer(found), ctypes.c_uint64(a.size))
    expected = functions(a, b)
    for name in RESULTS.names or ():
        wrong = np.flatnonzero(found[name] != expected[name])
        assert not wrong.size, (
            f"{name} of {a[wrong[0]]:08x} and {b[wrong[0]]:08x} is {expected[name][wrong[0]]:08x}, "
            f"the RTL says {found[name][wrong[0]]:08x}; {wrong.size} of {a.size} differ"
        )


def compare_stages(cases: NDArray[np.void], bounds: Words, table: Words) -> None:
    """The output stage on each case."""
    from softfloat_reference import stages

    packed = np.concatenate([table.ravel(), bounds]).astype(np.uint32)
    found = np.zeros(cases.size, np.uint16)
    _rtl().arithmetic_stage(
        _pointer(cases), _pointer(packed), _pointer(found), ctypes.c_uint64(cases.size)
    )
    expected = stages(cases, bounds, table)
    wrong = np.flatnonzero(found != expected)
    assert not wrong.size, (
        f"{cases[wrong[0]]} with bounds {bounds} and coefficients {table} is "
        f"{expected[wrong[0]]}, the RTL says {found[wrong[0]]}; {wrong.size} of {cases.size} differ"
    )


def _any(random: np.random.Generator, count: int) -> Words:
    return random.integers(0, 1 << 32, count, np.uint32)


def _corner(random: np.random.Generator, count: int) -> Words:
    from softfloat_reference import corners

    return np.asarray(random.choice(corners(), count), np.uint32)


def _of_short_fraction(random: np.random.Generator, count: int) -> Words:
    """Their products have ties."""
    below = random.integers(8, 23, count, np.uint32)
    return np.asarray(_any(random, count) >> below << below, np.uint32)


def _near(random: np.random.Generator, a: Words) -> Words:
    """Exponents up to 27 apart, so that sums cancel, tie, or hang on the sticky bit."""
    apart = random.integers(-27, 28, a.size)
    exponent = np.clip((a >> 23 & 0xFF).astype(np.int64) + apart, 0, 255).astype(np.uint32)
    fraction = np.where(
        random.random(a.size) < 0.5, a & 0x7FFFFF, _corner(random, a.size) & 0x7FFFFF
    ).astype(np.uint32)
    sign = random.integers(0, 2, a.size, np.uint32)
    return np.asarray(sign << 31 | exponent << 23 | fraction, np.uint32)


def _just_above_ties(random: np.random.Generator, count: int) -> tuple[Words, Words]:
    """Their products are subnormal, and ties but for the last bits, of which few are cut off."""
    pairs = [_above_ties(random, count, below) for below in (2, 4, 6, 8)]
    a, b = (np.concatenate(each) for each in zip(*pairs, strict=True))
    chosen = random.integers(0, a.size, count)
    return np.asarray(a[chosen], np.uint32), np.asarray(b[chosen], np.uint32)


def _above_ties(random: np.random.Generator, count: int, below: int) -> tuple[Words, Words]:
    """A significand, and that by which it gives half a unit and less than ``1 << below`` more: its
    inverse in the ring of so many bits says which, and half of those have 24 bits."""
    a = random.integers(1 << 22, 1 << 23, count // 8, np.uint64) * 2 + 1
    inverse = a.copy()
    for _ in range(5):
        inverse *= 2 - a * inverse
    more = np.arange(1, 1 << below, dtype=np.uint64)
    b = (inverse[:, None] * ((1 << 23 + below) + more)) & ((1 << 24 + below) - 1)
    fits = b >> 23 == 1
    a, b = np.broadcast_to(a[:, None], b.shape)[fits], b[fits]
    exponent = random.integers(40, 120, a.size, np.uint64)
    return _number(exponent, a), _number(127 - below - exponent, b)


def _number(exponent: NDArray[np.uint64], significand: NDArray[np.uint64]) -> Words:
    return np.asarray(exponent << 23 | significand & 0x7FFFFF, np.uint32)


def drawn(random: np.random.Generator, count: int) -> Iterator[tuple[Words, Words]]:
    """Pairs of each class in turn, ``count`` in all."""
    classes = (
        lambda n: (_any(random, n), _any(random, n)),
        lambda n: (_corner(random, n), _corner(random, n)),
        lambda n: (_corner(random, n), _any(random, n)),
        lambda n: (_of_short_fraction(random, n), _of_short_fraction(random, n)),
        lambda n: (a := _any(random, n), _near(random, a)),
        lambda n: (a := _corner(random, n), _near(random, a)),
        lambda n: _just_above_ties(random, n),
    )
    left, turn = count, 0
    while left:
        size = min(left, PIECE, -(-count // len(classes)))
        yield classes[turn % len(classes)](size)
        left, turn = left - size, turn + 1


def seed_of(cases: int) -> int:
    return nightly_seed() if cases == NIGHT else 1


@sizes
def test_drawn_operands(cases: int) -> None:
    random = np.random.default_rng(seed_of(cases))
    for a, b in drawn(random, cases):
        compare_functions(a, b)
    if cases == NIGHT:
        note("float32 functions", cases, nightly_seed())


def test_sixteen_bits_of_an_operand() -> None:
    """Every upper half with corners of the lower, and every lower half of small integers."""
    upper = np.arange(1 << 16, dtype=np.uint32)
    for lower in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
        operand = upper << 16 | lower
        for other in (0x3F800000, 0x80000000, 0x7F7FFFFF):
            compare_functions(operand, np.full_like(operand, other))
    for above in (0, 1, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF):
        compare_functions(above << 16 | upper, upper << 16)


@pytest.mark.nightly
def test_every_pair_of_corners() -> None:
    from softfloat_reference import corners

    operands = corners()
    for one in operands:
        compare_functions(np.full_like(operands, one), operands)
    note("float32 functions, every pair of corners", operands.size**2, 0)


def _bounds_and_table(random: np.random.Generator) -> tuple[Words, Words]:
    kind = random.integers(3)
    bounds = np.sort(random.normal(0, 4.0 ** random.integers(-2, 6), chip.TABLE_SEGMENTS - 1))
    shape = (chip.TABLE_SEGMENTS, chip.TABLE_COEFFICIENTS)
    table: Words = random.normal(0, 1, shape).astype(np.float32).view(np.uint32)
    if kind == 1:
        table = _corner(random, table.size).reshape(shape)
    elif kind == 2:
        table = np.where(random.random(shape) < 0.3, _corner(random, 1)[0], table)
    return bounds.astype(np.float32).view(np.uint32), table.astype(np.uint32)


def _cases(random: np.random.Generator, count: int) -> NDArray[np.void]:
    from softfloat_reference import CASES, CLIPS, FUNCTION, ODD, RAW, REDUCES, SYMMETRIC, WIDE

    cases = np.zeros(count, CASES)
    shift = random.integers(0, 32, count, np.int32)
    cases["sum"] = (_any(random, count).view(np.int32) >> shift).view(np.uint32)
    cases["bias"] = np.where(random.random(count) < 0.5, 0, _any(random, count))
    # Scales that bring the sum into the range of the results, with ties, or any.
    fitting = (2.0 ** -random.integers(0, 30, count)).astype(np.float32)
    rough = (fitting * random.uniform(0.5, 2, count)).astype(np.float32)
    cases["scale"] = np.choose(
        random.integers(0, 4, count),
        [fitting.view(np.uint32), rough.view(np.uint32), _corner(random, count), rough.view("<u4")],
    )
    limits = random.normal(0, 300, (2, count)).astype(np.float32)
    limits[:, random.random(count) < 0.3] = [[np.inf], [-np.inf]]
    limits.sort(axis=0)
    cases["low_clip"], cases["high_clip"] = limits.view(np.uint32)
    strange = random.random(count) < 0.05
    cases["high_clip"][strange] = _corner(random, int(strange.sum()))
    cases["zero_point"] = random.choice([0, 1, 127, 128, 255, 32768, 65535], count)
    functions = [0, FUNCTION, FUNCTION | REDUCES, FUNCTION | SYMMETRIC, FUNCTION | SYMMETRIC | ODD]
    cases["switches"] = (
        random.choice(functions, count)
        | random.choice([0, CLIPS, CLIPS], count)
        | random.choice([0, WIDE, RAW], count)
    )
    return cases


@sizes
def test_drawn_cases_of_the_output_stage(cases: int) -> None:
    random = np.random.default_rng(seed_of(cases))
    left = cases
    while left:
        size = min(left, 1 << 14)
        compare_stages(_cases(random, size), *_bounds_and_table(random))
        left -= size
    if cases == NIGHT:
        note("output stages", cases, nightly_seed())


def test_products_around_the_smallest_normal_number() -> None:
    """Some units of the last place below it and above, and half units: those just below are rounded
    up to it, or are subnormal."""
    random, count = np.random.default_rng(5), 1 << 15
    a = random.integers(1 << 23, 1 << 24, count) * 2.0 ** random.integers(-148, -26, count)
    near = 2.0**-126 * (1 + random.integers(-16, 17, count) * 2.0**-25)
    with np.errstate(under="ignore", over="ignore"):
        operands = [each.astype(np.float32).view(np.uint32) for each in (a, near / a)]
    signs = random.integers(0, 2, (2, count), np.uint32) << 31
    compare_functions(operands[0] | signs[0], operands[1] | signs[1])
    compare_functions(operands[1] | signs[1], operands[0] | signs[0])


def test_without_a_table_nothing_of_a_function_counts() -> None:
    """Neither range reduction nor signs."""
    from softfloat_reference import FUNCTION, ODD, REDUCES, SYMMETRIC

    random, count = np.random.default_rng(7), 1 << 13
    cases = _cases(random, count)
    cases["switches"] &= ~np.uint32(FUNCTION)
    cases["switches"] |= random.integers(0, 8, count, np.uint32) * REDUCES
    assert REDUCES * 7 == REDUCES | SYMMETRIC | ODD
    compare_stages(cases, *_bounds_and_table(random))


@pytest.mark.parametrize("scale", [1.0, 0.5, 0.25, 1 / 3, 2.0**-9])
@pytest.mark.parametrize("first", [-(1 << 15), 0, (1 << 24) - (1 << 15)])
def test_every_sum_of_sixteen_bits(first: int, scale: float) -> None:
    """Into 8 and into 16 bits, and the low byte."""
    from softfloat_reference import CASES, RAW, WIDE

    cases = np.zeros(1 << 16, CASES)
    cases["sum"] = (first + np.arange(1 << 16)).astype(np.uint32)
    cases["scale"] = np.float32(scale).view(np.uint32)
    cases["zero_point"] = 128
    for switches in (0, WIDE, RAW):
        cases["switches"] = switches
        compare_stages(cases, np.zeros(7, np.uint32), np.zeros((8, 5), np.uint32))


def test_the_reference_says_what_a_reader_expects() -> None:
    from softfloat_reference import functions

    one, two = np.array([0x3F800000], np.uint32), np.array([0x40000000], np.uint32)
    assert functions(one, two)["product"][0] == 0x40000000
    assert functions(one, two)["total"][0] == 0x40400000
    nothing = functions(np.array([0x7F800000], np.uint32), np.array([0], np.uint32))
    assert (nothing["product"][0], nothing["nearest"][0]) == (0x7FC00000, 0x7FFFFFFF)


def test_a_difference_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import softfloat_reference

    def without_ties(a: Words, b: Words) -> NDArray[np.void]:
        changed = expected(a, b)
        changed["product"] |= 1
        return changed

    expected = softfloat_reference.functions
    monkeypatch.setattr(softfloat_reference, "functions", without_ties)
    one = np.array([0x3F800000], np.uint32)
    with pytest.raises(AssertionError, match="product of 3f800000 and 3f800000 is 3f800001, the"):
        compare_functions(one, one)
