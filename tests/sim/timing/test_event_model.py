"""The event model: against a slow model that steps every cycle, and against its own promises."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Sequence
from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import Any

import endless
import pytest
from averaging_program import watch
from darwinn_formats.darwinn import Executable, InstructionBitstream
from darwinn_formats.limits import Limits, limited
from darwinn_sim import timing
from darwinn_sim.errors import ChipFault, Deadlock, NotEnded
from darwinn_sim.host.buffers import DriverError
from darwinn_sim.host.descriptors import DescriptorFault
from darwinn_sim.host.interface import HostInterface
from darwinn_sim.host.memory import HostMemory
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.isa.codes import AluOperation, DescriptorTag, StoreOperation, TileFlag, TileUnit
from darwinn_sim.machine.lowering import LoweredProgram, lower
from darwinn_sim.timing import Cause, ChipDescription, HostLink, event_model, trace, transfers
from darwinn_sim.timing import state as parts
from darwinn_testbench.compiler.network import random_convolution, random_dense
from darwinn_testbench.compiler.package import compile_network, compile_stand_alone
from hypothesis import currently_in_test_context, given, note
from hypothesis import strategies as st
from random_timing import chip_of, host_of
from slow_timing import SlowTiming, Stuck
from stimulus import Walk, constrained_random
from unit_cases import mesh_bus, narrow_to_wide, tensor_unit, wide_to_narrow

Span = tuple[int, int, int, int]


def descriptor(tag: int, low: int, size: int) -> list[tuple[str, dict[str, int]]]:
    """Bundles that issue a descriptor."""
    operations: list[tuple[str, dict[str, int]]] = []
    for word, value in enumerate((low, 0, size, tag)):
        move = {"alu_op": AluOperation.MOVE, "alu_immediate": 1, "alu_b": value}
        store = {"store_op": StoreOperation.DESCRIPTOR, "store_address": word}
        operations += [("Scalar", move), ("Scalar", store)]
    return [*operations, ("Scalar", {"store_op": StoreOperation.ISSUE})]


def both(
    program: LoweredProgram, sizes: Sequence[int], chip: ChipDescription, host: HostLink | None
) -> tuple[timing.Timing | None, SlowTiming | None]:
    """The run in both models; None for one that gets stuck."""
    seed = int(os.environ.get("PYTEST_SEED", "1"))
    slow: SlowTiming | None = SlowTiming(program, sizes, chip, host, seed)
    try:
        assert slow
        slow.run()
    except Stuck:
        slow = None
    try:
        return timing.simulate_program(program, sizes, chip, host, spans=True), slow
    except Deadlock as error:
        if currently_in_test_context():
            note(str(error))
        return None, slow


def compare(
    program: LoweredProgram, sizes: Sequence[int], chip: ChipDescription, host: HostLink | None
) -> timing.Timing | None:
    """Assert that both models agree on every cycle; the event model's run."""
    fast, slow = both(program, sizes, chip, host)
    assert (fast is None) == (slow is None)
    if fast is None or slow is None:
        return None
    spans: set[Span] = {
        (int(s["tile"]), int(s["instruction"]), int(s["start"]), int(s["end"])) for s in fast.spans
    }
    assert spans == slow.spans
    assert fast.cycles == slow.cycles
    check_accounts(fast)
    return fast


def check_accounts(result: timing.Timing) -> None:
    """Every station accounts for every cycle, and nothing is faster than the static bound."""
    assert (result.tile_usage.sum(axis=2) == result.cycles).all()
    assert (result.chip_usage.sum(axis=1) == result.cycles).all()
    assert (result.tile_usage >= 0).all() and (result.chip_usage >= 0).all()
    # What spans say of a station's cycles are parts of them, and all of its work.
    for usage, tile in (
        *((result.tile_usage[each], each) for each in range(16)),
        (result.chip_usage, -1),
    ):
        spans = result.spans[result.spans["tile"] == tile]
        for station in set(spans["station"].tolist()):
            spent = spans["spent"][spans["station"] == station]
            assert (spent >= 0).all()
            assert (spent.sum(axis=0) <= usage[station]).all()
            assert spent[:, Cause.BUSY].sum() == usage[station, Cause.BUSY]


