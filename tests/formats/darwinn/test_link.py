"""Relocation: addresses go where the driver puts them, and nowhere else."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from darwinn_formats import darwinn
from darwinn_formats.darwinn import Buffer, Description, FormatError, Position, bundle
from darwinn_sim.isa.table import BY_NAME
from hypothesis import given
from hypothesis import strategies as st

MOVE = 32 << 6 | 15 << 54 | 1 << 59
INPUT = darwinn.Meta(Description.BASE_ADDRESS_INPUT_ACTIVATION, 1, "in")
PARAMETER = darwinn.Meta(Description.BASE_ADDRESS_PARAMETER, name="")
SCRATCH = darwinn.Meta(Description.BASE_ADDRESS_SCRATCH)


def chunk(*bundles: int) -> bytes:
    return b"".join(value.to_bytes(16, "little") for value in bundles)


def program(
    *fields: tuple[darwinn.Meta, int], bits: bytes = chunk(MOVE, MOVE)
) -> darwinn.Executable:
    offsets = tuple(darwinn.FieldOffset(meta, bit, file_offset=40) for meta, bit in fields)
    return darwinn.Executable(
        batch_size=2,
        scratch_size_bytes=64,
        parameters=bytes(32),
        instruction_bitstreams=(darwinn.InstructionBitstream(bits, offsets),),
        input_layers=(darwinn.Layer("in", 24, execution_count_per_inference=2),),
    )


def test_the_encoding_facts_are_those_of_the_instruction_table() -> None:
    scalar, load = BY_NAME["Scalar"], BY_NAME["LoadProgram"]
    places = {field.name: (field.offset, field.width) for field in (*scalar.fields, *load.fields)}
    assert places["opcode"] == bundle._OPCODE
    assert places["alu_op"] == bundle._ALU_OP
    assert places["alu_immediate"] == bundle._ALU_IMMEDIATE
    assert places["alu_b"] == (bundle.IMMEDIATE_BIT, 32)
    assert places["bundles"] == bundle._BUNDLE_COUNT
    assert (scalar.opcode, load.opcode) == (bundle._SCALAR, bundle._LOAD_PROGRAM)


def test_both_halves_of_an_address_are_patched() -> None:
    upper = replace(INPUT, position=Position.UPPER_32BIT)
    executable = program((INPUT, 70), (upper, 198))
    buffer = Buffer(INPUT.desc, "in", 1)
    assert darwinn.required_buffers(executable) == {buffer: 48}
    (linked,) = darwinn.link(executable, {buffer: 0x8123456789ABCDEF})
    assert linked == chunk(MOVE | 0x89ABCDEF << 70, MOVE | 0x81234567 << 70)


def test_buffers_of_size_zero_need_no_address() -> None:
    executable = program((PARAMETER, 70), (SCRATCH, 198))
    sizes = {
        Buffer(PARAMETER.desc, "", 0): 32,
        Buffer(SCRATCH.desc, "", 0): 64,
    }
    assert darwinn.required_buffers(executable) == sizes
    with pytest.raises(FormatError, match="no address is given for"):
        darwinn.link(executable, {})
    unused = replace(executable, parameters=b"", scratch_size_bytes=0)
    assert darwinn.link(unused, {}) == (chunk(MOVE, MOVE),)


def test_hints_name_buffers_too() -> None:
    hint = darwinn.DmaHint(darwinn.DmaDescriptorHint(SCRATCH, 0, 8), darwinn.Direction.OUTFEED)
    executable = replace(program(), dma_hints=darwinn.DmaHints((hint,), True))
    assert darwinn.required_buffers(executable) == {Buffer(SCRATCH.desc, "", 0): 64}


@pytest.mark.parametrize(
    ("fields", "bits", "reason"),
    [
        ([(PARAMETER, 71)], chunk(MOVE), "bit 71 is not the immediate"),
        ([(PARAMETER, 198)], chunk(MOVE), "bit 198 is outside the chunk of 16 bytes"),
        ([(PARAMETER, -58)], chunk(MOVE), "bit -58 is outside"),
        ([(PARAMETER, 70)], chunk(MOVE | 1 << 80), "holds 0x400, not zero"),
        ([(PARAMETER, 70)], chunk(MOVE ^ 1 << 54), "is not a scalar move"),
        ([(PARAMETER, 70)], chunk(MOVE ^ 1 << 6), "is not a scalar move"),
        ([(PARAMETER, 70)], chunk(MOVE ^ 1 << 59), "does not take its immediate"),
        ([(PARAMETER, 70), (SCRATCH, 70)], chunk(MOVE), "bit 70 is patched twice"),
        ([(replace(INPUT, name="out"), 70)], chunk(MOVE), "no input layer 'out'"),
        ([(replace(INPUT, batch=2), 70)], chunk(MOVE), "batch 2 of 2"),
        ([(replace(SCRATCH, batch=1), 70)], chunk(MOVE), "SCRATCH has the batch 1"),
        ([(replace(SCRATCH, name="x"), 70)], chunk(MOVE), "SCRATCH has the name 'x'"),
    ],
)
def test_what_the_linker_does_not_expect_is_refused(
    fields: list[tuple[darwinn.Meta, int]], bits: bytes, reason: str
) -> None:
    executable = program(*fields, bits=bits)
    addresses = {
        Buffer(PARAMETER.desc, "", 0): 4096,
        Buffer(SCRATCH.desc, "", 0): 8192,
    }
    with pytest.raises(FormatError, match=reason) as info:
        darwinn.link(executable, addresses)
    assert info.value.offset == 40
    path = f"Executable.instruction_bitstreams[0].field_offsets[{len(fields) - 1}]"
    assert info.value.field.startswith(path)


@given(
    st.integers(-3 * 128, 6 * 128),
    st.sampled_from([MOVE, MOVE ^ 1 << 6, MOVE ^ 1 << 59, MOVE | 1 << 70, MOVE | 1 << 101]),
    st.integers(0, 8),
)
def test_what_may_be_patched(bit: int, second: int, cut: int) -> None:
    """The immediates of moves that hold zeros, of the bundles that are there whole."""
    data = chunk(MOVE, second, MOVE | 1 << 102)[: 48 - cut]
    good = {70: MOVE, 198: second, 326: MOVE} if not cut else {70: MOVE, 198: second}
    allowed = bit in good and good[bit] == MOVE
    assert (bundle.relocation_fault(data, bit) is None) is allowed


@given(st.integers(0, 3), st.integers(0, 40), st.integers(0, 5), st.booleans())
def test_the_size_of_a_chunk(start: int, left: int, bundles: int, loads: bool) -> None:
    opcode = (62 if loads else 61) << 6
    data = bytes(start) + (opcode | bundles << 26 | 1 << 41).to_bytes(16, "little")
    data = (data + bytes(40))[: start + left]
    expected = 16 * (bundles + 2) if loads and left >= 16 else None
    assert bundle.chunk_bytes(data, start) == expected
    if not start:
        assert bundle.chunk_bytes(memoryview(data)) == expected


def test_batches_and_executions_make_a_size() -> None:
    for batch, size in ((0, 1), (1, 2)):
        executable = replace(program((replace(INPUT, batch=batch), 70)), batch_size=size)
        assert list(darwinn.required_buffers(executable).values()) == [48]
    unbatched = replace(program((replace(INPUT, batch=0), 70)), batch_size=0)
    assert list(darwinn.required_buffers(unbatched).values()) == [48]
    for batch, size in ((-1, 2), (2, 2), (1, 1), (1, 0)):
        wrong = replace(program((replace(INPUT, batch=batch), 70)), batch_size=size)
        with pytest.raises(FormatError, match=f"batch {batch} of {size}") as error:
            darwinn.required_buffers(wrong)
        path = "Executable.instruction_bitstreams[0].field_offsets[0].meta.batch"
        assert (error.value.field, error.value.offset) == (path, 40)


def test_outputs_are_named_by_their_layers() -> None:
    output = replace(INPUT, desc=Description.BASE_ADDRESS_OUTPUT_ACTIVATION, name="o", batch=0)
    executable = replace(program((output, 70)), output_layers=(darwinn.Layer("o", 5),))
    assert darwinn.required_buffers(executable) == {Buffer(output.desc, "o", 0): 5}
    with pytest.raises(FormatError, match="has no output layer 'o'"):
        darwinn.required_buffers(replace(executable, output_layers=()))
    hint = darwinn.DmaHint(darwinn.DmaDescriptorHint(output, 0, 8), file_offset=9)
    hinted = replace(program(), dma_hints=darwinn.DmaHints((hint,)))
    with pytest.raises(FormatError, match="has no output layer 'o'") as error:
        darwinn.required_buffers(hinted)
    path = "Executable.dma_hints.hints[0].any_hint.meta.name"
    assert (error.value.field, error.value.offset) == (path, 9)


def test_an_address_has_64_bits() -> None:
    for address in (0, 2**64 - 1):
        upper = replace(PARAMETER, position=Position.UPPER_32BIT)
        executable = program((PARAMETER, 70), (upper, 198))
        (linked,) = darwinn.link(executable, {Buffer(PARAMETER.desc, "", 0): address})
        half = address & 0xFFFFFFFF
        assert linked == chunk(MOVE | half << 70, MOVE | half << 70)
    with pytest.raises(FormatError, match="has not 64 bits"):
        darwinn.link(program((PARAMETER, 70)), {Buffer(PARAMETER.desc, "", 0): -1})
    with pytest.raises(FormatError, match="has not 64 bits"):
        darwinn.link(program((PARAMETER, 70)), {Buffer(PARAMETER.desc, "", 0): 2**64})


def test_every_real_program_links_and_only_its_fields_change(corpus: Path) -> None:
    generator = random.Random(3)
    fields = 0
    for path in sorted((corpus / "darwinn").iterdir()):
        for executable in darwinn.load(path).executables:
            buffers = darwinn.required_buffers(executable)
            addresses = {buffer: generator.getrandbits(64) for buffer in buffers}
            linked = darwinn.link(executable, addresses)
            for patched, entry in zip(linked, executable.instruction_bitstreams, strict=True):
                expected = int.from_bytes(entry.bitstream, "little")
                for field in entry.field_offsets:
                    fields += 1
                    address = addresses[darwinn.buffer_of(field.meta)]
                    upper = field.meta.position is Position.UPPER_32BIT
                    half = address >> 32 if upper else address & 0xFFFFFFFF
                    expected |= half << field.offset_bit
                assert int.from_bytes(patched, "little") == expected, path.name
            for hint in executable.dma_hints.hints:
                if isinstance(hint.any_hint, darwinn.DmaDescriptorHint):
                    end = hint.any_hint.offset_in_bytes + hint.any_hint.size_in_bytes
                    assert end <= buffers[darwinn.buffer_of(hint.any_hint.meta)]
    assert fields > 200
