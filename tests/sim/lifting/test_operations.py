"""Operations of the scalar core: what they follow from, and many inputs at once, beside loops."""

from __future__ import annotations

import numpy as np
import pytest
from darwinn_sim.lifting import kernels, scalar_steps, tape
from darwinn_sim.lifting.kernels import StepPlan
from darwinn_sim.lifting.stage import Made
from darwinn_sim.lifting.tape import CONSTANTS, OPERAND_BYTES, Tape
from darwinn_sim.units import scalar_alu
from darwinn_sim.units.identities import BLOCK
from darwinn_sim.units.tensor_records import Parameters
from hypothesis import given
from hypothesis import strategies as st
from slow_model import scalar_core as slow

SEEDS = st.integers(0, 2**32 - 1)
GIVEN = 16
"""Identities that are there before the first operation."""


def drawn(random: np.random.Generator, count: int) -> Tape:
    """Operations on constants, what is given, and results before."""
    identity = GIVEN + BLOCK * np.cumsum(random.integers(1, 4, count))
    operands = random.integers(0, CONSTANTS, (count, OPERAND_BYTES))
    for n in range(count):
        known = [*range(GIVEN), *(each + k for each in identity[:n] for k in range(BLOCK))]
        for k in range(OPERAND_BYTES):
            if random.random() < 0.4:
                operands[n, k] = CONSTANTS + random.choice(known)
    operation = random.integers(1, 8, count)
    return Tape(operation.astype(np.int32), operands.astype(np.int32), identity)


@given(SEEDS, st.integers(0, 8))
def test_an_operation_has_the_highest_level_of_its_operands(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    made = drawn(random, count)
    levels = np.zeros(1000, np.int32)
    levels[: GIVEN // BLOCK] = random.integers(0, 4, GIVEN // BLOCK)
    slow_levels = levels.copy()
    for n, operands in enumerate(made.operands.tolist()):
        of = [slow_levels[(each - CONSTANTS) // BLOCK] for each in operands if each >= CONSTANTS]
        slow_levels[made.identity[n] // BLOCK] = max(of, default=0)
    found = np.full(count, -1, np.int32)
    done = 0
    # A part of them at a time, up to a run; one of the same number of identity comes after it.
    ends = sorted({0, *random.choice(made.identity, 2).tolist()} if count else {0})
    for end in (*ends, 1 << 40):
        done = tape.find_levels(made, done, end, levels, found)
        assert done == int((made.identity < end).sum())
    assert np.array_equal(levels, slow_levels)
    assert found.tolist() == slow_levels[made.identity // BLOCK].tolist()


@given(SEEDS, st.integers(0, 8))
def test_what_an_operation_takes_is_needed_if_a_byte_of_its_result_is(
    seed: int, count: int
) -> None:
    random = np.random.default_rng(seed)
    made = drawn(random, count)
    needed = random.random(1000) < 0.05
    expected, which = needed.copy(), [False] * count
    for n in reversed(range(count)):
        first = int(made.identity[n])
        if any(expected[first + k] for k in range(BLOCK)):
            which[n] = True
            for each in made.operands[n].tolist():
                if each >= CONSTANTS:
                    expected[each - CONSTANTS] = True
    found = np.zeros(count, np.bool_)
    left = count
    begins = sorted({0, *random.choice(made.identity, 2).tolist()} if count else {0})
    for begin in reversed(begins):
        left = tape.find_needed(made, left, begin, needed, found)
        assert left == int((made.identity < begin).sum())
    assert np.array_equal(needed, expected)
    assert found.tolist() == which


SLOW = slow.REGISTER_OPERATIONS | {
    scalar_alu.FUNCTION + number: (lambda a, b, each=each: each(a))
    for number, each in slow.FUNCTIONS.items()
}
WORDS = (
    *(0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7F800000, 0x7FC00001, 0xFFC12345),
    *(slow.to_word(value) for value in (1.0, -1.0, 0.5, 2.5, -3.5, 1e-3, 100.25, 1e10)),
)


@pytest.mark.parametrize("operation", SLOW)
@pytest.mark.parametrize("inputs", [1, 7])
def test_operations_are_performed_one_after_another(operation: int, inputs: int) -> None:
    """Each with what the one before has made, of words whose bytes are anywhere."""
    random = np.random.default_rng(operation)
    numbers = [each for each in WORDS if operation != 17 or abs(slow.to_float(each)) < 1e18]
    slots = random.permutation(np.arange(8, 32))
    values = random.integers(0, 256, (64, inputs), np.uint8)
    a, b = (random.choice(np.array(numbers, np.uint32), inputs) for _ in range(2))
    for word, at in ((a, slots[:4]), (b, slots[4:8])):
        for k in range(4):
            values[at[k]] = word >> np.uint32(8 * k) & np.uint32(0xFF)
    before = values.copy()
    add = 1
    operands = np.array([slots[:8], [40, 41, 42, 43, *slots[:4]]], np.int32)
    made = scalar_steps.placed_operations(np.array([operation, add], np.int32), operands, 40)
    steps = kernels.Step.zeros(1)
    steps["how"], steps["positions"] = Made.OPERATIONS, 2
    none, reals = np.zeros(1, np.int32), np.zeros((1, 1), np.float32)
    plan = StepPlan(
        Parameters.zeros(1),
        steps,
        kernels.Span.zeros(1),
        *(none, none, none, reals[0], none, none, none, reals, reals),
        made,
    )
    kernels.make(plan, 0, 1, inputs, kernels.room_of(plan, inputs), values.reshape(-1))
    with np.errstate(all="ignore"):
        first = [SLOW[operation](int(x), int(y)) for x, y in zip(a, b, strict=True)]
    second = [(each + int(x)) % slow.WORD for each, x in zip(first, a, strict=True)]
    assert np.ascontiguousarray(values[40:44].T).view("<u4")[:, 0].tolist() == first
    assert np.ascontiguousarray(values[44:48].T).view("<u4")[:, 0].tolist() == second
    values[40:48] = before[40:48]
    assert np.array_equal(values, before)