@cache
def sample(name: str) -> tuple[LoweredProgram, tuple[int, ...]]:
    package = {
        "dense": lambda: compile_stand_alone(random_dense((64, 64), 1)),
        "two layers": lambda: compile_network(random_dense((64, 128, 32), 2)),
        "convolution": lambda: compile_network(random_convolution(8, 8, 4, 4, 3)),
    }[name]()
    chunks = [bytes(part.bitstream) for part in package.executables[-1].instruction_bitstreams]
    return lower(chunks), tuple(map(len, chunks))


SLOW_CHIP = chip_of(
    ring_bytes_per_cycle=16,
    ring_fifo_rows=1,
    outfeed_rows=2,
    mesh_fifo_words=1,
    tile_queue=2,
    unit_queue=1,
    result_queue_words=20,
    instruction_start=3,
    result_cycles=2,
    drain_cycles=1,
    row_write_cycles=1,
    scalar_bundle_cycles=2,
    scalar_queue=2,
    scalar_unit_start=2,
    ring_row_cycles=20,
    link_word_bytes=40,
    write_burst_bytes=24,
    write_cycles=5,
    write_gap_cycles=3,
    unanswered_writes=2,
    interrupt_cycles=3,
)
FAST_CHIP = chip_of(
    ring_bytes_per_cycle=256,
    narrow_to_wide_words_per_cycle=3,
    result_words_per_cycle=3,
    wide_to_narrow_words_per_cycle=64,
    mesh_words_per_cycle=2,
)
LINK = host_of(13.7, 9.1, on_request=True)
HARNESS = timing.chip_description("harness")
HARNESS_LINK = timing.host_link("harness")


@pytest.mark.parametrize(
    ("name", "chip", "host"),
    [
        ("dense", chip_of(), LINK),
        ("two layers", SLOW_CHIP, None),
        ("convolution", FAST_CHIP, None),
        ("convolution", SLOW_CHIP, LINK),
        ("dense", HARNESS, HARNESS_LINK),
        ("convolution", HARNESS, HARNESS_LINK),
    ],
)
def test_samples_take_the_cycles_of_the_slow_model(
    name: str, chip: ChipDescription, host: HostLink | None
) -> None:
    program, sizes = sample(name)
    result = compare(program, sizes, chip, host)
    assert result is not None
    bound = timing.static_bound(program, sizes, chip, host)
    assert 0 < bound.lower <= result.cycles


@constrained_random(3)
@given(
    st.lists(st.sampled_from([16, 64, 80]), min_size=2, max_size=3),
    st.sampled_from([chip_of(), SLOW_CHIP, FAST_CHIP, HARNESS]),
    st.sampled_from([None, host_of(40, 8, on_request=False)]),
)
def test_random_networks_take_the_cycles_of_the_slow_model(
    sizes: list[int], chip: ChipDescription, host: HostLink | None
) -> None:
    for executable in compile_network(random_dense(sizes, 7)).executables:
        chunks = [bytes(part.bitstream) for part in executable.instruction_bitstreams]
        assert compare(lower(chunks), [len(chunk) for chunk in chunks], chip, host) is not None


def preset(flags: dict[int, int], tiles: int) -> list[tuple[str, dict[str, Any]]]:
    """Fences that load flags of a set of tiles."""
    return [
        ("TileFence", {"tiles": tiles, "reset_flags": 1 << flag, "reset_value": value & 0xFFFF})
        for flag, value in flags.items()
    ]


