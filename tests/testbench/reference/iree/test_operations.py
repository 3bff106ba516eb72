"""What every operation without side effects computes, alone and beside the original runtime."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from darwinn_formats.errors import ExecutionError
from darwinn_formats.iree.opcodes import BY_MNEMONIC
from darwinn_reference.arrays import AnyArray
from darwinn_reference.iree import IreeReference, OriginalIree, why_not
from darwinn_reference.iree.semantics import PURE
from darwinn_reference.protocol import Reference
from iree_modules import module, one_operation

NAMES = [name for name in PURE if not name.endswith(".ref")]
INF, NAN = math.inf, math.nan
LOW32, HIGH32 = -(1 << 31), (1 << 31) - 1
LOW64, HIGH64 = -(1 << 63), (1 << 63) - 1


@pytest.fixture(scope="module")
def data() -> bytes:
    return module([one_operation(name) for name in NAMES])


@pytest.fixture(scope="module")
def reference(data: bytes) -> IreeReference:
    return IreeReference(data)


def result(runtime: Reference, name: str, values: Sequence[Any]) -> AnyArray:
    (output,) = runtime.run(list(values), function=name)
    assert isinstance(output.data, np.ndarray)
    return output.data


@pytest.mark.parametrize(
    ("name", "operands", "expected"),
    [
        ("add.i32", (HIGH32, 1), LOW32),
        ("sub.i32", (LOW32, 1), HIGH32),
        ("mul.i32", (65536, 65537), 65536),
        ("fma.i32", (65536, 65536, -7), -7),
        ("add.i64", (HIGH64, 1), LOW64),
        ("mul.i64", (1 << 62, 6), LOW64),
        ("fma.i64", (3, 5, -20), -5),
        ("div.i32.s", (-7, 2), -3),
        ("div.i32.u", (-2, 2), HIGH32),
        ("rem.i32.s", (-7, 2), -1),
        ("rem.i32.u", (-1, 10), 5),
        ("div.i64.s", (7, -2), -3),
        ("rem.i64.s", (7, -2), 1),
        ("div.i64.u", (-1, 1 << 32), 0xFFFF_FFFF),
        ("not.i32", (0,), -1),
        ("shl.i32", (1, 33), 2),
        ("shl.i32", (1, 31), LOW32),
        ("shr.i32.s", (-8, 1), -4),
        ("shr.i32.u", (-8, 1), 0x7FFF_FFFC),
        ("shl.i64", (1, 65), 2),
        ("shr.i64.s", (LOW64, 63), -1),
        ("shr.i64.u", (LOW64, 63), 1),
        ("trunc.i32.i8", (-1,), 255),
        ("trunc.i32.i16", (0x12345,), 0x2345),
        ("trunc.i64.i32", (0x1_8000_0000,), LOW32),
        ("ext.i8.i32.s", (0x80,), -128),
        ("ext.i8.i32.u", (-1,), 255),
        ("ext.i16.i32.s", (0x8000,), -32768),
        ("ext.i32.i64.s", (-1,), -1),
        ("ext.i32.i64.u", (-1,), 0xFFFF_FFFF),
        ("cmp.lt.i32.s", (-1, 1), 1),
        ("cmp.lt.i32.u", (-1, 1), 0),
        ("cmp.nz.i64", (1 << 40,), 1),
        ("ctlz.i32", (0,), 32),
        ("ctlz.i32", (-1,), 0),
        ("ctlz.i64", (1,), 63),
        ("abs.i32", (LOW32,), LOW32),
        ("min.i32.u", (-1, 1), 1),
        ("max.i64.u", (-1, 1), -1),
        ("div.f32", (1.0, 0.0), INF),
        ("div.f32", (1.0, -0.0), -INF),
        ("div.f32", (0.0, 0.0), NAN),
        ("mul.f32", (3e38, 10.0), INF),
        ("add.f32", (1.0, 2.0**-24), 1.0),
        ("fma.f32", (1.0 + 2.0**-12, 1.0 + 2.0**-12, -1.0), 2.0**-11),
        ("rem.f32", (5.0, 3.0), -1.0),
        ("min.f32", (1.0, NAN), 1.0),
        ("min.f32", (NAN, 1.0), NAN),
        ("max.f64", (1.0, NAN), 1.0),
        ("round.f32", (2.5,), 3.0),
        ("round.f32", (-2.5,), -3.0),
        ("round.f32.even", (2.5,), 2.0),
        ("round.f64.even", (-0.5,), 0.0),
        ("ceil.f32", (-0.5,), -0.0),
        ("cast.f32.si32", (-2.5,), -3),
        ("cast.f32.si32", (1e10,), 1410065408),
        ("cast.f32.ui32", (3e9,), 3_000_000_000 - (1 << 32)),
        ("cast.f64.si32", (16777217.0,), 16777216),
        ("cast.f64.si64", (16777217.0,), 16777217),
        ("cast.f64.si64", (NAN,), LOW64),
        ("cast.si32.f32", (16777217,), 16777216.0),
        ("cast.ui32.f64", (-1,), 4294967295.0),
        ("cast.si64.f32", (HIGH64,), 2.0**63),
        ("bitcast.f32.i32", (1.0,), 0x3F80_0000),
        ("bitcast.i64.f64", (0x3FF0_0000_0000_0000,), 1.0),
        ("trunc.f64.f32", (0.1,), float(np.float32(0.1))),
        ("cmp.eq.f32.o", (NAN, NAN), 0),
        ("cmp.eq.f32.u", (NAN, 1.0), 1),
        ("cmp.ne.f32.o", (NAN, 1.0), 1),
        ("cmp.lt.f64.o", (NAN, 1.0), 0),
        ("cmp.lte.f64.u", (2.0, 1.0), 0),
        ("cmp.nan.f32", (NAN,), 1),
        ("log.f32", (0.0,), -INF),
        ("log.f32", (-1.0,), NAN),
        ("exp.f64", (1000.0,), INF),
        ("rsqrt.f32", (0.0,), INF),
        ("sqrt.f32", (2.0,), float(np.float32(math.sqrt(2.0)))),
        ("pow.f32", (-INF, 0.5), INF),
        ("erf.f64", (1.0,), math.erf(1.0)),
        ("tanh.f32", (0.5,), float(np.float32(math.tanh(0.5)))),
    ],
)
def test_an_operation_gives(
    reference: IreeReference, name: str, operands: tuple[Any, ...], expected: float
) -> None:
    found = result(reference, name, operands)
    np.testing.assert_array_equal(found, np.array(expected, found.dtype))
    if expected == 0:
        assert math.copysign(1, float(found)) == math.copysign(1, expected)


@pytest.mark.parametrize("name", ["div.i32.s", "div.i64.u", "rem.i32.u", "rem.i64.s"])
def test_a_division_of_integers_by_zero_is_an_error(reference: IreeReference, name: str) -> None:
    with pytest.raises(ExecutionError, match=f"{name} at 1: .* by zero"):
        reference.run([1, 0], function=name)


INTEGERS = (0, 1, -1, 2, 7, -7, 31, 33, 64, 127, 128, 255, -129, 32768, 65535, LOW32, HIGH32)
LONGS = (*INTEGERS, 1 << 31, 1 << 32, LOW64, HIGH64, (1 << 40) + 3)
SMALL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, -3.7, 1e-30)
FLOATS = (*SMALL, 1e30, INF, -INF, NAN, 2147483647.0, 16777217.0, 100.25, 1e10)
LAST_BIT = (
    *("erf", "atan", "atan2", "expm1", "log1p", "log10", "log2", "log", "exp", "exp2"),
    *("sin", "cos", "tanh", "pow"),
)
"""Functions of the C library, in which builds of it differ by the last bits."""


def operands(name: str, chosen: random.Random, count: int) -> Iterator[list[Any]]:
    kinds = [field.kind for field in BY_MNEMONIC[name].fields if not field.written]
    for _ in range(count):
        values: list[Any] = []
        for kind in kinds:
            if kind == "i":
                values.append(chosen.choice((*INTEGERS, chosen.randrange(LOW32, HIGH32))))
            elif kind == "l":
                values.append(chosen.choice((*LONGS, chosen.randrange(LOW64, HIGH64))))
            else:
                value = chosen.choice((*FLOATS, chosen.uniform(-10, 10)))
                values.append(struct.unpack("f", struct.pack("f", value))[0])
        if name.startswith(("div.i", "rem.i")) and (values[1] == 0 or values[0] in (LOW32, LOW64)):
            continue
        yield values


@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
@pytest.mark.parametrize("name", NAMES)
def test_an_operation_gives_what_the_original_gives(
    reference: IreeReference, original: OriginalIree, name: str
) -> None:
    for values in operands(name, random.Random(name), 60):
        actual, expected = (result(runtime, name, values) for runtime in (reference, original))
        assert actual.dtype == expected.dtype
        if name.partition(".")[0] in LAST_BIT:
            tolerance = 4 * float(np.finfo(expected.dtype).eps)
            np.testing.assert_allclose(actual, expected, rtol=tolerance)
        else:
            np.testing.assert_array_equal(actual, expected, err_msg=str(values))


@pytest.fixture(scope="module")
def original(data: bytes) -> OriginalIree:
    return OriginalIree(data)
