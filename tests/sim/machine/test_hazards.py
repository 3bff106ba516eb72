"""Hazards in whole programs: each kind of edge, there and missing, by name."""

from __future__ import annotations

from collections.abc import Sequence

import averaging_program as sample
import pytest
from averaging_program import TILE, Operation, line, watch
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.isa.codes import DescriptorTag, ScalarFlag, ScalarUnit, TileFlag, TileUnit
from darwinn_sim.kernel import clocks, order
from darwinn_sim.machine import hazards as named
from darwinn_sim.machine.hazards import Access, CheckedPrograms, Hazard, Kind
from darwinn_sim.machine.lowering import lower

IMAGE = sample.images()()
_NO_WATCHER = {"watcher_valid": [0] * 6}


def hazards(program: Sequence[Operation] | None) -> tuple[Hazard, ...]:
    """What is found in a program, without strict mode."""
    accelerator = Accelerator(hazards=True)
    return accelerator.run(sample.executable(program), {"image": IMAGE}).hazards


def with_more(before: str, *more: Operation, **fields: object) -> list[Operation]:
    """The program with further instructions, and other fields in the one that they stand before."""
    program = sample.changed(before, **fields)
    place = [name for name, _ in program].index(before)
    return [*program[:place], *more, *program[place:]]


def only(found: Sequence[Hazard]) -> Hazard:
    assert len(found) == 1, [str(each) for each in found]
    return found[0]


def test_a_program_whose_flags_order_all_has_none() -> None:
    assert hazards(None) == ()


def test_an_accelerator_that_does_not_look_finds_nothing() -> None:
    result = Accelerator().run(
        sample.executable(sample.changed("RingInfeed", watcher_stride=[0, 0])), {"image": IMAGE}
    )
    assert result.hazards == ()


def test_a_flag_of_the_scalar_core() -> None:
    found = only(hazards(sample.changed("RingInfeed", watcher_stride=[0, 0])))
    assert found.kind == "read after write" and found.memory == "activation buffer"
    assert found.first.instruction == "PopInput" and found.second.instruction == "RingInfeed"
    assert found.first.unit == "activation pop" and found.first.tile == -1
    assert found.missing == "flag 0 (av_pop) of the scalar core"
    assert str(found).startswith(f"nothing orders PopInput at pc {found.first.pc}")


@pytest.mark.parametrize(
    ("name", "other", "memory", "flag"),
    [
        ("TensorSum", "RingConsumerA", "wide memory", "flag 14 (ring_bus_read_a)"),
        ("NarrowToWide", "TensorSum", "narrow memory", "flag 0 (activation_write)"),
    ],
)
def test_a_flag_of_a_tile(name: str, other: str, memory: str, flag: str) -> None:
    found = only(hazards(sample.changed(name, **_NO_WATCHER)))
    assert {found.first.instruction, found.second.instruction} == {name, other}
    assert found.memory == f"{memory} of tile {TILE}" and flag in found.missing
    assert found.first.tile == found.second.tile == TILE
    layers = {each.instruction: each.layer for each in (found.first, found.second)}
    assert layers[name] == (0 if "Tensor" in (name, other) or name != "RingConsumerA" else -1)


def test_a_flag_that_a_ring_producer_awaits() -> None:
    found = hazards(sample.changed("RingProducer", watcher_valid=[0] * 3))
    assert "flag 13 (narrow_to_wide_write)" in only(found).missing


@pytest.mark.parametrize("waits", [True, False])
def test_a_tile_fence(waits: bool) -> None:
    """In the place of the flag for which narrow-to-wide waits."""
    fence = ("TileFence", {"tiles": 1 << TILE, "wait_idle": int(waits)})
    found = hazards(with_more("NarrowToWide", fence, **_NO_WATCHER))
    assert bool(found) is not waits
    if found:
        assert {only(found).first.unit, only(found).second.unit} == {
            "tensor unit",
            "narrow-to-wide",
        }


@pytest.mark.parametrize("waits", [True, False])
def test_a_load_of_a_flag_that_others_count(waits: bool) -> None:
    """A fence that loads flag 2 while the tensor unit, which counts it, may not have ended."""
    fence = ("TileFence", {"tiles": 1 << TILE, "wait_idle": int(waits), "reset_flags": 1 << 2})
    counts = {"partial_sum_producer_increment": 1}
    found = hazards(_with(fence, counts))
    assert bool(found) is not waits
    if found:
        assert only(found).memory == f"flag 2 (partial_sum_write) of tile {TILE}"
        assert only(found).kind is Kind.COUNT_AFTER_LOAD
        load, count = only(found).first, only(found).second
        assert (load.instruction, count.instruction) == ("TileFence", "TensorSum")
        assert str(only(found)).startswith(
            f"nothing orders TensorSum at pc {count.pc} of executable 0 "
            f"(tensor unit of tile {TILE}) before TileFence at pc {load.pc} of executable 0 "
            f"(tile fence of tile {TILE}): a wait of TileFence at pc {load.pc} "
            f"for tensor unit of tile {TILE}, before it loads the flag, would;"
        )


