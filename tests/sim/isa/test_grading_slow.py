"""Values that are not known, against a reading of the grades value by value."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from darwinn_sim.isa.codec import DecodedChunk, decode
from darwinn_sim.isa.fields import Field, Grade, Graded, Instruction
from darwinn_sim.isa.grading import Assumption, ValueUse, assumptions, marks, merged, uses
from darwinn_sim.isa.table import INSTRUCTIONS
from hypothesis import given, settings
from hypothesis import strategies as st

GRADED = [instruction for instruction in INSTRUCTIONS.values() if instruction.graded_fields]


def applies(entry: Graded, value: int) -> bool:
    if entry.mask:
        return bool(value & entry.mask)
    return (value in entry.values) is not entry.others


def holds(values: dict[str, list[int]], entry: Graded, k: int) -> bool:
    """What an entry asks of other fields: of the same repetition, if they are repeated as well."""
    for name, allowed in entry.given:
        field, _, index = name.partition("[")
        place = int(index[:-1]) if index else min(k, len(values[field]) - 1)
        if values[field][place] not in allowed:
            return False
    return True


def slow_values(
    instruction: Instruction, values: dict[str, list[int]]
) -> Iterator[tuple[Field, Graded, int]]:
    """The values of one instruction that are not known: the first entry that names one decides."""
    for field in instruction.fields:
        for k, value in enumerate(values[field.name]):
            for entry in field.grades:
                if applies(entry, value) and holds(values, entry, k):
                    yield field, entry, value
                    break


def read(program: DecodedChunk, number: int) -> tuple[Instruction, dict[str, list[int]]]:
    operation = program[number]
    return operation.instruction, {
        name: list(value) if isinstance(value, tuple) else [value]
        for name, value in operation.values.items()
    }


def slow_uses(programs: list[DecodedChunk], opcodes: set[int] | None) -> list[ValueUse]:
    """By chunk, instruction, field, value and rule; each instruction counts once."""
    found: dict[tuple[int, str, int, str], ValueUse] = {}
    for chunk, program in enumerate(programs):
        for number in range(len(program)):
            instruction, values = read(program, number)
            if opcodes is not None and instruction.opcode not in opcodes:
                continue
            own = {
                (field.name, value, entry.reason): entry
                for field, entry, value in slow_values(instruction, values)
            }
            for (field, value, reason), entry in own.items():
                key = (instruction.opcode, field, value, reason)
                before = found.get(key)
                found[key] = ValueUse(
                    instruction.name,
                    field,
                    value,
                    entry.grade,
                    reason,
                    1 if before is None else before.count + 1,
                    chunk if before is None else before.chunk,
                    int(program.pc[number]) if before is None else before.pc,
                    instruction.opcode,
                    entry.rtl,
                )
    return list(found.values())


@st.composite
def programs(draw: st.DrawFn) -> DecodedChunk:
    """Few instructions with values about those of the grades in their fields, or none."""
    chosen = draw(st.lists(st.sampled_from(GRADED), min_size=1, max_size=4))
    random = draw(st.randoms(use_true_random=False))
    bits_of_all = b""
    for instruction in chosen:
        bits = instruction.opcode << 6
        for field in instruction.fields:
            if field.name == "opcode":
                continue
            named = {value for entry in field.grades for value in list(entry.values)[:3]}
            named |= {value + 1 for value in named} | {1, (1 << field.width) - 1}
            for offset in field.offsets():
                value = random.choice(sorted(named)) if random.getrandbits(1) else 0
                bits |= (value & (1 << field.width) - 1) << offset
        bits_of_all += bits.to_bytes(instruction.bits // 8, "little")
    return decode(bits_of_all)


@settings(max_examples=50)
@given(st.lists(programs(), min_size=1, max_size=2), st.booleans())
def test_uses(drawn: list[DecodedChunk], some: bool) -> None:
    opcodes = {instruction.opcode for instruction in GRADED[::2]} if some else None
    found = uses(drawn, opcodes)
    assert found == sorted(found, key=lambda use: (use.chunk, use.pc, use.field))
    expected = slow_uses(drawn, opcodes)
    assert set(found) == set(expected)
    assert len(found) == len(expected)
    kept = [use for use in found if use.grade is Grade.ASSUMED]
    assumed = assumptions(found)
    assert [(each.field, each.value, each.count) for each in assumed] == [
        (use.field, use.value, use.count) for use in kept
    ]
    for each, use in zip(assumed, kept, strict=True):
        wanted = (use.instruction, use.field, use.value, use.rule, use.count)
        assert each == Assumption(*wanted, use.chunk, use.pc, use.rtl)
        noun = "1 instruction" if use.count == 1 else f"{use.count} instructions"
        assert each.text == (
            f"{use.instruction}.{use.field} {use.value}: {use.rule} "
            f"({noun}; first chunk {use.chunk}, pc {use.pc})"
        )
    twice = merged([assumed, assumed])
    assert [each.count for each in twice] == [2 * each.count for each in assumed]
    assert merged([[], assumed]) == assumed


@settings(max_examples=40)
@given(programs())
def test_marks(program: DecodedChunk) -> None:
    """Each instruction by itself."""
    expected = set()
    for number in range(len(program)):
        instruction, values = read(program, number)
        for field, entry, value in slow_values(instruction, values):
            expected.add((int(program.pc[number]), field.name, value, entry.reason))
    found = list(marks(program))
    assert {(use.pc, use.field, use.value, use.rule) for use in found} == expected
    assert len(found) == len(expected)
    assert {(use.count, use.chunk) for use in found} <= {(1, 0)}


def test_there_are_grades_of_every_form() -> None:
    entries = [
        entry
        for instruction, number in product(GRADED, range(50))
        for field in instruction.fields[number : number + 1]
        for entry in field.grades
    ]
    assert any(entry.mask for entry in entries)
    assert any(entry.others for entry in entries)
    assert any(entry.given for entry in entries)
    assert any(isinstance(entry.values, range) for entry in entries)
