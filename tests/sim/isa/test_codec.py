"""Decoder and encoder against an obvious reference on Python integers, and on garbage."""

from __future__ import annotations

import numpy as np
import pytest
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.isa.codec import (
    DecodeError,
    decode,
    encode,
    encode_columns,
    encode_operations,
    explained,
    unexplained_bits,
)
from darwinn_sim.isa.fields import BUNDLE_BYTES, Field, Instruction
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS
from hypothesis import given
from hypothesis import strategies as st

Values = dict[str, list[int]]


def reference_values(raw: bytes, instruction: Instruction) -> Values:
    """Every field of one instruction, cut out of one big integer."""
    bits = int.from_bytes(raw, "little")
    return {
        field.name: [_cut(bits >> offset, field) for offset in field.offsets()]
        for field in instruction.fields
    }


def _cut(bits: int, field: Field) -> int:
    value = bits % (1 << field.width)
    return value - (1 << field.width) if field.signed and value >> (field.width - 1) else value


@st.composite
def instructions(draw: st.DrawFn) -> tuple[Instruction, Values, bytes]:
    """An instruction, arbitrary values of its fields, and its bytes put together bit by bit."""
    instruction = draw(st.sampled_from(list(INSTRUCTIONS.values())))
    bits = 0
    values: Values = {}
    for field in instruction.fields:
        low, high = field.range
        numbers = st.just(instruction.opcode) if field.name == "opcode" else st.integers(low, high)
        values[field.name] = draw(st.lists(numbers, min_size=field.count, max_size=field.count))
        for offset, value in zip(field.offsets(), values[field.name], strict=True):
            bits |= value % (1 << field.width) << offset
    return instruction, values, bits.to_bytes(instruction.bits // 8, "little")


@given(st.lists(instructions(), max_size=6))
def test_decode_and_encode_agree_with_the_reference(
    drawn: list[tuple[Instruction, Values, bytes]],
) -> None:
    stream = b"".join(raw for _, _, raw in drawn)
    program = decode(stream)
    assert encode(program) == stream
    assert len(program) == len(drawn)
    pc = 0
    for index, (instruction, values, raw) in enumerate(drawn):
        operation = program[index]
        assert (operation.pc, operation.instruction) == (pc, instruction)
        found = {
            name: list(value) if isinstance(value, tuple) else [value]
            for name, value in operation.values.items()
        }
        assert found == values == reference_values(raw, instruction)
        pc += instruction.bundles


@given(instructions())
def test_encode_operations_agrees_with_the_reference(
    drawn: tuple[Instruction, Values, bytes],
) -> None:
    instruction, values, raw = drawn
    fields = {
        name: numbers if instruction.field(name).count > 1 else numbers[0]
        for name, numbers in values.items()
    }
    assert encode_operations([(instruction.name, fields)]) == raw


@given(st.lists(st.binary(min_size=BUNDLE_BYTES, max_size=BUNDLE_BYTES), max_size=20))
def test_garbage_decodes_or_is_refused(bundles: list[bytes]) -> None:
    stream = b"".join(bundles)
    try:
        program = decode(stream)
    except DecodeError as error:
        assert 0 <= error.bundle < len(bundles)
        return
    rest = np.frombuffer(encode(program), np.uint8) ^ np.frombuffer(stream, np.uint8)
    assert len(unexplained_bits(stream)) == np.unpackbits(rest).sum()


def test_an_unknown_opcode_is_refused() -> None:
    stream = encode_operations([("NoOp", {})]) + (13 << 6).to_bytes(BUNDLE_BYTES, "little")
    with pytest.raises(DecodeError, match="bundle 1: unknown opcode 13"):
        decode(stream)


@pytest.mark.parametrize("missing", range(1, 17 * BUNDLE_BYTES))
def test_a_cut_off_instruction_is_refused(missing: int) -> None:
    stream = encode_operations([("TensorMac", {})])[:-missing]
    with pytest.raises(DecodeError, match=r"ends inside a bundle|runs over the end"):
        decode(stream)


def test_an_empty_stream_is_an_empty_program() -> None:
    program = decode(b"")
    assert len(program) == 0
    assert encode(program) == b""
    assert explained(program) == ()


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("Scalar", {"alu_op": 32}, r"Scalar.alu_op holds 5 bits \(0 to 31\), not 32"),
        ("Scalar", {"alu_b": -1}, r"not -1"),
        ("Branch", {"offset": 1 << 14}, r"\(-16384 to 16383\), not 16384"),
        ("Scalar", {"alu_b": 1 << 80}, r"not 1208925819614629174706176"),
        ("ScalarFence", {"expected": [1, 2]}, "takes 9 values, not 2"),
        ("Scalar", {"alu_b": [1, 2]}, "takes 1 values, not 2"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(
    name: str, values: dict[str, int | list[int]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        encode_operations([(name, values)])


def test_unknown_names_are_refused() -> None:
    with pytest.raises(KeyError, match="Multiply"):
        encode_operations([("Multiply", {})])
    with pytest.raises(KeyError, match="Scalar has no field operand"):
        encode_operations([("Scalar", {"operand": 1})])


def test_a_set_bit_in_no_field_is_reported_where_it_is() -> None:
    stream = bytearray(encode_operations([("NoOp", {}), ("ScalarFence", {})]))
    stream[BUNDLE_BYTES + 31] |= 0x88
    assert unexplained_bits(stream) == [(1, 251), (1, 255)]


def test_explained_counts_the_set_bits_of_each_confidence() -> None:
    program = decode(encode_operations([("Halt", {"chunk_end": 3, "program_end": 1})]))
    counted = {entry.confidence: entry.bits for entry in explained(program)}
    opcode_bits = BY_NAME["Halt"].opcode.bit_count()
    assert counted == {"high": opcode_bits, "low": 2, "medium": 1}
    assert sum(entry.share for entry in explained(program)) == pytest.approx(1)


@pytest.mark.parametrize("row", [0, 1, 2])
@pytest.mark.parametrize(("value", "low", "high"), [(-1, 0, 15), (16, 0, 15), (1 << 40, 0, 15)])
def test_a_column_with_a_value_that_does_not_fit_is_refused(
    row: int, value: int, low: int, high: int
) -> None:
    """In any row; the message has the value that does not."""
    instruction, field = next(
        (instruction, field)
        for instruction in INSTRUCTIONS.values()
        for field in instruction.fields
        if field.range == (low, high) and field.count == 1
    )
    column = np.zeros(3, np.int64)
    for good in (low, high):
        column[row] = good
        assert encode_columns(instruction, {field.name: column}, 3).shape[0] == 3
    column[row] = value
    text = rf"^{instruction.name}\.{field.name} holds 4 bits \({low} to {high}\), not {value}$"
    with pytest.raises(ValueError, match=text):
        encode_columns(instruction, {field.name: column}, 3)
    assert encode_columns(instruction, {field.name: column[:0]}, 0).shape[0] == 0


def test_a_field_is_one_number_or_several() -> None:
    chunk = decode(frame(build([("TensorSum", {})])))
    (operation,) = (chunk[k] for k in range(len(chunk)) if chunk[k].pc == 1)
    fields = {each.name: each.count for each in operation.instruction.fields}
    assert set(fields.values()) > {1}
    for name, count in fields.items():
        if count == 1:
            assert operation[name] == operation.values[name]
            with pytest.raises(TypeError, match=f"{name} is not a repeated field"):
                operation.many(name)
        else:
            assert len(operation.many(name)) == count
            with pytest.raises(TypeError, match=f"{name} is a repeated field"):
                operation[name]


@given(st.lists(st.sampled_from(sorted(INSTRUCTIONS)), min_size=1, max_size=5), st.data())
def test_where_a_stream_that_cannot_be_decoded_goes_wrong(
    opcodes: list[int], data: st.DataObject
) -> None:
    """Inside a bundle; else at the instruction that lacks bundles, or has no known opcode."""
    whole = build([(INSTRUCTIONS[opcode].name, {}) for opcode in opcodes])
    begins, end = [], 0
    for opcode in opcodes:
        begins.append(end)
        end += INSTRUCTIONS[opcode].bundles
    size = data.draw(st.integers(1, end)) * BUNDLE_BYTES + data.draw(st.sampled_from([0, 0, 1, 15]))
    cut = whole[:size]
    bundles, rest = divmod(len(cut), BUNDLE_BYTES)
    if rest:
        expected = bundles, "the stream ends inside a bundle"
    elif bundles in (*begins, end):
        assert decode(cut).pc.tolist() == [each for each in begins if each < bundles]
        return
    else:
        last = max(each for each in begins if each < bundles)
        expected = last, "the instruction runs over the end of the stream"
    with pytest.raises(DecodeError) as caught:
        decode(cut)
    assert (caught.value.bundle, caught.value.reason) == expected
    assert str(caught.value) == f"bundle {expected[0]}: {expected[1]}"
