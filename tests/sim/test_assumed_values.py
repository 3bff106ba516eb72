"""Assumed values: each does what its rule says, against slow models and by example."""

from __future__ import annotations

from typing import Any

import averaging_program as sample
import numpy as np
import pytest
from assumed_values import tensor_cases
from averaging_program import Operation
from darwinn_sim import chip, timing
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.errors import UnsupportedInstruction
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.machine.lowering import lower
from hypothesis import assume, given
from hypothesis import strategies as st
from nightly import check_cases, nightly_too
from slow_model import ring_bus as slow_ring
from slow_model import tensor_unit as slow
from slow_model import wide_to_narrow as slow_wide_to_narrow
from slow_model.traversal import walk as walk_elements
from stimulus import Walk, constrained_random
from unit_bench import Bench
from unit_cases import ring_bus, ring_scalar_side, wide_to_narrow
from unit_cases.tensor_unit import Case, run_both

IMAGE = sample.images()()


@nightly_too
@pytest.mark.parametrize("operation", [slow.MAC, slow.MAXIMUM, slow.SUM])
def test_tensor_instructions_follow_the_rules_of_their_neighbours(
    operation: str, *, nightly: bool
) -> None:
    """Any multipliers stand still, sums begin anywhere, any symmetry with any function."""

    def check(case: Case) -> None:
        run_both(operation, case)

    what = f"{operation} by assumed rules"
    check_cases(what, tensor_cases(operation), check, 60, nightly=nightly)


def test_a_producer_sends_the_rows_of_its_prologue_first() -> None:
    @constrained_random(120)
    @given(ring_bus.cases(), st.integers(0, 3), st.integers(1, 3), st.integers(0, 2))
    def check(case: Any, loop: int, rows: int, step: int) -> None:
        sending, _, sender, _ = case
        base = 100
        sending = sending | {
            "wide_read_prologue_enable": 1,
            "wide_read_prologue_loop": loop,
            "wide_read_prologue_base": base,
            "wide_read_prologue_inner_limit": rows - 1,
            "wide_read_prologue_outer_limit": base + step,
            "wide_read_prologue_outer_stride": step,
            "watcher_valid": [0, 0, 0],
            "targets": 1 << 9,
        }
        most = len(walk_elements(sending, "wide_read"))
        assume(ring_bus.MIDDLE + most < chip.WIDE_ROWS)
        consumer = ("RingConsumerA", "RingConsumerB")[sending["consumer_b"]]
        walk = Walk((most, 1, 1, 1), (1, 0, 0, 0), base=ring_bus.MIDDLE)
        writing = walk.fields(consumer, "wide_write") | {
            "producer_depth": 0,
            "producer_increment": 1,
        }
        writing |= {"watcher_flag": [0] * 3, "watcher_valid": [0] * 3, "watcher_depth": [0] * 3}
        writing |= {"watcher_expected": [0] * 3, "watcher_stride": [0] * 3}
        bench = Bench(
            [
                (consumer, writing | {"tiles": 1 << 9}),
                ("RingProducer", sending | {"tiles": 1 << sender}),
            ]
        )
        tiles = {number: bench.tile(number) for number in range(chip.TILES)}
        core = bench.slow_core()
        sent, done = slow_ring.send(tiles[sender], tiles, core, sending, most)
        assert done and slow_ring.consume(tiles[9], writing, sending["consumer_b"], sent)
        bench.run()
        bench.assert_idle()
        bench.assert_tiles(tiles.values())
        bench.assert_core(core)

    check()


def test_an_infeed_sends_the_units_of_its_prologue_first() -> None:
    @constrained_random(120)
    @given(ring_scalar_side.infeeds(), st.integers(0, 2), st.integers(1, 5), st.integers(0, 3))
    def check(case: Any, loop: int, units: int, step: int) -> None:
        fields, _ = case
        fields = fields | {
            "buffer_prologue_enable": 1,
            "buffer_prologue_loop": loop,
            "buffer_prologue_base": 50,
            "buffer_prologue_inner_limit": units - 1,
            "buffer_prologue_outer_limit": 50 + step,
            "buffer_prologue_outer_stride": step,
            "watcher_valid": [0, 0],
            "targets": 1 << 9,
        }
        core = Bench([]).slow_core()
        rows, _ = slow_ring.infeed(core, {}, fields | {"token_producer_increment": 0})
        name = ("RingConsumerA", "RingConsumerB")[fields["consumer_b"]]
        write = Walk((len(rows), 1, 1, 1), (1, 0, 0, 0), base=10).fields(name, "wide_write")
        bench = Bench([(name, write | {"tiles": 1 << 9}), ("RingInfeed", fields)])
        tiles = {number: bench.tile(number) for number in range(chip.TILES)}
        core = bench.slow_core()
        rows, ended = slow_ring.infeed(core, tiles, fields)
        assert ended
        for k, row in enumerate(rows):
            tiles[9].write_row(10 + k, row)
        bench.run()
        bench.assert_idle()
        bench.assert_tiles(tiles.values())
        bench.assert_core(core)

    check()


