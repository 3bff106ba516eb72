"""Narrow memory that a program uses: the closed form against walks, and the compiler's figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import averaging_program as sample
import pytest
from averaging_program import line
from darwinn_formats.darwinn import load
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.analysis.narrow_usage import by_access, highest_address, used_narrow_bytes
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.kernel import traversal
from darwinn_sim.machine.lowering import lower
from hypothesis import given
from hypothesis import strategies as st

LOOPS = 3


def walk_of(base: int, steps: list[int], limits: list[int], double: tuple[int, int, int]) -> Any:
    walk = traversal.Parameters.zeros(1)[0]
    walk["base"], walk["loops"] = base, LOOPS
    walk["step"][:LOOPS], walk["limit"][:LOOPS] = steps, limits
    walk["double_loop"], walk["double_offset"], walk["double_start"] = double
    return walk


@given(
    st.integers(0, 1000),
    st.lists(st.integers(-50, 50), min_size=LOOPS, max_size=LOOPS),
    st.lists(st.integers(0, 3), min_size=LOOPS, max_size=LOOPS),
    st.tuples(st.integers(0, LOOPS), st.integers(0, 100), st.integers(0, 1)),
)
def test_the_highest_address_bounds_the_walk(
    base: int, steps: list[int], limits: list[int], double: tuple[int, int, int]
) -> None:
    """It is reached, unless the second buffer is never in use where the loops are highest."""
    walk = walk_of(base, steps, limits, double)
    where = traversal.State.zeros(1)[0]
    traversal.start(where, walk)
    seen = []
    while not where["done"]:
        seen.append(traversal.address(where, walk))
        traversal.step(where, walk)
    assert max(seen) <= highest_address(walk) <= max(seen) + double[1]
    if not double[1]:
        assert max(seen) == highest_address(walk)


@given(
    st.integers(0, 1000),
    st.lists(st.integers(0, 50), min_size=LOOPS, max_size=LOOPS),
    st.lists(st.integers(0, 3), min_size=LOOPS, max_size=LOOPS),
    st.tuples(st.integers(0, LOOPS - 1), st.integers(0, 5), st.integers(0, 1)),
)
def test_an_alternate_limit_counts_where_it_is_longer(
    base: int, steps: list[int], limits: list[int], alternate: tuple[int, int, int]
) -> None:
    """Going forwards; where it is shorter, no more than the longer one reaches."""
    loop, limit, target = alternate
    loop = loop if loop > target else 0
    walk = walk_of(base, steps, limits, (0, 0, 0))
    walk["alternate_loop"], walk["alternate_limit"] = loop, limit
    walk["alternate_target"] = target
    where = traversal.State.zeros(1)[0]
    traversal.start(where, walk)
    highest = 0
    while not where["done"]:
        highest = max(highest, traversal.address(where, walk))
        traversal.step(where, walk)
    assert highest <= highest_address(walk)
    if not loop or limit >= limits[target]:
        assert highest == highest_address(walk)


def test_a_prologue_does_not_count() -> None:
    walk = walk_of(10, [1, 0, 0], [3, 0, 0], (0, 0, 0))
    walk["prologue_base"], walk["prologue_length"] = 500, 48
    assert highest_address(walk) == 13


def test_each_kind_of_access_ends_where_its_last_word_does() -> None:
    """What goes to the scale/bias buffer, and a side of the mesh that is off, is not counted."""
    operations = [
        ("NarrowToWide", line("narrow_read", 6, 5, 100)),
        ("WideToNarrow", line("narrow_write", 6, 3, 200)),
        ("WideToNarrow", line("narrow_write", 6, 9, 20) | {"scale_bias": 1}),
        ("MeshSouth", line("narrow_read", 4, 2, 300) | line("narrow_write", 4, 2, 400)),
        ("MeshNorth", {"narrow_read_base": 5000, "narrow_write_base": 5000}),
        ("MeshWest", line("narrow_write", 4, 3, 400) | {"immediate_valid": 1}),
    ]
    program = lower((frame(build(operations)),))
    ends = {
        "narrow-to-wide read": 4 * 105,
        "wide-to-narrow write": 4 * 203,
        "mesh read": 4 * 302,
        "mesh write": 4 * 403,
    }
    assert by_access(program) == ends
    assert used_narrow_bytes(program) == 4 * 403


def test_a_program_without_such_accesses_uses_nothing() -> None:
    assert used_narrow_bytes(lower((frame(b""),))) == 0


def test_a_tensor_instruction_ends_where_its_last_word_does() -> None:
    """The sample writes 16 words from byte 4096 on, which narrow-to-wide then reads."""
    program = Accelerator().load(sample.executable())
    end = sample.RESULT_BYTE + sample.OUTPUT_BYTES
    assert by_access(program) == {"tensor write": end, "narrow-to-wide read": end}


def executables(corpus: Path) -> list[tuple[str, int]]:
    return [
        (path.name, number)
        for path in sorted(corpus.glob("darwinn/*.tflite"))
        for number in range(len(load(path).executables))
    ]


def test_the_compiler_counts_the_same_for_every_executable(corpus: Path) -> None:
    for name, number in executables(corpus):
        executable = load(corpus / "darwinn" / name).executables[number]
        program = Accelerator().load(executable)
        declared = executable.used_narrow_memory_bytes_per_tile
        assert used_narrow_bytes(program) == declared, (name, number)


def test_each_kind_of_access_is_told_apart(corpus: Path) -> None:
    """A dense layer of 256 inputs: 16 words from word 192 on arrive last on each tile."""
    executable = load(corpus / "darwinn" / "dense_256_edgetpu.tflite").executables[0]
    ends = by_access(Accelerator().load(executable))
    assert ends["wide-to-narrow write"] == ends["narrow-to-wide read"] == 4 * (192 + 16)
    assert ends["tensor read"] == 256


@pytest.mark.parametrize(
    ("limits", "double", "highest"),
    [
        ([3, 0, 0], (0, 100, 0), 113),
        ([3, 0, 0], (1, 100, 0), 13),
        ([3, 0, 0], (1, 100, 1), 113),
        ([3, 2, 0], (1, 100, 0), 113),
        ([3, 2, 0], (2, 100, 0), 13),
        ([3, 2, 0], (2, -100, 1), 13),
    ],
)
def test_the_second_buffer_counts_where_it_is_used(
    limits: list[int], double: tuple[int, int, int], highest: int
) -> None:
    """From the beginning, or since there are several blocks of its depth."""
    assert highest_address(walk_of(10, [1, 0, 0], limits, double)) == highest


@pytest.mark.parametrize(
    ("operation", "fields", "end"),
    [
        ("TensorMac", {"mac_disable": 0}, 100 + 4),
        ("TensorMac", {"mac_disable": 14}, 100 + 1),
        ("TensorMac", {"mac_disable": 0, "activation_16bit": 1}, 100 + 4),
        ("TensorInterpolate", {"block_lanes": 9, "last_block_lanes": 3}, 100 + 10),
        ("TensorInterpolate", {"block_lanes": 9, "last_block_lanes": 63}, 100 + 64),
        ("TensorSum", {}, None),
    ],
)
def test_a_tensor_instruction_reads_a_byte_for_each_product_or_lane(
    operation: str, fields: dict[str, int], end: int | None
) -> None:
    program = lower((frame(build([(operation, {"narrow_read_base": 100, **fields})])),))
    assert by_access(program).get("tensor read") == end
