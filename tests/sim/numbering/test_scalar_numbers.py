"""Value numbers of what the scalar core computes, by random programs and by a softmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.isa.codes import AluOperation, ScalarFunction
from darwinn_sim.kernel.field import CONSTANTS, random_elements
from darwinn_sim.numbering import kernels, run
from hypothesis import given
from hypothesis import strategies as st
from numbered_runs import Ignored, Traces
from scalar_programs import DATA, REGISTERS, ScalarProgram, alu, load, programs, store
from slow_model.scalar_core import to_word
from stimulus import constrained_random

Bundle = dict[str, int]

AND, OR, XOR, LEFT, RIGHT = (
    AluOperation[name] for name in ("AND", "OR", "XOR", "SHIFT_LEFT", "SHIFT_RIGHT")
)
LEAST, GREATEST = AluOperation.FLOAT_MINIMUM, AluOperation.FLOAT_MAXIMUM
TIMES = AluOperation.FLOAT_MULTIPLY
_BYTES = 6
"""Bytes of a softmax: one word, and a part of the next."""
_ZERO_POINT, _SCALE = 92, np.float32(0.1)
_BOUNDS = [0.0, 1.5, 255.0, 256.0, -1.0, float("nan"), float("inf")]


def immediate(operation: int, register: int, word: int) -> Bundle:
    return alu(operation, register, register, word, immediate=True)


def between(operation: int, register: int, a: int, b: int) -> Bundle:
    return alu(operation, register, a, b, immediate=False)


def numbers_of(bundles: Sequence[Bundle]) -> list[int]:
    """Numbers of the registers, and of the data behind them, byte by byte."""
    inputs = {"image": random_elements(np.random.default_rng(0), chip.ROW_BYTES)}
    executable = ScalarProgram(bundles).executable()
    accelerator = Accelerator()
    accelerator.run(executable, {"image": bytes(chip.ROW_BYTES)})
    found = run.number_program(accelerator, executable, inputs, Ignored())
    return [int(each) for each in found.outputs["results"]]


def attack(program: ScalarProgram) -> None:
    random = np.random.default_rng(0)
    images = [*(random.bytes(chip.ROW_BYTES) for _ in range(4)), b"\xff" * chip.ROW_BYTES]
    numbers = {"image": random_elements(random, chip.ROW_BYTES)}
    traces = Traces([{"image": each} for each in images], numbers)
    assert traces.contradictions(Accelerator(), program.executable()) == []


@constrained_random(12)
@given(programs())
def test_bytes_with_the_same_number_are_the_same(program: ScalarProgram) -> None:
    attack(program)


@st.composite
def bounded(draw: Any) -> list[Bundle]:
    """Floats of data between bounds become integers, and parts of words."""
    found = []
    for register in range(4):
        found += [
            between(AluOperation.TO_FLOAT, register, 0, register),
            immediate(TIMES, register, to_word(draw(st.sampled_from([0.5, -3.0, 1e-9, 1e9])))),
        ]
        for _ in range(draw(st.integers(1, 3))):
            bound = to_word(draw(st.sampled_from(_BOUNDS)))
            found.append(immediate(draw(st.sampled_from([LEAST, GREATEST])), register, bound))
            source = draw(st.sampled_from([register, register, register, 5]))
            found.append(between(AluOperation.MOVE, register, 0, source))
        found += [
            between(AluOperation.TO_INTEGER, register, 0, register),
            immediate(LEFT, register, draw(st.sampled_from([0, 8, 16]))),
            between(draw(st.sampled_from([OR, XOR])), register, register, 8 + register),
        ]
    return found


@constrained_random(40)
@given(bounded())
def test_floats_between_bounds_are_bytes(bundles: list[Bundle]) -> None:
    attack(ScalarProgram(bundles))


def test_a_byte_is_taken_out_of_a_word() -> None:
    taken = [alu(AND, 1, 0, 0xFF00, immediate=True), between(XOR, 0, 0, 1)]
    known = [each < CONSTANTS for each in numbers_of(taken)[:4]]
    assert known == [False, True, False, False]


def power(register: int, byte: int) -> list[Bundle]:
    """The exponential of a byte of the data less the greatest value, which register 20 holds."""
    return [
        *real(register, byte),
        between(AluOperation.FLOAT_SUBTRACT, register, register, 20),
        immediate(TIMES, register, to_word(1.4426950408889634)),
        {
            "function_op": ScalarFunction.EXP2,
            "function_source": register,
            "function_destination": register,
        },
    ]


def real(register: int, byte: int) -> list[Bundle]:
    """A byte of the data as a float."""
    shift = 8 * (byte % 4)
    return [
        load(register, DATA + byte // 4),
        immediate(AND, register, 0xFF << shift),
        immediate(RIGHT, register, shift),
        immediate(AluOperation.SUBTRACT, register, _ZERO_POINT),
        between(AluOperation.TO_FLOAT, register, 0, register),
        immediate(TIMES, register, to_word(float(_SCALE))),
    ]


def softmax() -> list[Bundle]:
    """As early compilers wrote it, without its loops; the shares take the place of the bytes."""
    found = [alu(AluOperation.MOVE, 20, 0, to_word(-np.inf), immediate=True)]
    for byte in range(_BYTES):
        found += [*real(1, byte), between(GREATEST, 20, 20, 1)]
    found.append(alu(AluOperation.MOVE, 21, 0, 0, immediate=True))
    for byte in range(_BYTES):
        found += [*power(1, byte), between(AluOperation.FLOAT_ADD, 21, 21, 1)]
    found.append(
        {
            "function_op": ScalarFunction.RECIPROCAL,
            "function_source": 21,
            "function_destination": 21,
        }
    )
    for byte in range(_BYTES):
        mask = 0xFF << 8 * (byte % 4)
        found += [
            load(2, DATA + byte // 4),
            alu(AND, 3, 2, mask, immediate=True),
            between(XOR, 2, 2, 3),
            *power(1, byte),
            between(TIMES, 1, 1, 21),
            immediate(TIMES, 1, to_word(256.0)),
            immediate(LEAST, 1, to_word(255.0)),
            immediate(GREATEST, 1, to_word(0.0)),
            between(AluOperation.TO_INTEGER, 1, 0, 1),
            immediate(LEFT, 1, 8 * (byte % 4)),
            between(OR, 2, 2, 1),
            store(2, DATA + byte // 4),
        ]
    return found


def test_a_softmax_of_the_scalar_core_has_the_numbers_of_its_rule() -> None:
    first = 4 * 2 * REGISTERS
    before, after = (
        np.array(numbers_of(bundles)[first : first + 8], np.uint64) for bundles in ([], softmax())
    )
    expected = np.empty((1, _BYTES), np.uint64)
    words = np.empty((kernels.SHARES_WORDS, 4), np.uint64)
    kernels.shares_by_scalar_core(
        np.ascontiguousarray(before[None, :_BYTES]), _ZERO_POINT, _SCALE, words, expected
    )
    assert after[:_BYTES].tolist() == expected[0].tolist()
    assert after[_BYTES:].tolist() == before[_BYTES:].tolist()
