"""Lowering: what no rule covers is refused by name before anything runs, and rules are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from darwinn_formats.errors import FormatError
from darwinn_sim.errors import UnsupportedInstruction
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.isa.codec import DecodeError, encode_operations
from darwinn_sim.isa.fields import Field, Grade, Graded, Instruction
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS
from darwinn_sim.machine import lowering
from darwinn_sim.machine.lowering import lower, patch, twin

NEEDED: dict[str, dict[str, Any]] = {
    "TensorMac": {"partial_sum_read": 3},
    "TensorMax": {"partial_sum_read": 3},
    "TensorSum": {"partial_sum_read": 3, "function": 7, "parameter_16bit": 1},
    "TensorInterpolate": {
        "partial_sum_read": 3,
        "mac_disable": 12,
        "parameter_16bit": 1,
        "main_limit": [1, 1, 0, 0, 0, 0, 0, 0],
    },
    "CoefficientTable": {"degree": 3},
    "Branch": {"relative": 1},
    "Loop": {"count": 1, "body": 1},
    "RingInfeed": {"sync_increment": 1},
    "RingOutfeed": {"row_words": 63},
    "Execute": {"load_pc": 1},
}
"""Known values of fields in which 0 is not known."""

NEVER_KNOWN = ("NoOp", "Interrupt")
FRAMING = ("LoadProgram", "Execute", "Halt")


def chunks(name: str, fields: dict[str, Any]) -> list[bytes]:
    """Two chunks; the instruction stands in the second, at bundle 3 if it is not of the frame."""
    first = frame(build([("Scalar", {})]), last=False)
    fields = NEEDED.get(name, {}) | fields
    if name not in FRAMING:
        return [first, frame(build([("Scalar", {}), ("Scalar", {}), (name, fields)]))]
    framing: dict[str, dict[str, Any]] = {
        "LoadProgram": {"bundles": 1},
        "Halt": {},
        "Execute": {"load_pc": 1},
    }
    framing[name] |= fields
    return [first, build(list(framing.items()))]


def place(name: str) -> tuple[int, int]:
    return 1, {"LoadProgram": 0, "Halt": 1, "Execute": 2}.get(name, 3)


CONTEXT: dict[str, dict[str, Any]] = {
    "the function is even: the result does not get the sign of the argument": {"function": 1},
    "the value at a negative argument is negated, as with symmetric_function": {"function": 1},
    "the table at the absolute value, as in TensorMac": {"function": 1, "odd_function": 1},
    "the sign of the argument, as in TensorMac": {"function": 1, "symmetric_function": 1},
    "bit k stills multiplier k, which takes byte plane k; 16-bit values have two of them": {
        "parameter_16bit": 0
    },
    "each pass of main loop 1 adds the nearest pixel again": {"main_limit": [0, 1] + [0] * 6},
}
"""What else holds where an entry decides that is not the first of its field, by its reason."""


def example(instruction: Instruction, field: Field, entry: Graded) -> dict[str, Any]:
    """Fields of an instruction for which ``entry`` decides."""
    if entry.mask:
        value = entry.mask & -entry.mask
    elif entry.others:
        value = next(v for v in range(field.range[1] + 1) if v not in entry.values)
    else:
        value = entry.values[0]
    fields: dict[str, Any] = {field.name: value}
    for name, values in entry.given:
        plain, bracket, index = name.partition("[")
        if bracket:
            fields[plain] = list(NEEDED[instruction.name][plain])
            fields[plain][int(index[:-1])] = values[0]
        else:
            fields[plain] = values[0]
    repeated = {name: instruction.field(name).count for name in fields}
    return {
        name: value if repeated[name] == 1 or isinstance(value, list) else [value] * repeated[name]
        for name, value in fields.items()
    } | CONTEXT.get(entry.reason, {})


CASES = [
    pytest.param(instruction, field, entry, id=f"{instruction.name}-{field.name}-{number}")
    for instruction in INSTRUCTIONS.values()
    for field in instruction.graded_fields
    for number, entry in enumerate(field.grades)
    if field.name != "opcode"
]


@pytest.mark.parametrize(("instruction", "field", "entry"), CASES)
def test_each_value_is_executed_or_refused_by_its_grade(
    instruction: Instruction, field: Field, entry: Graded
) -> None:
    name = instruction.name
    program = chunks(name, example(instruction, field, entry))
    if entry.grade is Grade.REFUSED:
        with pytest.raises(UnsupportedInstruction) as caught:
            lower(program)
        error = caught.value
        assert not error.assumed
    else:
        assumed = [each for each in lower(program).assumptions if each.field == field.name]
        assert [(each.instruction, each.rule) for each in assumed] == [(name, entry.reason)]
        assert (assumed[0].chunk, assumed[0].pc) == place(name) and assumed[0].count == 1
        with pytest.raises(UnsupportedInstruction) as caught:
            lower(program, assumptions=False)
        error = caught.value
        assert error.assumed
    assert (error.opcode, error.chunk, error.pc) == (instruction.opcode, *place(name))
    if error.field == field.name:
        assert entry.reason in str(error) and f"chunk 1, pc {place(name)[1]}" in str(error)


@pytest.mark.parametrize("name", sorted(set(BY_NAME) - set(NEVER_KNOWN)))
def test_an_instruction_with_known_values_assumes_nothing(name: str) -> None:
    assert lower(chunks(name, {}), assumptions=False).assumptions == ()


@pytest.mark.parametrize("name", NEVER_KNOWN)
def test_an_instruction_that_is_never_seen_is_an_assumption(name: str) -> None:
    (assumption,) = lower(chunks(name, {})).assumptions
    assert (assumption.instruction, assumption.chunk, assumption.pc) == (name, 1, 3)
    assert name in assumption.text and "first chunk 1, pc 3" in assumption.text


@pytest.mark.parametrize(
    ("name", "fields", "grade"),
    [
        ("TensorMac", {"mac_disable": 14}, Grade.KNOWN),
        ("TensorMac", {"mac_disable": 8}, Grade.ASSUMED),
        ("TensorMac", {"mac_disable": 14, "activation_16bit": 1}, Grade.REFUSED),
        ("TensorMac", {"mac_disable": 3, "parameter_16bit": 1}, Grade.ASSUMED),
        ("TensorMax", {"partial_sum_read": 0}, Grade.ASSUMED),
        ("TensorSum", {"mac_disable": 12}, Grade.ASSUMED),
        ("TensorInterpolate", {"main_limit": [2, 1, 0, 0, 0, 0, 0, 0]}, Grade.REFUSED),
        ("WideToNarrow", {"base_override": 1}, Grade.REFUSED),
        ("NarrowToWide", {"base_override": 1}, Grade.KNOWN),
        ("RingInfeed", {"fifo": 3}, Grade.REFUSED),
        ("ScalarFence", {"expected_valid": 0x60}, Grade.KNOWN),
        ("ScalarFence", {"expected_valid": 0x61}, Grade.ASSUMED),
        ("Scalar", {"alu_op": 14}, Grade.ASSUMED),
    ],
)
def test_grades_that_are_known_by_heart(name: str, fields: dict[str, Any], grade: Grade) -> None:
    try:
        lowered = lower(chunks(name, fields))
    except UnsupportedInstruction:
        assert grade is Grade.REFUSED
    else:
        assert bool(lowered.assumptions) == (grade is Grade.ASSUMED)
        assert grade is not Grade.REFUSED


def test_an_assumption_is_counted_once_with_its_first_place() -> None:
    several = [("Scalar", {}), ("NoOp", {}), ("Scalar", {"alu_op": 8}), ("NoOp", {})]
    found = lower([frame(build(several), last=False), frame(build(several))]).assumptions
    assert [(each.instruction, each.count, each.chunk, each.pc) for each in found] == [
        ("NoOp", 4, 0, 2),
        ("Scalar", 2, 0, 3),
    ]


@pytest.mark.parametrize("opcode", sorted(set(range(64)) - set(INSTRUCTIONS)))
def test_an_unknown_opcode_is_refused(opcode: int) -> None:
    body = build([("Scalar", {})]) + (opcode << 6).to_bytes(16, "little")
    with pytest.raises(UnsupportedInstruction) as caught:
        lower([frame(body)])
    assert (caught.value.opcode, caught.value.pc, caught.value.field) == (opcode, 2, "opcode")


@pytest.mark.parametrize("flag", [19, 31])
def test_a_watcher_of_a_flag_that_is_none_is_refused(flag: int) -> None:
    fields: dict[str, Any] = {"watcher_flag": [0, flag, 0], "watcher_valid": [0, 1, 0]}
    with pytest.raises(UnsupportedInstruction) as caught:
        lower(chunks("RingProducer", fields))
    assert (caught.value.field, caught.value.value) == ("watcher_flag", flag)
    fields["watcher_valid"] = [0, 0, 0]
    lower(chunks("RingProducer", fields))


def test_dma_only_takes_tile_instructions_as_they_are() -> None:
    """What the tiles would do does not matter then; the scalar core is held to its table."""
    lower(chunks("TensorMac", {"alternate_base": 1}), dma_only=True)
    with pytest.raises(UnsupportedInstruction):
        lower(chunks("Scalar", {"alu_op": 23}), dma_only=True)


def test_more_iterations_than_a_plan_holds_are_refused() -> None:
    fields: dict[str, Any] = {"main_limit": [0x3FFF] * 8}
    with pytest.raises(UnsupportedInstruction) as caught:
        lower(chunks("TensorMac", fields))
    assert (caught.value.chunk, caught.value.pc, caught.value.field) == (1, 3, "main_limit")


def test_instructions_that_walk_alike_share_their_plan() -> None:
    """A chain of a hundred additions, which would be too long; each has a scale of its own."""
    fields: dict[str, Any] = {"partial_sum_read": 3, "main_limit": [1023, 1023, *[0] * 6]}
    alike = [
        ("TensorMac", fields | {"output_scale": k / 2, "apply_bias": k & 1}) for k in range(99)
    ]
    others: list[tuple[str, dict[str, Any]]] = [
        ("TensorMac", fields | {"narrow_read_base": 4}),
        ("TensorMac", fields | {"watcher_valid": [1, *[0] * 5]}),
        ("TensorMac", fields | {"parameter_read_producer_increment": 1}),
    ]
    plan = lower([frame(build([*alike, *others, alike[0]]))]).tables.tensor_plan
    assert (np.delete(plan.place, range(99, 102)) == plan.place[0]).all()
    assert len(np.unique(plan.place)) == 1 + len(others)
    assert plan.operand[plan.place[99]["iteration"]] == 4
    assert plan.segment[plan.place[0]["segment"]]["waits"] == 0
    assert plan.segment[plan.place[100]["segment"]]["waits"] != 0


def test_a_program_counter_is_located_in_its_chunk() -> None:
    lowered = lower(chunks("Scalar", {}))
    first = lowered.chunks[0].bundles
    assert lowered.starts == (0, first)
    assert lowered.locate(0) == (0, 0)
    assert lowered.locate(first - 1) == (0, first - 1)
    assert lowered.locate(first + 3) == (1, 3)


@pytest.mark.parametrize("other", ["MeshSouth", "Scalar"])
def test_a_chunk_that_is_not_the_one_that_was_loaded_is_an_error(other: str) -> None:
    """Only operand b of scalar moves may differ: that is where the linker writes."""
    lowered = lower([frame(build([("MeshSouth", {"tiles": 1}), ("Scalar", {"alu_op": 15})]))])
    changed = {"MeshSouth": {"tiles": 2}, "Scalar": {"tiles": 1}}[other]
    body = build([("MeshSouth", changed), ("Scalar", {"alu_op": 15})])
    if other == "Scalar":
        body = body[:-16] + build([("Loop", {"count": 2, "body": 1})])
    with pytest.raises(DecodeError):
        patch(lowered, 0, frame(body))


def test_twins_are_linked_on_their_own() -> None:
    """What is written into one of them is not in the other."""
    lowered, linked = (
        frame(build([("Scalar", {"alu_op": 15, "alu_b": value})])) for value in (0, 77)
    )
    one = lower([lowered])
    other = twin(one)
    patch(other, 0, linked)
    assert 77 in other.tables.scalar["alu_b"]
    assert 77 not in one.tables.scalar["alu_b"]
    patch(one, 0, linked)
    patch(other, 0, lowered)
    assert 77 in one.tables.scalar["alu_b"]
    assert 77 not in other.tables.scalar["alu_b"]


def test_no_instruction_is_forgotten() -> None:
    """Every opcode is lowered, executed by the scalar core itself, or refused."""
    own = set(lowering._SCALAR_SIDE)
    known = set(lowering.TABLE_OF) | own | {"Interrupt"}
    assert {instruction.name for instruction in INSTRUCTIONS.values()} == known


def test_bits_outside_of_all_fields_are_refused() -> None:
    """They would be ignored: what they mean is not known."""
    stream = bytearray(encode_operations([("ScalarFence", {}), ("Halt", {"program_end": 1})]))
    stream[31] |= 0x80
    with pytest.raises(UnsupportedInstruction, match="ScalarFence at chunk 0, pc 0: bit 255 = 1"):
        lower([bytes(stream)])


def test_an_unknown_opcode_is_said_once() -> None:
    opcode = min(set(range(64)) - INSTRUCTIONS.keys())
    error = UnsupportedInstruction(opcode, 0, 0, "opcode", opcode)
    assert str(error) == f"opcode {opcode} at chunk 0, pc 0 is not implemented"


@pytest.mark.parametrize("chunks", [[], [b""], [b"", b""]])
def test_without_instructions_there_is_no_program(chunks: list[bytes]) -> None:
    with pytest.raises(FormatError, match="the executable has no instructions"):
        lower(chunks)
