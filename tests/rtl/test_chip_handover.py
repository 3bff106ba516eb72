"""The scalar core alone: what it hands over, in which order, and with which registers."""

from __future__ import annotations

from itertools import pairwise

from darwinn_sim.isa.builder import build, frame
from darwinn_sim.isa.table import BY_NAME, INSTRUCTIONS
from darwinn_sim.kernel import state
from darwinn_sim.machine.lowering import lower
from darwinn_sim.units import scalar_core
from darwinn_testbench.rtl.chip.handover import Core, Handover
from stimulus import Walk
from unit_bench import Operations

SET, ADD = 15, 1


def handed_over(operations: Operations) -> tuple[list[Handover], int]:
    """Everything that the core hands over, and why it stops in the end."""
    program = lower((frame(build(operations)),))
    core = state.new_core()[0]
    core["pc"], core["end_pc"] = 1, program.chunks[0].bundles
    core["work_limit"] = 1000
    alone = Core(core, program)
    found = []
    while (reason := alone.run()) == scalar_core.BLOCKED:
        instruction = alone.next()
        assert instruction is not None
        found.append(instruction)
        alone.skip()
    return found, reason


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
    found, reason = handed_over(
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
    assert reason == scalar_core.HALTED
    assert [(INSTRUCTIONS[each.opcode].name, each.tiles, each.base) for each in found] == [
        ("RingOutfeed", 0, None),
        ("RingOutfeed", 0, None),
        ("NarrowToWide", 10, 16),
        *[("ScalarFence", 0, None)] * 4,
        ("TileFence", 6, None),
    ]
    # Any value of flag 6, and no other flag, makes a fence of the DMA hints.
    assert [each.dma_fence for each in found] == [False] * 4 + [True, True, False, False]
    # Each stands at its own bundles, the instruction of the loop at the same in every pass.
    assert found[0] == found[1]
    assert all(each.end - each.begin == INSTRUCTIONS[each.opcode].bits // 128 for each in found)
    assert all(before.end == after.begin for before, after in pairwise(found[1:]))
