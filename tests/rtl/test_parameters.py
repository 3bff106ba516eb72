"""The RTL is built with the sizes that the models state, and states none of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from darwinn_rtl.build import OPTIMIZATION_VARIABLE, BuildFailed, Design, as_asked, generate
from darwinn_rtl.harness import HarnessDescription
from darwinn_rtl.parameters import header, packages
from darwinn_rtl.source_files import source_files
from darwinn_sim import chip
from darwinn_sim.timing.description import chip_description


def constants(package: str) -> dict[str, int]:
    found = re.findall(r"localparam int (\w+) = (\d+);", packages()[package])
    return {name: int(value) for name, value in found}


def test_constants_are_those_of_the_models() -> None:
    of_the_chip = constants("chip_pkg")
    assert of_the_chip["WideRows"] == chip.WIDE_ROWS
    assert of_the_chip["TileFlags"] == chip.TILE_FLAGS
    of_the_harness = constants("harness_pkg")
    event_model = chip_description("harness")
    assert of_the_harness["RingRowCycles"] == event_model.ring_row_cycles.value
    assert of_the_harness["DataBytes"] == event_model.link_word_bytes.value
    assert of_the_harness["OutstandingReads"] == HarnessDescription().outstanding_reads


def test_the_header_has_the_constants_of_the_package() -> None:
    found = re.findall(r"constexpr int (\w+) = (\d+);", header())
    assert {name: int(value) for name, value in found} == constants("chip_pkg")


def test_every_size_of_the_harness_is_taken() -> None:
    text = "".join(path.read_text() for path in source_files())
    taken = set(re.findall(r"harness_pkg::(\w+)", text))
    assert taken == set(constants("harness_pkg"))
    assert set(re.findall(r"chip_pkg::(\w+)", text)) <= set(constants("chip_pkg"))


def test_the_input_that_waits_follows_from_the_sizes() -> None:
    """``read_stream.sv`` holds a buffer of words, ``input_pop.sv`` four of its longest units."""
    dma = HarnessDescription()
    waiting = dma.buffer_words * dma.data_bytes + 4 * chip.PARAMETER_UNIT_BYTES
    assert chip_description("harness").host_fifo_bytes.value == waiting


def test_a_register_block_of_another_exporter_is_replaced(tmp_path: Path) -> None:
    design = Design("darwinn_registers", registers=True)
    *_, block = generate(tmp_path, design)
    made = block.read_text()
    for kept_by_an_older_version in ("registers.made_by", block.name):
        (tmp_path / kept_by_an_older_version).write_text("of another exporter")
    generate(tmp_path, design)
    assert block.read_text() == made


def test_builds_of_each_optimisation_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(OPTIMIZATION_VARIABLE, raising=False)  # the tests of the gate set it
    usual = as_asked(Design("chip_player"))
    assert usual.key == Design("chip_player").key
    monkeypatch.setenv(OPTIMIZATION_VARIABLE, "0")
    assert as_asked(usual).optimization == "0"
    assert as_asked(usual).key != usual.key
    monkeypatch.setenv(OPTIMIZATION_VARIABLE, "fast")
    with pytest.raises(BuildFailed, match="DARWINN_RTL_OPTIMIZATION: expected 0, 1, 2 or 3"):
        as_asked(usual)