def test_an_infeed_reaches_the_outfeed() -> None:
    units = Walk((4, 1, 1), (1, 0, 0), base=20)
    infeed = units.fields("RingInfeed", "buffer") | {"fifo": 1, "targets": 1 << 16, "row_words": 63}
    outfeed = Walk((4, 1, 1), (0, 0, 0)).fields("RingOutfeed", "buffer")
    bench = Bench(
        [("RingInfeed", infeed), ("RingOutfeed", outfeed | {"to_host": 1, "row_words": 63})]
    )
    bench.run()
    bench.assert_idle()
    assert bench.output() == bytes(bench.slow_core().activations[8 * 20 : 8 * 24])


def test_wide_to_narrow_transposes_the_blocks_of_a_row() -> None:
    @constrained_random(120)
    @given(wide_to_narrow.cases())
    def check(case: tuple[dict[str, Any], dict[int, int], int]) -> None:
        fields, flags, number = case
        assume(not fields["narrow_write_alternate_loop"])
        fields = fields | {"transpose": 1}
        bench = Bench([("WideToNarrow", fields | {"tiles": 1 << number})])
        for flag, value in flags.items():
            bench.tiles[number]["flags"][flag] = value
        tile = bench.tile(number)
        done = slow_wide_to_narrow.run(tile, fields)
        bench.run()
        assert bench.fault is None
        bench.assert_tiles([tile])
        assert (bench.waiting == ()) == done

    check()


def test_the_alternate_limit_of_a_transposing_write_is_that_of_loop_1() -> None:
    """Two rows: three blocks of the first, two of the second."""
    write = Walk((4, 3, 2, 1, 1, 1), (1, 4, 12, 0, 0, 0), alternate=(2, 2), target=1)
    fields = write.fields("WideToNarrow", "narrow_write") | {"row_loop": 2, "transpose": 1}
    fields |= Walk((2, 1, 1, 1), (1, 0, 0, 0), base=7).fields("WideToNarrow", "wide_read")
    bench = Bench([("WideToNarrow", fields | {"tiles": 1})])
    rows = [np.array(bench.tiles[0]["wide"][64 * k : 64 * k + 64]) for k in (7, 8)]
    bench.run()
    bench.assert_idle()
    blocks = np.concatenate([rows[0][:12], rows[1][:8]]).view(np.uint8).reshape(-1, 4, 4)
    expected = blocks.transpose(0, 2, 1).tobytes()
    assert bench.tiles[0]["narrow"][:20].tobytes() == expected


@pytest.mark.parametrize(
    ("name", "part", "loops"),
    [("RingProducer", "wide_read", 4), ("RingConsumerA", "wide_write", 4)],
)
def test_a_register_replaces_the_base_of_the_only_traversal(
    name: str, part: str, loops: int
) -> None:
    other = {"RingProducer": "RingConsumerA", "RingConsumerA": "RingProducer"}[name]
    walk = Walk((3, 1, 1, 1), (2, 0, 0, 0), base=40)
    overridden = walk.fields(name, part) | {"base_override": 1, "base_register": 5}
    part_of_other = {"RingProducer": "wide_write", "RingConsumerA": "wide_read"}[name]
    plain = Walk((3, 1, 1, 1), (1, 0, 0, 0), base=300).fields(other, part_of_other)
    operations = {name: overridden, other: plain}
    operations["RingProducer"]["targets"] = 1 << 4
    bench = Bench(
        [
            ("RingConsumerA", operations["RingConsumerA"] | {"tiles": 1 << 4}),
            ("RingProducer", operations["RingProducer"] | {"tiles": 1}),
        ]
    )
    bench.core["registers"][5] = 77
    moved, fixed = [77, 79, 81], [300, 301, 302]
    read, written = (moved, fixed) if name == "RingProducer" else (fixed, moved)
    expected = [bench.tile(0).row(row) for row in read]
    bench.run()
    bench.assert_idle()
    assert [bench.tile(4).row(row) for row in written] == expected


