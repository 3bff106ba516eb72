"""Lowering: what is not implemented is refused by name, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from darwinn_sim import program
from darwinn_sim.errors import UnsupportedInstruction
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.isa.codec import DecodeError
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS
from darwinn_sim.program import IMPLEMENTED, NOT_COMBINED, lower, patch

NEEDED: dict[str, dict[str, int]] = {
    "TensorMac": {"partial_sum_read": 3},
    "TensorMax": {"partial_sum_read": 3},
    "TensorSum": {"partial_sum_read": 3},
    "TensorInterpolate": {"partial_sum_read": 3},
    "Branch": {"relative": 1},
    "Loop": {"count": 1, "body": 1},
}
"""Values that an instruction needs to be accepted."""

FRAMING = ("LoadProgram", "Execute", "Halt")


def second_chunk(name: str, fields: dict[str, int]) -> list[bytes]:
    """Two chunks; the instruction stands at bundle 3 of the second."""
    first = frame(build([("Scalar", {})]), last=False)
    body: list[tuple[str, dict[str, int]]] = [("Scalar", {})] * 2
    body += [(name, NEEDED.get(name, {}) | fields)]
    return [first, frame(build(body))]


def refused_values(name: str, field: str, allowed: Any) -> list[int]:
    """Values of a field around the implemented ones, and at the ends of its range."""
    low, high = BY_NAME[name].field(field).range
    candidates = {low, high, *(v + d for v in (min(allowed), max(allowed)) for d in (-1, 1))}
    return sorted(v for v in candidates if low <= v <= high and v not in allowed)


def restricted() -> Iterator[tuple[str, str, int]]:
    for name, fields in IMPLEMENTED.items():
        for field, allowed in fields.items():
            yield from ((name, field, value) for value in refused_values(name, field, allowed))
    for instruction in INSTRUCTIONS.values():
        fields_of = {field.name for field in instruction.fields}
        for field in ("trace", "gate", "register_sources"):
            if field in fields_of and (instruction.name, field) != ("Scalar", "gate"):
                yield instruction.name, field, 1


REFUSED = [case for case in restricted() if case[0] not in FRAMING and case[0] != "Interrupt"]


@pytest.mark.parametrize(("name", "field", "value"), REFUSED)
def test_each_value_that_is_not_implemented_is_refused_by_name(
    name: str, field: str, value: int
) -> None:
    with pytest.raises(UnsupportedInstruction) as caught:
        lower(second_chunk(name, {field: value}))
    error = caught.value
    assert (error.opcode, error.chunk, error.pc) == (BY_NAME[name].opcode, 1, 3)
    assert (error.field, error.value) == (field, value)
    assert field in str(error) and "chunk 1, pc 3" in str(error)


def test_every_restricted_field_of_the_table_is_tried() -> None:
    """A field whose every value is implemented would need no entry in the table."""
    tried = {(name, field) for name, field, _ in REFUSED}
    declared = {(name, field) for name, fields in IMPLEMENTED.items() for field in fields}
    assert {entry for entry in declared if entry[0] not in FRAMING} <= tried


@pytest.mark.parametrize(
    ("name", "combination"),
    [(name, entry) for name, entries in NOT_COMBINED.items() for entry in entries],
)
def test_values_that_no_program_shows_together_are_refused(
    name: str, combination: dict[str, Any]
) -> None:
    fields = {field: values[0] for field, values in combination.items()}
    with pytest.raises(UnsupportedInstruction) as caught:
        lower(second_chunk(name, fields))
    assert caught.value.field in combination


@pytest.mark.parametrize("name", sorted(IMPLEMENTED.keys() - set(FRAMING)))
def test_implemented_values_are_accepted(name: str) -> None:
    for field, allowed in IMPLEMENTED[name].items():
        for value in {min(allowed), max(allowed)}:
            lower(second_chunk(name, {field: value}))


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [("Halt", "goto_halt", 1), ("LoadProgram", "start_pc", 5), ("Execute", "load_pc", 0)],
)
def test_framing_that_is_not_implemented_is_refused(name: str, field: str, value: int) -> None:
    """The framing is written by hand: the builder cannot make it wrong."""
    stream = [
        ("LoadProgram", {"bundles": 1}),
        ("Halt", {}),
        ("Execute", {"load_pc": 1}),
    ]
    wrong = [(n, f | {field: value} if n == name else f) for n, f in stream]
    with pytest.raises(UnsupportedInstruction) as caught:
        lower([build(wrong)])
    assert caught.value.field == field


@pytest.mark.parametrize("opcode", sorted(set(range(64)) - set(INSTRUCTIONS)))
def test_an_unknown_opcode_is_refused(opcode: int) -> None:
    body = build([("Scalar", {})]) + (opcode << 6).to_bytes(16, "little")
    with pytest.raises(UnsupportedInstruction) as caught:
        lower([frame(body)])
    assert (caught.value.opcode, caught.value.pc, caught.value.field) == (opcode, 2, "opcode")


def test_an_opcode_without_a_meaning_is_refused() -> None:
    with pytest.raises(UnsupportedInstruction) as caught:
        lower(second_chunk("Interrupt", {}))
    assert (caught.value.opcode, caught.value.field) == (40, "opcode")


@pytest.mark.parametrize("flag", [19, 31])
def test_a_watcher_of_a_flag_that_is_none_is_refused(flag: int) -> None:
    fields: dict[str, Any] = {"watcher_flag": [0, flag, 0], "watcher_valid": [0, 1, 0]}
    with pytest.raises(UnsupportedInstruction) as caught:
        lower(second_chunk("RingProducer", fields))
    assert (caught.value.field, caught.value.value) == ("watcher_flag", flag)
    fields["watcher_valid"] = [0, 0, 0]
    lower(second_chunk("RingProducer", fields))


def test_dma_only_takes_tile_instructions_as_they_are() -> None:
    """What the tiles would do does not matter then; the scalar core is held to its table."""
    lower(second_chunk("TensorMac", {"alternate_base": 1}), dma_only=True)
    with pytest.raises(UnsupportedInstruction):
        lower(second_chunk("Scalar", {"alu_op": 8}), dma_only=True)


def test_more_iterations_than_a_plan_holds_are_refused() -> None:
    fields: dict[str, Any] = {"main_limit": [0x3FFF] * 8}
    with pytest.raises(UnsupportedInstruction) as caught:
        lower(second_chunk("TensorMac", fields))
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
    lowered = lower(second_chunk("Scalar", {}))
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


def test_no_instruction_is_forgotten() -> None:
    """Every opcode is lowered, executed by the scalar core itself, or refused."""
    own = set(program._SCALAR_SIDE)
    known = set(program._LOWERING) | own | set(program._NOT_IMPLEMENTED)
    assert {instruction.name for instruction in INSTRUCTIONS.values()} == known
