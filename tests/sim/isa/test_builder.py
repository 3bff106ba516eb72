"""Building programs: floats, chunk framing, traversals from real loops."""

from __future__ import annotations

import struct
from itertools import product

import numpy as np
import pytest
from darwinn_sim.isa.builder import PROGRAM_BUNDLES, build, frame, traversal
from darwinn_sim.isa.codec import decode
from darwinn_sim.isa.fields import BUNDLE_BYTES
from darwinn_sim.isa.strides import steps
from hypothesis import given
from hypothesis import strategies as st
from slow_model.traversal import walk


def test_a_float_is_stored_as_float32() -> None:
    program = decode(build([("TensorMac", {"output_scale": 0.1, "high_clip": float("inf")})]))
    assert program[0]["output_scale"] == struct.unpack("<I", struct.pack("<f", 0.1))[0]
    assert program[0]["high_clip"] == 0x7F800000


def test_a_float_for_an_integer_field_is_refused() -> None:
    with pytest.raises(ValueError, match=r"TensorMac.immediate_bias holds no float, not 1.0"):
        build([("TensorMac", {"immediate_bias": 1.0})])


def test_a_float_beyond_float32_is_refused() -> None:
    with pytest.raises(ValueError, match="float32"):
        build([("TensorMac", {"output_scale": 1e300})])


def test_a_frame_loads_the_body_halts_and_executes() -> None:
    body = build([("TileFence", {"tiles": 0xFFFF}), ("ScalarFence", {})])
    program = decode(frame(body))
    names = [program[index].instruction.name for index in range(len(program))]
    halted = ["Halt", *["Scalar"] * 4]
    assert names == ["LoadProgram", "TileFence", "ScalarFence", *halted, "Execute"]
    assert program[0]["bundles"] == program.bundles - 2
    assert (program[3]["program_end"], program[3]["chunk_end"]) == (1, 0)


def test_a_frame_that_is_not_the_last_ends_a_chunk() -> None:
    halt = decode(frame(b"", last=False))[1]
    assert (halt["program_end"], halt["chunk_end"]) == (0, 1)


def test_a_body_must_be_whole_bundles_and_fit_program_memory() -> None:
    with pytest.raises(ValueError, match="ends inside a bundle"):
        frame(bytes(BUNDLE_BYTES + 1))
    with pytest.raises(ValueError, match="exceeds"):
        frame(bytes(BUNDLE_BYTES * PROGRAM_BUNDLES))


def test_a_traversal_is_encoded_from_its_real_loops() -> None:
    fields = traversal(
        "NarrowToWide",
        "narrow_read",
        64,
        [(4, 1), (3, 0), (2, 100)],
        double=(2, 512),
        alternate=(2, 2),
    )
    operation = decode(build([("NarrowToWide", fields)]))[0]
    stride, limit = (
        np.array(operation.many(f"narrow_read_{part}")) for part in ("stride", "limit")
    )
    mask = np.array(operation["narrow_read_mask"])
    assert steps(stride, limit, mask).tolist() == [1, 0, 100, 0, 0, 0]
    assert limit.tolist() == [3, 2, 1, 0, 0, 0]
    assert operation["narrow_read_double_offset"] == 512
    assert operation["narrow_read_alternate_limit"] == 1
    assert operation["narrow_read_alternate_reset"] == 2, "step 1 times limits 3 - 1"


LOOPS = st.lists(st.tuples(st.integers(1, 4), st.integers(-9, 9)), min_size=1, max_size=6)


@given(LOOPS, st.tuples(st.integers(0, 5), st.integers(1, 9)), st.integers(1, 5), st.integers(0, 3))
def test_a_traversal_walks_its_loops(
    loops: list[tuple[int, int]], double: tuple[int, int], loop: int, shorter: int
) -> None:
    """Loops within loops; the second buffer in every other block of its depth, and the inmost loop
    shorter in the last iteration of another."""
    given = (loop, max(1, loops[0][0] - shorter)) if loop < len(loops) else (0, 0)
    unused = ("double_start", "alternate_limit", "alternate_reset")
    fields = {f"narrow_read_{part}": 0 for part in unused} | traversal(
        "NarrowToWide", "narrow_read", 40, loops, double=double, alternate=given
    )
    expected, second = [], 0
    counts = [count for count, _ in loops] + [1] * (6 - len(loops))
    steps_of = [step for _, step in loops] + [0] * (6 - len(loops))
    before: tuple[int, ...] | None = None
    for index in product(*(range(count) for count in reversed(counts))):
        place = index[::-1]
        if given[0] and place[given[0]] == counts[given[0]] - 1 and place[0] >= given[1]:
            continue
        if before is not None and before[double[0] :] != place[double[0] :]:
            second ^= 1
        before = place
        address = 40 + sum(step * k for step, k in zip(steps_of, place, strict=True))
        expected.append(address + double[1] * second)
    assert [element.address for element in walk(fields, "narrow_read")] == expected


def test_a_traversal_has_only_so_many_loops() -> None:
    assert traversal("PopInput", "buffer", 0, [(1, 1)] * 3)["buffer_limit"] == [0, 0, 0]
    with pytest.raises(ValueError, match=r"PopInput.buffer has 3 loops, not 4"):
        traversal("PopInput", "buffer", 0, [(1, 1)] * 4)
    with pytest.raises(ValueError, match="at least once"):
        traversal("PopInput", "buffer", 0, [(0, 1)])
