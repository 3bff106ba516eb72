"""The scalar core alone: what it hands over, in which order, and with which registers."""

from __future__ import annotations

from typing import NamedTuple

from darwinn_sim.isa.builder import build, frame
from darwinn_sim.isa.codes import DescriptorTag, ScalarUnit
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS
from darwinn_sim.kernel import state
from darwinn_sim.kernel.state import Handover
from darwinn_sim.machine.lowering import lower
from darwinn_sim.units import scalar_core
from stimulus import Walk
from unit_bench import Operations

SET, ADD = 15, 1


class Handed(NamedTuple):
    """An instruction that was handed over, and where it stands."""

    name: str
    kind: Handover
    target: int
    base: int
    pc: int


def handed_over(operations: Operations) -> list[Handed]:
    """Everything that the core hands over up to its halt."""
    program = lower((frame(build(operations)),))
    tables = program.tables
    core = state.new_core()[0]
    core["pc"], core["end_pc"] = 1, program.chunks[0].bundles
    core["work_limit"] = 1000
    found = []
    while scalar_core.run(core, tables, scalar_core.NOWHERE) == scalar_core.HANDS_OVER:
        record = core["handed"]
        instruction = int(record["instruction"])
        name = INSTRUCTIONS[int(tables.opcode[instruction])].name
        numbers = (int(record[key]) for key in ("kind", "target", "base"))
        kind, target, base = numbers
        found.append(Handed(name, Handover(kind), target, base, int(tables.pc[instruction])))
        scalar_core.pass_on(core, tables)
    assert core["halted"]
    return found


def test_instructions_come_in_program_order_with_their_registers() -> None:
    """A loop's instruction comes once a pass; tile set and base are the registers' at that time."""
    outfeed = Walk((1, 1, 1), (0, 0, 0)).fields("RingOutfeed", "buffer")
    fields = Walk((1,) * 6, (0,) * 6).fields("NarrowToWide", "narrow_read")
    registers = {"tiles_override": 1, "tiles_register": 4, "base_override": 1, "base_register": 5}
    fence = {"expected_valid": 1 << 6, "wait_idle": 1 << 4}
    later = fence | {"expected": [0] * 6 + [365, 0, 0]}
    other = fence | {"expected_valid": 3 << 6}
    add = {"alu_op": ADD, "alu_a": 5, "alu_b": 8, "alu_immediate": 1, "alu_destination": 5}
    bundles = BY_NAME["RingOutfeed"].bits // 128
    found = handed_over(
        [
            ("Scalar", {"alu_op": SET, "alu_b": 10, "alu_immediate": 1, "alu_destination": 4}),
            ("Loop", {"count": 2, "body": 1 + bundles}),
            ("Scalar", add),
            ("RingOutfeed", outfeed),
            ("NarrowToWide", fields | registers | {"tiles": 1}),
            ("ScalarFence", {"wait_idle": 1}),
            ("ScalarFence", fence),
            ("ScalarFence", later),
            ("ScalarFence", other),
            ("TileFence", {"tiles": 6}),
        ]
    )
    outfeed_unit, dispatch, fence_kind = Handover.UNIT, Handover.DISPATCH, Handover.FENCE
    assert [each[:4] for each in found] == [
        *[("RingOutfeed", outfeed_unit, ScalarUnit.RING_OUTFEED, -1)] * 2,
        ("NarrowToWide", dispatch, 10, 16),
        # Any value of flag 6, and no other flag, makes a fence of the DMA hints.
        *[("ScalarFence", fence_kind, hint, -1) for hint in (0, 1, 1, 0)],
        ("TileFence", dispatch, 6, -1),
        ("Halt", Handover.HALT, -1, -1),
    ]
    # Each stands at its own bundles, the instruction of the loop at the same in every pass.
    assert found[0] == found[1]
    assert [each.pc for each in found[1:]] == sorted({each.pc for each in found})


def test_words_and_descriptors_come_with_what_registers_say() -> None:
    store = {"store_register": 3}
    words = [("Scalar", store | {"store_op": 5, "store_address": k}) for k in range(4)]
    add = {"alu_op": ADD, "alu_a": 3, "alu_b": 1, "alu_immediate": 1, "alu_destination": 3}
    operations: Operations = [
        ("Scalar", {"alu_op": SET, "alu_b": 2, "alu_immediate": 1, "alu_destination": 3}),
        *words,
        ("Scalar", store | add | {"store_op": 4}),
        ("Scalar", store | {"store_op": 6}),
        ("Scalar", store | {"store_op": 4}),
        ("Interrupt", {"interrupt": 2}),
    ]
    program = lower((frame(build(operations)),))
    core = state.new_core()[0]
    core["pc"], core["end_pc"], core["work_limit"] = 1, program.chunks[0].bundles, 1000
    found = []
    while scalar_core.run(core, program.tables, scalar_core.NOWHERE) == scalar_core.HANDS_OVER:
        record = core["handed"]
        found.append(tuple(int(record[k]) for k in ("kind", "target", "address", "size", "word")))
        scalar_core.pass_on(core, program.tables)
    kinds = [Handover.PUSH, Handover.DESCRIPTOR, Handover.PUSH, Handover.DESCRIPTOR, Handover.HALT]
    assert [each[0] for each in found] == kinds
    assert (found[0][4], found[2][4]) == (2, 3)
    assert found[1][1:4] == (2, 2 | 2 << 32, 2)
    assert found[3][1:4] == (DescriptorTag.INTERRUPT_0 + 2, 0, 0)
