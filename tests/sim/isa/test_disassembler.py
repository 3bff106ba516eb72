"""Listings: what a person reads of each kind of instruction."""

from __future__ import annotations

import json
import re
from random import Random

import pytest
from darwinn_formats.darwinn import Description, FieldOffset, Meta, Position
from darwinn_sim.isa.builder import Values, build, frame, traversal
from darwinn_sim.isa.codec import decode
from darwinn_sim.isa.fields import BUNDLE_BYTES, Instruction
from darwinn_sim.isa.listing.disassembler import (
    Line,
    disassemble,
    relocation_names,
    to_json,
    to_text,
)
from darwinn_sim.isa.listing.values import tile_set
from darwinn_sim.isa.table import INSTRUCTIONS
from hypothesis import given
from hypothesis import strategies as st


def only(name: str, values: Values) -> Line:
    (line,) = disassemble(decode(build([(name, values)])))
    return line


def float_bits(value: float) -> int:
    program = decode(build([("TensorMac", {"output_scale": value})]))
    return program[0]["output_scale"]


@pytest.mark.parametrize(
    ("values", "statement"),
    [
        ({}, "-"),
        ({"load_op": 1, "load_register": 3, "load_address": 4095}, "r3 = memory[4095]"),
        ({"load_op": 2, "load_register": 3, "load_address": 7}, "r3 = memory[r7]"),
        ({"load_op": 3, "load_register": 3, "load_address": 7 + 32}, "r3 = memory[r7++]"),
        ({"load_op": 3, "load_address": 7 + 64}, "r0 = memory[r7 then += 2]"),
        ({"store_op": 1, "store_register": 5, "store_address": 9}, "memory[9] = r5"),
        ({"store_op": 2, "store_register": 5, "store_address": 9}, "memory[r9] = r5"),
        ({"store_op": 3, "store_register": 5, "store_address": 9 + 32}, "memory[r9++] = r5"),
        ({"store_op": 4, "store_register": 5}, "push r5 to the host"),
        ({"store_op": 5, "store_register": 5, "store_address": 2}, "descriptor.size = r5"),
        ({"store_op": 6}, "issue descriptor"),
        ({"store_op": 9}, "store operation ?9"),
        ({"alu_op": 1, "alu_destination": 2, "alu_a": 1, "alu_b": 3}, "r2 = r1 + r3"),
        ({"alu_op": 1, "alu_immediate": 1, "alu_b": 0xFFFFFFFF}, "r0 = r0 + -1"),
        ({"alu_op": 3, "alu_immediate": 1, "alu_b": 0x7FFF}, "r0 = r0 & 0x7fff"),
        ({"alu_op": 12, "alu_destination": 1, "alu_immediate": 1}, "p1 = r0 < 0"),
        ({"alu_op": 15, "alu_destination": 4, "alu_immediate": 1, "alu_b": 64}, "r4 = 64"),
        ({"alu_op": 16, "alu_b": 6}, "r0 = float(r6)"),
        (
            {"alu_op": 20, "alu_immediate": 1, "alu_b": float_bits(0.5)},
            "r0 = float(r0 * 0.5)",
        ),
        ({"alu_op": 31}, "ALU operation ?31"),
        ({"function_op": 3, "function_destination": 1, "function_source": 2}, "r1 = exp2(r2)"),
        ({"gate": 1, "predicate": 2, "polarity": 1, "store_op": 6}, "if p2 == 1: issue descriptor"),
        (
            {"load_op": 1, "store_op": 5, "store_register": 1, "alu_op": 15, "alu_b": 1},
            "r0 = memory[0]; descriptor.address_low = r1; r0 = r1",
        ),
    ],
)
def test_a_scalar_bundle_reads_as_statements(values: Values, statement: str) -> None:
    assert only("Scalar", values).operands == statement


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (0, "no tile"),
        (1 << 5, "tile 5"),
        (0xFFFF, "tiles 0-15"),
        (0b100001, "tiles {0,5}"),
        (0x0F31, "tiles {0,4-5,8-11}"),
        (1 << 16, "outfeed"),
        (0x10001, "tile 0, outfeed"),
    ],
)
def test_tile_sets_are_compact(mask: int, text: str) -> None:
    assert tile_set(mask) == text


