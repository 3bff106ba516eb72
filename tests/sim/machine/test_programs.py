"""Programs are recognised by their chunks, kept within bounds, checked where they are patched."""

from __future__ import annotations

import averaging_program as sample
import pytest
from darwinn_sim.errors import UnsupportedInstruction
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.isa.codec import DecodeError
from darwinn_sim.machine.lowering import lower, patch
from darwinn_sim.machine.programs import Programs
from hypothesis import given
from hypothesis import strategies as st

MOVE = {"alu_op": 15, "alu_immediate": 1}
VALUES = st.integers(0, 2**32 - 1)


def chunk(*values: int, **fields: int) -> bytes:
    """A program of a move of each value; the last has ``fields``, too."""
    moves = [("Scalar", MOVE | {"alu_b": value}) for value in values]
    moves[-1] = ("Scalar", moves[-1][1] | fields)
    return frame(build(moves))


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=6))
def test_chunks_that_differ_in_addresses_are_one_program(addresses: list[tuple[int, int]]) -> None:
    programs = Programs()
    for each in addresses:
        found = programs.find([chunk(*each)])
        assert (found.tables.scalar == lower([chunk(*each)]).tables.scalar).all()
    assert programs.lowered == 1


@pytest.mark.parametrize("fields", [{"load_register": 3}, {"alu_a": 1}, {"alu_destination": 2}])
def test_anything_else_makes_another_program(fields: dict[str, int]) -> None:
    programs = Programs()
    for each in (chunk(1, 2), chunk(1, 2, **fields), chunk(3, 4), chunk(5, 6, **fields)):
        found = programs.find([each])
        assert (found.tables.scalar == lower([each]).tables.scalar).all()
    assert programs.lowered == 2


def test_the_tiles_are_lowered_unless_the_scalar_core_is_all_that_is_wanted() -> None:
    bitstreams = sample.executable(sample.operations()).instruction_bitstreams
    chunks = [bytes(each.bitstream) for each in bitstreams]
    for programs, lowered in (
        (Programs(), True),
        (Programs(dma_only=False), True),
        (Programs(dma_only=True), False),
    ):
        assert bool(programs.find(chunks).tables.tensor["opcode"].any()) is lowered


def parts(split: int, offset: int = 0) -> list[bytes]:
    """Two chunks of the sample."""
    program = sample.changed("TensorSum", output_zero_point=offset)
    bitstreams = sample.executable(program, split=split).instruction_bitstreams
    return [bytes(each.bitstream) for each in bitstreams]


def test_the_beginning_of_a_longer_program_is_known_with_it() -> None:
    programs = Programs()
    first, second = parts(14)
    assert len(programs.find([first]).chunks) == 1
    whole = programs.find([first, second])
    assert programs.find([first]) is whole
    assert programs.find([first, second]) is whole
    other = programs.find([first, parts(14, 7)[1]])
    assert other is not whole
    # Of two that begin alike, the one does not take the other's place.
    assert programs.find([first, second]) is whole
    assert programs.lowered == 3


def test_the_longest_unused_programs_are_given_up() -> None:
    whole = [parts(14, offset) for offset in range(8)]
    one = Programs()
    one.find(whole[0])
    programs = Programs(max_bytes=3 * one.kept_bytes + 1000)
    for chunks in whole:
        programs.find(chunks)
        programs.find(whole[0])
        assert programs.kept_bytes <= 3 * one.kept_bytes + 1000
    assert programs.lowered == 8
    programs.find(whole[7])
    assert programs.lowered == 8
    programs.find(whole[1])
    assert programs.lowered == 9


def test_of_a_program_that_is_given_up_nothing_is_known() -> None:
    """Neither whole nor by its beginning, or what is kept would be more than is counted."""
    one = Programs()
    first, second = parts(14)
    one.find([first, second])
    programs = Programs(max_bytes=one.kept_bytes + 1000)
    programs.find([first, second])
    programs.find(list(reversed(parts(14, 7))))
    programs.find([first])
    assert programs.lowered == 3


def test_a_program_may_be_as_large_as_all_together() -> None:
    one = Programs()
    one.find(parts(14))
    size = one.kept_bytes
    assert size > sum(map(len, parts(14)))
    for most, kept in ((size, size), (size - 1, 0)):
        programs = Programs(max_bytes=most)
        programs.find(parts(14))
        assert programs.kept_bytes == kept
    # One program more, and the first has to go.
    programs = Programs(max_bytes=2 * size)
    for offset in (0, 7, 0, 14, 0):
        programs.find(parts(14, offset))
        assert programs.kept_bytes <= 2 * size
    assert (programs.lowered, programs.kept_bytes) == (3, 2 * size)


def test_a_program_that_is_too_large_is_not_kept() -> None:
    programs = Programs(max_bytes=100)
    for number in (1, 2):
        programs.find(parts(14))
        assert (programs.lowered, programs.kept_bytes) == (number, 0)


def test_what_is_patched_is_checked_as_what_is_lowered() -> None:
    program = lower([chunk(0, 0)])
    for wrong in (chunk(5, 6, store_op=9), chunk(5, 6, function_op=4)):
        with pytest.raises(UnsupportedInstruction) as lowered:
            lower([wrong])
        with pytest.raises(UnsupportedInstruction) as patched:
            patch(program, 0, wrong)
        assert str(patched.value) == str(lowered.value)
        assert patched.value.pc == 2


def test_a_bit_outside_of_all_fields_is_not_patched_in() -> None:
    program = lower([chunk(0, 0)])
    wrong = bytearray(chunk(5, 6))
    wrong[2 * 16 + 15] |= 0x80
    with pytest.raises(UnsupportedInstruction) as lowered:
        lower([bytes(wrong)])
    with pytest.raises(UnsupportedInstruction) as patched:
        patch(program, 0, bytes(wrong))
    assert str(patched.value) == str(lowered.value)


def test_assumed_values_are_not_patched_in_where_they_are_not_wanted() -> None:
    program = lower([chunk(0, 0)])
    assumed = chunk(5, 6, trace=1)
    patch(program, 0, assumed)
    with pytest.raises(UnsupportedInstruction, match="is an assumption"):
        patch(program, 0, assumed, assumptions=False)


@pytest.mark.parametrize("other", [chunk(1), chunk(1, 2, 3), b""])
def test_a_chunk_of_another_length_is_another_chunk(other: bytes) -> None:
    with pytest.raises(DecodeError, match="differs"):
        patch(lower([chunk(0, 0)]), 0, other)


def test_addresses_that_cannot_be_patched_are_lowered_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, programs = chunk(1, 2), Programs()
    kept = programs.find([whole])
    assert programs.find([whole]) is kept
    assert programs.lowered == 1

    def refuse(*_: object, **__: object) -> None:
        raise DecodeError(1, "another instruction")

    monkeypatch.setattr("darwinn_sim.machine.programs.patch", refuse)
    assert programs.find([whole]) is not kept
    assert programs.lowered == 2