def _with(fence: Operation, counts: dict[str, int]) -> list[Operation]:
    program = with_more("NarrowToWide", fence)
    return [(name, each | counts if name == "TensorSum" else each) for name, each in program]


@pytest.mark.parametrize("awaited", [True, False])
def test_a_turn_on_the_ring(awaited: bool) -> None:
    """Another tile sends a row to the tile that the infeed sends to."""
    sender = (
        "RingProducer",
        {"tiles": 1 << TILE + 1, "wide_read_base": 30, "targets": 1 << TILE}
        | watch(3, 17, 1)
        | {"watcher_valid": [int(awaited), 0, 0]},
    )
    consumer = ("RingConsumerA", {"tiles": 1 << TILE, "wide_write_base": 40})
    found = hazards(
        with_more("TensorSum", sender, consumer)
        if not awaited
        else _with_token(with_more("TensorSum", sender, consumer))
    )
    assert bool(found) is not awaited
    if found:
        assert only(found).memory == f"ring channel A to tile {TILE}"
        assert only(found).missing == "a turn counted by flag 17 of the tiles"


def _with_token(program: list[Operation]) -> list[Operation]:
    """The infeed counts a turn when it has sent all."""
    fields = {"token_producer_increment": 1, "token_producer_depth": 3}
    return [(name, each | fields if name == "RingInfeed" else each) for name, each in program]


