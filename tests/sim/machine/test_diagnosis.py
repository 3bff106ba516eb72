"""Deadlocks name the units that wait, where their instructions stand, and the flags they miss."""

from __future__ import annotations

from typing import Any

import averaging_program as sample
import numpy as np
import pytest
from averaging_program import Operation
from darwinn_sim import chip
from darwinn_sim.accelerator import Accelerator
from darwinn_sim.errors import Deadlock
from darwinn_sim.isa.builder import build, frame
from darwinn_sim.isa.table import BY_NAME
from darwinn_sim.kernel import state
from darwinn_sim.machine import diagnosis
from darwinn_sim.machine.diagnosis import left_texts
from darwinn_sim.machine.lowering import lower
from unit_bench import Bench

IMAGE = sample.images()()


def waiting(program: list[Operation]) -> tuple[str, ...]:
    with pytest.raises(Deadlock) as caught:
        Accelerator().run(sample.executable(program), {"image": IMAGE})
    assert all(line in str(caught.value) for line in caught.value.waiting)
    return caught.value.waiting


def bundle_of(program: list[Operation], name: str) -> int:
    names = [operation for operation, _ in program]
    return 1 + sum(BY_NAME[n].bundles for n in names[: names.index(name)])


CASES: dict[str, tuple[list[Operation], str, str]] = {
    "tensor unit": (
        sample.changed("TensorSum", **sample.watch(6, 14, 2, None)),
        "TensorSum",
        "tile 5 tensor unit, TensorSum at chunk 0, pc {pc}: "
        "ring_bus_read_a (flag 14) is 1, watched for 2",
    ),
    "narrow-to-wide": (
        sample.changed("NarrowToWide", **sample.watch(6, 3, 7)),
        "NarrowToWide",
        "tile 5 narrow-to-wide, NarrowToWide at chunk 0, pc {pc}: "
        "mesh_inbound_from_north (flag 3) is 0, watched for 7",
    ),
    "ring producer": (
        sample.changed("RingProducer", **sample.watch(3, 18, -32768)),
        "RingProducer",
        "tile 5 ring producer, RingProducer at chunk 0, pc {pc}: "
        "ring_producer_b (flag 18) is 0, watched for -32768",
    ),
    "ring infeed": (
        sample.changed("RingInfeed", watcher_expected=[2, 0]),
        "RingInfeed",
        "ring infeed, 0 queued at chunk 0, pc {pc}: av_pop (flag 0) is 32, watched for 33",
    ),
    "activation pop": (
        sample.changed("PopInput", **sample.line("buffer", 3, 33, 0)),
        "PopInput",
        "activation pop, 0 queued at chunk 0, pc {pc}: no flag is watched",
    ),
    "scalar fence": (
        sample.changed("RingProducer", token_producer_increment=0),
        "",
        "ring_producer_a is 0, expected 1",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_deadlock_names_the_unit_and_the_flag(name: str) -> None:
    """-32768 is half a turn away from 0: never reached, as a signed difference tells."""
    program, instruction, text = CASES[name]
    lines = waiting(program)
    if not instruction:
        assert any(text in line and line.startswith("scalar core at") for line in lines)
        return
    assert text.format(pc=bundle_of(program, instruction)) in lines


def test_a_fence_names_the_tiles_that_are_late() -> None:
    """Only the tile with work left is late; what waits behind the fence is named as well."""
    lines = waiting(sample.changed("TensorSum", **sample.watch(6, 14, 2, None)))
    (core,) = (line for line in lines if line.startswith("scalar core"))
    assert "(ScalarFence)" in core and "tile fence 1 of tiles [5]" in core
    queued = "tile 5: 1 instructions queued, the first is TileFence"
    assert any(line.startswith(queued) for line in lines)


@pytest.mark.parametrize("busy", [{0}, {9}, {2, 5}, set(range(10))])
@pytest.mark.parametrize("tile", [0, 15])
def test_each_unit_of_a_tile_that_works_is_named(tile: int, busy: set[int]) -> None:
    """With one of them, and with none that is idle."""
    program = lower([frame(build([("TensorSum", {})]))])
    (instruction,) = np.flatnonzero(program.tables.opcode == BY_NAME["TensorSum"].opcode)
    tiles, core = state.new_tiles(), state.new_core()[0]
    core["halted"] = 1
    assert diagnosis.waiting(core, tiles, program) == ()
    for unit in busy:
        tiles["units"]["current"][tile, unit] = instruction
    lines = [
        f"tile {tile} {state.UNIT_NAMES[unit]}, TensorSum at chunk 0, pc 1: no flag is watched"
        for unit in sorted(busy)
    ]
    assert list(diagnosis.waiting(core, tiles, program)) == lines


def test_the_scalar_core_is_named_where_it_stands() -> None:
    """With its instruction, if one begins there: its work may be used up before that is seen."""
    operations: list[Operation] = [("Scalar", {}), ("TensorSum", {}), ("Scalar", {}), ("Halt", {})]
    program = lower([frame(build(operations))])
    tiles, core = state.new_tiles(), state.new_core()[0]
    begins, pc = {}, 1
    for name, _ in operations:
        begins[pc] = f" ({name})"
        pc += BY_NAME[name].bundles
    for at in range(1, pc):
        core["pc"] = at
        line = f"scalar core at chunk 0, pc {at}{begins.get(at, '')}"
        assert diagnosis.waiting(core, tiles, program) == (line,)
    core["pc"] = len(program.tables.at)
    (line,) = diagnosis.waiting(core, tiles, program)
    assert "(" not in line


def test_units_that_are_done_are_not_named() -> None:
    lines = waiting(sample.changed("TensorSum", **sample.watch(6, 14, 2, None)))
    assert not any("ring consumer" in line or "activation pop" in line for line in lines)
    assert not any("tile 4" in line for line in lines)


def test_a_wait_in_a_second_chunk_names_it() -> None:
    program = sample.changed("NarrowToWide", **sample.watch(6, 3, 7))
    split = [name for name, _ in program].index("TensorSum")
    with pytest.raises(Deadlock) as caught:
        Accelerator().run(sample.executable(program, split=split), {"image": IMAGE})
    text = "tile 5 narrow-to-wide, NarrowToWide at chunk 1, pc 18"
    assert any(line.startswith(text) for line in caught.value.waiting)


def test_a_watcher_names_what_it_waits_for_next() -> None:
    """The expectation moves by the stride with each block that has passed."""
    fields: dict[str, Any] = sample.watch(6, 11, 4, 1) | {
        "watcher_stride": [10, 0, 0, 0, 0, 0],
        "immediate_valid": 1,
        "tiles": 1,
    }
    bench = Bench([("MeshWest", fields | sample.line("narrow_write", 4, 3, 0))])
    bench.tiles[0]["flags"][11] = 15
    bench.run()
    (line,) = bench.waiting
    assert line.endswith("wide_to_narrow_write (flag 11) is 15, watched for 24")


@pytest.mark.parametrize(
    ("which", "place", "text"),
    [
        ("octets", 0, "3 bytes of input stream parameters"),
        ("octets", 1, "3 bytes of input stream activations"),
        ("outfeed", (), "3 rows of the ring for the outfeed"),
        ("rows", (0, 0), "3 rows of the ring for tile 0, channel A"),
        ("rows", (15, 1), "3 rows of the ring for tile 15, channel B"),
        ("words", (0, 0), "3 words of the mesh for tile 0, link 0"),
        ("words", (15, 3), "3 words of the mesh for tile 15, link 3"),
    ],
)
def test_what_is_left_in_one_fifo_alone_is_said(which: str, place: Any, text: str) -> None:
    fifos = {
        "octets": np.zeros(2, np.int64),
        "outfeed": np.zeros((), np.int64),
        "rows": np.zeros((chip.TILES, 2), np.int64),
        "words": np.zeros((chip.TILES, 4), np.int64),
    }

    def left() -> tuple[str, ...]:
        outfeed = int(fifos["outfeed"])
        return left_texts(fifos["octets"], outfeed, fifos["rows"], fifos["words"])

    assert left() == ()
    fifos[which][place] = 3
    assert left() == (f"{text} are left: no instruction takes them",)
