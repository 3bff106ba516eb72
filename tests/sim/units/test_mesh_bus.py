"""Mesh bus: random instructions on sets of tiles against a slow model of the torus."""

from __future__ import annotations

from typing import Any

import pytest
from darwinn_sim import chip
from darwinn_sim.units import mesh_bus
from functional_coverage import Coverage
from hypothesis import given
from slow_model import mesh_bus as slow
from stimulus import Walk, constrained_random
from unit_bench import Bench, Operations
from unit_cases.mesh_bus import BINS, cases, cover


def test_random_instructions_exchange_the_words_of_the_slow_model() -> None:
    """Memories and flags of all sixteen tiles agree, also of those that wait for ever."""
    coverage = Coverage("mesh bus", BINS)

    @constrained_random(150)
    @given(cases())
    def check(case: tuple[str, dict[str, Any], int, dict[int, int]]) -> None:
        name, fields, mask, flags = case
        numbers = [t for t in range(chip.TILES) if mask >> t & 1]
        bench = Bench([(name, fields | {"tiles": mask})])
        for flag, value in flags.items():
            bench.tiles["flags"][:, flag] = value
        tiles = {number: bench.tile(number) for number in numbers}
        held = slow.run(tiles, name, fields)
        bench.run()
        assert bench.fault is None
        bench.assert_tiles(tiles.values())
        waiting = {int(line.split()[1]) for line in bench.waiting if line.startswith("tile")}
        assert waiting == held
        cover(coverage, name, fields, numbers, held)

    coverage.close(check)


@pytest.mark.parametrize("name", list(slow.DIRECTIONS))
def test_links_lead_to_the_neighbours_of_the_torus(name: str) -> None:
    link = list(slow.DIRECTIONS).index(name)
    leads = [mesh_bus.neighbour(tile, link) for tile in range(chip.TILES)]
    assert leads == [slow.neighbour(tile, name) for tile in range(chip.TILES)]


def test_words_that_nobody_sends_are_a_wait_that_names_the_unit() -> None:
    write = Walk((4, 1, 1, 1), (1, 0, 0, 0)).fields("MeshEast", "narrow_write")
    bench = Bench([("MeshEast", write | {"tiles": 1 << 6})])
    bench.run()
    (line,) = bench.waiting
    assert line.startswith("tile 6 mesh east, MeshEast at chunk 0, pc 1")


@pytest.mark.parametrize("side", ["narrow_read", "narrow_write"])
def test_a_word_beyond_narrow_memory_is_a_fault(side: str) -> None:
    walk_up = Walk((2, 1, 1, 1), (1, 0, 0, 0), base=chip.NARROW_BYTES // 4 - 1)
    fields = walk_up.fields("MeshNorth", side) | {"tiles": 1 << 5}
    bench = Bench([("MeshNorth", fields | {"immediate_valid": int(side == "narrow_write")})])
    bench.run()
    assert bench.fault == ("narrow memory", "address outside the memory")
    assert int(bench.core["fault_tile"]) == 5


def test_words_keep_the_marks_of_what_nothing_has_written() -> None:
    """A word crosses the mesh with its shadow; an immediate counts as written."""
    read = Walk((2, 1, 1, 1), (1, 0, 0, 0)).fields("MeshSouth", "narrow_read")
    write = Walk((2, 1, 1, 1), (1, 0, 0, 0), base=100).fields("MeshSouth", "narrow_write")
    operations: Operations = [("MeshSouth", read | write | {"tiles": 0b1_0001})]
    bench = Bench(operations, strict=True)
    bench.tiles["narrow_written"][0][:2] = [0x00010000, 0x01010101]
    bench.tiles["narrow_written"][4][100:102] = 0
    bench.run()
    assert bench.tiles["narrow_written"][4][100:102].tolist() == [0x00010000, 0x01010101]
    filled = Bench([("MeshSouth", write | {"tiles": 1, "immediate_valid": 1})], strict=True)
    filled.tiles["narrow_written"][0][:] = 0
    filled.run()
    assert filled.tiles["narrow_written"][0][99:103].tolist() == [0, 0x01010101, 0x01010101, 0]