@pytest.mark.parametrize("awaited", [True, False])
def test_a_word_of_the_mesh(awaited: bool) -> None:
    """What comes from the neighbour is read from narrow memory."""
    neighbour = TILE + 4
    send = (
        "MeshSouth",
        {"tiles": 1 << TILE, "narrow_write_mask": 1}
        | line("narrow_read", 4, 8, sample.RESULT_BYTE // 4)
        | watch(6, 0, 1),
    )
    receive = (
        "MeshSouth",
        {"tiles": 1 << neighbour, "narrow_read_mask": 1, "write_producer_increment": 1}
        | line("narrow_write", 4, 8, 100),
    )
    read = (
        "NarrowToWide",
        {"tiles": 1 << neighbour, "wide_write_base": 50, "row_loop": 6}
        | line("narrow_read", 6, 8, 100)
        | watch(6, 3, 1)
        | {"watcher_stride": [1, 0, 0, 0, 0, 0], "watcher_valid": [int(awaited), 0, 0, 0, 0, 0]},
    )
    found = hazards(with_more("RingOutfeed", send, receive, read))
    assert bool(found) is not awaited
    if found:
        assert only(found).memory == f"narrow memory of tile {neighbour}"
        assert "flag 3 (mesh_inbound_from_north)" in only(found).missing


@pytest.mark.parametrize("fenced", [True, False])
def test_who_takes_what_a_descriptor_brings_comes_after_it(fenced: bool) -> None:
    """The instruction stands in its queue before the fence, but its bytes are asked for after it:
    it overwrites what the ring infeed has read."""
    program = sample.operations()
    names = [name for name, _ in program]
    pop, last = names.index("PopInput"), len(names) - 1 - names[::-1].index("RingOutfeed")
    fence: Operation = ("ScalarFence", {"wait_idle": int(fenced) << ScalarUnit.RING_INFEED})
    address = sample.ADDRESS_REGISTERS[sample.INPUT]
    more = [fence, *sample.issue(DescriptorTag.INPUT, sample.INPUT_BYTES, address)]
    program[last:last] = more
    program.insert(pop + 1, program[pop])
    found = hazards(program)
    assert bool(found) is not fenced
    if found:
        assert {each.memory for each in found} == {"activation buffer"}


def test_accesses_name_the_executable_of_their_program() -> None:
    """Of several programs, some of which are the same one under another number."""
    racing = sample.executable(sample.changed("RingInfeed", watcher_stride=[0, 0]))
    accelerator = Accelerator(hazards=True)
    accelerator.run(sample.executable(), {"image": IMAGE}, number=4)
    for number, numbers in ((3, {3}), (5, {3, 5}), (3, {3, 5})):
        found = accelerator.run(racing, {"image": IMAGE}, number=number).hazards
        accesses = [each for hazard in found for each in (hazard.first, hazard.second)]
        assert {each.executable for each in accesses} == numbers
        assert {"PopInput", "RingInfeed"} <= {each.instruction for each in accesses}
        for hazard in found:
            assert f"of executable {hazard.first.executable} (" in str(hazard)
            assert f"of executable {hazard.second.executable} (" in str(hazard)


def test_each_word_that_is_watched_has_a_name() -> None:
    """By their order in the shadow: memories of each tile, then what is beside the tiles."""
    sizes = {
        "narrow memory": chip.NARROW_BYTES // 4,
        "wide memory": chip.WIDE_ROWS * chip.ROW_WORDS,
        "scale/bias buffer": chip.SCALE_BIAS_WORDS,
    }
    begin = 0
    for tile in range(chip.TILES):
        for name, size in sizes.items():
            for word in (0, size - 1):
                assert named._place(begin + word) == (f"{name} of tile {tile}", word)
            begin += size
    assert begin == clocks.SCALAR_BASE
    for base, end, name in (
        (clocks.SCALAR_BASE, clocks.ACTIVATION_BASE, "scalar memory"),
        (clocks.ACTIVATION_BASE, clocks.PARAMETER_BASE, "activation buffer"),
        (clocks.PARAMETER_BASE, clocks.FLAG_BASE, "parameter buffer"),
    ):
        for word in (0, 1, end - base - 1):
            assert named._place(base + word) == (name, word)
    texts = [
        *(
            text
            for tile in range(chip.TILES)
            for text in (
                *(f"flag {int(each)} ({each.label}) of tile {tile}" for each in TileFlag),
                f"fence count of tile {tile}",
            )
        ),
        *(f"flag {int(each)} ({each.label}) of the scalar core" for each in ScalarFlag),
        *(f"ring channel {name} to tile {tile}" for tile in range(chip.TILES) for name in "AB"),
        *("rows for the outfeed", "output to the host"),
    ]
    found = [named._place(clocks.FLAG_BASE + k) for k in range(len(texts))]
    assert found == [(text, -1) for text in texts]
    assert clocks.FLAG_BASE + len(texts) == clocks.WORDS


def test_each_thread_has_a_name() -> None:
    beside = iter(
        (
            *("scalar core", "activation pop", "parameter pop", "ring infeed", "ring outfeed"),
            *("host", "ring channel A", "ring channel B"),
        )
    )
    units = [each.meaning for each in TileUnit]
    received = units[TileUnit.MESH_SOUTH :]
    names = [*units, *received, "tile fence"]
    for thread in range(clocks.THREADS):
        tile, which = clocks.place_of(thread)
        if tile < 0:
            name = next(beside, None)
            if name is not None:
                assert named._unit(thread) == (-1, name)
        else:
            assert named._unit(thread) == (tile, names[which])


def test_what_was_found_is_told() -> None:
    """Writes of what was there before apart, unless the two met in another way as well."""
    program = lower([bytes(each.bitstream) for each in _BITSTREAMS])
    core = order.new_core()[0]
    checked = CheckedPrograms()
    checked.begin(core, program)
    core["clocks"]["pairs"], core["clocks"]["more"] = 4, 5
    thread = 16 * TILE
    for k, (first, second, same) in enumerate(((3, 4, 1), (3, 4, 0), (4, 5, 1), (-1, 5, 0))):
        record = core["clocks"]["found"][k]
        record["kind"], record["same"], record["words"] = clocks.WRITE_AFTER_WRITE, same, 7 + k
        record["first"], record["second"] = first, second
        record["first_thread"], record["second_thread"] = thread, thread + TileUnit.NARROW_TO_WIDE
    found = checked.hazards(core)
    assert [each.words for each in found.found] == [8, 10]
    assert [each.words for each in found.redundant] == [9]
    assert (found.more, found.used) == (5, int(core["clocks"]["clock"].max()) / clocks.CLOCK_MASK)
    forgotten = found.found[1].first
    assert forgotten == Access("", -1, -1, -1, "tensor unit", TILE, -1)
    assert str(forgotten) == f"an earlier instruction of tensor unit of tile {TILE}"
    assert forgotten.where == "that one"
    beside = Access("Halt", 2, 1, 9, "scalar core", -1, 0)
    assert str(beside) == "Halt at pc 9 of chunk 1 of executable 2 (scalar core)"
    for each in (found.found[0].first, found.found[0].second):
        chunk, pc = program.locate(int(program.tables.pc[3 + (each == found.found[0].second)]))
        assert (each.executable, each.chunk, each.pc, each.tile) == (0, chunk, pc, TILE)


_BITSTREAMS = sample.executable().instruction_bitstreams