@constrained_random(15)
@given(
    st.lists(
        st.one_of(
            wide_to_narrow.cases().map(lambda case: ("WideToNarrow", *case)),
            narrow_to_wide.cases().map(lambda case: ("NarrowToWide", *case[:3])),
            tensor_unit.cases("TensorMac").map(lambda case: ("TensorMac", case[0], case[2], 9)),
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([chip_of(), SLOW_CHIP, FAST_CHIP, HARNESS]),
)
def test_random_units_take_the_cycles_of_the_slow_model(
    cases: list[tuple[Any, ...]], chip: ChipDescription
) -> None:
    operations: list[tuple[str, dict[str, Any]]] = []
    for name, fields, flags, tile in cases:
        operations += preset(flags, 1 << tile)
        operations.append((name, {**fields, "tiles": 1 << tile}))
    compare_operations(operations, chip)


def compare_operations(
    operations: list[tuple[str, dict[str, Any]]], chip: ChipDescription
) -> timing.Timing | None:
    chunk = frame(build(operations))
    return compare(lower((chunk,)), (len(chunk),), chip, None)


@constrained_random(8)
@given(mesh_bus.cases(), st.sampled_from([chip_of(), SLOW_CHIP, FAST_CHIP]))
def test_random_mesh_instructions_take_the_cycles_of_the_slow_model(
    case: tuple[str, dict[str, Any], int, dict[int, int]], chip: ChipDescription
) -> None:
    name, fields, tiles, flags = case
    compare_operations([*preset(flags, tiles), (name, {**fields, "tiles": tiles})], chip)


@pytest.mark.parametrize("room", [2, 3, 6, 7, 8])
def test_a_mesh_link_takes_the_cycles_of_the_slow_model(room: int) -> None:
    """The receiver begins later, while its unit stores constants, or waits between words."""
    name, off = "MeshEast", Walk((1, 1, 1, 1), (0, 0, 0, 0))
    read, write = Walk((6, 8, 1, 1), (1, 6, 0, 0)), Walk((4, 4, 3, 1), (1, 4, 16, 0))
    sender = read.fields(name, "narrow_read") | off.fields(name, "narrow_write")
    receiver = off.fields(name, "narrow_read") | write.fields(name, "narrow_write")
    counting: dict[str, Any] = {
        "narrow_write_limit": [99, *[0] * 5],
        "wide_read_limit": [1, 0, 0, 0],
        "row_loop": 5,
        "producer_increment": 1,
    }
    for later in range(1, 12):
        constants = Walk((later, 1, 1, 1), (1, 0, 0, 0)).fields(name, "narrow_write")
        storing = off.fields(name, "narrow_read") | constants | {"immediate_valid": 1}
        watched = watch(6, 11, 10 + later) | {"watcher_depth": [2, *[0] * 5]}
        watched["watcher_side"] = [1, *[0] * 5]
        for waiting, start in product(({}, watched), (0, 4, 9)):
            operations: list[tuple[str, dict[str, Any]]] = [
                ("WideToNarrow", {"tiles": 2, **counting}),
                (name, {"tiles": 2, **storing}),
                (name, {"tiles": 1, **sender}),
                (name, {"tiles": 2, **receiver, **waiting}),
            ]
            chip = chip_of(mesh_fifo_words=room, instruction_start=start)
            assert compare_operations(operations, chip)


@constrained_random(25)
@given(
    st.integers(20, 200),
    st.integers(1, 150),
    st.integers(0, 20),
    st.none() | st.integers(-10, 100),
    st.sampled_from([chip_of(), SLOW_CHIP, chip_of(wide_to_narrow_words_per_cycle=3)]),
)
def test_a_flag_may_be_watched_and_loaded_while_it_grows(
    words: int, watched: int, later: int, loaded: int | None, chip: ChipDescription
) -> None:
    """Wide-to-narrow counts each word, narrow-to-wide waits for some, and a fence comes between."""
    writing = {
        "narrow_write_limit": [words - 1, *[0] * 5],
        "wide_read_limit": [(words - 1) // 64, 0, 0, 0],
        "row_loop": 5,
        "producer_increment": 1,
    }
    operations: list[tuple[str, dict[str, Any]]] = [
        ("WideToNarrow", {"tiles": 1, **writing}),
        ("NarrowToWide", {"tiles": 1, **watch(6, 11, watched)}),
        *[("NoOp", dict[str, Any]())] * later,
    ]
    if loaded is not None:
        operations += preset({11: loaded}, 1)
    compare_operations(operations, chip)


@pytest.mark.parametrize("later", range(19, 25))
def test_a_fence_may_load_a_flag_as_the_tensor_unit_looks_at_it(later: int) -> None:
    """Runs of one iteration each test a flag; in one of their cycles a fence sets it back."""
    runs = 40
    walk = Walk((runs, *[1] * 7), (4, *[0] * 7))
    fields = {
        **walk.fields("TensorMac", "partial_sum"),
        **walk.fields("TensorMac", "narrow_write"),
        **watch(6, TileFlag.RING_BUS_READ_A, 0, None),
        "tiles": 1,
        "main_limit": [runs - 1, *[0] * 7],
        "partial_sum_read": 3,
        "block_lanes": 3,
        "last_block_lanes": 3,
    }
    wait = [("NoOp", dict[str, Any]())] * later
    load = preset({TileFlag.RING_BUS_READ_A: -5}, 1)
    compare_operations([("TensorMac", fields), *wait, *load], chip_of())


@constrained_random(40)
@given(
    st.integers(1, 6),
    st.integers(0, 8),
    st.sampled_from([0, 0, 0xFFFD]),
    st.integers(0, 1),
    st.integers(0, 40),
    st.booleans(),
    st.sampled_from([chip_of(), SLOW_CHIP, FAST_CHIP, HARNESS]),
)
def test_fences_that_count_tokens_take_the_cycles_of_the_slow_model(
    rows: int,
    awaited: int,
    before: int,
    channel: int,
    later: int,
    waits_for_sender: bool,
    chip: ChipDescription,
) -> None:
    """Tile 0 sends rows, each with a token; its own fence and that of tile 2 await some of them.

    Where the number has been passed both models get stuck.
    """
    consumer = ("RingConsumerA", "RingConsumerB")[channel]
    lines = {
        "RingProducer": Walk((rows, 1, 1, 1), (1, 0, 0, 0)).fields("RingProducer", "wide_read"),
        consumer: Walk((rows, 1, 1, 1), (1, 0, 0, 0)).fields(consumer, "wide_write"),
    }
    sends = {"targets": 2, "consumer_b": channel, "token_producer_increment": 1}
    fence = {
        "producer_count_valid": 1 << channel,
        "producer_count": (before + awaited) % 65536,
        "reset_flags": 1 << 17 + channel,
        "reset_value": 9,
    }
    wait = {"wait_idle": 1 << TileUnit.RING_PRODUCER} if waits_for_sender else {}
    compare_operations(
        [
            *preset({17 + channel: before}, 0xFFFF),
            (consumer, {"tiles": 2, **lines[consumer]}),
            ("RingProducer", {"tiles": 1, **lines["RingProducer"], **sends}),
            ("TileFence", {"tiles": 1, **fence, **wait}),
            *[("NoOp", dict[str, Any]())] * later,
            ("TileFence", {"tiles": 4, **fence}),
        ],
        chip,
    )


@constrained_random(20)
@given(
    st.integers(1, 40),
    st.integers(0, 40),
    st.sampled_from([chip_of(), SLOW_CHIP, FAST_CHIP, HARNESS]),
)
def test_tokens_of_every_cycle_are_not_passed_over(
    units: int, awaited: int, chip: ChipDescription
) -> None:
    """The infeed passes a turn with every unit; a fence for any number of them sees it."""
    fields = Walk((units, 1, 1), (1, 0, 0)).fields("RingInfeed", "buffer")
    fields |= {"fifo": 2, "row_words": 63, "token_producer_increment": 1}
    fence = {"tiles": 4, "producer_count_valid": 1, "producer_count": awaited}
    result = compare_operations([("TileFence", fence), ("RingInfeed", fields)], chip)
    assert (result is None) == (awaited > units)


def test_the_same_run_takes_the_same_cycles() -> None:
    program, sizes = sample("convolution")
    first, second = (
        timing.simulate_program(program, sizes, chip_of(), LINK, spans=True) for _ in range(2)
    )
    assert first.cycles == second.cycles
    assert (first.spans == second.spans).all()
    assert (first.tile_usage == second.tile_usage).all()


def test_a_deadlock_names_who_waits_for_what() -> None:
    chunk = frame(build([("NarrowToWide", {"tiles": 1 << 3, **watch(6, 11, 7)})]))
    with pytest.raises(Deadlock) as caught:
        timing.simulate_program(lower((chunk,)), (len(chunk),))
    (line,) = caught.value.waiting
    assert "tile 3 narrow-to-wide" in line
    assert "(flag 11) is 0, watched for 7" in line


def test_a_deadlock_names_the_tokens_that_have_been_passed() -> None:
    infeed = Walk((5, 1, 1), (1, 0, 0)).fields("RingInfeed", "buffer")
    infeed |= {"fifo": 2, "row_words": 63, "token_producer_increment": 1}
    operations: list[tuple[str, dict[str, Any]]] = [
        ("NarrowToWide", {"tiles": 8, **watch(6, 17, 5)}),
        (
            "TileFence",
            {"tiles": 8, "wait_idle": 0x3FF, "producer_count_valid": 1, "producer_count": 4},
        ),
        ("RingInfeed", infeed),
    ]
    chunk = frame(build(operations))
    with pytest.raises(Deadlock) as caught:
        timing.simulate_program(lower((chunk,)), (len(chunk),))
    (line,) = caught.value.waiting
    assert line.startswith("tile 3: 1 instructions queued, the first is TileFence")
    assert line.endswith("(flag 17) is 5, awaited at 4, which has been passed")


@pytest.mark.parametrize(("words", "asked"), [(1, 0), (3, 8), (2, 8)])
def test_words_that_no_descriptor_asks_for_are_left(words: int, asked: int) -> None:
    operations: list[tuple[str, dict[str, Any]]] = [
        *(descriptor(DescriptorTag.OUTPUT, 0, asked) if asked else []),
        *[("Scalar", {"store_op": StoreOperation.PUSH})] * words,
    ]
    chunk = frame(build(operations))
    fast, slow = both(lower((chunk,)), (len(chunk),), chip_of(), None)
    assert (fast is None) == (slow is None) == (4 * words > asked)
    if fast is None:
        with pytest.raises(Deadlock, match=r"output stream: 4 bytes wait for a descriptor"):
            timing.simulate_program(lower((chunk,)), (len(chunk),))


def test_an_endless_run_is_ended() -> None:
    program, sizes = sample("dense")
    with pytest.raises(NotEnded, match="has not ended after 50 cycles"):
        timing.simulate_program(program, sizes, limit=50)


@pytest.mark.parametrize("patience", [3, 100])
def test_turns_in_which_something_moves_are_no_waste(
    patience: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is given up after so many turns of 5 cycles in which nothing reaches its place."""

    class Patience:
        def __init__(self) -> None:
            self.seen()

        def seen(self) -> None:
            self.left = patience

        def passed(self) -> str:
            self.left -= 1
            return "" if self.left else f"{patience} turns"

    monkeypatch.setattr(event_model, "Clock", Patience)
    monkeypatch.setattr(event_model, "_TURN_CYCLES", 5)
    program, sizes = sample("dense")
    if patience == 3:
        with pytest.raises(NotEnded, match="3 turns"):
            timing.simulate_program(program, sizes)
    else:
        assert timing.simulate_program(program, sizes).cycles > patience * 5


BACK = ("Branch", {"relative": 1, "offset": -1})
LONG = 1 << 20


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ([("TileFence", {"tiles": 1}), BACK], f"{LONG} bundles"),
        ([*descriptor(DescriptorTag.PARAMETERS, 0, 8), BACK], "4096 descriptors"),
    ],
)
def test_an_endless_program_is_ended_in_bounded_memory(
    body: list[tuple[str, dict[str, int]]], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trace that is kept as a whole has 64 bytes for each step: 32 MiB of tile fences."""
    monkeypatch.setattr(trace, "MAX_BUNDLES", LONG)
    monkeypatch.setattr(trace, "MAX_DESCRIPTORS", 1 << 12)
    chunk = frame(build(body))
    program = lower((chunk,))
    tracemalloc.start()
    try:
        with pytest.raises(NotEnded, match=f"the program has not ended after {what}"):
            timing.simulate_program(program, (len(chunk),))
        with pytest.raises(NotEnded, match=f"the program has not ended after {what}"):
            timing.static_bound(program, (len(chunk),), chip_of())
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_a_loop_of_a_short_program_is_recorded_in_few_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Blocks of as many steps as the program has were a hundred times slower."""
    monkeypatch.setattr(trace, "MAX_BUNDLES", LONG)
    program = lower((frame(build([("TileFence", {"tiles": 1}), BACK])),))
    steps: list[int] = []
    with pytest.raises(NotEnded):
        steps.extend(len(block) for block in trace.blocks(program))
    assert sum(steps) == 1 + LONG // 2
    assert len(steps) <= trace.BLOCK.bit_length() + LONG // 2 // trace.BLOCK


@pytest.mark.parametrize("name", [name for name in endless.BODIES if not name.startswith("one ")])
def test_seconds_without_progress_end_the_look_through_a_trace(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is timed, and without waiting for 2**28 bundles."""
    monkeypatch.setattr(trace, "TURN", 1 << 12)
    chunk = bytes(endless.executable(name).instruction_bitstreams[0].bitstream)
    program = lower((chunk,))
    with limited(Limits(seconds=1e-6)):
        for look in (
            lambda: list(trace.blocks(program)),
            lambda: timing.static_bound(program, (len(chunk),), chip_of()),
            lambda: timing.simulate_program(program, (len(chunk),)),
        ):
            with pytest.raises(NotEnded, match=r"--max-seconds.*scalar core at chunk 0, pc"):
                look()


@pytest.mark.parametrize("name", ["dense", "convolution"])
def test_a_trace_that_is_made_twice_gives_the_same_cycles(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, sizes = sample(name)
    kept = timing.simulate_program(program, sizes, host=LINK)
    bound = timing.static_bound(program, sizes, chip_of(), LINK)
    monkeypatch.setattr(trace, "BLOCK", 5)
    monkeypatch.setattr(trace, "TURN", 3)
    monkeypatch.setattr(transfers, "_KEPT_STEPS", 12)
    again = timing.simulate_program(program, sizes, host=LINK)
    assert again.cycles == kept.cycles
    assert again.transfers == kept.transfers
    assert (again.instructions == kept.instructions).all()
    assert timing.static_bound(program, sizes, chip_of(), LINK) == bound


@pytest.mark.parametrize(
    ("tag", "low", "size", "reason"),
    [
        (1, 0, 0, "length 0"),
        (0, 0, 8, "unknown tag"),
        (0, 0, 0, "unknown tag"),
        (8, 0, 0, "unknown tag"),
        (4, 0, 8, "an interrupt has neither address nor size"),
        (7, 64, 0, "an interrupt has neither address nor size"),
    ],
)
def test_a_descriptor_that_the_host_interface_refuses_is_a_fault(
    tag: int, low: int, size: int, reason: str
) -> None:
    chunk = frame(build(descriptor(tag, low, size)))
    with pytest.raises(ChipFault, match=rf"DMA: .*{reason}.* \(chunk 0, pc 9"):
        timing.simulate_program(lower((chunk,)), (len(chunk),), limit=1000)
    with pytest.raises(DescriptorFault, match=reason):
        HostInterface(HostMemory()).issue(tag, low, size)


@pytest.mark.parametrize(
    ("interrupts", "message"),
    [
        ((1,), "the device has not signalled completion"),
        ((0, 0, 1), "1 host interrupts 0 without a request"),
    ],
)
def test_a_run_that_does_not_end_in_one_interrupt_0_is_no_request(
    interrupts: tuple[int, ...], message: str
) -> None:
    chunk = frame(build([("Interrupt", {"interrupt": number}) for number in interrupts]))
    executable = Executable(instruction_bitstreams=(InstructionBitstream(chunk),))
    with pytest.raises(DriverError, match=message):
        timing.simulate(executable)


def test_a_slower_link_is_waited_for_as_such() -> None:
    program, sizes = sample("dense")
    fast = timing.simulate_program(program, sizes, host=host_of(64, 64, on_request=False))
    slow = timing.simulate_program(program, sizes, host=host_of(1, 64, on_request=False))
    assert slow.cycles > fast.cycles
    fetched = slow.chip_usage[0, Cause.INSTRUCTION_FETCH]
    assert sizes[0] <= fetched < sizes[0] + 100
    assert slow.waiting()[Cause.INSTRUCTION_FETCH] > 0


@pytest.mark.parametrize("on_request", [True, False])
@pytest.mark.parametrize("cycles", [9, 2000])
def test_what_nobody_asks_for_is_not_late(cycles: int, *, on_request: bool) -> None:
    """A host that pushes is not waited for as one that reads for the chip."""
    program, sizes = sample("dense")
    link = host_of(1.7, 13.7, on_request=on_request)
    assert compare(program, sizes, chip_of(read_cycles=cycles), link) is not None


def test_transfers_are_those_of_the_program_and_in_order() -> None:
    program, sizes = sample("dense")
    result = timing.simulate_program(program, sizes, host=LINK)
    inwards = [each for each in result.transfers if each.direction.value == "infeed"]
    assert sum(each.size for each in inwards if each.kind.value == "instruction") == sizes[0]
    assert all(0 <= each.start <= each.end <= result.cycles for each in result.transfers)
    assert [each.start for each in inwards] == sorted(each.start for each in inwards)
    assert result.transfers[-1].kind.value == "interrupt"


def test_what_is_never_executed_has_no_cycles() -> None:
    """Behind a jump: executed 0 times, and at no time."""
    skipped = [("Branch", {"relative": 1, "offset": 2}), ("TileFence", {"tiles": 1})]
    chunk = frame(build([*skipped, *descriptor(DescriptorTag.INTERRUPT_0, 0, 0)]))
    result = timing.simulate_program(lower((chunk,)), (len(chunk),))
    never = [row for row in result.executions.tolist() if row[0] == 0]
    assert never and all(row == [0, -1, -1] for row in never)


def test_a_transfer_of_the_first_cycle_has_been_seen() -> None:
    """One that has not begun, with -1, has not."""
    table = parts.Transfer.zeros(4)
    machine = SimpleNamespace(inbound=table[:2], outbound=table[2:])
    run: Any = SimpleNamespace(machine=machine)
    for starts, moved in (((-1, -1, -1, -1), 0), ((0, -1, -1, 0), 2), ((0, 5, 0, 7), 4)):
        table["start"] = starts
        assert event_model._Run._moved(run) == moved


def test_a_look_at_the_clock_in_between_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    program, sizes = sample("dense")
    cycles = timing.simulate_program(program, sizes).cycles
    monkeypatch.setattr(event_model, "_TURN_CYCLES", 7)
    assert timing.simulate_program(program, sizes).cycles == cycles
    with pytest.raises(NotEnded, match="after 50 cycles"):
        timing.simulate_program(program, sizes, limit=50)


class CountedClock:
    """A clock by which the time is over at look ``last``."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.looks = 0

    def seen(self) -> None:
        """Nothing begins again."""

    def passed(self) -> str:
        self.looks += 1
        return "1 s" if self.looks == self.last else ""


def test_a_run_ends_with_the_look_that_finds_its_time_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At any look, and the last one of all; not by one that would come after that."""
    monkeypatch.setattr(event_model, "_TURN_CYCLES", 7)
    program, sizes = sample("dense")

    def cycles(clock: CountedClock) -> int:
        monkeypatch.setattr(event_model, "Clock", lambda: clock)
        return timing.simulate_program(program, sizes).cycles

    unhurried = CountedClock(0)
    expected = cycles(unhurried)
    assert unhurried.looks > 10
    for last in (1, 2, unhurried.looks):
        clock = CountedClock(last)
        with pytest.raises(NotEnded) as caught:
            cycles(clock)
        assert (caught.value.limit, clock.looks) == ("1 s", last)
        assert "ring rows in" in caught.value.doing[0]
    assert cycles(CountedClock(unhurried.looks + 1)) == expected