def test_a_unit_shows_loops_with_real_steps_waits_and_signals() -> None:
    read = traversal("NarrowToWide", "narrow_read", 64, [(8, 1), (4, 16)], alternate=(1, 3))
    write = traversal("NarrowToWide", "wide_write", 2074, [(2, 1)], double=(1, 1))
    watcher: Values = {
        "watcher_flag": [16, 5, 0, 0, 0, 0],
        "watcher_depth": [1, 2, 0, 0, 0, 0],
        "watcher_expected": [-1, 3, 0, 0, 0, 0],
        "watcher_stride": [1, 0, 0, 0, 0, 0],
        "watcher_valid": [1, 1, 0, 0, 0, 0],
        "watcher_side": [1, 0, 0, 0, 0, 0],
    }
    producer = {"producer_increment": 1, "producer_depth": 1}
    plain = {"tiles": 0b1001, "tag": 12, "row_loop": 1, "transpose": 1}
    line = only("NarrowToWide", {**read, **write, **watcher, **producer, **plain})
    assert line.operands == "tiles {0,3}, #12, transpose, row_loop 1"
    assert line.details == (
        "narrow_read from 64: L1 4 x +16 > L0 8 x +1; last L1: L1 3 x",
        "wide_write from 2074: L0 2 x +1; two buffers 1 apart by L1",
        "wait ring_bus_write >= -1 + k at L1 of wide_write",
        "wait mesh_inbound_from_south >= 3 at L2 of narrow_read",
        "signal narrow_to_wide_write at L1",
    )


def test_a_prologue_is_shown_with_its_steps() -> None:
    prologue = {"enable": 1, "loop": 1, "base": 7, "inner_limit": 1, "outer_limit": 9}
    fields: Values = {
        **traversal("RingConsumerA", "wide_write", 20, [(64, 1)]),
        **{f"wide_write_prologue_{name}": value for name, value in prologue.items()},
        "wide_write_prologue_outer_stride": 2,
    }
    assert only("RingConsumerA", fields).details == (
        "wide_write from 20: L0 64 x +1; before L1: 2 from 7, then +2 up to 9",
    )


def test_a_signal_names_the_flag_that_the_fields_choose() -> None:
    producer: Values = {"token_producer_increment": 1, "token_producer_depth": 2, "consumer_b": 1}
    line = only("RingProducer", {**producer, "targets": 1 << 16})
    assert line.operands == "no tile, #0, channel b, to outfeed"
    assert (
        "signal ring_producer_b of all tiles, ring_producer_b of the scalar core at L2"
        in line.details
    )


def test_the_idle_side_of_a_mesh_instruction_is_left_out() -> None:
    write = traversal("MeshNorth", "narrow_write", 5, [(4, 1)])
    received = only("MeshNorth", write)
    assert received.details == ("narrow_write from 5: L0 4 x +1",)
    constant = only("MeshNorth", {"immediate_valid": 1, "immediate": 0x80808080})
    assert constant.details == ("narrow_write from 0: once",)
    assert constant.operands == "no tile, #0, immediate_valid, immediate 0x80808080"


@pytest.mark.parametrize("side", ["narrow_read", "narrow_write"])
@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, False),
        ({"base": 9}, False),
        ({"stride": [1, 0, 0, 0]}, True),
        ({"stride": [0, 1, 1, 1]}, False),
        ({"limit": [1, 0, 0, 0]}, True),
        ({"limit": [0, 0, 0, 1]}, True),
    ],
)
def test_a_side_of_a_mesh_instruction_is_off_without_first_stride_and_limits(
    side: str, fields: dict[str, int | list[int]], shown: bool
) -> None:
    """An immediate is written where the write side is off, too."""
    for immediate in (0, 1):
        values: Values = {f"{side}_{name}": value for name, value in fields.items()}
        line = only("MeshNorth", {**values, "immediate_valid": immediate})
        sides = [each.partition(" from ")[0] for each in line.details]
        written = immediate == 1 or (shown and side == "narrow_write")
        expected = {"narrow_read": shown and side == "narrow_read", "narrow_write": written}
        assert sides == [name for name, there in expected.items() if there]


def test_a_tensor_instruction_shows_main_loops_and_floats_as_numbers() -> None:
    line = only(
        "TensorMac",
        {
            "main_limit": [15, 0, 3, 0, 0, 0, 0, 0],
            "main_alternate_loop": 2,
            "main_alternate_limit": 7,
            "output_scale": 0.25,
            "high_clip": float("inf"),
            "low_clip": -3.5,
            "partial_sum_read": 3,
            "reduction_loops": 5,
            "block_lanes": 63,
        },
    )
    assert line.details[0] == "main: L2 4 x > L0 16 x; last L2: L0 8 x"
    text = ", ".join(line.details[5:])
    assert "partial_sum_read accumulator" in text
    assert "reduction_loops {0, 2}" in text
    assert "block_lanes 64" in text
    assert "output_scale 0.25, high_clip inf, low_clip -3.5" in text


def test_a_coefficient_table_shows_its_segments() -> None:
    line = only("CoefficientTable", {"coefficient": [0.5] * 40, "lower_bound": [2.0] * 7})
    assert line.details == ("from -inf: 0.5 0.5 0.5 0.5 0.5", *["from 2: 0.5 0.5 0.5 0.5 0.5"] * 7)


