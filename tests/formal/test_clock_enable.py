"""What a tile holds stays while its clock enable is 0; only therefore may simulations skip it.

It is proved at night, with the larger proofs: it takes more than all of the gate's together.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from darwinn_rtl.source_files import source
from weaving import Edit

from tests.formal.clock_enable import ask_registers
from tests.formal.yosys import Answer

FAULTS = (
    Edit("ring_producer.sv", "ended_now || «passed != unit2ring_row_valid»", "1'b0"),
    Edit("ring_producer.sv", "enable = starting || «ended_now»", "1'b0"),
    Edit("ring_consumer.sv", "enable = starting || «writes»", "1'b0"),
    Edit("narrow_to_wide.sv", "enable = starting || «gathers»", "1'b0"),
    Edit("wide_to_narrow.sv", "writes || «write_passed != write_passes»", "1'b0"),
    Edit("mesh_bus.sv", "enable = «starting»", "1'b0"),
    Edit("mesh_bus.sv", "enable = starting || «receives»", "1'b0"),
    Edit("tensor_unit.sv", "enable = start || «works»", "1'b0"),
    Edit("tensor_unit.sv", "state == DRAIN || «!output_idle»", "1'b0"),
    Edit("tile.sv", "«(instruction_valid & instruction_ready) != '0»", "1'b0"),
    Edit("tile.sv", "«(queue2fence_instruction_valid && queue2fence_instruction_ready)»", "1'b0"),
)


@pytest.fixture(autouse=True)
def _yosys() -> None:
    pytest.importorskip("pyosys", reason="no yosys: pip install 'darwinn-testbench[dev]'")


@pytest.mark.nightly
def test_nothing_changes_without_the_clock_enable(tmp_path: Path) -> None:
    assert ask_registers(tmp_path) is Answer.PROVED


@pytest.mark.nightly
def test_such_a_tile_can_be(tmp_path: Path) -> None:
    """The assumptions do not exclude each other."""
    assert ask_registers(tmp_path, prove=False) is Answer.FOUND


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.file)
def test_what_is_left_out_is_found(fault: Edit, tmp_path: Path) -> None:
    text = source(fault.file).read_text()
    begin, end = fault.span(text)
    changed = {fault.file: text[:begin] + fault.replacement + text[end:]}
    assert ask_registers(tmp_path, changed) is Answer.FOUND
