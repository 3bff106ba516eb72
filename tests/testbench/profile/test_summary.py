"""The summary of a profile, and which rows its table shows."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

import numpy as np
import pytest
from darwinn_formats import darwinn
from darwinn_sim import chip
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.compiler import compile_network, random_convolution, random_dense
from darwinn_testbench.layers.view import view_layers
from darwinn_testbench.pages import Table
from darwinn_testbench.profile.page import tables
from darwinn_testbench.profile.profile import ProfileFigures, ProfileRow, profile
from darwinn_testbench.profile.summary import summary_lines
from darwinn_testbench.report import Report
from darwinn_testbench.report.tables import cell_text


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("summary") / "dense_edgetpu.tflite"
    path.write_bytes(darwinn.dump(compile_network(random_dense([40, 200, 72], 0))))
    return path


@pytest.fixture(scope="module")
def report(file: Path) -> Report[ProfileRow]:
    return profile(file)


def test_operations_are_those_that_layers_shows() -> None:
    data = darwinn.dump(compile_network(random_convolution(16, 64, 8, 20, 0)))
    rows = {row.number: row for row in profile(data).rows}
    for layer in view_layers(data).rows:
        down, across = layer.kernel or (1, 1)
        assert rows[layer.number].operation == f"conv {down}x{across}"


def test_operations_that_are_not_asked_for_are_empty(file: Path) -> None:
    found = profile(file, operations=False)
    assert {(row.kind, row.operation) for row in found.rows} == {(None, "")}
    assert "operations" not in dict(summary_lines(found))


def test_the_figures_of_the_summary_are_those_of_the_rows(report: Report[ProfileRow]) -> None:
    """Counted again from the rows and the file."""
    found: ProfileFigures = report.figures["profile"]
    lines = dict(summary_lines(report))
    assert len(lines) == 11
    assert f"{1000 / found.milliseconds:,.4g} a second" in lines["time"]
    longest = max(report.rows, key=lambda row: row.cycles)
    assert lines["longest"].startswith(f"{longest.name} {100 * longest.share:.1f} %")
    layers = [row for row in report.rows if row.number is not None]
    share = 100 * sum(row.cycles for row in layers) / found.cycles
    assert f"dense (2 layers) {share:.1f} %" in lines["operations"]
    assert f"{sum(row.products for row in layers):,} products" in lines["multipliers"]
    executable = found.profiled.executable
    assert found.narrow_bytes == executable.used_narrow_memory_bytes_per_tile
    assert 0 < found.wide_bytes < chip.WIDE_ROWS * chip.ROW_BYTES
    assert found.wide_bytes % chip.ROW_BYTES == 0
    assert f"{found.cached_parameter_bytes:,} bytes cached" in lines["parameters"]
    assert f"instruction {found.transfer_bytes['instruction']:,}" in lines["host link"]


def test_parts_of_a_row_are_its_cycles(report: Report[ProfileRow]) -> None:
    """So a figure of them and the table have one unit."""
    for row in report.rows:
        assert sum(row.parts.values()) == pytest.approx(row.cycles)
    drawn = report._repr_html_()
    assert f">{report.rows[0].cycles:,}<" in drawn
    assert "of all tiles" not in drawn


def test_a_notebook_has_the_tables_of_the_page(report: Report[ProfileRow]) -> None:
    """Each cell as the page has it, in its units."""
    made = report._repr_html_()
    for section in tables(report):
        assert f"<p>{section.title}</p>" in made
        for part in section.parts:
            assert isinstance(part, Table)
            heads = "".join(f"<th>{each}</th>" for each in part.headings)
            assert heads in made
            for row in part.rows:
                cells = (escape(cell_text(cell)) for cell in row)
                assert "".join(f"<td>{each}</td>" for each in cells) in made


def shown(printed: str) -> list[int]:
    """Cycles of the rows of the table of layers."""
    body = printed.split("waits most for", 1)[1].split("\n\n", 1)[0]
    return [int(each.replace(",", "")) for each in re.findall(r"([\d,]+) +\d+\.\d +\d+\.\d ", body)]


def test_top_shows_the_longest_first(
    file: Path, report: Report[ProfileRow], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["profile", str(file), "--top", "2"]) == 0
    printed = capsys.readouterr().out
    cycles = sorted((row.cycles for row in report.rows), reverse=True)
    assert shown(printed) == cycles[:2]
    assert f"{len(cycles) - 2} shorter rows not shown, {sum(cycles[2:]):,} cycles" in printed
    assert printed.startswith("time ")


def test_the_table_can_be_sorted(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["profile", str(file), "--sort", "cycles"]) == 0
    cycles = shown(capsys.readouterr().out)
    assert len(cycles) > 2
    assert (np.diff(cycles) <= 0).all()
    assert run_command_line(["profile", str(file), "--top", "3", "--sort", "start"]) == 0
    assert shown(capsys.readouterr().out) != cycles[:3]
    assert run_command_line(["profile", str(file), "--sort", "size"]) == 2
    assert "'size' is not one of 'start', 'cycles'" in capsys.readouterr().err