def test_a_register_replaces_the_base_of_what_a_mesh_reads() -> None:
    read = Walk((3, 1, 1, 1), (1, 0, 0, 0), base=40).fields("MeshEast", "narrow_read")
    write = Walk((3, 1, 1, 1), (1, 0, 0, 0), base=900).fields("MeshEast", "narrow_write")
    off = Walk((1, 1, 1, 1), (0, 0, 0, 0))
    sending = read | off.fields("MeshEast", "narrow_write") | {"tiles": 1}
    receiving = write | off.fields("MeshEast", "narrow_read") | {"tiles": 2}
    sending |= {"base_override": 1, "base_register": 3}
    bench = Bench([("MeshEast", receiving), ("MeshEast", sending)])
    bench.core["registers"][3] = 5000
    expected = bench.tiles[0]["narrow"][5000:5003].tolist()
    bench.run()
    bench.assert_idle()
    assert bench.tiles[1]["narrow"][900:903].tolist() == expected


@pytest.mark.parametrize("main_limit", [[1, 0], [0, 2], [2, 1]])
def test_each_pass_of_a_nearest_interpolation_adds_the_pixel(main_limit: list[int]) -> None:
    passes = (main_limit[0] + 1) * (main_limit[1] + 1)
    write = Walk((1,) * 8, (0,) * 8, base=4000).fields("TensorInterpolate", "narrow_write")
    fields: dict[str, Any] = {
        "main_limit": [*main_limit, 0, 0, 0, 0, 0, 0],
        "reduction_loops": 3,
        "partial_sum_read": 3,
        "apply_bias": 1,
        "output_scale": 0.25 / passes,
        "narrow_read_base": 100,
        "block_lanes": 3,
        "last_block_lanes": 3,
    }
    bench = Bench([("TensorInterpolate", fields | write | {"tiles": 1})])
    octets = bench.tiles[0]["narrow"].view(np.uint8)
    scale = np.float32(fields["output_scale"])
    sums = octets[100:104].astype(np.int32) * passes
    expected = np.rint(sums.astype(np.float32) * scale).astype(np.uint8).tolist()
    bench.run()
    bench.assert_idle()
    assert octets[4000:4004].tolist() == expected


def _registers(operations: list[Operation], **registers: int) -> list[int]:
    bench = Bench(operations)
    for name, value in registers.items():
        bench.core["registers"][int(name[1:])] = value
    bench.run()
    assert bench.fault is None
    return [int(value) for value in bench.core["registers"]]


def _move(register: int, value: int = 1) -> Operation:
    fields = {"alu_op": 15, "alu_immediate": 1, "alu_b": value, "alu_destination": register}
    return "Scalar", fields


@pytest.mark.parametrize(
    ("operation", "a", "b", "expected"),
    [
        (8, 0x80000010, 4, 0xF8000001),
        (8, 0x70000010, 4, 0x07000001),
        (8, 0xFFFFFFFF, 31, 0xFFFFFFFF),
        (8, 0x12345678, 32, 0x12345678),
    ],
)
def test_an_arithmetic_shift_shifts_the_sign_in(
    operation: int, a: int, b: int, expected: int
) -> None:
    fields = {"alu_op": operation, "alu_a": 1, "alu_b": 2, "alu_destination": 3}
    assert _registers([("Scalar", fields)], r1=a, r2=b)[3] == expected


