"""Operands of the tensor unit's output stage by class, which random values of moderate size miss.

The classes are those of Berkeley TestFloat: zeros of both signs, subnormal numbers, infinities,
what is no number, powers of two and their neighbours, ties and what lies just beside them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from darwinn_sim import chip
from numpy.typing import NDArray

LANES = chip.LANES
SEGMENTS, COEFFICIENTS = chip.TABLE_SEGMENTS, chip.TABLE_COEFFICIENTS

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

SPECIAL = np.array(
    [
        *(0x0000_0000, 0x8000_0000, 0x0000_0001, 0x8000_0001, 0x007F_FFFF, 0x0080_0000),
        *(0x0080_0001, 0x3F7F_FFFF, 0x3F80_0000, 0x3F80_0001, 0xBF80_0000, 0x7F7F_FFFF),
        *(0xFF7F_FFFF, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 0x7F80_0001, 0x4B80_0000),
    ],
    np.uint32,
).view(np.float32)
"""Zeros, subnormal and the smallest normal numbers, one and its neighbours, the largest,
infinities, two that are no number, 2^24."""

SUMS = (
    0,
    1,
    -1,
    255,
    256,
    (1 << 24) - 1,
    (1 << 24) + 1,
    (1 << 25) + 2,
    (1 << 25) + 6,
    (1 << 31) - 1,
)


@dataclass
class OutputCase:
    """64 lanes through one output stage: sums with their biases (int32), of which ``products`` are
    a part of -128 to 127, scales, and what the instruction says.

    ``function``, ``symmetric_function`` and the like are its fields; a table has eight segments of
    five coefficients, the lowest power first.
    """

    products: Integers
    sums: Integers
    scales: Floats
    output_scale: float = 1.0
    low_clip: float = float("-inf")
    high_clip: float = float("inf")
    zero_point: int = 0
    function: int = 0
    symmetric: int = 0
    odd: int = 0
    coefficients: Floats = field(
        default_factory=lambda: np.zeros((SEGMENTS, COEFFICIENTS), np.float32)
    )
    bounds: Floats = field(default_factory=lambda: np.arange(1, SEGMENTS, dtype=np.float32))


def expected(case: OutputCase) -> list[int]:
    """The results, by NumPy's float32; what is no number counts as 0."""
    with np.errstate(all="ignore"):
        y = case.sums.astype(np.int32).astype(np.float32)
        y = y * (case.scales * np.float32(case.output_scale))
        y = np.where(y > case.high_clip, np.float32(case.high_clip), y)
        y = np.where(y < case.low_clip, np.float32(case.low_clip), y)
        if case.function & 1:
            y = np.array([_function(case, value) for value in y], np.float32)
    highest = 65535 if case.function >> 2 & 1 else 255
    raw = highest == 255 and np.isinf(case.high_clip)
    return [_rounded(float(value), case.zero_point, highest, raw=raw) for value in y]


def _function(case: OutputCase, y: np.float32) -> np.float32:
    x, factor = abs(y) if case.symmetric else y, np.float32(1)
    if case.function >> 1 & 1 and 0 < x < np.inf:
        fraction, exponent = np.frexp(x)  # fraction * 2^exponent, 0.5 <= fraction < 1
        fours = (int(exponent) - 1) // 2
        x = np.float32(np.ldexp(np.float64(fraction), int(exponent) - 2 * fours))
        factor = np.float32(2.0**-fours)
    segment = int((case.bounds <= x).sum())
    value = case.coefficients[segment, -1]
    for coefficient in case.coefficients[segment, -2::-1]:
        value = np.float32(value * x) + coefficient
    value = np.float32(value * factor)
    return np.float32(-value) if case.odd and y < 0 else value


def _rounded(value: float, zero_point: int, highest: int, *, raw: bool) -> int:
    if np.isnan(value) or (raw and np.isinf(value)):
        whole = 0
    elif np.isinf(value):
        whole = 1 << 31 if value > 0 else -1 << 31
    else:
        whole = round(value)  # to even; exact, as Python's integers are
    return (whole + zero_point) % 256 if raw else min(max(whole + zero_point, 0), highest)


def _products(random: np.random.Generator) -> Integers:
    return random.integers(-128, 128, LANES)


def _bits(random: np.random.Generator) -> Floats:
    return random.integers(0, 1 << 32, LANES, np.uint32).view(np.float32)


def _sums(random: np.random.Generator) -> Integers:
    wide = random.integers(-(1 << 31), 1 << 31, LANES) >> random.integers(0, 32, LANES)
    return np.where(random.random(LANES) < 0.4, random.choice(SUMS, LANES), wide)


def any_scale(random: np.random.Generator) -> OutputCase:
    """Any sum times any pattern of bits or a special one, clipped or not."""
    scales = np.where(random.random(LANES) < 0.5, random.choice(SPECIAL, LANES), _bits(random))
    wide = int(random.integers(2))
    high = float(random.choice([255.0, 1.5, 65535.0, 1e30] if wide else [255.0, 1.5, 1e30]))
    low = float(random.choice([-300.0, 0.0, -0.0, -1e30]))
    return OutputCase(
        _products(random),
        _sums(random),
        scales,
        output_scale=float(random.choice([1.0, 2.0**-126, 2.0**-149, 2.0**100])),
        low_clip=low,
        high_clip=high,
        zero_point=int(random.choice([0, 1, 128, 255, 65535])),
        function=4 * wide,
    )


