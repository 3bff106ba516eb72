"""Relocated fields reach the tables that the chip executes, whatever they held before."""

from __future__ import annotations

import pytest
from darwinn_sim.isa.builder import Values, build, frame
from darwinn_sim.isa.codec import DecodeError
from darwinn_sim.isa.codes import AluOperation
from darwinn_sim.isa.fields import BUNDLE_BYTES
from darwinn_sim.machine.lowering import lower, patch
from hypothesis import given, settings
from hypothesis import strategies as st

TENSOR: tuple[str, Values] = (
    "TensorMac",
    {"partial_sum_read": 3, "main_limit": [3, 0, 0, 0, 0, 0, 0, 0]},
)
OTHERS = frame(build([("Scalar", {}), TENSOR, ("ScalarFence", {})]))
"""Scalar bundles are number 1, and 22 to 25."""
HALVES = st.one_of(st.just(0), st.integers(0, 2**32 - 1))


def chunk(*values: int, trace: int = 0) -> bytes:
    """A program of one move of an immediate for each value."""
    move = {"alu_op": AluOperation.MOVE, "alu_immediate": 1, "trace": trace}
    return frame(build(("Scalar", move | {"alu_b": value}) for value in values))


@given(st.lists(st.tuples(HALVES, HALVES), min_size=1, max_size=5))
def test_each_run_sees_its_own_addresses(runs: list[tuple[int, int]]) -> None:
    program = lower([chunk(0, 0)])
    for addresses in runs:
        patch(program, 0, chunk(*addresses))
        linked = lower([chunk(*addresses)])
        assert (program.tables.scalar == linked.tables.scalar).all()


@given(st.lists(st.tuples(st.integers(0, 1), HALVES, HALVES, st.integers(0, 1)), max_size=8))
def test_of_several_chunks_each_has_what_it_was_given_last(
    patches: list[tuple[int, int, int, int]],
) -> None:
    """Whether it differs in addresses alone from what was lowered, or in other fields, too."""
    chunks = [chunk(0, 0), chunk(7, 0)]
    program = lower(chunks)
    for number, *addresses, trace in patches:
        chunks[number] = chunk(*addresses, trace=trace)
        patch(program, number, chunks[number])
        assert (program.tables.scalar == lower(chunks).tables.scalar).all()


@settings(max_examples=300)
@given(st.sampled_from([0, *range(2, 22), 26]), st.integers(0, 8 * BUNDLE_BYTES - 1))
def test_what_is_no_scalar_bundle_is_never_another_one(bundle: int, bit: int) -> None:
    """Whichever bit it is, also of bundles that only go on with an instruction; the tables stay."""
    program = lower([OTHERS])
    before = program.tables.scalar.copy()
    changed = bytearray(OTHERS)
    changed[BUNDLE_BYTES * bundle + bit // 8] ^= 1 << bit % 8
    with pytest.raises(DecodeError) as caught:
        patch(program, 0, bytes(changed))
    assert caught.value.bundle == bundle
    assert (program.tables.scalar == before).all()
