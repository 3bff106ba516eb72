"""A unit equals its netlist, and a netlist of other sources is found to differ."""

from __future__ import annotations

import pytest
from darwinn_rtl.source_files import source
from weaving import Edit

from tests.formal.proofs import PROOFS
from tests.formal.synthesis import UNITS, Result, compare, main

FAULTS = (
    Edit("tile_fence.sv", "«(instruction.wait_idle & ~units2fence_idle) == '0» && counted", "1'b1"),
    Edit("tile_fence.sv", "count_valid = passed && «instruction.increment»", "1'b1"),
)


def require_yosys() -> None:
    pytest.importorskip("pyosys", reason="no yosys: pip install 'darwinn-testbench[dev]'")


def test_a_unit_equals_its_netlist() -> None:
    require_yosys()
    result = compare("tile_fence")
    assert result.good, result.line()
    assert result.pairs > 30


@pytest.mark.parametrize("fault", FAULTS)
def test_a_netlist_of_other_sources_differs(fault: Edit) -> None:
    require_yosys()
    text = source(fault.file).read_text()
    begin, end = fault.span(text)
    result = compare("tile_fence", {fault.file: text[:begin] + fault.replacement + text[end:]})
    assert 0 < result.equal < result.pairs
    assert "NOT PROVED EQUAL" in result.line()


def test_nothing_to_compare_is_not_good() -> None:
    assert not Result("a", 0, 0, 0.1).good


def test_a_unit_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    require_yosys()
    assert main(["nothing"]) == 2
    assert "there is no nothing" in capsys.readouterr().err


def test_the_dma_engine_and_eight_units_of_a_tile_are_compared() -> None:
    """The engine is one that proofs hold as well: its parts are those of the sources."""
    tiles = [design.top for design in UNITS.values() if not design.top.startswith("dma_")]
    assert len(tiles) >= 8
    assert all(source(f"{top}.sv").parent.name in ("tile", "ring") for top in tiles)
    assert any(proof.module == "dma_engine" for proof in PROOFS)