def any_clip(random: np.random.Generator) -> OutputCase:
    """Small sums between clips of any pattern of bits or special ones, in either order."""
    special = np.append(SPECIAL[-6:], np.array([-np.nan, -0.0, -1.5, 1.5, 255], np.float32))
    low, high = np.where(random.random(2) < 0.8, random.choice(special, 2), _bits(random)[:2])
    return OutputCase(
        _products(random),
        _sums(random) >> 16,
        random.choice(np.array([1.0, -1.0, 0.5, 2.0**20], np.float32), LANES),
        low_clip=float(low),
        high_clip=float(high),
        zero_point=int(random.choice([0, 128, 65535])),
        function=4 * int(random.random() < 0.3),
    )


def low_bytes(random: np.random.Generator) -> OutputCase:
    """Products and sums around 2^24, whose low byte leaves as it is: each rounding shows."""
    magnitude = np.exp2(random.uniform(22, 33, LANES))
    sums = random.integers(1, 1 << 24, LANES) >> random.integers(0, 23, LANES)
    sums = np.where(random.random(LANES) < 0.3, magnitude.astype(np.int64) % (1 << 31), sums)
    scales = (magnitude / np.maximum(sums, 1)).astype(np.float32)
    scales = np.where(random.random(LANES) < 0.3, np.float32(1), scales)
    signs = random.choice([-1, 1], (2, LANES))
    return OutputCase(
        sums=sums * signs[0],
        products=_products(random),
        scales=scales * signs[1].astype(np.float32),
        zero_point=int(random.integers(256)),
    )


def additions(random: np.random.Generator) -> OutputCase:
    """Two numbers around 2^23 or far smaller are added, then 2^23 taken away: the last bit shows.

    Each segment has a sum of its own; its argument is a power of two, by which nothing is rounded.
    """
    arguments = np.exp2(np.arange(SEGMENTS) - 3).astype(np.float32)
    table = np.zeros((SEGMENTS, COEFFICIENTS), np.float32)
    for segment, x in enumerate(arguments):
        first = random.integers(1 << 23, (1 << 23) + 200)
        half = random.choice([0.0, 0.5, 0.5, 1.0, 1.5, 2.5])
        beside = random.choice([0.0, 2.0 ** -int(random.integers(1, 26))])
        second = random.choice([-1, 1]) * (half + random.choice([-1, 1]) * beside)
        third = -(1 << 23) + int(random.integers(0, 30))
        table[segment, :3] = third, first / x, second / x**2
        if random.random() < 0.5:
            table[segment, :3] = third, second / x, first / x**2
    return OutputCase(
        sums=np.exp2(random.integers(0, SEGMENTS, LANES)).astype(np.int64),
        products=_products(random),
        scales=np.full(LANES, 0.125, np.float32),
        high_clip=1e9,
        low_clip=-1e9,
        function=1,
        coefficients=table,
        bounds=(arguments[1:] * np.float32(0.75)).astype(np.float32),
    )


def around_zero(random: np.random.Generator) -> OutputCase:
    """Symmetric functions of small numbers, and of zeros with either sign."""
    table = random.integers(0, 100, (SEGMENTS, COEFFICIENTS)).astype(np.float32)
    symmetric = int(random.random() < 0.8)
    return OutputCase(
        sums=random.integers(-2, 3, LANES),
        products=_products(random),
        scales=random.choice(np.array([0.0, -0.0, 1.0, -1.0, 0.25], np.float32), LANES),
        high_clip=100.0,
        low_clip=-100.0,
        zero_point=int(random.choice([0, 100, 128])),
        function=int(random.choice([1, 5])),
        symmetric=symmetric,
        odd=symmetric * int(random.random() < 0.8),
        coefficients=table,
        bounds=np.sort(random.integers(0, 3, SEGMENTS - 1)).astype(np.float32),
    )


def reduced(random: np.random.Generator) -> OutputCase:
    """Range reduction of numbers of one size, subnormal ones and their ties among them."""
    powers = [int(random.integers(-149, 129)), int(random.integers(-149, -120)), 128]
    power = int(random.choice(powers))
    numbers: NDArray[np.floating[Any]]
    numbers = (random.integers(1, 1 << 10, LANES) / (1 << 10)) * 2.0**power
    output_scale = 1.0
    if random.random() < 0.4:
        # Their products with this one end a few bits below the last that there is, or far below.
        below = random.choice([int(random.integers(50, 53)), int(random.integers(50, 149))])
        power, output_scale = -144, 2.0 ** -int(below)
        numbers = random.integers(1, 1 << 8, LANES) * 2.0**-100
    numbers = numbers * random.choice([1, 1, 1, -1, 0], LANES)
    table = np.zeros((SEGMENTS, COEFFICIENTS), np.float32)
    table[:, :2] = random.uniform(1, 60, (SEGMENTS, 2)) * 2.0 ** (power // 2)
    return OutputCase(
        sums=random.integers(1, 4, LANES),
        products=_products(random),
        scales=numbers.astype(np.float32),
        output_scale=output_scale,
        high_clip=float(np.finfo(np.float32).max),
        low_clip=-float(np.finfo(np.float32).max),
        function=int(random.choice([3, 7])),
        coefficients=table,
        bounds=np.sort(random.uniform(1, 4, SEGMENTS - 1)).astype(np.float32),
    )


CLASSES = (any_scale, any_clip, low_bytes, additions, around_zero, reduced)
"""What draws a case of each class."""