@pytest.mark.parametrize("a", [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
@pytest.mark.parametrize("b", [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_comparisons_that_are_never_seen(a: int, b: int) -> None:
    def holds(operation: int) -> bool:
        compare = {"alu_op": operation, "alu_a": 1, "alu_b": 2, "alu_destination": 4}
        name, move = _move(9)
        gated = move | {"gate": 1, "predicate": 4, "polarity": 1}
        return _registers([("Scalar", compare), (name, gated)], r1=a, r2=b, r9=0)[9] == 1

    signed = [value - (value >> 31 << 32) for value in (a, b)]
    assert holds(11) == (signed[0] > signed[1])
    assert holds(14) == (a >= b)


@pytest.mark.parametrize("polarity", [0, 1])
def test_a_gate_lets_an_instruction_pass_or_not(polarity: int) -> None:
    """Predicates are 0 at first; a branch, a loop and a fence are skipped as a bundle is."""
    gate = {"gate": 1, "predicate": 3, "polarity": polarity}
    fence = ("TileFence", gate | {"tiles": 0xFFFF, "reset_flags": 1, "reset_value": 9})
    bench = Bench([fence, ("Halt", gate), _move(7, 5), ("Halt", {})])
    bench.run()
    assert bench.tiles["flags"][:, 0].tolist() == [0 if polarity else 9] * chip.TILES
    assert (int(bench.core["registers"][7]) == 5) == bool(polarity)


@pytest.mark.parametrize(("count", "body", "runs"), [(0, 1, 0), (3, 1, 3), (0, 2, 0), (7, 0, 1)])
def test_a_loop_runs_its_body_as_often_as_it_says(count: int, body: int, runs: int) -> None:
    add = {"alu_op": 1, "alu_immediate": 1, "alu_b": 1, "alu_a": 8, "alu_destination": 8}
    operations: list[Operation] = [("Loop", {"count": count, "body": body}), ("Scalar", add)]
    operations += [("Scalar", {})] * (body == 2)
    operations += [_move(9, 3)]
    found = _registers(operations, r8=0)
    assert (found[8], found[9]) == (runs, 3)


def test_an_absolute_branch_names_an_address_in_program_memory() -> None:
    """Address 0 is the bundle after LoadProgram."""
    operations: list[Operation] = [
        ("Branch", {"relative": 0, "offset": 3}),
        _move(7),
        _move(8),
        _move(9),
    ]
    assert _registers(operations, r7=0, r8=0, r9=0)[7:10] == [0, 0, 1]


def _framed(load: int, start: int, operations: list[Operation]) -> bytes:
    body: list[Operation] = [*operations, ("Halt", {"program_end": 1})]
    program: list[Operation] = [
        ("LoadProgram", {"start_pc": load, "bundles": len(body)}),
        *body,
        ("Execute", {"start_pc": start, "load_pc": 1}),
    ]
    return build(program)


@pytest.mark.parametrize(("load", "start", "entry"), [(0, 0, 1), (0, 2, 3), (100, 101, 2)])
def test_a_program_starts_at_the_address_that_is_given(load: int, start: int, entry: int) -> None:
    chunk = _framed(load, start, [_move(7), _move(8), _move(9)])
    assert lower([chunk]).entries == (entry,)
    branch = _framed(load, load, [("Branch", {"relative": 0, "offset": load + 2}), _move(7)])
    lowered = lower([branch])
    assert lowered.tables.branch["offset"].tolist() == [2]


def test_a_start_outside_the_chunk_leaves_it() -> None:
    lowered = lower([_framed(0, 900, [])])
    assert lowered.entries == (lowered.chunks[0].bundles,)


RAISING: list[tuple[list[Operation], list[int]]] = [
    ([("Interrupt", {"interrupt": 2})], [2]),
    ([("Interrupt", {"interrupt": 1, "gate": 1, "polarity": 1})], []),
    ([("Halt", {"interrupt": 1, "chunk_end": 3, "program_end": 1})], [3]),
]


@pytest.mark.parametrize(("operations", "numbers"), RAISING)
@pytest.mark.parametrize("dma_only", [False, True])
def test_an_interrupt_is_raised_in_its_place(
    operations: list[Operation], numbers: list[int], dma_only: bool
) -> None:
    """Behind the program's own, the descriptor of interrupt 0, and in the time model, too."""
    changed = [*sample.operations(), *operations]
    result = Accelerator(dma_only=dma_only).run(sample.executable(changed), {"image": IMAGE})
    assert result.interrupts == [0, *numbers]
    if not dma_only:
        assert result.outputs == {"averages": sample.expected(IMAGE)}
    timed = timing.simulate(sample.executable(changed))
    plain = timing.simulate(sample.executable())
    assert len(timed.transfers) - len(plain.transfers) == len(numbers)


def test_an_accelerator_names_what_it_assumes_or_refuses_it() -> None:
    program = sample.changed("RingOutfeed", trace=1)
    accelerator = Accelerator()
    accelerator.run(sample.executable(program), {"image": IMAGE})
    assert ("RingOutfeed", "trace", 1) in {
        (each.instruction, each.field, each.value) for each in accelerator.assumed
    }
    with pytest.raises(UnsupportedInstruction) as caught:
        Accelerator(assumptions=False).load(sample.executable(program))
    assert caught.value.assumed


def test_an_instruction_in_the_frame_is_lowered() -> None:
    assert lower([frame(build([("NoOp", {})]))]).assumptions[0].instruction == "NoOp"