def test_fences_say_what_they_wait_for_and_set() -> None:
    fence = only(
        "TileFence",
        {"tiles": 1, "wait_idle": 0x3FF, "reset_flags": 1 << 13, "reset_value": 5, "increment": 1},
    )
    assert fence.operands == "tile 0, #0, count fence"
    assert fence.details == ("wait idle all", "set {narrow_to_wide_write} = 5")
    counting = only("TileFence", {"tiles": 1, "producer_count_valid": 3, "producer_count": 12})
    assert counting.details == ("wait ring_producer_a = 12", "wait ring_producer_b = 12")
    scalar = only(
        "ScalarFence",
        {
            "wait_idle": 0b10001,
            "expected_valid": 1 << 6,
            "expected": [0] * 6 + [9, 0, 0],
            "tile_fence_valid": 0xFFFF,
            "tile_fence_count": 1,
            "reset_tile_fences": 0xFFFF,
            "reset_flags": 0b100,
            "reset_value": 32764,
        },
    )
    assert (scalar.operands, *scalar.details) == (
        "wait idle {av_pop, drain}",
        "wait ring_producer_b >= 9",
        "wait fence count of tiles 0-15 >= 1",
        "clear fence count of tiles 0-15",
        "set {av_infeed} = 32764",
    )


def test_loops_are_indented_and_branch_targets_labelled() -> None:
    body = build(
        [
            ("Loop", {"count": 3, "body": 3}),
            ("Loop", {"count": 2, "body": 1}),
            ("Scalar", {"store_op": 6}),
            ("Scalar", {}),
            ("Branch", {"conditional": 1, "branch_polarity": 1, "offset": -2, "relative": 1}),
        ]
    )
    lines = list(disassemble(decode(frame(body))))
    assert [line.depth for line in lines[:7]] == [0, 0, 1, 2, 1, 0, 0]
    assert [line.label for line in lines[:6]] == ["", "", "", "label_3", "", ""]
    assert lines[1].operands == "repeat 3 times, bundles to 4"
    assert lines[5].operands == "if p0 == 1: goto label_3"
    text = list(to_text(lines))
    assert text[3] == "label_3:"
    assert text[4] == "     3      Scalar           issue descriptor"


def test_relocations_are_named_at_the_move_that_they_patch() -> None:
    move = ("Scalar", {"alu_op": 15, "alu_immediate": 1, "alu_destination": 4})
    names = relocation_names(
        [
            FieldOffset(Meta(Description.BASE_ADDRESS_PARAMETER), 70),
            FieldOffset(
                Meta(Description.BASE_ADDRESS_INPUT_ACTIVATION, 2, "x", Position.UPPER_32BIT),
                8 * BUNDLE_BYTES + 70,
            ),
        ]
    )
    program = decode(build([move, move]))
    assert [line.operands for line in disassemble(program, names)] == [
        "r4 = <parameters low>",
        'r4 = <input "x" batch 2 high>',
    ]
    assert [entry["relocation"] for entry in to_json(program, names)] == list(names.values())


def test_remarks_stand_above_and_marks_below_an_instruction() -> None:
    lines = list(disassemble(decode(build([("Scalar", {}), ("Scalar", {"store_op": 6})]))))
    plain = list(to_text(lines))
    text = list(to_text(lines, {lines[1].pc: "the output"}, {lines[0].pc: ["races", "twice"]}))
    assert text[0] == plain[0]
    assert [each.split() for each in text[1:4]] == [
        ["!", "races"],
        ["!", "twice"],
        [";", "the", "output"],
    ]
    assert text[4:] == plain[1:]


def test_json_carries_the_fields_that_are_not_zero() -> None:
    program = decode(build([("ScalarFence", {"expected": [0] * 8 + [7], "wait_idle": 3})]))
    assert json.loads(json.dumps(to_json(program))) == [
        {
            "pc": 0,
            "opcode": 36,
            "name": "ScalarFence",
            "fields": {"expected": [0] * 8 + [7], "wait_idle": 3},
        }
    ]


@given(st.sampled_from(list(INSTRUCTIONS.values())), st.randoms(use_true_random=False))
def test_any_bits_can_be_listed(instruction: Instruction, random: Random) -> None:
    """Garbage in the fields of a known opcode prints; nothing is assumed of the values."""
    bits = random.getrandbits(instruction.bits) & ~(0x3F << 6) | instruction.opcode << 6
    program = decode(bits.to_bytes(instruction.bits // 8, "little"))
    text = "\n".join(to_text(disassemble(program)))
    assert re.match(rf"(label_-?\d+:\n)?     0  {instruction.name}", text)
    json.dumps(to_json(program))
